//! The store.

use std::sync::Arc;

use awa_core::attempt::{ErrorText, Receipt};
use awa_core::store::Acted;
use awa_core::{Enqueued, JobId, JsonText, NewJob, NotCompleted, StoreError};
use awa_pg::delegate_store;
use awa_pg::store::{PgStore, cancel_on, complete_on, enqueue_on};
use sqlx::postgres::PgConnectOptions;
use sqlx::{PgConnection, PgPool};

use crate::bind::Keep;
use crate::listen::ListenDirectly;
use crate::options::SqlxStoreOptions;
use crate::session::{Borrowed, SqlxPool};

/// A store on PostgreSQL through sqlx. Cheap to clone; clones share the pool.
#[derive(Debug, Clone)]
pub struct SqlxStore {
    core: PgStore,
    pool: PgPool,
    rings: awa_pg::sql::RingSizes,
    keep: Keep,
}

delegate_store!(SqlxStore, core, rings);

impl SqlxStore {
    /// Opens a store with the default options.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the server cannot be reached or refuses.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::options().connect(url).await
    }

    /// Options of a store.
    pub fn options() -> SqlxStoreOptions {
        SqlxStoreOptions::default()
    }

    /// A store in the schema `awa` on a pool of the caller's. Switch the pool's `test_before_acquire` off, else each
    /// call costs two round trips. A connection that has answered a call is kept for the next one for up to a second, unless the
    /// pool has no other: then it goes back at once.
    pub fn from_pool(pool: PgPool) -> Self {
        let listen = pool.connect_options().as_ref().clone();
        Self::assemble(pool, listen, SqlxStoreOptions::default())
    }

    pub(crate) fn assemble(pool: PgPool, listen: PgConnectOptions, options: SqlxStoreOptions) -> Self {
        let keep = options.keep;
        let shared = SqlxPool::new(pool.clone(), keep);
        let mut core = PgStore::new(Arc::new(shared.clone()), &options.schema).with_clock(options.clock);
        if options.has_wakeups {
            core = core.with_wakeups(Arc::new(ListenDirectly { options: listen, pool: shared }));
        }
        Self { core, pool, rings: options.rings, keep }
    }

    /// Enqueues inside a transaction of the caller's: the jobs exist if and only if it commits, and until then they
    /// delay nobody. Pass `&mut *tx`.
    ///
    /// # Errors
    ///
    /// As [`Producer::enqueue`](awa_core::store::Producer::enqueue). Bad input is refused earlier, when the
    /// [`NewJob`] is made, so that it leaves the transaction as it was. Who asks for a unique key that another open
    /// transaction has taken waits for its end; under REPEATABLE READ and SERIALIZABLE a key that was taken after the
    /// snapshot is a serialization failure, [`Contended`](awa_core::StoreErrorKind::Contended): run the transaction again.
    pub async fn enqueue_in(
        &self,
        connection: &mut PgConnection,
        jobs: &[NewJob],
    ) -> Result<Vec<Enqueued>, StoreError> {
        enqueue_on(&mut Borrowed { connection, keep: self.keep }, self.core.sql(), self.core.clock(), jobs).await
    }

    /// Cancels jobs inside a transaction of the caller's: if and only if it commits, and without delaying anybody until then.
    /// Pass `&mut *tx`. See [`cancel_on`] for what the answers mean.
    ///
    /// # Errors
    ///
    /// As [`cancel_on`].
    pub async fn cancel_in(
        &self,
        connection: &mut PgConnection,
        jobs: &[JobId],
        reason: &ErrorText,
    ) -> Result<Vec<Acted>, StoreError> {
        cancel_on(&mut Borrowed { connection, keep: self.keep }, self.core.sql(), self.core.clock(), jobs, reason).await
    }

    /// Completes an attempt inside a transaction of the caller's, together with its rows and the jobs that it enqueues there: all of
    /// it exists if and only if the transaction commits. Pass `&mut *tx`. The receipt is
    /// `JobContext::receipt` of the handler, which then returns `Outcome::Ended`. See [`complete_on`].
    ///
    /// # Errors
    ///
    /// As [`complete_on`]: roll the transaction back.
    pub async fn complete_in(&self, connection: &mut PgConnection, receipt: &Receipt) -> Result<(), NotCompleted> {
        complete_on(&mut Borrowed { connection, keep: self.keep }, self.core.sql(), self.core.clock(), receipt, None)
            .await
    }

    /// As [`Self::complete_in`], with a result to keep.
    ///
    /// # Errors
    ///
    /// As [`complete_on`]: roll the transaction back.
    pub async fn complete_with_in(
        &self,
        connection: &mut PgConnection,
        receipt: &Receipt,
        result: &JsonText,
    ) -> Result<(), NotCompleted> {
        complete_on(
            &mut Borrowed { connection, keep: self.keep },
            self.core.sql(),
            self.core.clock(),
            receipt,
            Some(result),
        )
        .await
    }

    /// The pool.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }
}
