//! Memory stores with one rule broken, to see that a comparison notices it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use awa_conformance::{Capabilities, Subject, SubjectTransaction};
use awa_core::attempt::{ErrorText, Receipt};
use awa_core::retry::RetryPolicy;
use awa_core::ring::{GrowRefusal, RingKind, RotationPolicy};
use awa_core::store::{
    Accuracy, Acted, AttemptNote, Attempts, Callback, CensusCount, ClaimRequest, Claimed, Consumer, Counts, Drained,
    Grown, JobFilter, JobView, Maintainer, Memory, MoveTo, NoteAnswer, Operator, Peeked, Producer, Promoted,
    PruneReport, PurgeScope, Purged, QueueView, RescueRequest, Rescued, RetentionPolicy, Rotated, Task, Unpinned,
    Wakeups,
};
use awa_core::unpin::UnpinPolicy;
use awa_core::{
    AttemptEnd, CallbackAnswer, Closure, ClosureAnswer, Enqueued, InstanceId, JobId, NewJob, QueueName, QueueSettings,
    Store, StoreError, Timestamp,
};
use awa_store_mem::MemStore;

use super::mutant_transaction::{MutantTransaction, without_keys, without_ordering_keys};
use crate::memory::FreshMemory;

/// What is wrong with a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// A snoozed job is due at once.
    SnoozeWithoutDelay,
    /// A failed attempt is not charged.
    RetryUncharged,
    /// A job with a key is stored as one without.
    KeysForgotten,
    /// A queue that is paused goes on.
    PauseIgnored,
    /// Whoever closes an attempt that has ended is told that he ended it.
    StaleBelieved,
    /// A transaction that rolls back commits.
    RollbackIgnored,
    /// Attempts have no deadlines.
    DeadlinesForgotten,
    /// What an attempt notes is not kept.
    ProgressForgotten,
    /// A key that is taken in an open transaction is free for others.
    KeysFreeInTransactions,
    /// A transaction that cancels jobs does not.
    CancelInIgnored,
    /// The ordering key of a job is not kept.
    OrderingKeysForgotten,
    /// A batch is handed out from its end.
    LastComesFirst,
    /// No ring grows.
    GrowthRefused,
}

impl Mutation {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::SnoozeWithoutDelay,
        Self::RetryUncharged,
        Self::KeysForgotten,
        Self::PauseIgnored,
        Self::StaleBelieved,
        Self::RollbackIgnored,
        Self::DeadlinesForgotten,
        Self::ProgressForgotten,
        Self::KeysFreeInTransactions,
        Self::CancelInIgnored,
        Self::OrderingKeysForgotten,
        Self::LastComesFirst,
        Self::GrowthRefused,
    ];
}

/// A memory store with one mutation.
#[derive(Debug)]
pub struct MutantStore {
    inside: FreshMemory,
    mutation: Mutation,
}

impl MutantStore {
    /// An empty one whose clock stands at `now`.
    pub fn at(now: Timestamp, mutation: Mutation) -> Self {
        Self { inside: FreshMemory::at(now), mutation }
    }
}

#[async_trait]
impl Subject for MutantStore {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(Mutant { inside: self.inside.store.clone(), mutation: self.mutation })
    }

    async fn begin(&self) -> Box<dyn SubjectTransaction> {
        Box::new(MutantTransaction::begin(&self.inside.store, self.mutation))
    }

    async fn advance(&self, by: Duration) {
        self.inside.advance(by).await;
    }

    fn capabilities(&self) -> Capabilities {
        self.inside.capabilities()
    }
}

struct Mutant {
    inside: MemStore,
    mutation: Mutation,
}

impl Mutant {
    fn has(&self, mutation: Mutation) -> bool {
        self.mutation == mutation
    }

    fn end(&self, end: &AttemptEnd) -> AttemptEnd {
        match end {
            AttemptEnd::Snooze { .. } if self.has(Mutation::SnoozeWithoutDelay) => {
                AttemptEnd::Snooze { delay: Duration::ZERO }
            }
            AttemptEnd::Retry { delay, .. } if self.has(Mutation::RetryUncharged) => {
                AttemptEnd::Snooze { delay: *delay }
            }
            other => other.clone(),
        }
    }
}

#[async_trait]
impl Producer for Mutant {
    async fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        match self.mutation {
            Mutation::KeysForgotten => self.inside.enqueue(&without_keys(jobs)).await,
            Mutation::OrderingKeysForgotten => self.inside.enqueue(&without_ordering_keys(jobs)).await,
            _ => self.inside.enqueue(jobs).await,
        }
    }
}

#[async_trait]
impl Consumer for Mutant {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed, StoreError> {
        let deadline = request.deadline.filter(|_| !self.has(Mutation::DeadlinesForgotten));
        let mut claimed = self.inside.claim(&ClaimRequest { deadline, ..request.clone() }).await?;
        if self.has(Mutation::LastComesFirst) {
            claimed.jobs.reverse();
        }
        Ok(claimed)
    }

    async fn close(&self, closures: &[Closure]) -> Result<Vec<ClosureAnswer>, StoreError> {
        let mutated = closures.iter().map(|closure| Closure { end: self.end(&closure.end), ..closure.clone() });
        let mut answers = self.inside.close(&mutated.collect::<Vec<_>>()).await?;
        if self.has(Mutation::StaleBelieved) {
            answers.fill(ClosureAnswer::Closed);
        }
        Ok(answers)
    }

    async fn beat(&self, instance: InstanceId, staleness: Duration) -> Result<(), StoreError> {
        self.inside.beat(instance, staleness).await
    }

    async fn retire(&self, instance: InstanceId) -> Result<(), StoreError> {
        self.inside.retire(instance).await
    }

    async fn open_attempts(&self, instance: InstanceId, limit: usize) -> Result<Vec<Receipt>, StoreError> {
        self.inside.open_attempts(instance, limit).await
    }

    async fn are_open(&self, receipts: &[Receipt]) -> Result<Vec<bool>, StoreError> {
        self.inside.are_open(receipts).await
    }

    async fn peek(&self, queues: &[QueueName]) -> Result<Peeked, StoreError> {
        self.inside.peek(queues).await
    }
}

#[async_trait]
impl Attempts for Mutant {
    async fn note(&self, notes: &[AttemptNote]) -> Result<Vec<NoteAnswer>, StoreError> {
        let mut notes = notes.to_vec();
        if self.has(Mutation::ProgressForgotten) {
            for note in &mut notes {
                note.progress = None;
            }
        }
        self.inside.note(&notes).await
    }

    async fn recall(&self, receipts: &[Receipt]) -> Result<Vec<Option<Memory>>, StoreError> {
        self.inside.recall(receipts).await
    }

    async fn resume(&self, callbacks: &[Callback]) -> Result<Vec<CallbackAnswer>, StoreError> {
        self.inside.resume(callbacks).await
    }
}

#[async_trait]
impl Maintainer for Mutant {
    async fn try_tick(&self, task: Task, every: Duration) -> Result<bool, StoreError> {
        self.inside.try_tick(task, every).await
    }

    async fn promote(&self, limit: usize) -> Result<Promoted, StoreError> {
        self.inside.promote(limit).await
    }

    async fn rescue(&self, request: &RescueRequest, retry: &RetryPolicy) -> Result<Rescued, StoreError> {
        self.inside.rescue(request, retry).await
    }

    async fn rotate(&self, ring: RingKind, policy: &RotationPolicy) -> Result<Rotated, StoreError> {
        self.inside.rotate(ring, policy).await
    }

    async fn drain(&self) -> Result<Drained, StoreError> {
        self.inside.drain().await
    }

    async fn unpin(&self, policy: &UnpinPolicy) -> Result<Unpinned, StoreError> {
        self.inside.unpin(policy).await
    }

    async fn prune(&self, ring: RingKind, retention: &RetentionPolicy) -> Result<Vec<PruneReport>, StoreError> {
        self.inside.prune(ring, retention).await
    }

    async fn tidy(&self) -> Result<(), StoreError> {
        self.inside.tidy().await
    }

    async fn open_queue(&self, queue: &QueueName) -> Result<(), StoreError> {
        self.inside.open_queue(queue).await
    }

    async fn forget_dead(&self, age: Duration, limit: usize) -> Result<usize, StoreError> {
        self.inside.forget_dead(age, limit).await
    }

    async fn open_queues(&self, queues: &[QueueName]) -> Result<(), StoreError> {
        self.inside.open_queues(queues).await
    }
}

#[async_trait]
impl Operator for Mutant {
    async fn get(&self, job: JobId) -> Result<Option<JobView>, StoreError> {
        self.inside.get(job).await
    }

    async fn list(&self, filter: &JobFilter) -> Result<Vec<JobView>, StoreError> {
        self.inside.list(filter).await
    }

    async fn queues(&self) -> Result<Vec<QueueView>, StoreError> {
        self.inside.queues().await
    }

    async fn census(&self) -> Result<Vec<CensusCount>, StoreError> {
        self.inside.census().await
    }

    async fn cancel(&self, jobs: &[JobId], reason: &ErrorText) -> Result<Vec<Acted>, StoreError> {
        self.inside.cancel(jobs, reason).await
    }

    async fn retry(&self, jobs: &[JobId]) -> Result<Vec<Acted>, StoreError> {
        self.inside.retry(jobs).await
    }

    async fn set_paused(&self, queue: &QueueName, paused: bool) -> Result<(), StoreError> {
        self.inside.set_paused(queue, paused && !self.has(Mutation::PauseIgnored)).await
    }

    async fn configure_queue(&self, queue: &QueueName, settings: &QueueSettings) -> Result<(), StoreError> {
        self.inside.configure_queue(queue, settings).await
    }

    async fn queue_settings(&self, queue: &QueueName) -> Result<QueueSettings, StoreError> {
        self.inside.queue_settings(queue).await
    }

    async fn move_jobs(&self, jobs: &[JobId], to: &MoveTo) -> Result<Vec<Acted>, StoreError> {
        self.inside.move_jobs(jobs, to).await
    }

    async fn purge_queue(&self, queue: &QueueName, scope: PurgeScope) -> Result<Purged, StoreError> {
        self.inside.purge_queue(queue, scope).await
    }

    async fn delete(&self, jobs: &[JobId]) -> Result<Vec<Acted>, StoreError> {
        self.inside.delete(jobs).await
    }

    async fn grow_ring(&self, ring: RingKind, slots: u8) -> Result<Grown, StoreError> {
        if self.has(Mutation::GrowthRefused) {
            return Ok(Grown::Refused(GrowRefusal::TooMany { wanted: slots }));
        }
        self.inside.grow_ring(ring, slots).await
    }

    async fn counts(&self, accuracy: Accuracy) -> Result<Counts, StoreError> {
        self.inside.counts(accuracy).await
    }
}

impl Store for Mutant {
    fn describe(&self) -> String {
        format!("memory with {:?}", self.mutation)
    }

    fn wakeups(&self) -> Option<&dyn Wakeups> {
        self.inside.wakeups()
    }

    fn is_durable(&self) -> bool {
        self.inside.is_durable()
    }
}
