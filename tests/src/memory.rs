//! A fresh memory store, with rings of the size of those on PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use awa_conformance::{Capabilities, Subject, SubjectTransaction};
use awa_core::attempt::ErrorText;
use awa_core::model::RingSizes;
use awa_core::store::Acted;
use awa_core::{Enqueued, JobId, NewJob, Store, StoreError, Timestamp};
use awa_store_mem::{ManualClock, MemStore, MemTransaction};

use crate::postgres::SMALL_RINGS;

/// A memory store and the clock that the test moves.
#[derive(Debug)]
pub struct FreshMemory {
    /// The store.
    pub store: MemStore,
    clock: ManualClock,
}

impl FreshMemory {
    /// An empty store whose clock stands at `now`.
    pub fn at(now: Timestamp) -> Self {
        let clock = ManualClock::at(now);
        let rings = RingSizes { queue: SMALL_RINGS.queue, claim: SMALL_RINGS.claim, lease: SMALL_RINGS.lease };
        Self { store: MemStore::with_clock(Arc::new(clock.clone()), rings), clock }
    }
}

#[async_trait]
impl Subject for FreshMemory {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn begin(&self) -> Box<dyn SubjectTransaction> {
        Box::new(OpenTransaction(self.store.begin().expect("a transaction can be opened")))
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::all(SMALL_RINGS.queue, SMALL_RINGS.claim)
    }
}

struct OpenTransaction(MemTransaction);

#[async_trait]
impl SubjectTransaction for OpenTransaction {
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
