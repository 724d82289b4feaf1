//! Every method of the storage traits is one step of the model.

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
    StoreError,
};

use super::MemStore;

#[async_trait]
impl Producer for MemStore {
    async fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        self.step("enqueue", |model, now| model.enqueue(jobs, now))?.map_err(StoreError::from)
    }
}

#[async_trait]
impl Consumer for MemStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed, StoreError> {
        self.step("claim", |model, now| model.claim(request, now))
    }

    async fn close(&self, closures: &[Closure]) -> Result<Vec<ClosureAnswer>, StoreError> {
        self.step("close", |model, now| model.close(closures, now))
    }

    async fn beat(&self, instance: InstanceId, staleness: Duration) -> Result<(), StoreError> {
        self.step("beat", |model, now| model.beat(instance, staleness, now))
    }

    async fn retire(&self, instance: InstanceId) -> Result<(), StoreError> {
        self.step("retire", |model, now| model.retire(instance, now))
    }

    async fn open_attempts(&self, instance: InstanceId, limit: usize) -> Result<Vec<Receipt>, StoreError> {
        self.step("open_attempts", |model, _| model.open_attempts(instance, limit))
    }

    async fn are_open(&self, receipts: &[Receipt]) -> Result<Vec<bool>, StoreError> {
        self.step("are_open", |model, _| model.are_open(receipts))
    }

    async fn peek(&self, queues: &[QueueName]) -> Result<Peeked, StoreError> {
        self.step("peek", |model, _| model.peek(queues))
    }
}

#[async_trait]
impl Attempts for MemStore {
    async fn note(&self, notes: &[AttemptNote]) -> Result<Vec<NoteAnswer>, StoreError> {
        self.step("note", |model, now| model.note(notes, now))
    }

    async fn recall(&self, receipts: &[Receipt]) -> Result<Vec<Option<Memory>>, StoreError> {
        self.step("recall", |model, _| model.recall(receipts))
    }

    async fn resume(&self, callbacks: &[Callback]) -> Result<Vec<CallbackAnswer>, StoreError> {
        self.step("resume", |model, now| model.resume(callbacks, now))
    }
}

#[async_trait]
impl Maintainer for MemStore {
    async fn try_tick(&self, task: Task, every: Duration) -> Result<bool, StoreError> {
        self.step("try_tick", |model, now| model.try_tick(task, every, now))
    }

    async fn promote(&self, limit: usize) -> Result<Promoted, StoreError> {
        self.step("promote", |model, now| model.promote(limit, now))
    }

    async fn rescue(&self, request: &RescueRequest, retry: &RetryPolicy) -> Result<Rescued, StoreError> {
        self.step("rescue", |model, now| model.rescue(request, retry, now))
    }

    async fn rotate(&self, ring: RingKind, policy: &RotationPolicy) -> Result<Rotated, StoreError> {
        self.step("rotate", |model, now| model.rotate(ring, policy, now))
    }

    async fn drain(&self) -> Result<Drained, StoreError> {
        self.step("drain", |model, _| model.drain())
    }

    async fn unpin(&self, policy: &UnpinPolicy) -> Result<Unpinned, StoreError> {
        self.step("unpin", |model, _| model.unpin(policy))
    }

    async fn prune(&self, ring: RingKind, retention: &RetentionPolicy) -> Result<Vec<PruneReport>, StoreError> {
        self.step("prune", |model, now| model.prune(ring, retention, now))
    }

    async fn tidy(&self) -> Result<(), StoreError> {
        self.step("tidy", awa_core::model::Model::tidy)
    }

    async fn open_queue(&self, queue: &QueueName) -> Result<(), StoreError> {
        self.step("open_queue", |model, _| model.open_queue(queue))
    }

    async fn forget_dead(&self, age: Duration, limit: usize) -> Result<usize, StoreError> {
        self.step("forget_dead", |model, now| model.forget_dead(age, limit, now))
    }

    async fn open_queues(&self, queues: &[QueueName]) -> Result<(), StoreError> {
        self.step("open_queues", |model, _| queues.iter().for_each(|queue| model.open_queue(queue)))
    }
}

#[async_trait]
impl Operator for MemStore {
    async fn get(&self, job: JobId) -> Result<Option<JobView>, StoreError> {
        self.step("get", |model, _| model.get(job))
    }

    async fn list(&self, filter: &JobFilter) -> Result<Vec<JobView>, StoreError> {
        self.step("list", |model, _| model.list(filter))
    }

    async fn queues(&self) -> Result<Vec<QueueView>, StoreError> {
        self.step("queues", |model, _| model.queues())
    }

    async fn census(&self) -> Result<Vec<CensusCount>, StoreError> {
        self.step("census", |model, _| model.census())
    }

    async fn cancel(&self, jobs: &[JobId], reason: &ErrorText) -> Result<Vec<Acted>, StoreError> {
        self.step("cancel", |model, now| model.cancel(jobs, reason, now))
    }

    async fn retry(&self, jobs: &[JobId]) -> Result<Vec<Acted>, StoreError> {
        self.step("retry", |model, now| model.retry(jobs, now))
    }

    async fn set_paused(&self, queue: &QueueName, paused: bool) -> Result<(), StoreError> {
        self.step("set_paused", |model, _| model.set_paused(queue, paused))
    }

    async fn configure_queue(&self, queue: &QueueName, settings: &QueueSettings) -> Result<(), StoreError> {
        self.step("configure_queue", |model, _| model.configure_queue(queue, settings))
    }

    async fn queue_settings(&self, queue: &QueueName) -> Result<QueueSettings, StoreError> {
        self.step("queue_settings", |model, _| model.queue_settings(queue))
    }

    async fn move_jobs(&self, jobs: &[JobId], to: &MoveTo) -> Result<Vec<Acted>, StoreError> {
        self.step("move_jobs", |model, now| model.move_jobs(jobs, to, now))
    }

    async fn purge_queue(&self, queue: &QueueName, scope: PurgeScope) -> Result<Purged, StoreError> {
        self.step("purge_queue", |model, _| model.purge_queue(queue, scope))
    }

    async fn delete(&self, jobs: &[JobId]) -> Result<Vec<Acted>, StoreError> {
        self.step("delete", |model, _| model.delete(jobs))
    }

    async fn grow_ring(&self, ring: RingKind, slots: u8) -> Result<Grown, StoreError> {
        self.step("grow_ring", |model, now| model.grow_ring(ring, slots, now))
    }

    async fn counts(&self, accuracy: Accuracy) -> Result<Counts, StoreError> {
        self.step("counts", |model, _| model.counts(accuracy))
    }
}

#[async_trait]
impl Wakeups for MemStore {
    async fn announce(&self, instance: InstanceId, queues: &[QueueName]) -> Result<SleepTicket, StoreError> {
        self.shared.bells.listen(instance, queues);
        self.step("announce", |model, _| model.announce(instance, queues))
    }

    async fn withdraw(&self, instance: InstanceId, queues: &[QueueName]) -> Result<(), StoreError> {
        self.shared.bells.ignore(instance, queues);
        self.step("withdraw", |model, _| model.withdraw(instance, queues))
    }

    async fn wait(&self, instance: InstanceId, at_most: Duration) -> Result<Woken, StoreError> {
        Ok(self.shared.bells.wait(instance, at_most).await)
    }
}

impl Store for MemStore {
    fn describe(&self) -> String {
        "memory (not durable: its jobs end with this process)".to_owned()
    }

    fn wakeups(&self) -> Option<&dyn Wakeups> {
        Some(self)
    }

    fn is_durable(&self) -> bool {
        false
    }
}
