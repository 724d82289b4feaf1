//! Enqueue in transactions of the blocking connection.

use std::sync::Arc;

use async_trait::async_trait;
use awa_core::attempt::{ErrorText, Receipt};
use awa_core::store::Acted;
use awa_core::{Enqueued, JobId, JsonText, NewJob, NotCompleted, StoreError};
use awa_pg::session::{PgError, Session, Statement};
use awa_pg::sql::RingSizes;
use awa_pg::store::{Clock, PgStore, cancel_on, complete_on, enqueue_on};
use awa_pg::value::{Param, Row};
use awa_pg::{SchemaName, Sql};
use diesel::PgConnection;
use diesel::connection::{DefaultLoadingMode, LoadConnection, SimpleConnection};
use futures::FutureExt;

use crate::bind::{Bound, read};
use crate::error::reported;

/// Why a future over a [`Blocking`] session is never polled twice.
const READY: &str = "the future of a session that blocks is ready at once";

/// Enqueues and cancels in transactions of the blocking `diesel::PgConnection`, without a runtime and without connections of its own.
/// Cheap to clone. The schema must have been set up, by `awa migrate` or `DieselStore::prepare_schema`.
///
/// ```no_run
/// use awa_core::{JobKind, JsonText, NewJob, QueueName};
/// use awa_store_diesel::{BlockingProducer, SchemaName};
/// use diesel::{Connection, PgConnection, RunQueryDsl};
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let jobs = BlockingProducer::new(&SchemaName::default());
/// let job = NewJob::new(QueueName::new("email")?, JobKind::new("send_email")?, JsonText::new("args", "{}")?);
/// let mut connection = PgConnection::establish("postgres://localhost/app")?;
/// connection.transaction(|connection| {
///     diesel::sql_query("INSERT INTO users (name) VALUES ('Ada')").execute(connection)?;
///     jobs.enqueue_in(connection, &[job])?; // exists if and only if the user does
///     Ok::<_, Box<dyn std::error::Error>>(())
/// })
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct BlockingProducer {
    sql: Arc<Sql>,
    clock: Clock,
}

impl BlockingProducer {
    /// A producer for the schema.
    pub fn new(schema: &SchemaName) -> Self {
        Self { sql: Arc::new(Sql::new(schema, RingSizes::default())), clock: Clock::Server }
    }

    pub(crate) fn of(store: &PgStore) -> Self {
        Self { sql: Arc::new(store.sql().clone()), clock: store.clock().clone() }
    }

    /// Enqueues inside a transaction of the caller's: the jobs exist if and only if it commits, and until then they
    /// delay nobody. It blocks the thread for one round trip.
    ///
    /// # Errors
    ///
    /// As [`DieselStore::enqueue_in`](crate::DieselStore::enqueue_in).
    pub fn enqueue_in(&self, connection: &mut PgConnection, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        let mut session = Blocking(connection);
        let enqueued = enqueue_on(&mut session, &self.sql, &self.clock, jobs).now_or_never();
        enqueued.expect(READY)
    }

    /// Cancels jobs inside a transaction of the caller's: if and only if it commits, and without delaying anybody until then.
    /// See [`cancel_on`] for what the answers mean. It blocks the thread for one round trip.
    ///
    /// # Errors
    ///
    /// As [`cancel_on`].
    pub fn cancel_in(
        &self,
        connection: &mut PgConnection,
        jobs: &[JobId],
        reason: &ErrorText,
    ) -> Result<Vec<Acted>, StoreError> {
        let mut session = Blocking(connection);
        cancel_on(&mut session, &self.sql, &self.clock, jobs, reason).now_or_never().expect(READY)
    }

    /// Completes an attempt inside a transaction of the caller's, with a result to keep if there is one. See [`complete_on`]. It
    /// blocks the thread for one round trip.
    ///
    /// # Errors
    ///
    /// As [`complete_on`]: roll the transaction back.
    pub fn complete_in(
        &self,
        connection: &mut PgConnection,
        receipt: &Receipt,
        result: Option<&JsonText>,
    ) -> Result<(), NotCompleted> {
        let mut session = Blocking(connection);
        complete_on(&mut session, &self.sql, &self.clock, receipt, result).now_or_never().expect(READY)
    }
}

/// A session whose calls are over when they return.
struct Blocking<'c>(&'c mut PgConnection);

#[async_trait]
impl Session for Blocking<'_> {
    async fn query(&mut self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<Row>, PgError> {
        let rows =
            LoadConnection::<DefaultLoadingMode>::load(self.0, Bound::new(statement, params)).map_err(reported)?;
        let rows = rows.collect::<Result<Vec<_>, _>>().map_err(reported)?;
        Ok(read(&rows))
    }

    async fn batch(&mut self, sql: &str) -> Result<(), PgError> {
        self.0.batch_execute(sql).map_err(reported)
    }

    fn abandon(&mut self) {
        // The caller's transaction is the caller's: diesel rolls it back when its closure returns an error.
    }
}
