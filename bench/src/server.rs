//! The one server of a run, and a fresh database on it for each measurement.

use anyhow::{Context as _, Result};
use awa_pg::cluster::{Cluster, ClusterOptions, Durability};
use clap::ValueEnum;
use tokio::task::{JoinHandle, block_in_place};
use tokio_postgres::{Client, NoTls};

use crate::peer::Peer;

/// What every peer is measured under. Beyond the server's defaults only what keeps checkpoints out of the measurements, the
/// data in memory, and the compiler away from statements that a missing statistic makes look large.
const SETTINGS: &[(&str, &str)] = &[
    ("shared_buffers", "1GB"),
    ("max_wal_size", "16GB"),
    ("checkpoint_timeout", "1h"),
    ("max_connections", "200"),
    ("jit", "off"),
];
/// What is said about the server in the output.
const REPORTED: &[&str] = &[
    "server_version",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_level",
    "shared_buffers",
    "max_wal_size",
    "checkpoint_timeout",
    "autovacuum",
    "jit",
];

/// How everybody connects to the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Route {
    /// Through its socket in the file system.
    Socket,
    /// Through TCP on 127.0.0.1. Drivers that leave Nagle's algorithm on (sqlx 0.9.0 does) wait there for an
    /// acknowledgement in the middle of large requests.
    Tcp,
}

/// A throw-away server on this machine with full durability.
#[derive(Debug)]
pub struct Server {
    cluster: Cluster,
    route: Route,
    control: Client,
    _connection: JoinHandle<()>,
}

/// A position in the server's log.
#[derive(Clone, Copy, Debug)]
pub struct WalPosition(i64);

impl WalPosition {
    /// The bytes written between `earlier` and this.
    pub fn since(self, earlier: Self) -> u64 {
        u64::try_from(self.0 - earlier.0).unwrap_or(0)
    }
}

impl Server {
    /// Starts it.
    pub async fn start(route: Route) -> Result<Self> {
        let settings = SETTINGS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut options = ClusterOptions::default();
        options.durability = Durability::Full;
        options.settings = settings;
        let cluster = block_in_place(|| Cluster::start(options)).context("starting a throw-away server")?;
        let (control, connection) = connect(&cluster.url("postgres")).await?;
        Ok(Self { cluster, route, control, _connection: connection })
    }

    fn url(&self, database: &str) -> String {
        match self.route {
            Route::Tcp => self.cluster.url(database),
            Route::Socket => {
                let folder = self.cluster.socket_folder().display().to_string().replace('/', "%2F");
                format!("postgres://postgres@{folder}:{}/{database}", self.cluster.port())
            }
        }
    }

    /// A copy of what `peer` installs, under a URL. The checkpoint makes the first writes of all peers equally dear.
    pub async fn fresh_database(&self, peer: &dyn Peer) -> Result<String> {
        let template = format!("template_{}", peer.name());
        if self.control.query_opt("SELECT 1 FROM pg_database WHERE datname = $1", &[&template]).await?.is_none() {
            self.control.batch_execute(&format!("CREATE DATABASE \"{template}\"")).await?;
            peer.install(&self.url(&template)).await.with_context(|| format!("installing {}", peer.name()))?;
        }
        self.drop_database().await?;
        let end = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = $1";
        self.control.query(end, &[&template]).await?;
        self.control.batch_execute(&format!("CREATE DATABASE measured TEMPLATE \"{template}\"")).await?;
        self.control.batch_execute("CHECKPOINT").await?;
        Ok(self.url("measured"))
    }

    /// Drops the database of the latest measurement.
    pub async fn drop_database(&self) -> Result<()> {
        Ok(self.control.batch_execute("DROP DATABASE IF EXISTS measured WITH (FORCE)").await?)
    }

    /// Gathers statistics on the measured database, as autovacuum would after a while.
    pub async fn analyze(&self) -> Result<()> {
        block_in_place(|| self.cluster.psql("measured", "ANALYZE;"))?;
        Ok(())
    }

    /// Where the log ends now.
    pub async fn wal(&self) -> Result<WalPosition> {
        let row = self.control.query_one("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint", &[]).await?;
        Ok(WalPosition(row.get(0)))
    }

    /// Whether an extension could be created, and in which version.
    pub async fn extension(&self, name: &str) -> Result<Option<String>> {
        let find = "SELECT default_version FROM pg_available_extensions WHERE name = $1";
        Ok(self.control.query_opt(find, &[&name]).await?.map(|row| row.get(0)))
    }

    /// The settings that matter, for the output.
    pub async fn settings(&self) -> Result<Vec<(String, String)>> {
        let mut settings = vec![("connections through".to_owned(), format!("{:?}", self.route).to_lowercase())];
        for name in REPORTED {
            let row = self.control.query_one("SELECT current_setting($1)", &[name]).await?;
            settings.push(((*name).to_owned(), row.get(0)));
        }
        Ok(settings)
    }
}

/// A connection of its own; it ends when the client is dropped.
pub async fn connect(url: &str) -> Result<(Client, JoinHandle<()>)> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.context("connecting")?;
    let driver = tokio::spawn(async move {
        // What breaks the connection fails the calls on it, which report it.
        drop(connection.await);
    });
    Ok((client, driver))
}
