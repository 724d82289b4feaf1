//! Which database, and the way to it.

use std::convert::Infallible;
use std::env;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use awa_core::{StoreError, StoreErrorKind};
use awa_pg::SchemaName;
use clap::Args;

use crate::driver::{Database, Driver};
use crate::failure::Failure;

/// The schemes of a PostgreSQL URL.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
/// The variables of libpq that say where a database is; one of them suffices to go by them.
const PG_VARIABLES: [&str; 5] = ["PGHOST", "PGHOSTADDR", "PGPORT", "PGUSER", "PGDATABASE"];

/// How long to wait for a connection: for a person who waits, and a server that is asleep.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where the database is.
#[derive(Args, Debug)]
pub(crate) struct ConnectionArgs {
    /// The database: postgres://user@host:port/name. Prefer the variable: flags are visible to other users.
    #[arg(long, global = true, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: Option<DatabaseUrl>,

    /// The schema that Awa lives in [default: awa; of the demo: awa_demo].
    #[arg(long, global = true, value_name = "NAME")]
    schema: Option<SchemaName>,

    /// The library between this program and PostgreSQL; both do the same.
    #[arg(long, global = true, env = "AWA_DRIVER", value_enum, default_value_t = Driver::Sqlx)]
    driver: Driver,
}

impl ConnectionArgs {
    /// The schema of Awa unless told.
    pub(crate) const DEFAULT_SCHEMA: &str = "awa";

    /// The URL that was given by flag or variable, if any.
    pub(crate) fn given_url(&self) -> Result<Option<&DatabaseUrl>, Failure> {
        // An empty variable is how scripts unset one.
        self.database_url.as_ref().filter(|url| !url.0.is_empty()).map(DatabaseUrl::checked).transpose()
    }

    /// The schema that was given, else `default`.
    pub(crate) fn schema_or(&self, default: &str) -> Result<SchemaName, Failure> {
        Ok(self.schema.clone().map_or_else(|| SchemaName::new(default), Ok)?)
    }

    /// The driver.
    pub(crate) fn driver(&self) -> Driver {
        self.driver
    }

    /// Connects, whatever state the schema is in.
    pub(crate) async fn connect(&self) -> Result<Database, Failure> {
        const CONNECTIONS: u32 = 4;
        self.connect_with(CONNECTIONS).await
    }

    /// Connects to a schema that is ready for this version of Awa.
    pub(crate) async fn connect_ready(&self, connections: u32) -> Result<Database, Failure> {
        let store = self.connect_with(connections).await?;
        store.check_ready().await.map_err(connecting)?;
        Ok(store)
    }

    async fn connect_with(&self, connections: u32) -> Result<Database, Failure> {
        // An empty URL leaves everything to the PG variables.
        let by_variables = DatabaseUrl(SCHEMES[0].to_owned());
        let url = match self.given_url()? {
            Some(url) => url,
            None if PG_VARIABLES.iter().any(|name| env::var_os(name).is_some()) => &by_variables,
            None => {
                return Err(Failure::usage(
                    "no database given; set DATABASE_URL=postgres://user@host/name or pass --database-url",
                ));
            }
        };
        url.open(self.driver, self.schema_or(Self::DEFAULT_SCHEMA)?, connections).await
    }
}

/// The URL of a database. It may hold a password, so it prints as stars.
#[derive(Clone)]
pub(crate) struct DatabaseUrl(String);

impl DatabaseUrl {
    /// A URL that this program made itself.
    pub(crate) fn of_cluster(url: String) -> Self {
        Self(url)
    }

    /// The URL with its password, for a child's environment.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Connects to `schema`, with at most so many connections.
    pub(crate) async fn open(&self, driver: Driver, schema: SchemaName, connections: u32) -> Result<Database, Failure> {
        driver.open(&self.0, schema, connections, PATIENCE).await.map_err(connecting)
    }

    fn checked(&self) -> Result<&Self, Failure> {
        if SCHEMES.iter().any(|scheme| self.0.starts_with(scheme)) {
            return Ok(self);
        }
        Err(Failure::usage("the database URL must begin with postgres:// or postgresql://"))
    }
}

/// Every text is taken, because a refusal here would print it; it is checked before it is used.
impl FromStr for DatabaseUrl {
    type Err = Infallible;

    fn from_str(url: &str) -> Result<Self, Infallible> {
        Ok(Self(url.to_owned()))
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A failure on the way to a ready store, with what helps.
fn connecting(error: StoreError) -> Failure {
    let is_unavailable = error.kind() == StoreErrorKind::Unavailable;
    let failure = Failure::from(error);
    if is_unavailable {
        return failure.with("the URL is that of --database-url or DATABASE_URL");
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(url: Option<&str>) -> ConnectionArgs {
        ConnectionArgs { database_url: url.map(|url| DatabaseUrl(url.to_owned())), schema: None, driver: Driver::Sqlx }
    }

    #[test]
    fn both_schemes_are_taken_and_others_refused_without_showing_the_url() {
        assert!(args(Some("postgres://h/d")).given_url().unwrap().is_some());
        assert!(args(Some("postgresql://h/d")).given_url().unwrap().is_some());
        assert!(args(Some("")).given_url().unwrap().is_none());
        let refusal = args(Some("mysql://me:secret@h/d")).given_url().unwrap_err();
        assert!(!refusal.message().contains("secret"), "{refusal:?}");
    }
}
