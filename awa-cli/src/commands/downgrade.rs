//! `awa downgrade`: says why there is none.

use crate::connect::ConnectionArgs;
use crate::failure::Failure;

/// Refuses, with the rows that an older version could not read.
pub(super) async fn run(connection: &ConnectionArgs) -> Result<(), Failure> {
    match connection.connect().await?.downgrade().await? {}
}
