//! `awa repair`: makes a schema usable that was carried here from another cluster.

use awa_core::ring::RingKind;
use awa_pg::store::Repaired;
use serde::Serialize;

use crate::connect::ConnectionArgs;
use crate::failure::Failure;
use crate::output::Format;

/// The answer of `awa repair --json`.
#[derive(Serialize, Debug)]
struct Answer {
    schema: String,
    /// Whether the schema had been carried into this cluster.
    was_carried: bool,
    /// Waiting jobs that were appended again.
    moved_jobs: u64,
    /// Jobs outside the rings whose places were numbered anew.
    renumbered_jobs: u64,
    /// Finished jobs whose history was moved.
    moved_history: u64,
    /// Rings with a new generation: `claim`, `lease`, `queue`.
    reopened: Vec<String>,
    /// Sequences that were raised.
    raised: Vec<&'static str>,
}

impl From<&Repaired> for Answer {
    fn from(repaired: &Repaired) -> Self {
        Self {
            schema: repaired.schema.clone(),
            was_carried: repaired.was_carried,
            moved_jobs: repaired.moved_jobs,
            renumbered_jobs: repaired.renumbered_jobs,
            moved_history: repaired.moved_history,
            reopened: repaired.reopened.iter().map(RingKind::to_string).collect(),
            raised: repaired.raised.clone(),
        }
    }
}

/// Repairs the schema.
pub(super) async fn run(connection: &ConnectionArgs, format: Format) -> Result<(), Failure> {
    let repaired = connection.connect().await?.repair().await?;
    format.answer(&Answer::from(&repaired), |_| repaired.to_string())
}
