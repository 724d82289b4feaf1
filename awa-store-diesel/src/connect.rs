//! From a URL to connections.

use std::env;
use std::path::Path;

use awa_core::error::{StoreError, StoreErrorKind};
use awa_pg::PgError;
use deadpool::managed::QueueMode;
use diesel::ConnectionResult;
use diesel_async::AsyncPgConnection;
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod};
use futures::FutureExt;
use tokio_postgres::{Config, NoTls};

use crate::error::carried;

/// Where Debian and PostgreSQL itself put the socket of a server.
const SOCKET_FOLDERS: [&str; 2] = ["/var/run/postgresql", "/tmp"];
const DEFAULT_PORT: u16 = 5432;

/// Where a database is, and as whom to go there. Its debug output shows no password.
#[derive(Debug, Clone)]
pub(crate) struct ServerAddress(Config);

impl ServerAddress {
    /// Reads a URL of PostgreSQL; what it leaves out is taken from libpq's variables.
    pub(crate) fn parse(url: &str) -> Result<Self, StoreError> {
        // The driver would take any other text for libpq's list of keys and values.
        if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(not_understood("it is not one of PostgreSQL"));
        }
        let mut config: Config = url
            .parse()
            .map_err(|error: tokio_postgres::Error| not_understood(PgError::from_driver(in_full(&error)).message()))?;
        fill_in(&mut config)?;
        config.application_name("awa");
        Ok(Self(config))
    }

    /// Makes a connection.
    pub(crate) async fn connect(&self) -> ConnectionResult<AsyncPgConnection> {
        let (client, connection) = self.0.connect(NoTls).await.map_err(carried)?;
        AsyncPgConnection::try_from_client_and_connection(client, connection).await
    }
}

/// A pool of at most so many connections, each made when it is needed.
pub(crate) fn pool_of(address: ServerAddress, max_connections: u32) -> Pool<AsyncPgConnection> {
    let mut config = ManagerConfig::default();
    // A ping before each use would cost every hot call a second round trip; a connection that broke while idle is found
    // out when the socket closes, or fails once, as unavailable, and the caller tries again.
    config.recycling_method = RecyclingMethod::Fast;
    config.custom_setup = Box::new(move |_| {
        let address = address.clone();
        async move { address.connect().await }.boxed()
    });
    let manager = AsyncDieselConnectionManager::new_with_config("", config);
    // The one that was used last is the warmest.
    let built = Pool::builder(manager).max_size(max_connections as usize).queue_mode(QueueMode::Lifo).build();
    built.expect("a pool without time-outs of its own can be built anywhere")
}

/// What a URL leaves out, as libpq does it.
fn fill_in(config: &mut Config) -> Result<(), StoreError> {
    let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
    if config.get_ports().is_empty() {
        let port = variable("PGPORT").map_or(Ok(DEFAULT_PORT), |port| port.parse());
        config.port(port.map_err(|_| not_understood("PGPORT is not the number of a port"))?);
    }
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        let port = config.get_ports().first().copied().unwrap_or(DEFAULT_PORT);
        config.host(variable("PGHOSTADDR").or_else(|| variable("PGHOST")).unwrap_or_else(|| default_host(port)));
    }
    if config.get_user().is_none()
        && let Some(user) = variable("PGUSER")
    {
        config.user(user);
    }
    if config.get_password().is_none()
        && let Some(password) = variable("PGPASSWORD")
    {
        config.password(password);
    }
    if config.get_dbname().is_none()
        && let Some(database) = variable("PGDATABASE")
    {
        config.dbname(database);
    }
    Ok(())
}

/// The folder of a server's socket on this machine, else this machine by its network.
fn default_host(port: u16) -> String {
    let has_socket = |folder: &&&str| Path::new(folder).join(format!(".s.PGSQL.{port}")).exists();
    SOCKET_FOLDERS.iter().find(has_socket).map_or("localhost", |folder| folder).to_owned()
}

/// An error with what tokio-postgres keeps in its cause.
fn in_full(error: &tokio_postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

fn not_understood(problem: &str) -> StoreError {
    let problem = format!("the database URL is not understood ({problem}); use postgres://user@host/database");
    StoreError::new(StoreErrorKind::Refused, "connect", problem)
}
