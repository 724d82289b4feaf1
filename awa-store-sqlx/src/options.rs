//! How a store is opened.

use std::time::Duration;

use awa_core::StoreError;
use awa_core::error::StoreErrorKind;
use awa_pg::sql::RingSizes;
use awa_pg::store::Clock;
use awa_pg::{PgError, SchemaName};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, PgConnection};

use crate::bind::Keep;
use crate::error::reported;
use crate::store::SqlxStore;

/// How a [`SqlxStore`] is opened. Made by [`SqlxStore::options`].
#[derive(Debug, Clone)]
pub struct SqlxStoreOptions {
    pub(crate) schema: SchemaName,
    pub(crate) rings: RingSizes,
    pub(crate) clock: Clock,
    pub(crate) has_wakeups: bool,
    pub(crate) keep: Keep,
    max_connections: u32,
    acquire_timeout: Duration,
    listen_url: Option<String>,
}

impl Default for SqlxStoreOptions {
    fn default() -> Self {
        Self {
            schema: SchemaName::default(),
            rings: RingSizes::default(),
            clock: Clock::Server,
            has_wakeups: true,
            keep: Keep::Statements,
            max_connections: 10,
            acquire_timeout: Duration::from_secs(10),
            listen_url: None,
        }
    }
}

impl SqlxStoreOptions {
    /// The schema; `awa` unless told. Several installations may live in one database.
    #[must_use]
    pub fn schema(mut self, schema: SchemaName) -> Self {
        self.schema = schema;
        self
    }

    /// At most so many connections, besides the one that listens; 10 unless told.
    #[must_use]
    pub fn max_connections(mut self, connections: u32) -> Self {
        self.max_connections = connections.max(1);
        self
    }

    /// How long a call waits for a free connection; 10 s unless told.
    #[must_use]
    pub fn acquire_timeout(mut self, timeout: Duration) -> Self {
        self.acquire_timeout = timeout;
        self
    }

    /// The sizes of the rings of a new schema; an installed one keeps its own.
    #[must_use]
    pub fn rings(mut self, rings: RingSizes) -> Self {
        self.rings = rings;
        self
    }

    /// Another clock than the server's, for tests.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Whether to listen for wake-ups; yes unless told. Behind a pooler in transaction mode say no, or give
    /// [`Self::listen_url`].
    #[must_use]
    pub fn wakeups(mut self, wanted: bool) -> Self {
        self.has_wakeups = wanted;
        self
    }

    /// Whether a pooler in transaction mode stands between that cannot keep prepared statements, such as `PgBouncer` before
    /// 1.21, or a later one without `max_prepared_statements`; no unless told. Each call then takes three round trips more: its
    /// statement is prepared anew, in a transaction of its own. Say no to [`Self::wakeups`] as well, or give
    /// [`Self::listen_url`].
    #[must_use]
    pub fn transaction_pooler(mut self, between: bool) -> Self {
        self.keep = if between { Keep::Nothing } else { Keep::Statements };
        self
    }

    /// Where to listen, when it is not where the pool connects: a direct address of the server beside a pooler's.
    #[must_use]
    pub fn listen_url(mut self, url: impl Into<String>) -> Self {
        self.listen_url = Some(url.into());
        self
    }

    /// Opens the store and makes one connection, to tell at once when it cannot be reached.
    ///
    /// # Errors
    ///
    /// [`StoreError`] with one clear sentence; a password in `url` is never shown.
    pub async fn connect(self, url: &str) -> Result<SqlxStore, StoreError> {
        let connect = parse(url)?;
        let listen = self.listen_url.as_deref().map_or_else(|| Ok(connect.clone()), parse)?;
        self.try_once(&connect).await.map_err(|error| error.into_store_error("connect"))?;
        // The ping before each use would cost every hot call a second round trip; a connection that broke while idle
        // fails once, as unavailable, and the caller tries again.
        let pool = PgPoolOptions::new()
            .max_connections(self.max_connections)
            .acquire_timeout(self.acquire_timeout)
            .test_before_acquire(false)
            .connect_lazy_with(connect);
        Ok(SqlxStore::assemble(pool, listen, self))
    }
}

impl SqlxStoreOptions {
    /// One attempt to connect, outside the pool: a pool tries again until its time is over, and then says only that no
    /// connection became free.
    async fn try_once(&self, connect: &PgConnectOptions) -> Result<(), PgError> {
        let attempt = tokio::time::timeout(self.acquire_timeout, PgConnection::connect_with(connect)).await;
        let connection = attempt
            .map_err(|_| PgError::connection_lost(format!("no answer within {:?}", self.acquire_timeout)))?
            .map_err(reported)?;
        connection.close().await.map_err(reported)
    }
}

fn parse(url: &str) -> Result<PgConnectOptions, StoreError> {
    let refused = |problem: &str| {
        let problem = format!("the database URL is not understood ({problem}); use postgres://user@host/database");
        StoreError::new(StoreErrorKind::Refused, "connect", problem)
    };
    // The driver would take the URL of any other database for one of PostgreSQL, on its own port.
    if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(refused("it is not one of PostgreSQL"));
    }
    let options: PgConnectOptions =
        url.parse().map_err(|error: sqlx::Error| refused(PgError::from_driver(error.to_string()).message()))?;
    Ok(options.application_name("awa"))
}
