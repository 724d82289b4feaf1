//! How a store is opened.

use std::time::Duration;

use awa_core::StoreError;
use awa_pg::sql::RingSizes;
use awa_pg::store::Clock;
use awa_pg::{PgError, SchemaName};
use diesel_async::AsyncPgConnection;
use diesel_async::pooled_connection::deadpool::Pool;
use tokio::time::timeout;

use crate::connect::{ServerAddress, pool_of};
use crate::error::not_connected;
use crate::store::DieselStore;

/// How a [`DieselStore`] is opened. Made by [`DieselStore::options`].
#[derive(Debug, Clone)]
pub struct DieselStoreOptions {
    pub(crate) schema: SchemaName,
    pub(crate) rings: RingSizes,
    pub(crate) clock: Clock,
    pub(crate) has_wakeups: bool,
    pub(crate) acquire_timeout: Duration,
    max_connections: u32,
    listen_url: Option<String>,
}

impl Default for DieselStoreOptions {
    fn default() -> Self {
        Self {
            schema: SchemaName::default(),
            rings: RingSizes::default(),
            clock: Clock::Server,
            has_wakeups: true,
            acquire_timeout: Duration::from_secs(10),
            max_connections: 10,
            listen_url: None,
        }
    }
}

impl DieselStoreOptions {
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

    /// Where to listen, when it is not where the pool connects: a direct address of the server beside a pooler's.
    #[must_use]
    pub fn listen_url(mut self, url: impl Into<String>) -> Self {
        self.listen_url = Some(url.into());
        self
    }

    /// Opens the store and makes one connection, to tell at once when it cannot be reached.
    ///
    /// What the URL leaves out is taken from the variables `PGHOST`, `PGPORT`, `PGUSER`, `PGPASSWORD` and `PGDATABASE`.
    ///
    /// # Errors
    ///
    /// [`StoreError`] with one clear sentence; a password in `url` is never shown.
    pub async fn connect(self, url: &str) -> Result<DieselStore, StoreError> {
        let address = ServerAddress::parse(url)?;
        let listen = self.listen_url.as_deref().map_or_else(|| Ok(address.clone()), ServerAddress::parse)?;
        self.try_once(&address).await.map_err(|error| error.into_store_error("connect"))?;
        let direct = pool_of(listen, 1);
        Ok(DieselStore::assemble(pool_of(address, self.max_connections), direct, self))
    }

    /// A store on a pool of the caller's, whose manager also makes the connection that listens; the options about
    /// connections do not matter then. This is the way to encrypted connections: give the manager a `custom_setup` that
    /// makes them. Give it `RecyclingMethod::Fast` too, else each call costs two round trips.
    pub fn on_pool(self, pool: Pool<AsyncPgConnection>) -> DieselStore {
        DieselStore::assemble(pool.clone(), pool, self)
    }

    /// One attempt to connect, outside the pool, so that waiting for a free connection is not part of it.
    async fn try_once(&self, address: &ServerAddress) -> Result<(), PgError> {
        let attempt = timeout(self.acquire_timeout, address.connect()).await;
        let no_answer = |_| PgError::connection_lost(format!("no answer within {:?}", self.acquire_timeout));
        attempt.map_err(no_answer)?.map(drop).map_err(not_connected)
    }
}
