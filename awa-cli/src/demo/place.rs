//! Where the queue of the demo lives.

use std::sync::Arc;

use awa_core::{JobId, NewJob, Store};
use awa_pg::SchemaName;
use awa_pg::cluster::{Cluster, ClusterError, ClusterOptions};
use awa_store_mem::{MemStore, MemTransaction};
use tokio::task::spawn_blocking;

use super::StoreChoice;
use crate::connect::{ConnectionArgs, DatabaseUrl};
use crate::driver::{self, Driver};
use crate::failure::Failure;
use crate::output::complain;

/// The schema in a database that is somebody's: apart from real jobs, whose workers the demo would take for dead.
const DEMO_SCHEMA: &str = "awa_demo";
/// Connections of this process: producers, transactions that stay open, and the monitor.
const CONNECTIONS: u32 = 20;

/// A store that is ready, and what it takes to reach it from another process.
#[derive(Debug)]
pub(super) enum Place {
    /// The memory of this process.
    Memory(MemStore),
    /// A database.
    Postgres(Box<Database>),
}

/// A database with a prepared schema.
#[derive(Debug)]
pub(super) struct Database {
    pub(super) store: driver::Database,
    pub(super) driver: Driver,
    pub(super) url: DatabaseUrl,
    pub(super) schema: SchemaName,
    /// The throw-away server, which ends with this value.
    cluster: Option<Cluster>,
}

impl Place {
    /// Opens what was chosen.
    pub(super) async fn open(choice: StoreChoice, connection: &ConnectionArgs) -> Result<Self, Failure> {
        if choice == StoreChoice::Memory {
            return Ok(Self::Memory(MemStore::new()));
        }
        if let Some(url) = connection.given_url()? {
            let schema = connection.schema_or(DEMO_SCHEMA)?;
            return Database::prepare(connection.driver(), url.clone(), schema, None).await;
        }
        match throw_away().await? {
            Ok(cluster) => {
                let url = DatabaseUrl::of_cluster(cluster.url("postgres"));
                let schema = connection.schema_or(ConnectionArgs::DEFAULT_SCHEMA)?;
                Database::prepare(connection.driver(), url, schema, Some(cluster)).await
            }
            Err(error) if choice == StoreChoice::Auto => {
                complain(&format!("no PostgreSQL: {}", Failure::from(error).message()));
                complain("so the demo works in memory, in one process, and the killed worker is simulated");
                Ok(Self::Memory(MemStore::new()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The store.
    pub(super) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Memory(store) => Arc::new(store.clone()),
            Self::Postgres(database) => database.store.shared(),
        }
    }

    /// The name in the report.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Memory(_) => "memory",
            Self::Postgres(_) => "postgres",
        }
    }

    /// The name of the driver in the report.
    pub(super) fn driver(&self) -> Option<&'static str> {
        match self {
            Self::Memory(_) => None,
            Self::Postgres(database) => Some(database.driver()),
        }
    }

    /// What it is, for people.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Memory(_) => "memory, in one process; the kill of a worker is simulated".to_owned(),
            Self::Postgres(database) => match &database.cluster {
                Some(cluster) => format!("a throw-away PostgreSQL {} through {}", cluster.version(), database.driver()),
                None => format!("the given PostgreSQL through {}, schema {}", database.driver(), database.schema),
            },
        }
    }

    /// What opens transactions on it.
    pub(super) fn transactions(&self) -> TransactionSource {
        match self {
            Self::Memory(store) => TransactionSource::Memory(store.clone()),
            Self::Postgres(database) => TransactionSource::Postgres(database.store.clone()),
        }
    }
}

impl Database {
    fn driver(&self) -> &'static str {
        self.driver.as_str()
    }

    async fn prepare(
        driver: Driver,
        url: DatabaseUrl,
        schema: SchemaName,
        cluster: Option<Cluster>,
    ) -> Result<Place, Failure> {
        let store = url.open(driver, schema.clone(), CONNECTIONS).await?;
        store.prepare_schema().await?;
        Ok(Place::Postgres(Box::new(Self { store, driver, url, schema, cluster })))
    }
}

/// Starts a throw-away server, which takes a second or two.
async fn throw_away() -> Result<Result<Cluster, ClusterError>, Failure> {
    let started = spawn_blocking(|| Cluster::start(ClusterOptions::default())).await;
    started.map_err(|error| Failure::of("starting a throw-away PostgreSQL", &error))
}

/// Opens transactions. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) enum TransactionSource {
    Memory(MemStore),
    Postgres(driver::Database),
}

/// A transaction of the application, in which jobs are enqueued.
#[derive(Debug)]
pub(super) enum Transaction {
    Memory(MemTransaction),
    Postgres(driver::Transaction),
}

impl TransactionSource {
    /// Begins one.
    pub(super) async fn begin(&self) -> Result<Transaction, Failure> {
        Ok(match self {
            Self::Memory(store) => Transaction::Memory(store.begin()?),
            Self::Postgres(database) => Transaction::Postgres(database.begin().await?),
        })
    }
}

impl Transaction {
    /// Enqueues in it.
    pub(super) async fn enqueue(&mut self, jobs: &[NewJob]) -> Result<Vec<JobId>, Failure> {
        let enqueued = match self {
            Self::Memory(transaction) => transaction.enqueue(jobs)?,
            Self::Postgres(transaction) => transaction.enqueue(jobs).await?,
        };
        Ok(enqueued.into_iter().map(awa_core::Enqueued::id).collect())
    }

    /// Commits it.
    pub(super) async fn commit(self) -> Result<(), Failure> {
        match self {
            Self::Memory(transaction) => Ok(transaction.commit()?),
            Self::Postgres(transaction) => transaction.commit().await,
        }
    }

    /// Rolls it back.
    pub(super) async fn roll_back(self) -> Result<(), Failure> {
        match self {
            Self::Memory(transaction) => Ok(transaction.rollback()?),
            Self::Postgres(transaction) => transaction.roll_back().await,
        }
    }
}
