//! The memory store is a store, and so is a faulty store that nobody told to fail.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use awa_conformance::{Capabilities, Subject, SubjectTransaction};
use awa_core::attempt::ErrorText;
use awa_core::model::RingSizes;
use awa_core::store::{Acted, ClaimShape};
use awa_core::{Enqueued, JobId, NewJob, Store, StoreError, Timestamp};
use awa_store_mem::{FaultyStore, ManualClock, MemStore, MemTransaction};

const RINGS: RingSizes = RingSizes { queue: 5, claim: 4, lease: 3 };

/// A memory store, and the store through which the suite uses it.
struct Fixture {
    memory: MemStore,
    store: Arc<dyn Store>,
    clock: ManualClock,
    shape: ClaimShape,
}

fn fresh<S: Store + 'static>(shape: ClaimShape, wrap: impl FnOnce(MemStore) -> S) -> Fixture {
    let clock = ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000));
    let memory = MemStore::with_clock(Arc::new(clock.clone()), RINGS);
    Fixture { store: Arc::new(wrap(memory.clone())), memory, clock, shape }
}

#[async_trait]
impl Subject for Fixture {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    async fn begin(&self) -> Box<dyn SubjectTransaction> {
        Box::new(Transaction(self.memory.begin().expect("begin")))
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::all(RINGS.queue, RINGS.claim).claiming(self.shape)
    }
}

impl Drop for Fixture {
    /// After every case that passed, the model must be in a state that a store may be in.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.memory.model().expect("the model").check().expect("an invariant is broken");
        }
    }
}

struct Transaction(MemTransaction);

#[async_trait]
impl SubjectTransaction for Transaction {
    async fn enqueue(&mut self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        self.0.enqueue(jobs)
    }

    async fn cancel(&mut self, jobs: &[JobId], reason: &ErrorText) -> Result<Vec<Acted>, StoreError> {
        self.0.cancel(jobs, reason)
    }

    async fn commit(self: Box<Self>) -> Result<(), StoreError> {
        self.0.commit()
    }

    async fn rollback(self: Box<Self>) -> Result<(), StoreError> {
        self.0.rollback()
    }
}

mod memory {
    use super::*;

    awa_conformance::suite!(tokio::test, std::future::ready(fresh(ClaimShape::Compact, |memory| memory)));
}

mod faulty {
    use super::*;

    awa_conformance::suite!(tokio::test, std::future::ready(fresh(ClaimShape::Compact, FaultyStore::new)));
}

mod row_local {
    use super::*;

    awa_conformance::suite!(tokio::test, std::future::ready(fresh(ClaimShape::RowLocal, |memory| memory)));
}
