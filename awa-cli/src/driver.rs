//! The drivers: the only file of this program that names them.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use awa_core::doctor::Report;
use awa_core::{Enqueued, NewJob, Store, StoreError};
use awa_pg::SchemaName;
use awa_pg::store::{DoctorOptions, Measure, Prepared, Repaired};
use awa_store_diesel::DieselStore;
use awa_store_sqlx::SqlxStore;
use clap::ValueEnum;
use diesel_async::pooled_connection::deadpool::Object;
use diesel_async::{AsyncConnection, AsyncPgConnection, TransactionManager as _};

use crate::failure::Failure;

/// The library between this program and PostgreSQL. Both do the same.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Driver {
    /// sqlx.
    Sqlx,
    /// diesel, with diesel-async.
    Diesel,
}

impl Driver {
    /// The name, as the flag takes it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Sqlx => "sqlx",
            Self::Diesel => "diesel",
        }
    }

    /// Connects to `schema`, with at most so many connections.
    pub(crate) async fn open(
        self,
        url: &str,
        schema: SchemaName,
        connections: u32,
        patience: Duration,
    ) -> Result<Database, StoreError> {
        Ok(match self {
            Self::Sqlx => {
                let options = SqlxStore::options().schema(schema).max_connections(connections);
                Database::Sqlx(options.acquire_timeout(patience).connect(url).await?)
            }
            Self::Diesel => {
                let options = DieselStore::options().schema(schema).max_connections(connections);
                Database::Diesel(options.acquire_timeout(patience).connect(url).await?)
            }
        })
    }
}

/// A store in a database. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) enum Database {
    Sqlx(SqlxStore),
    Diesel(DieselStore),
}

/// The same call on whichever store it is.
macro_rules! on_either {
    ($database:expr, $store:ident => $call:expr) => {
        match $database {
            Database::Sqlx($store) => $call,
            Database::Diesel($store) => $call,
        }
    };
}

impl Deref for Database {
    type Target = dyn Store;

    fn deref(&self) -> &(dyn Store + 'static) {
        on_either!(self, store => store)
    }
}

impl Database {
    /// The store, for who keeps it.
    pub(crate) fn shared(&self) -> Arc<dyn Store> {
        on_either!(self, store => Arc::new(store.clone()))
    }

    pub(crate) async fn prepare_schema(&self) -> Result<Prepared, StoreError> {
        on_either!(self, store => store.prepare_schema().await)
    }

    pub(crate) async fn check_ready(&self) -> Result<(), StoreError> {
        on_either!(self, store => store.check_ready().await)
    }

    pub(crate) async fn repair(&self) -> Result<Repaired, StoreError> {
        on_either!(self, store => store.repair().await)
    }

    pub(crate) async fn downgrade(&self) -> Result<std::convert::Infallible, StoreError> {
        on_either!(self, store => store.downgrade().await)
    }

    pub(crate) async fn doctor(&self, options: &DoctorOptions) -> Result<Report, StoreError> {
        on_either!(self, store => store.doctor(options).await)
    }

    /// A look at what the server counts.
    pub(crate) fn measure(&self) -> Measure<'_> {
        on_either!(self, store => store.measure())
    }

    /// Closes the pool, and with it all connections that are not in use.
    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlx(store) => store.pool().close().await,
            Self::Diesel(store) => store.pool().close(),
        }
    }

    /// Begins a transaction of an application.
    pub(crate) async fn begin(&self) -> Result<Transaction, Failure> {
        const WHAT: &str = "beginning a transaction";
        Ok(match self {
            Self::Sqlx(store) => {
                let begun = store.pool().begin().await;
                Transaction::Sqlx(store.clone(), begun.map_err(|error| Failure::of(WHAT, &error))?)
            }
            Self::Diesel(store) => {
                let mut connection = store.pool().get().await.map_err(|error| Failure::of(WHAT, &error))?;
                Diesel::begin_transaction(&mut *connection).await.map_err(|error| Failure::of(WHAT, &error))?;
                Transaction::Diesel(store.clone(), Box::new(OpenConnection(Some(connection))))
            }
        })
    }
}

type Diesel = <AsyncPgConnection as AsyncConnection>::TransactionManager;

/// A transaction of an application, in which jobs are enqueued. Dropping it rolls it back.
#[derive(Debug)]
pub(crate) enum Transaction {
    Sqlx(SqlxStore, sqlx::Transaction<'static, sqlx::Postgres>),
    Diesel(DieselStore, Box<OpenConnection>),
}

impl Transaction {
    /// Enqueues in it.
    pub(crate) async fn enqueue(&mut self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        match self {
            Self::Sqlx(store, transaction) => store.enqueue_in(&mut *transaction, jobs).await,
            Self::Diesel(store, connection) => store.enqueue_in(connection.get(), jobs).await,
        }
    }

    /// Commits it.
    pub(crate) async fn commit(self) -> Result<(), Failure> {
        const WHAT: &str = "committing a transaction";
        match self {
            Self::Sqlx(_, transaction) => transaction.commit().await.map_err(|error| Failure::of(WHAT, &error)),
            Self::Diesel(_, mut connection) => {
                Diesel::commit_transaction(connection.get()).await.map_err(|error| Failure::of(WHAT, &error))?;
                connection.give_back();
                Ok(())
            }
        }
    }

    /// Rolls it back.
    pub(crate) async fn roll_back(self) -> Result<(), Failure> {
        const WHAT: &str = "rolling a transaction back";
        match self {
            Self::Sqlx(_, transaction) => transaction.rollback().await.map_err(|error| Failure::of(WHAT, &error)),
            Self::Diesel(_, mut connection) => {
                Diesel::rollback_transaction(connection.get()).await.map_err(|error| Failure::of(WHAT, &error))?;
                connection.give_back();
                Ok(())
            }
        }
    }
}

/// A connection with an open transaction, which is closed unless it is given back: a pool looks at a connection only when it
/// is taken again.
pub(crate) struct OpenConnection(Option<Object<AsyncPgConnection>>);

impl OpenConnection {
    fn get(&mut self) -> &mut AsyncPgConnection {
        self.0.as_mut().expect("it is given back only when the transaction is over")
    }

    fn give_back(mut self) {
        drop(self.0.take());
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        drop(self.0.take().map(Object::take));
    }
}

impl std::fmt::Debug for OpenConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OpenConnection")
    }
}
