//! A server for histories.
//!
//! Nobody else writes on the server, and nothing happens there at a time of its own, so that a history means the same in every
//! run, also where a store looks at the transactions that are open.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use awa_pg::SchemaName;
use awa_pg::cluster::{Cluster, ClusterError, ClusterOptions, Durability};
use awa_store_sqlx::SqlxStore;

use super::pristine::{self, Restore};
use crate::postgres::SMALL_RINGS;

const TEMPLATE: &str = "histories";
/// So many databases are made ahead.
const AHEAD: usize = 2;
/// The schemas of a database, one for each driver.
pub(super) const SCHEMAS: [&str; 2] = ["by_sqlx", "by_diesel"];

/// The server. Its databases have two empty schemas each, are made ahead of who takes them, and dropped behind them.
#[derive(Debug)]
pub struct HistoryServer {
    pub(super) cluster: Arc<Cluster>,
    pub(super) restore: [Restore; 2],
    databases: Mutex<Receiver<Result<String, ClusterError>>>,
    used: SyncSender<String>,
}

impl HistoryServer {
    /// Starts the server, and installs both schemas once.
    ///
    /// # Panics
    ///
    /// When PostgreSQL cannot be started.
    pub async fn start() -> Self {
        let settings = [
            ("autovacuum", "off"),
            ("jit", "off"),
            // The plans of so small tables are not worth making twice.
            ("plan_cache_mode", "force_generic_plan"),
            // In a history somebody waits only for a transaction that the history itself ends later.
            ("lock_timeout", "50ms"),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let start = || Cluster::start(ClusterOptions { durability: Durability::Relaxed, settings });
        let cluster = tokio::task::spawn_blocking(start).await.expect("starting panicked");
        let cluster = Arc::new(cluster.expect("PostgreSQL can be started"));
        cluster.create_database(TEMPLATE, None).expect("a database can be created");
        for schema in SCHEMAS {
            let options = SqlxStore::options().schema(name(schema)).rings(SMALL_RINGS).wakeups(false);
            let store = options.connect(&cluster.url(TEMPLATE)).await.expect("the server can be reached");
            store.prepare_schema().await.expect("the schema can be installed");
            store.pool().close().await;
        }
        let restore = SCHEMAS.map(|schema| pristine::keep(&cluster, TEMPLATE, schema));
        let (made, databases) = sync_channel(AHEAD);
        let (used, over) = sync_channel::<String>(1_000);
        let maker = Arc::clone(&cluster);
        std::thread::spawn(move || make(&maker, &made, &over));
        Self { cluster, restore, databases: Mutex::new(databases), used }
    }

    /// A database nobody has used yet.
    pub(super) fn take(&self) -> String {
        let databases = self.databases.lock().expect("nobody panics while waiting");
        databases.recv().expect("databases are made").expect("a database can be made")
    }

    /// Gives it back.
    pub(super) fn drop_database(&self, database: String) {
        self.used.send(database).expect("the maker of databases is there");
    }
}

pub(super) fn name(schema: &str) -> SchemaName {
    SchemaName::new(schema).expect("the name is good")
}

/// Makes databases as long as somebody takes them, and drops those that were used.
fn make(cluster: &Cluster, made: &SyncSender<Result<String, ClusterError>>, over: &Receiver<String>) {
    for number in 0.. {
        let database = format!("history_{number}");
        let result = cluster.create_database(&database, Some(TEMPLATE)).map(|()| database);
        if made.send(result).is_err() {
            return;
        }
        let drops: Vec<_> = over.try_iter().map(|old| format!("DROP DATABASE {old} WITH (FORCE);")).collect();
        if !drops.is_empty() {
            // A database that stays takes room and does no other harm.
            let _ = cluster.psql("postgres", &drops.join("\n"));
        }
    }
}
