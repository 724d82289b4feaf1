//! A store on PostgreSQL, for any driver.
//!
//! [`PgStore`] carries out every call of the storage traits with statements from `sql/`, on sessions of a [`Pool`].
//! An adapter crate wraps it in a type of its own and hands the traits through with
//! [`delegate_store!`](crate::delegate_store).
//!
//! The hot calls are one statement each. The calls of maintenance gather facts, ask `awa-core` what to do, and do it.

mod clock;
mod close;
mod consume;
mod delegate;
mod doctor;
mod downgrade;
mod drain;
mod enqueue;
mod install;
mod maintain;
mod operate;
mod prune;
mod repair;
mod rescue;
mod rotate;
mod slots;
mod wakeups;

use std::sync::Arc;

use async_trait::async_trait;
use awa_core::error::StoreError;
use tokio::sync::OnceCell;

pub use clock::Clock;
pub use doctor::DoctorOptions;
pub use enqueue::enqueue_on;
pub use install::{PreRing, Prepared};
pub use repair::Repaired;
pub use wakeups::{Listener, ListenerSource, PgWakeups};

use crate::schema_name::SchemaName;
use crate::session::{PgError, Session, Statement};
use crate::sql::{RingSizes, Sql};
use crate::value::{DecodeError, Param, Row};

/// Sessions for the calls of a store. A session goes back to the pool when it is dropped.
#[async_trait]
pub trait Pool: Send + Sync + std::fmt::Debug {
    /// A session of its own for one call, outside any transaction.
    async fn session(&self) -> Result<Box<dyn Session + '_>, PgError>;

    /// What the driver is called, for people.
    fn driver(&self) -> &'static str;
}

/// A store on PostgreSQL. Cheap to clone; clones share the pool.
#[derive(Debug, Clone)]
pub struct PgStore {
    pool: Arc<dyn Pool>,
    /// The statements of the hot calls, which do not depend on the sizes of the rings.
    sql: Arc<Sql>,
    /// All statements, for the sizes of the rings that are installed; read once.
    installed: Arc<OnceCell<Arc<Sql>>>,
    clock: Clock,
    wakeups: Option<PgWakeups>,
}

impl PgStore {
    /// A store in `schema`, on sessions of `pool`. Nothing is asked of the server yet.
    pub fn new(pool: Arc<dyn Pool>, schema: &SchemaName) -> Self {
        Self {
            pool,
            sql: Arc::new(Sql::new(schema, RingSizes::default())),
            installed: Arc::new(OnceCell::new()),
            clock: Clock::Server,
            wakeups: None,
        }
    }

    /// The same store with another clock, for tests.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// The same store with wake-ups through connections of `source`.
    #[must_use]
    pub fn with_wakeups(mut self, source: Arc<dyn ListenerSource>) -> Self {
        self.wakeups = Some(PgWakeups::new(source, Arc::clone(&self.sql)));
        self
    }

    /// The statements of the hot calls, for an adapter's enqueue in the caller's transaction.
    pub fn sql(&self) -> &Sql {
        &self.sql
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The wake-ups, when there are any.
    pub fn wakeups(&self) -> Option<&PgWakeups> {
        self.wakeups.as_ref()
    }

    /// What this store is, for people.
    pub fn describe(&self) -> String {
        format!("PostgreSQL through {}, schema {:?}", self.pool.driver(), self.sql.schema().as_str())
    }

    /// Runs one statement on a session of its own, in a transaction of its own.
    async fn call(
        &self,
        operation: &'static str,
        statement: &Statement,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        self.try_call(statement, params).await.map_err(|error| error.into_store_error(operation))
    }

    async fn try_call(&self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<Row>, PgError> {
        self.pool.session().await?.query(statement, params).await
    }
}

/// Turns a decoding error into the store's: what the server sent does not fit what this program expects.
fn undecodable(operation: &'static str) -> impl Fn(DecodeError) -> StoreError {
    move |error| {
        StoreError::new(
            awa_core::error::StoreErrorKind::NotReady,
            operation,
            format!("the server's answer does not fit this version of awa ({error}); run `awa migrate` of this version"),
        )
        .with_source(error)
    }
}

/// The first row of an answer that always has one.
fn only_row<'r>(operation: &'static str, rows: &'r [Row]) -> Result<&'r Row, StoreError> {
    rows.first().ok_or_else(|| {
        StoreError::new(awa_core::error::StoreErrorKind::Internal, operation, "the server sent no row where one was due")
    })
}
