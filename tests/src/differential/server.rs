//! A server for histories: each gets a database with two empty schemas, one for each driver, made ahead of it and dropped
//! behind it.
//!
//! Nobody else writes on the server, and nothing happens there at a time of its own, so that a history means the same in every
//! run, also where a store looks at the transactions that are open.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use async_trait::async_trait;
use awa_conformance::{Capabilities, Subject, SubjectTransaction};
use awa_core::{Store, Timestamp};
use awa_pg::SchemaName;
use awa_pg::cluster::{Cluster, ClusterError, ClusterOptions, Durability};
use awa_store_diesel::DieselStore;
use awa_store_sqlx::{Clock, SqlxStore};

use crate::diesel_store::AsyncTransaction;
use crate::memory::FreshMemory;
use crate::postgres::{OpenTransaction, SMALL_RINGS};

/// Where the clock of every history begins.
pub const START: Timestamp = Timestamp::from_micros(1_790_000_000_000_000);
const TEMPLATE: &str = "histories";
/// So many databases are made ahead.
const AHEAD: usize = 2;

/// The server.
#[derive(Debug)]
pub struct HistoryServer {
    cluster: Arc<Cluster>,
    databases: Receiver<Result<String, ClusterError>>,
    used: SyncSender<String>,
}

impl HistoryServer {
    /// Starts the server, and installs both schemas once.
    ///
    /// # Panics
    ///
    /// When PostgreSQL cannot be started.
    pub async fn start() -> Self {
        let settings = [("autovacuum", "off"), ("jit", "off")];
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
        let (made, databases) = sync_channel(AHEAD);
        let (used, over) = sync_channel::<String>(1_000);
        let maker = Arc::clone(&cluster);
        std::thread::spawn(move || make(&maker, &made, &over));
        Self { cluster, databases, used }
    }

    /// Empty stores on a database of their own, and one in memory, all at [`START`].
    ///
    /// # Panics
    ///
    /// When PostgreSQL fails.
    pub async fn fresh(&self) -> FreshStores {
        let database = self.databases.recv().expect("databases are made").expect("a database can be made");
        let (url, clock) = (self.cluster.url(&database), Clock::manual(START));
        let options = SqlxStore::options().schema(name(SCHEMAS[0])).wakeups(false).max_connections(4);
        let sqlx = options.clock(clock.clone()).connect(&url).await.expect("the server can be reached");
        let options = DieselStore::options().schema(name(SCHEMAS[1])).wakeups(false).max_connections(4);
        let other_clock = Clock::manual(START);
        let diesel = options.clock(other_clock.clone()).connect(&url).await.expect("the server can be reached");
        FreshStores {
            memory: FreshMemory::at(START),
            sqlx: SqlxSubject { store: sqlx, clock },
            diesel: DieselSubject { store: diesel, clock: other_clock },
            database,
        }
    }

    /// Gives the stores back.
    pub async fn done(&self, stores: FreshStores) {
        stores.sqlx.store.pool().close().await;
        stores.diesel.store.pool().close();
        self.used.send(stores.database).expect("the maker of databases is there");
    }
}

const SCHEMAS: [&str; 2] = ["by_sqlx", "by_diesel"];

fn name(schema: &str) -> SchemaName {
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

/// The stores of one history.
#[derive(Debug)]
pub struct FreshStores {
    /// In memory.
    pub memory: FreshMemory,
    /// Through sqlx.
    pub sqlx: SqlxSubject,
    /// Through diesel.
    pub diesel: DieselSubject,
    database: String,
}

/// A store through sqlx.
#[derive(Debug)]
pub struct SqlxSubject {
    store: SqlxStore,
    clock: Clock,
}

#[async_trait]
impl Subject for SqlxSubject {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn begin(&self) -> Box<dyn SubjectTransaction> {
        Box::new(OpenTransaction::begin(&self.store).await)
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::all(SMALL_RINGS.queue, SMALL_RINGS.claim)
    }
}

/// A store through diesel.
#[derive(Debug)]
pub struct DieselSubject {
    store: DieselStore,
    clock: Clock,
}

#[async_trait]
impl Subject for DieselSubject {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn begin(&self) -> Box<dyn SubjectTransaction> {
        Box::new(AsyncTransaction::begin(&self.store).await)
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::all(SMALL_RINGS.queue, SMALL_RINGS.claim)
    }
}
