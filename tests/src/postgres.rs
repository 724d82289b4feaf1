//! A fresh store on PostgreSQL, in a database of its own on the server that all tests of a run share.

use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use awa_conformance::SubjectTransaction;
use awa_core::attempt::ErrorText;
use awa_core::store::Acted;
use awa_core::{Enqueued, JobId, NewJob, StoreError, Timestamp};
use awa_pg::cluster::{TestDatabase, TestServer};
use awa_pg::{SchemaName, Sql};
use awa_store_sqlx::{Clock, RingSizes, SqlxStore, SqlxStoreOptions};
use sqlx::{Postgres, Transaction};

/// Rings small enough that a test can turn them.
pub const SMALL_RINGS: RingSizes = RingSizes { queue: 4, claim: 3, lease: 3 };

/// A store in a database of its own, dropped with the value.
#[derive(Debug)]
pub struct FreshStore {
    /// The store.
    pub store: SqlxStore,
    /// Its clock, when it is not the server's.
    pub clock: Clock,
    /// Its database. Dropped last, after the pool is told to close.
    pub database: TestDatabase,
    rings: RingSizes,
}

impl FreshStore {
    /// A store with small rings and a clock that the test moves.
    pub async fn with_manual_clock() -> Self {
        Self::new(SMALL_RINGS, clock_from_now()).await
    }

    /// A store with rings of the default sizes on the server's clock.
    pub async fn with_server_clock() -> Self {
        Self::new(RingSizes::default(), Clock::Server).await
    }

    /// A store with rings of these sizes and this clock.
    pub async fn new(rings: RingSizes, clock: Clock) -> Self {
        let database = fresh_database(rings).await;
        let options = options(rings).clock(clock.clone());
        let store = options.connect(&database.url()).await.expect("the test's database can be reached");
        Self { store, clock, database, rings }
    }

    /// Another pool on the same database.
    pub async fn another_pool(&self, change: impl FnOnce(SqlxStoreOptions) -> SqlxStoreOptions) -> SqlxStore {
        let options = change(options(self.rings).clock(self.clock.clone()));
        options.connect(&self.database.url()).await.expect("the test's database can be reached")
    }
}

/// A clock that the test moves, and that starts now.
pub(crate) fn clock_from_now() -> Clock {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock of this machine is after 1970");
    Clock::manual(Timestamp::from_micros(i64::try_from(now.as_micros()).expect("the year is below 294,000")))
}

fn options(rings: RingSizes) -> SqlxStoreOptions {
    SqlxStore::options().rings(rings).max_connections(8)
}

/// The database of [`database`], made beside the tasks of the runtime.
pub(crate) async fn fresh_database(rings: RingSizes) -> TestDatabase {
    tokio::task::spawn_blocking(move || database(rings)).await.expect("making a database panicked")
}

/// A database with the schema installed, copied from a template that the first test makes.
fn database(rings: RingSizes) -> TestDatabase {
    let server = TestServer::shared().expect("PostgreSQL can be started; run `cargo xtask test` to install it");
    let fingerprint = Sql::new(&SchemaName::default(), rings).fingerprint();
    let name = format!("awa_{}_{}_{}", rings.queue, rings.claim, &fingerprint[..16]);
    let install = |url: &str| -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let store = options(rings).wakeups(false).connect(url).await?;
            store.prepare_schema().await?;
            store.pool().close().await;
            Ok(())
        })
    };
    server.database(&name, install).expect("the schema can be installed")
}

/// Makes a value with a `store` of PostgreSQL, the `clock` that the test moves and the `rings` of its schema a subject, whose
/// applications open transactions of this type.
macro_rules! subject {
    ($subject:ty, $transaction:ty) => {
        #[async_trait::async_trait]
        impl awa_conformance::Subject for $subject {
            fn store(&self) -> std::sync::Arc<dyn awa_core::Store> {
                std::sync::Arc::new(self.store.clone())
            }

            async fn begin(&self) -> Box<dyn awa_conformance::SubjectTransaction> {
                Box::new(<$transaction>::begin(&self.store).await)
            }

            async fn advance(&self, by: std::time::Duration) {
                self.clock.advance(by);
            }

            fn capabilities(&self) -> awa_conformance::Capabilities {
                awa_conformance::Capabilities::all(self.rings.queue, self.rings.claim)
            }
        }
    };
}
pub(crate) use subject;

subject!(FreshStore, OpenTransaction);

/// A transaction of an application, through sqlx.
pub(crate) struct OpenTransaction {
    store: SqlxStore,
    transaction: Transaction<'static, Postgres>,
}

impl OpenTransaction {
    /// Begins one on a connection of the store's pool.
    pub(crate) async fn begin(store: &SqlxStore) -> Self {
        let transaction = store.pool().begin().await.expect("a transaction can be opened");
        Self { store: store.clone(), transaction }
    }
}

#[async_trait]
impl SubjectTransaction for OpenTransaction {
    async fn enqueue(&mut self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        self.store.enqueue_in(&mut self.transaction, jobs).await
    }

    async fn cancel(&mut self, jobs: &[JobId], reason: &ErrorText) -> Result<Vec<Acted>, StoreError> {
        self.store.cancel_in(&mut self.transaction, jobs, reason).await
    }

    async fn commit(self: Box<Self>) -> Result<(), StoreError> {
        self.transaction.commit().await.expect("the transaction commits");
        Ok(())
    }

    async fn rollback(self: Box<Self>) -> Result<(), StoreError> {
        self.transaction.rollback().await.expect("the transaction rolls back");
        Ok(())
    }
}
