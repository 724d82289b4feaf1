//! Transactions of the memory stores with one rule broken.

use async_trait::async_trait;
use awa_conformance::SubjectTransaction;
use awa_core::attempt::ErrorText;
use awa_core::store::Acted;
use awa_core::{Enqueued, JobId, NewJob, StoreError};
use awa_store_mem::{MemStore, MemTransaction};

use super::mutant::Mutation;

pub(super) struct MutantTransaction {
    store: MemStore,
    inside: MemTransaction,
    mutation: Mutation,
}

impl MutantTransaction {
    pub(super) fn begin(store: &MemStore, mutation: Mutation) -> Self {
        let inside = store.begin().expect("a transaction can be opened");
        Self { store: store.clone(), inside, mutation }
    }
}

fn bare(job: &NewJob) -> NewJob {
    let bare = NewJob::new(job.queue().clone(), job.kind().clone(), job.args().clone());
    bare.with_priority(job.priority()).with_max_attempts(job.max_attempts()).with_run_at(job.run_at())
}

/// The jobs as if they had no unique keys.
pub(super) fn without_keys(jobs: &[NewJob]) -> Vec<NewJob> {
    let with_order =
        |job: &NewJob| job.ordering_key().map_or_else(|| bare(job), |key| bare(job).with_ordering_key(key));
    jobs.iter().map(with_order).collect()
}

/// The jobs as if they had no ordering keys.
pub(super) fn without_ordering_keys(jobs: &[NewJob]) -> Vec<NewJob> {
    let with_key = |job: &NewJob| job.unique().map_or_else(|| bare(job), |unique| bare(job).with_unique(*unique));
    jobs.iter().map(with_key).collect()
}

#[async_trait]
impl SubjectTransaction for MutantTransaction {
    async fn enqueue(&mut self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        if self.mutation == Mutation::KeysFreeInTransactions {
            return self.inside.enqueue(&without_keys(jobs));
        }
        self.inside.enqueue(jobs)
    }

    async fn cancel(&mut self, jobs: &[JobId], reason: &ErrorText) -> Result<Vec<Acted>, StoreError> {
        if self.mutation == Mutation::CancelInIgnored {
            // The answer is right, and goes with a transaction that is rolled back.
            return self.store.begin()?.cancel(jobs, reason);
        }
        self.inside.cancel(jobs, reason)
    }

    async fn commit(self: Box<Self>) -> Result<(), StoreError> {
        self.inside.commit()
    }

    async fn rollback(self: Box<Self>) -> Result<(), StoreError> {
        if self.mutation == Mutation::RollbackIgnored {
            return self.inside.commit();
        }
        self.inside.rollback()
    }
}
