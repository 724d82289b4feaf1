//! `awa migrate`: sets up the schema.

use awa_pg::store::Prepared;
use serde::Serialize;

use crate::connect::ConnectionArgs;
use crate::failure::Failure;
use crate::output::Format;

/// The answer of `awa migrate --json`.
#[derive(Serialize, Debug)]
struct Migrated {
    schema: String,
    /// Whether the schema was made.
    created: bool,
    /// Titles of the migrations that were applied, in order.
    migrations: Vec<String>,
    /// How many functions and views were made or replaced.
    objects: usize,
}

impl From<&Prepared> for Migrated {
    fn from(prepared: &Prepared) -> Self {
        let Prepared { schema, created, migrations, objects, .. } = prepared;
        Self { schema: schema.clone(), created: *created, migrations: migrations.clone(), objects: *objects }
    }
}

/// Prepares the schema.
pub(super) async fn run(connection: &ConnectionArgs, format: Format) -> Result<(), Failure> {
    let store = connection.connect().await?;
    let prepared = store.prepare_schema().await?;
    format.answer(&Migrated::from(&prepared), |_| prepared.to_string())
}
