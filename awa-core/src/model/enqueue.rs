//! Jobs come in.

use std::sync::Arc;

use super::rows::{Body, DeferredRow, ReadyRow, Row};
use super::unique::OwnKey;
use super::{KeyInDoubt, Model, TransactionId};
use crate::frontier::RowKey;
use crate::id::{JobId, RunLease, Slot, Xid};
use crate::job::{Enqueued, NewJob, RunAt};
use crate::queue::Shard;
use crate::store::DeferredReason;
use crate::time::Timestamp;
use crate::unique::OnConflict;

impl Model {
    /// Enqueues inside an open transaction.
    ///
    /// # Errors
    ///
    /// [`KeyInDoubt`] when another open transaction has taken a key that is asked for; nothing was changed.
    ///
    /// # Panics
    ///
    /// When the transaction is over.
    pub fn enqueue_in(
        &mut self,
        transaction: TransactionId,
        jobs: &[NewJob],
        now: Timestamp,
    ) -> Result<Vec<Enqueued>, KeyInDoubt> {
        self.no_key_in_doubt(transaction, jobs, now)?;
        let before = self.last_job;
        let mut answers: Vec<Enqueued> = Vec::with_capacity(jobs.len());
        for job in jobs {
            let (Some(holder), Some(unique)) = (self.key_holder(job, now), job.unique()) else {
                answers.push(Enqueued::Inserted(self.insert(transaction, job, now)));
                continue;
            };
            let key = unique.key.at(now);
            let may_replace = unique.on_conflict == OnConflict::Replace && holder <= before;
            if may_replace && self.can_be_replaced(transaction, holder, &key) {
                let new = self.insert(transaction, job, now);
                // Whoever was told of the holder within this call is told of the job that now stands for it.
                for answer in &mut answers {
                    match answer {
                        Enqueued::Duplicate(id) | Enqueued::Refused(id) if *id == holder => *id = new,
                        _ => {}
                    }
                }
                answers.push(Enqueued::Replaced { new, old: holder });
            } else {
                answers.push(Enqueued::of_conflict(holder, unique.on_conflict));
            }
        }
        Ok(answers)
    }

    /// Enqueues in a transaction of its own.
    ///
    /// # Errors
    ///
    /// As for [`Self::enqueue_in`].
    pub fn enqueue(&mut self, jobs: &[NewJob], now: Timestamp) -> Result<Vec<Enqueued>, KeyInDoubt> {
        let transaction = self.begin();
        let answers = self.enqueue_in(transaction, jobs, now);
        match answers {
            Ok(_) => self.commit(transaction, now),
            Err(_) => self.rollback(transaction),
        }
        answers
    }

    fn insert(&mut self, transaction: TransactionId, job: &NewJob, now: Timestamp) -> JobId {
        self.last_job = JobId(self.last_job.0 + 1);
        let id = self.last_job;
        let xid = self.transactions.xid_of(transaction);
        let shards = self.queue_settings(job.queue()).enqueue_shards;
        let shard = job.ordering_key().map_or(Shard::of_unordered(id, shards), |key| key.shard(shards));
        let body = Arc::new(body(job, shard, now));
        self.take_key(transaction, id, &body);
        let row = Row { body, run_lease: RunLease(0), attempt: 0, error: None };
        match due_later(job.run_at(), now) {
            Some(run_at) => {
                self.deferred.insert(id, DeferredRow { xid, row, run_at, reason: DeferredReason::Scheduled });
            }
            None => self.insert_ready(transaction, RowKey::new(xid, id), row, now),
        }
        id
    }

    fn insert_ready(&mut self, transaction: TransactionId, key: RowKey, row: Row, now: Timestamp) {
        let pointed = self.queue_ring.pointer().slot;
        let is_awaited = self.sleepers.contains_key(&row.body.queue);
        let open = self.transactions.open_mut(transaction);
        let slot = *open.slot.get_or_insert(pointed);
        if is_awaited {
            open.wakes.insert(row.body.queue.clone());
        }
        self.queue_ring.content_mut(slot).append(key, ReadyRow { row, ready_at: now });
    }

    /// Appends a job at the tail of its lane, in the transaction `xid`, which commits within this step.
    pub(super) fn append_ready(&mut self, xid: Xid, job: JobId, row: Row, now: Timestamp) -> Slot {
        if self.sleepers.contains_key(&row.body.queue) {
            self.wakes.insert(row.body.queue.clone());
        }
        self.queue_ring.open_mut().append(RowKey::new(xid, job), ReadyRow { row, ready_at: now });
        self.queue_ring.pointer().slot
    }
}

fn body(job: &NewJob, shard: Shard, now: Timestamp) -> Body {
    Body {
        queue: job.queue().clone(),
        kind: job.kind().clone(),
        args: job.args().clone(),
        metadata: job.metadata().cloned(),
        priority: job.priority(),
        shard,
        max_attempts: job.max_attempts(),
        created_at: now,
        unique: job.unique().map(|unique| OwnKey { key: unique.key.at(now), states: unique.states }),
    }
}

/// The moment for which a job waits, unless it is due.
fn due_later(run_at: RunAt, now: Timestamp) -> Option<Timestamp> {
    let at = match run_at {
        RunAt::Now => now,
        RunAt::At(at) => at,
        RunAt::After(delay) => now.saturating_add(delay),
    };
    (at > now).then_some(at)
}
