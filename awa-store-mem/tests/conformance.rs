//! The memory store is a store.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use awa_conformance::{Capabilities, Subject, SubjectTransaction};
use awa_core::model::RingSizes;
use awa_core::{Enqueued, NewJob, Store, StoreError, Timestamp};
use awa_store_mem::{ManualClock, MemStore, MemTransaction};

const RINGS: RingSizes = RingSizes { queue: 5, claim: 4 };

struct Memory {
    store: MemStore,
    clock: ManualClock,
}

fn fresh() -> Memory {
    let clock = ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000));
    Memory { store: MemStore::with_clock(Arc::new(clock.clone()), RINGS), clock }
}

#[async_trait]
impl Subject for Memory {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn begin(&self) -> Box<dyn SubjectTransaction> {
        Box::new(Transaction(self.store.begin().expect("begin")))
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::all(RINGS.queue, RINGS.claim)
    }
}

impl Drop for Memory {
    /// After every case that passed, the model must be in a state that a store may be in.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.store.model().expect("the model").check().expect("an invariant is broken");
        }
    }
}

struct Transaction(MemTransaction);

#[async_trait]
impl SubjectTransaction for Transaction {
    async fn enqueue(&mut self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        self.0.enqueue(jobs)
    }

    async fn commit(self: Box<Self>) -> Result<(), StoreError> {
        self.0.commit()
    }

    async fn rollback(self: Box<Self>) -> Result<(), StoreError> {
        self.0.rollback()
    }
}

awa_conformance::suite!(tokio::test, std::future::ready(fresh()));
