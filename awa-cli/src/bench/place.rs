//! Where it is measured: the memory of this process, a throw-away server, or a database of somebody's.

use std::collections::BTreeMap;

use awa_pg::SchemaName;
use awa_pg::cluster::{Cluster, ClusterError, ClusterOptions};
use tokio::task::spawn_blocking;

use super::args::{BenchArgs, StoreChoice};
use crate::connect::{ConnectionArgs, DatabaseUrl};
use crate::driver::{Database, Driver};
use crate::failure::Failure;
use crate::output::complain;

/// The database of a throw-away server.
const DATABASE: &str = "postgres";
/// The settings that a report tells: those that speed and durability depend on.
const SETTINGS: [&str; 18] = [
    "autovacuum",
    "checkpoint_timeout",
    "commit_delay",
    "effective_io_concurrency",
    "fsync",
    "full_page_writes",
    "huge_pages",
    "jit",
    "max_connections",
    "max_wal_size",
    "shared_buffers",
    "shared_preload_libraries",
    "synchronous_commit",
    "wal_buffers",
    "wal_compression",
    "wal_level",
    "wal_sync_method",
    "work_mem",
];

/// See the module.
#[derive(Debug)]
pub(super) enum Place {
    Memory,
    Postgres(Box<Server>),
}

/// A server that can be reached.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) url: DatabaseUrl,
    pub(super) driver: Driver,
    /// The throw-away server, which ends with this value.
    pub(super) cluster: Option<Cluster>,
}

impl Place {
    /// Opens what was chosen.
    pub(super) async fn open(args: &BenchArgs, connection: &ConnectionArgs) -> Result<Self, Failure> {
        if args.store == StoreChoice::Memory {
            return Ok(Self::Memory);
        }
        let driver = connection.driver();
        if let Some(url) = connection.given_url()? {
            if !args.server_settings.is_empty() {
                return Err(Failure::usage("--server-setting is for the throw-away server; unset DATABASE_URL"));
            }
            return Ok(Self::Postgres(Box::new(Server { url: url.clone(), driver, cluster: None })));
        }
        let settings = args.server_settings.clone();
        let started = spawn_blocking(move || start(&settings)).await;
        let cluster = started.map_err(|error| Failure::of("starting a throw-away PostgreSQL", &error))??;
        let url = DatabaseUrl::of_cluster(cluster.url(DATABASE));
        Ok(Self::Postgres(Box::new(Server { url, driver, cluster: Some(cluster) })))
    }

    /// What it is, for people.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Memory => "memory".to_owned(),
            Self::Postgres(server) => match &server.cluster {
                Some(cluster) => {
                    format!("a throw-away PostgreSQL {} through {}", cluster.version(), server.driver.as_str())
                }
                None => format!("the given PostgreSQL through {}", server.driver.as_str()),
            },
        }
    }
}

impl Server {
    /// A store of this server, with at most so many connections.
    pub(super) async fn connect(&self, schema: &SchemaName, connections: u32) -> Result<Database, Failure> {
        self.url.open(self.driver, schema.clone(), connections).await
    }

    /// The settings that a report tells, with the version.
    pub(super) async fn settings(&self) -> Result<BTreeMap<String, String>, Failure> {
        let names: Vec<&str> = SETTINGS.into_iter().chain(["server_version"]).collect();
        let store = self.connect(&SchemaName::new(ConnectionArgs::DEFAULT_SCHEMA)?, 1).await?;
        let settings = store.measure().settings(&names).await;
        store.close().await;
        Ok(settings?)
    }

    /// Writes what is dirty to disk, so that every measurement begins alike. Only on a server of our own.
    pub(super) async fn checkpoint(&self) -> Result<(), Failure> {
        let Some(cluster) = &self.cluster else { return Ok(()) };
        // It takes at most seconds, and nothing else goes on in this process meanwhile.
        tokio::task::block_in_place(|| cluster.psql(DATABASE, "CHECKPOINT"))?;
        Ok(())
    }
}

/// Starts a throw-away server, which takes a second or two: with the module that counts statements where it is installed.
fn start(settings: &[(String, String)]) -> Result<Cluster, ClusterError> {
    const COUNTING: &str = "pg_stat_statements";
    let preload = "shared_preload_libraries";
    let options = |counting: bool| {
        let counting = counting.then(|| (preload.to_owned(), COUNTING.to_owned()));
        let settings = counting.into_iter().chain(settings.iter().cloned()).collect();
        ClusterOptions { settings, ..ClusterOptions::default() }
    };
    let cluster = match Cluster::start(options(true)) {
        Err(ClusterError::NotReady { log, .. }) if log.contains(COUNTING) => {
            complain("pg_stat_statements is not installed, so statements are not counted");
            Cluster::start(options(false))?
        }
        started => started?,
    };
    if cluster.psql(DATABASE, "SHOW shared_preload_libraries")?.contains(COUNTING) {
        cluster.psql(DATABASE, "CREATE EXTENSION pg_stat_statements")?;
    }
    Ok(cluster)
}
