//! Where one history after the other is told: a store in memory, and two on a database of their own.

use std::sync::atomic::Ordering;

use awa_conformance::Subject;
use awa_core::Timestamp;
use awa_store_diesel::DieselStore;
use awa_store_sqlx::{Clock, RingSizes, SqlxStore};

use super::server::{HistoryServer, SCHEMAS, name};
use super::step::Step;
use super::told::{Difference, Told, tell};
use crate::diesel_store::AsyncTransaction;
use crate::memory::FreshMemory;
use crate::postgres::{OpenTransaction, SMALL_RINGS, subject};

/// Where the clock of every history begins.
pub const START: Timestamp = Timestamp::from_micros(1_790_000_000_000_000);
/// So many histories share a database. What they delete stays in its tables, because nobody vacuums there.
const SHARED_BY: u32 = 40;
/// One of each transaction that may be open, one for the calls.
const CONNECTIONS: u32 = 4;

/// A place for histories, one at a time.
#[derive(Debug)]
pub struct Place<'s> {
    server: &'s HistoryServer,
    stores: Option<Stores>,
}

#[derive(Debug)]
struct Stores {
    database: String,
    sqlx: SqlxSubject,
    diesel: DieselSubject,
    told: u32,
}

impl<'s> Place<'s> {
    /// A place on this server.
    pub fn new(server: &'s HistoryServer) -> Self {
        Self { server, stores: None }
    }

    /// Tells a history to a store in memory and to PostgreSQL through both drivers, each of them empty and at [`START`].
    ///
    /// # Errors
    ///
    /// As [`tell`].
    ///
    /// # Panics
    ///
    /// When PostgreSQL fails.
    pub async fn tell(&mut self, steps: &[Step]) -> Result<Told, Difference> {
        let stores = match self.stores.take() {
            Some(stores) => {
                stores.restore(self.server).await;
                stores
            }
            None => Stores::new(self.server).await,
        };
        let memory = FreshMemory::at(START);
        let told = tell(&[&memory as &dyn Subject, &stores.sqlx, &stores.diesel], steps).await;
        // What a store that fails has left behind is not known, and a ring does not become smaller again.
        let has_grown = steps.iter().any(|step| matches!(step, Step::Grow { .. }));
        let is_spent = told.is_err() || has_grown || stores.told + 1 >= SHARED_BY;
        if is_spent {
            stores.close(self.server).await;
        } else {
            self.stores = Some(Stores { told: stores.told + 1, ..stores });
        }
        told
    }
}

impl Stores {
    async fn new(server: &HistoryServer) -> Self {
        let database = server.take();
        let (url, clock) = (server.cluster.url(&database), Clock::manual(START));
        let options = SqlxStore::options().schema(name(SCHEMAS[0])).wakeups(false).max_connections(CONNECTIONS);
        let sqlx = options.clock(clock.clone()).connect(&url).await.expect("the server can be reached");
        let sqlx = SqlxSubject { store: sqlx, clock, rings: SMALL_RINGS };
        let clock = Clock::manual(START);
        let options = DieselStore::options().schema(name(SCHEMAS[1])).wakeups(false).max_connections(CONNECTIONS);
        let diesel = options.clock(clock.clone()).connect(&url).await.expect("the server can be reached");
        let diesel = DieselSubject { store: diesel, clock, rings: SMALL_RINGS };
        Self { database, sqlx, diesel, told: 0 }
    }

    async fn restore(&self, server: &HistoryServer) {
        for restore in &server.restore {
            restore.run(self.sqlx.store.pool()).await;
        }
        for clock in [&self.sqlx.clock, &self.diesel.clock] {
            let Clock::Manual(micros) = clock else { unreachable!("the clocks are moved by hand") };
            micros.store(START.as_micros(), Ordering::SeqCst);
        }
    }

    async fn close(self, server: &HistoryServer) {
        self.sqlx.store.pool().close().await;
        self.diesel.store.pool().close();
        server.drop_database(self.database);
    }
}

/// A store through sqlx.
#[derive(Debug)]
pub struct SqlxSubject {
    store: SqlxStore,
    clock: Clock,
    rings: RingSizes,
}

subject!(SqlxSubject, OpenTransaction);

/// A store through diesel.
#[derive(Debug)]
pub struct DieselSubject {
    store: DieselStore,
    clock: Clock,
    rings: RingSizes,
}

subject!(DieselSubject, AsyncTransaction);
