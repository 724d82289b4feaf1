//! A store on PostgreSQL, for any driver.
//!
//! [`PgStore`] carries out every call of the storage traits with statements from `sql/`, on sessions of a [`Pool`].
//! An adapter crate wraps it in a type of its own and hands the traits through with
//! [`delegate_store!`](crate::delegate_store).
//!
//! The hot calls are one statement each. The calls of maintenance gather facts, ask `awa-core` what to do, and do it.

mod attempts;
mod clock;
mod close;
mod complete_in;
mod consume;
mod count;
mod delegate;
mod doctor;
mod downgrade;
mod drain;
mod enqueue;
mod gather;
mod grow;
mod install;
mod maintain;
mod measure;
mod operate;
mod prune;
mod repair;
mod rescue;
mod rescue_leases;
mod rotate;
mod shortcut;
mod slots;
mod sweeps;
mod unpin;
mod wakeups;

use std::sync::Arc;

use async_trait::async_trait;
use awa_core::error::StoreError;
use tokio::sync::OnceCell;

pub use clock::Clock;
pub use complete_in::complete_on;
pub use doctor::DoctorOptions;
pub use enqueue::enqueue_on;
pub use install::{PreRing, Prepared};
pub use measure::{Counters, HeldSnapshot, Measure};
pub use operate::cancel_on;
pub use repair::Repaired;
pub use wakeups::{Listener, ListenerSource, PgWakeups, listen_script};

use crate::schema_name::SchemaName;
use crate::session::{PgError, Session, Statement, Transaction, TransactionLimits};
use crate::sql::{RingSizes, Sql};
use crate::value::{DecodeError, Param, Row};

/// Sessions for the calls of a store. A session goes back to the pool when it is dropped.
#[async_trait]
pub trait Pool: Send + Sync + std::fmt::Debug {
    /// A session of its own for one call, outside any transaction.
    async fn session(&self) -> Result<Box<dyn Session + '_>, PgError>;

    /// What the driver is called, for people.
    fn driver(&self) -> &'static str;

    /// Whether its sessions keep what they prepare, as behind a pooler in transaction mode they may not.
    fn keeps_statements(&self) -> bool {
        true
    }
}

/// A store on PostgreSQL. Cheap to clone; clones share the pool.
#[derive(Debug, Clone)]
pub struct PgStore {
    pool: Arc<dyn Pool>,
    /// The statements of the hot calls, which do not depend on the sizes of the rings.
    sql: Arc<Sql>,
    /// All statements, once the installation was found to fit this program.
    installed: Arc<OnceCell<Arc<Sql>>>,
    /// Whether a statement on its own runs at READ COMMITTED; asked once.
    reads_committed: Arc<OnceCell<bool>>,
    clock: Clock,
    wakeups: Option<PgWakeups>,
    gathering: gather::Gathering,
    shortcut: Arc<shortcut::Shortcut>,
}

impl PgStore {
    /// A store in `schema`, on sessions of `pool`. Nothing is asked of the server yet.
    pub fn new(pool: Arc<dyn Pool>, schema: &SchemaName) -> Self {
        Self {
            pool,
            sql: Arc::new(Sql::new(schema, RingSizes::default())),
            installed: Arc::new(OnceCell::new()),
            reads_committed: Arc::new(OnceCell::new()),
            clock: Clock::Server,
            wakeups: None,
            gathering: gather::Gathering::default(),
            shortcut: Arc::default(),
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
        let mut session = self.pool.session().await?;
        self.query_alone(session.as_mut(), statement, params).await
    }

    /// Runs one statement in a transaction of its own, which is always READ COMMITTED: a role or a database may have a
    /// stricter default, under which a claim would read old cursors and a closure could not tell who won. Only then does
    /// it cost three round trips.
    async fn query_alone(
        &self,
        session: &mut dyn Session,
        statement: &Statement,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, PgError> {
        if self.reads_committed(session).await? {
            return session.query(statement, params).await;
        }
        let mut transaction = Transaction::begin(session, &TransactionLimits::default()).await?;
        let rows = transaction.session().query(statement, params).await;
        transaction.finish(rows, std::convert::identity).await
    }

    async fn reads_committed(&self, session: &mut dyn Session) -> Result<bool, PgError> {
        if let Some(known) = self.reads_committed.get() {
            return Ok(*known);
        }
        let rows = session.query(self.sql.statement("install/default_isolation"), &[]).await?;
        let is_default = rows.first().is_none_or(|row| row.text(0).is_ok_and(|level| level == "read committed"));
        Ok(*self.reads_committed.get_or_init(async || is_default).await)
    }
}

/// Turns a decoding error into the store's: what the server sent does not fit what this program expects.
fn undecodable(operation: &'static str) -> impl Fn(DecodeError) -> StoreError {
    move |error| {
        StoreError::new(
            awa_core::error::StoreErrorKind::NotReady,
            operation,
            format!(
                "the server's answer does not fit this version of awa ({error}); run `awa migrate` of this version"
            ),
        )
        .with_source(error)
    }
}

/// The first row of an answer that always has one.
fn only_row<'r>(operation: &'static str, rows: &'r [Row]) -> Result<&'r Row, StoreError> {
    rows.first().ok_or_else(|| {
        StoreError::new(
            awa_core::error::StoreErrorKind::Internal,
            operation,
            "the server sent no row where one was due",
        )
    })
}
