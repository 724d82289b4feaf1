//! A fresh store on PostgreSQL through diesel, and transactions of applications that use it, async or blocking.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use awa_conformance::{Capabilities, Subject, SubjectTransaction};
use awa_core::attempt::ErrorText;
use awa_core::store::Acted;
use awa_core::{Enqueued, JobId, NewJob, Store, StoreError};
use awa_pg::cluster::TestDatabase;
use awa_store_diesel::{BlockingProducer, Clock, DieselStore, DieselStoreOptions, RingSizes};
use diesel::connection::TransactionManager as _;
use diesel::{Connection, PgConnection};
use diesel_async::pooled_connection::deadpool::Object;
use diesel_async::{AsyncConnection, AsyncPgConnection, TransactionManager as _};
use tokio::task::spawn_blocking;

use crate::postgres::{SMALL_RINGS, clock_from_now, fresh_database};

/// A store in a database of its own, dropped with the value.
#[derive(Debug)]
pub struct FreshDieselStore {
    /// The store.
    pub store: DieselStore,
    /// Its clock, when it is not the server's.
    pub clock: Clock,
    /// Its database.
    pub database: TestDatabase,
    rings: RingSizes,
    kind: TransactionKind,
}

/// Which connections the transactions of a subject are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TransactionKind {
    Async,
    Blocking,
}

impl FreshDieselStore {
    /// A store with small rings and a clock that the test moves.
    pub async fn with_manual_clock() -> Self {
        Self::new(SMALL_RINGS, clock_from_now()).await
    }

    /// The same, for a suite whose transactions are on blocking connections.
    pub async fn with_blocking_transactions() -> Self {
        Self { kind: TransactionKind::Blocking, ..Self::with_manual_clock().await }
    }

    /// A store with rings of these sizes and this clock.
    pub async fn new(rings: RingSizes, clock: Clock) -> Self {
        let database = fresh_database(rings).await;
        let store = open(&database, clock.clone(), rings, |options| options).await;
        Self { store, clock, database, rings, kind: TransactionKind::Async }
    }

    /// Another pool on the same database.
    pub async fn another_pool(&self, change: impl FnOnce(DieselStoreOptions) -> DieselStoreOptions) -> DieselStore {
        open(&self.database, self.clock.clone(), self.rings, change).await
    }

    /// A blocking connection of its own.
    ///
    /// # Panics
    ///
    /// When the server cannot be reached.
    pub async fn connect_blocking(&self) -> PgConnection {
        let url = self.database.url();
        let connection = spawn_blocking(move || PgConnection::establish(&url)).await.expect("connecting panicked");
        connection.expect("the test's database can be reached")
    }
}

async fn open(
    database: &TestDatabase,
    clock: Clock,
    rings: RingSizes,
    change: impl FnOnce(DieselStoreOptions) -> DieselStoreOptions,
) -> DieselStore {
    let options = change(DieselStore::options().rings(rings).max_connections(8).clock(clock));
    options.connect(&database.url()).await.expect("the test's database can be reached")
}

#[async_trait]
impl Subject for FreshDieselStore {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn begin(&self) -> Box<dyn SubjectTransaction> {
        match self.kind {
            TransactionKind::Async => Box::new(AsyncTransaction::begin(&self.store).await),
            TransactionKind::Blocking => {
                let mut connection = self.connect_blocking().await;
                Blocking::begin_transaction(&mut connection).expect("a transaction can be opened");
                Box::new(BlockingTransaction { jobs: self.store.blocking(), connection: Some(connection) })
            }
        }
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::all(self.rings.queue, self.rings.claim)
    }
}

type Async = <AsyncPgConnection as AsyncConnection>::TransactionManager;
type Blocking = <PgConnection as Connection>::TransactionManager;

/// A transaction of an application on an async connection.
#[allow(missing_debug_implementations)]
pub struct AsyncTransaction {
    store: DieselStore,
    connection: Option<Object<AsyncPgConnection>>,
}

impl AsyncTransaction {
    /// Begins one on a connection of the store's pool.
    ///
    /// # Panics
    ///
    /// When the server cannot be reached.
    pub async fn begin(store: &DieselStore) -> Self {
        let mut connection = store.pool().get().await.expect("a connection is free");
        Async::begin_transaction(&mut *connection).await.expect("a transaction can be opened");
        Self { store: store.clone(), connection: Some(connection) }
    }

    fn connection(&mut self) -> &mut AsyncPgConnection {
        self.connection.as_mut().expect("the transaction is open")
    }
}

/// A pool looks at a connection when it is taken again, and until then its transaction would stay open.
impl Drop for AsyncTransaction {
    fn drop(&mut self) {
        drop(self.connection.take().map(Object::take));
    }
}

#[async_trait]
impl SubjectTransaction for AsyncTransaction {
    async fn enqueue(&mut self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        let store = self.store.clone();
        store.enqueue_in(self.connection(), jobs).await
    }

    async fn cancel(&mut self, jobs: &[JobId], reason: &ErrorText) -> Result<Vec<Acted>, StoreError> {
        let store = self.store.clone();
        store.cancel_in(self.connection(), jobs, reason).await
    }

    async fn commit(mut self: Box<Self>) -> Result<(), StoreError> {
        Async::commit_transaction(self.connection()).await.expect("the transaction commits");
        drop(self.connection.take());
        Ok(())
    }

    async fn rollback(mut self: Box<Self>) -> Result<(), StoreError> {
        Async::rollback_transaction(self.connection()).await.expect("the transaction rolls back");
        drop(self.connection.take());
        Ok(())
    }
}

/// A transaction of an application on a blocking connection, whose every call is made on a thread that may wait.
struct BlockingTransaction {
    jobs: BlockingProducer,
    connection: Option<PgConnection>,
}

impl BlockingTransaction {
    async fn on_a_thread<T: Send + 'static>(
        &mut self,
        call: impl FnOnce(&mut PgConnection) -> T + Send + 'static,
    ) -> T {
        let mut connection = self.connection.take().expect("the transaction is open");
        let call = spawn_blocking(move || {
            let answer = call(&mut connection);
            (connection, answer)
        });
        let (connection, answer) = call.await.expect("the call does not panic");
        self.connection = Some(connection);
        answer
    }
}

#[async_trait]
impl SubjectTransaction for BlockingTransaction {
    async fn enqueue(&mut self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        let (producer, jobs) = (self.jobs.clone(), jobs.to_vec());
        self.on_a_thread(move |connection| producer.enqueue_in(connection, &jobs)).await
    }

    async fn cancel(&mut self, jobs: &[JobId], reason: &ErrorText) -> Result<Vec<Acted>, StoreError> {
        let (producer, jobs, reason) = (self.jobs.clone(), jobs.to_vec(), reason.clone());
        self.on_a_thread(move |connection| producer.cancel_in(connection, &jobs, &reason)).await
    }

    async fn commit(mut self: Box<Self>) -> Result<(), StoreError> {
        self.on_a_thread(Blocking::commit_transaction).await.expect("the transaction commits");
        Ok(())
    }

    async fn rollback(mut self: Box<Self>) -> Result<(), StoreError> {
        let rolled_back = self.on_a_thread(Blocking::rollback_transaction).await;
        rolled_back.expect("the transaction rolls back");
        Ok(())
    }
}
