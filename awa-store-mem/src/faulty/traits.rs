//! Every method meets its fault, if there is one, and goes on to the store inside.

use std::time::Duration;

use async_trait::async_trait;
use awa_core::attempt::{ErrorText, Receipt};
use awa_core::retry::RetryPolicy;
use awa_core::ring::{RingKind, RotationPolicy};
use awa_core::store::{
    Accuracy, Acted, AttemptNote, Attempts, Callback, CensusCount, ClaimRequest, Claimed, Consumer, Counts, Drained,
    Grown, JobFilter, JobView, Maintainer, Memory, MoveTo, NoteAnswer, Operator, Peeked, Producer, Promoted,
    PruneReport, PurgeScope, Purged, QueueView, RescueRequest, Rescued, RetentionPolicy, Rotated, SleepTicket, Task,
    Unpinned, Wakeups, Woken,
};
use awa_core::unpin::UnpinPolicy;
use awa_core::{
    CallbackAnswer, Closure, ClosureAnswer, Enqueued, InstanceId, JobId, NewJob, QueueName, QueueSettings, Store,
    StoreError, StoreErrorKind,
};

use super::{FaultyStore, Operation};

#[async_trait]
impl<S: Store> Producer for FaultyStore<S> {
    async fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        self.run(Operation::Enqueue, self.inside.enqueue(jobs)).await
    }
}

#[async_trait]
impl<S: Store> Consumer for FaultyStore<S> {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed, StoreError> {
        self.run(Operation::Claim, self.inside.claim(request)).await
    }

    async fn close(&self, closures: &[Closure]) -> Result<Vec<ClosureAnswer>, StoreError> {
        self.run(Operation::Close, self.inside.close(closures)).await
    }

    async fn beat(&self, instance: InstanceId, staleness: Duration) -> Result<(), StoreError> {
        self.run(Operation::Beat, self.inside.beat(instance, staleness)).await
    }

    async fn retire(&self, instance: InstanceId) -> Result<(), StoreError> {
        self.run(Operation::Retire, self.inside.retire(instance)).await
    }

    async fn open_attempts(&self, instance: InstanceId, limit: usize) -> Result<Vec<Receipt>, StoreError> {
        self.run(Operation::OpenAttempts, self.inside.open_attempts(instance, limit)).await
    }

    async fn are_open(&self, receipts: &[Receipt]) -> Result<Vec<bool>, StoreError> {
        self.run(Operation::AreOpen, self.inside.are_open(receipts)).await
    }

    async fn peek(&self, queues: &[QueueName]) -> Result<Peeked, StoreError> {
        self.run(Operation::Peek, self.inside.peek(queues)).await
    }
}

#[async_trait]
impl<S: Store> Attempts for FaultyStore<S> {
    async fn note(&self, notes: &[AttemptNote]) -> Result<Vec<NoteAnswer>, StoreError> {
        self.run(Operation::Note, self.inside.note(notes)).await
    }

    async fn recall(&self, receipts: &[Receipt]) -> Result<Vec<Option<Memory>>, StoreError> {
        self.run(Operation::Recall, self.inside.recall(receipts)).await
    }

    async fn resume(&self, callbacks: &[Callback]) -> Result<Vec<CallbackAnswer>, StoreError> {
        self.run(Operation::Resume, self.inside.resume(callbacks)).await
    }
}

#[async_trait]
impl<S: Store> Maintainer for FaultyStore<S> {
    async fn try_tick(&self, task: Task, every: Duration) -> Result<bool, StoreError> {
        self.run(Operation::TryTick, self.inside.try_tick(task, every)).await
    }

    async fn promote(&self, limit: usize) -> Result<Promoted, StoreError> {
        self.run(Operation::Promote, self.inside.promote(limit)).await
    }

    async fn rescue(&self, request: &RescueRequest, retry: &RetryPolicy) -> Result<Rescued, StoreError> {
        self.run(Operation::Rescue, self.inside.rescue(request, retry)).await
    }

    async fn rotate(&self, ring: RingKind, policy: &RotationPolicy) -> Result<Rotated, StoreError> {
        self.run(Operation::Rotate, self.inside.rotate(ring, policy)).await
    }

    async fn drain(&self) -> Result<Drained, StoreError> {
        self.run(Operation::Drain, self.inside.drain()).await
    }

    async fn unpin(&self, policy: &UnpinPolicy) -> Result<Unpinned, StoreError> {
        self.run(Operation::Unpin, self.inside.unpin(policy)).await
    }

    async fn prune(&self, ring: RingKind, retention: &RetentionPolicy) -> Result<Vec<PruneReport>, StoreError> {
        self.run(Operation::Prune, self.inside.prune(ring, retention)).await
    }

    async fn tidy(&self) -> Result<(), StoreError> {
        self.run(Operation::Tidy, self.inside.tidy()).await
    }

    async fn open_queue(&self, queue: &QueueName) -> Result<(), StoreError> {
        self.run(Operation::OpenQueue, self.inside.open_queue(queue)).await
    }

    async fn forget_dead(&self, age: Duration, limit: usize) -> Result<usize, StoreError> {
        self.run(Operation::ForgetDead, self.inside.forget_dead(age, limit)).await
    }

    async fn open_queues(&self, queues: &[QueueName]) -> Result<(), StoreError> {
        self.run(Operation::OpenQueues, self.inside.open_queues(queues)).await
    }
}

#[async_trait]
impl<S: Store> Operator for FaultyStore<S> {
    async fn get(&self, job: JobId) -> Result<Option<JobView>, StoreError> {
        self.run(Operation::Get, self.inside.get(job)).await
    }

    async fn list(&self, filter: &JobFilter) -> Result<Vec<JobView>, StoreError> {
        self.run(Operation::List, self.inside.list(filter)).await
    }

    async fn queues(&self) -> Result<Vec<QueueView>, StoreError> {
        self.run(Operation::Queues, self.inside.queues()).await
    }

    async fn census(&self) -> Result<Vec<CensusCount>, StoreError> {
        self.run(Operation::Census, self.inside.census()).await
    }

    async fn cancel(&self, jobs: &[JobId], reason: &ErrorText) -> Result<Vec<Acted>, StoreError> {
        self.run(Operation::Cancel, self.inside.cancel(jobs, reason)).await
    }

    async fn retry(&self, jobs: &[JobId]) -> Result<Vec<Acted>, StoreError> {
        self.run(Operation::Retry, self.inside.retry(jobs)).await
    }

    async fn set_paused(&self, queue: &QueueName, paused: bool) -> Result<(), StoreError> {
        self.run(Operation::SetPaused, self.inside.set_paused(queue, paused)).await
    }

    async fn configure_queue(&self, queue: &QueueName, settings: &QueueSettings) -> Result<(), StoreError> {
        self.run(Operation::ConfigureQueue, self.inside.configure_queue(queue, settings)).await
    }

    async fn queue_settings(&self, queue: &QueueName) -> Result<QueueSettings, StoreError> {
        self.run(Operation::QueueSettings, self.inside.queue_settings(queue)).await
    }

    async fn move_jobs(&self, jobs: &[JobId], to: &MoveTo) -> Result<Vec<Acted>, StoreError> {
        self.run(Operation::MoveJobs, self.inside.move_jobs(jobs, to)).await
    }

    async fn purge_queue(&self, queue: &QueueName, scope: PurgeScope) -> Result<Purged, StoreError> {
        self.run(Operation::PurgeQueue, self.inside.purge_queue(queue, scope)).await
    }

    async fn delete(&self, jobs: &[JobId]) -> Result<Vec<Acted>, StoreError> {
        self.run(Operation::Delete, self.inside.delete(jobs)).await
    }

    async fn grow_ring(&self, ring: RingKind, slots: u8) -> Result<Grown, StoreError> {
        self.run(Operation::GrowRing, self.inside.grow_ring(ring, slots)).await
    }

    async fn counts(&self, accuracy: Accuracy) -> Result<Counts, StoreError> {
        self.run(Operation::Counts, self.inside.counts(accuracy)).await
    }
}

#[async_trait]
impl<S: Store> Wakeups for FaultyStore<S> {
    async fn announce(&self, instance: InstanceId, queues: &[QueueName]) -> Result<SleepTicket, StoreError> {
        let inside = self.bells(Operation::Announce)?;
        self.run(Operation::Announce, inside.announce(instance, queues)).await
    }

    async fn withdraw(&self, instance: InstanceId, queues: &[QueueName]) -> Result<(), StoreError> {
        let inside = self.bells(Operation::Withdraw)?;
        self.run(Operation::Withdraw, inside.withdraw(instance, queues)).await
    }

    async fn wait(&self, instance: InstanceId, at_most: Duration) -> Result<Woken, StoreError> {
        let inside = self.bells(Operation::Wait)?;
        self.run(Operation::Wait, inside.wait(instance, at_most)).await
    }
}

impl<S: Store> FaultyStore<S> {
    fn bells(&self, operation: Operation) -> Result<&dyn Wakeups, StoreError> {
        self.inside.wakeups().ok_or_else(|| {
            StoreError::new(StoreErrorKind::Refused, operation.as_str(), "the store inside has no wake-ups; poll")
        })
    }
}

impl<S: Store> Store for FaultyStore<S> {
    fn describe(&self) -> String {
        format!("{}, with scripted faults", self.inside.describe())
    }

    fn wakeups(&self) -> Option<&dyn Wakeups> {
        self.inside.wakeups().map(|_| self as &dyn Wakeups)
    }

    fn is_durable(&self) -> bool {
        self.inside.is_durable()
    }
}
