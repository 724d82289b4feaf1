//! The store.

use std::fmt;
use std::sync::Arc;

use awa_core::attempt::{ErrorText, Receipt};
use awa_core::store::Acted;
use awa_core::{Enqueued, JobId, JsonText, NewJob, NotCompleted, StoreError};
use awa_pg::delegate_store;
use awa_pg::store::{PgStore, cancel_on, complete_on, enqueue_on};
use diesel_async::AsyncPgConnection;
use diesel_async::pooled_connection::deadpool::Pool;

use crate::listen::ListenDirectly;
use crate::options::DieselStoreOptions;
use crate::session::{Borrowed, DieselPool};

/// A store on PostgreSQL through diesel. Cheap to clone; clones share the pool.
#[derive(Clone)]
pub struct DieselStore {
    core: PgStore,
    pool: Pool<AsyncPgConnection>,
    rings: awa_pg::sql::RingSizes,
}

delegate_store!(DieselStore, core, rings);

impl fmt::Debug for DieselStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DieselStore").field("core", &self.core).field("rings", &self.rings).finish_non_exhaustive()
    }
}

impl DieselStore {
    /// Opens a store with the default options.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the server cannot be reached or refuses.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::options().connect(url).await
    }

    /// Options of a store.
    pub fn options() -> DieselStoreOptions {
        DieselStoreOptions::default()
    }

    /// A store in the schema `awa` on a pool of the caller's; see [`DieselStoreOptions::on_pool`].
    pub fn from_pool(pool: Pool<AsyncPgConnection>) -> Self {
        Self::options().on_pool(pool)
    }

    pub(crate) fn assemble(
        pool: Pool<AsyncPgConnection>,
        direct: Pool<AsyncPgConnection>,
        options: DieselStoreOptions,
    ) -> Self {
        let sessions = DieselPool { pool: pool.clone(), patience: options.acquire_timeout };
        let mut core = PgStore::new(Arc::new(sessions.clone()), &options.schema).with_clock(options.clock);
        if options.has_wakeups {
            core = core.with_wakeups(Arc::new(ListenDirectly { direct, pool: sessions }));
        }
        Self { core, pool, rings: options.rings }
    }

    /// Enqueues inside a transaction of the caller's: the jobs exist if and only if it commits, and until then they
    /// delay nobody.
    ///
    /// # Errors
    ///
    /// As [`Producer::enqueue`](awa_core::store::Producer::enqueue). Bad input is refused earlier, when the
    /// [`NewJob`] is made, so that it leaves the transaction as it was. Who asks for a unique key that another open
    /// transaction has taken waits for its end; under REPEATABLE READ and SERIALIZABLE a key that was taken after the
    /// snapshot is a serialization failure, [`Contended`](awa_core::StoreErrorKind::Contended): run the transaction again.
    pub async fn enqueue_in(
        &self,
        connection: &mut AsyncPgConnection,
        jobs: &[NewJob],
    ) -> Result<Vec<Enqueued>, StoreError> {
        enqueue_on(&mut Borrowed(connection), self.core.sql(), self.core.clock(), jobs).await
    }

    /// Cancels jobs inside a transaction of the caller's: if and only if it commits, and without delaying anybody until then.
    /// See [`cancel_on`] for what the answers mean.
    ///
    /// # Errors
    ///
    /// As [`cancel_on`].
    pub async fn cancel_in(
        &self,
        connection: &mut AsyncPgConnection,
        jobs: &[JobId],
        reason: &ErrorText,
    ) -> Result<Vec<Acted>, StoreError> {
        cancel_on(&mut Borrowed(connection), self.core.sql(), self.core.clock(), jobs, reason).await
    }

    /// Completes an attempt inside a transaction of the caller's, together with its rows and the jobs that it enqueues there: all of
    /// it exists if and only if the transaction commits. The receipt is
    /// `JobContext::receipt` of the handler, which then returns `Outcome::Ended`. See [`complete_on`].
    ///
    /// # Errors
    ///
    /// As [`complete_on`]: roll the transaction back.
    pub async fn complete_in(&self, connection: &mut AsyncPgConnection, receipt: &Receipt) -> Result<(), NotCompleted> {
        complete_on(&mut Borrowed(connection), self.core.sql(), self.core.clock(), receipt, None).await
    }

    /// As [`Self::complete_in`], with a result to keep.
    ///
    /// # Errors
    ///
    /// As [`complete_on`]: roll the transaction back.
    pub async fn complete_with_in(
        &self,
        connection: &mut AsyncPgConnection,
        receipt: &Receipt,
        result: &JsonText,
    ) -> Result<(), NotCompleted> {
        complete_on(&mut Borrowed(connection), self.core.sql(), self.core.clock(), receipt, Some(result)).await
    }

    /// A producer for transactions of the blocking `diesel::PgConnection`, on the clock and in the schema of this store.
    #[cfg(feature = "blocking")]
    pub fn blocking(&self) -> crate::BlockingProducer {
        crate::BlockingProducer::of(&self.core)
    }

    /// The pool.
    pub fn pool(&self) -> &Pool<AsyncPgConnection> {
        &self.pool
    }
}
