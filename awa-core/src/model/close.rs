//! Attempts end, and their jobs go where the end says.

use super::Model;
use super::claim::receipt;
use super::claims::{Batch, Member};
use super::rows::{Completion, DeadRow, DeferredRow, DoneRow, ReadyPlace, ReadyRow, Row};
use crate::attempt::{AttemptEnd, Closure, ClosureAnswer, ErrorText, Receipt};
use crate::id::{InstanceId, JobId, ReceiptId, Slot};
use crate::json::JsonText;
use crate::receipt::{ReceiptSet, admit};
use crate::retry::{AttemptBudget, Disposition, RetryPolicy};
use crate::state::JobState;
use crate::store::DeferredReason;
use crate::time::Timestamp;

/// An attempt that has not ended, with its job.
#[derive(Clone, Debug)]
pub(super) struct OpenAttempt {
    pub(super) id: ReceiptId,
    pub(super) held: Held,
    pub(super) member: Member,
    /// The job as it is now: claimed, and charged for this attempt.
    pub(super) row: Row,
    /// When its ready row was appended.
    pub(super) ready_at: Timestamp,
}

/// Where an open attempt is kept.
#[derive(Clone, Debug)]
pub(super) enum Held {
    /// As a member of a claim batch, with its ready row in the queue ring.
    InRing {
        /// The slot of the batch.
        claim_slot: Slot,
        /// The ready row.
        place: ReadyPlace,
    },
    /// As a self-contained lease.
    AsLease,
}

impl OpenAttempt {
    /// How much of its budget the job has used, this attempt included.
    pub(super) fn budget(&self) -> AttemptBudget {
        AttemptBudget {
            attempt: self.member.attempt,
            max_attempts: u32::from(self.row.body.max_attempts.get().unsigned_abs()),
        }
    }
}

impl Model {
    /// Ends attempts. See [`Consumer::close`](crate::store::Consumer::close).
    pub fn close(&mut self, closures: &[Closure], now: Timestamp) -> Vec<ClosureAnswer> {
        let mut answers = Vec::with_capacity(closures.len());
        for closure in closures {
            answers.push(match self.open_attempt(&closure.receipt) {
                Some(attempt) => {
                    self.end_attempt(attempt, &closure.end, now);
                    ClosureAnswer::Closed
                }
                None => ClosureAnswer::Stale,
            });
        }
        answers
    }

    /// Which of `receipts` are still open, in input order.
    pub fn are_open(&self, receipts: &[Receipt]) -> Vec<bool> {
        receipts.iter().map(|receipt| self.open_attempt(receipt).is_some()).collect()
    }

    /// The open attempts that name `instance`, oldest first, at most `limit`.
    pub fn open_attempts(&self, instance: InstanceId, limit: usize) -> Vec<Receipt> {
        let mut open: Vec<_> = Vec::new();
        for (slot, content) in self.claim_ring.numbered() {
            for (batch, id) in content.open_attempts().filter(|(batch, _)| batch.instance == instance) {
                let member = batch.member(id).expect("an open receipt names a member of its batch");
                open.push((batch.claimed_at, receipt(batch, id, member, slot)));
            }
        }
        let leases = self.leases();
        let leases = leases.filter(|(_, lease)| lease.instance == instance && lease.waiting_until.is_none());
        open.extend(leases.map(|(id, lease)| (lease.claimed_at, lease.receipt(id))));
        open.sort_unstable_by_key(|(claimed_at, receipt)| (*claimed_at, receipt.id));
        open.into_iter().map(|(_, receipt)| receipt).take(limit).collect()
    }

    /// The open attempt for which this receipt was issued: the one spelling of "is it open?" for what callers present.
    pub(super) fn open_attempt(&self, presented: &Receipt) -> Option<OpenAttempt> {
        self.open_in_ring(presented).or_else(|| self.open_as_lease(presented))
    }

    fn open_in_ring(&self, presented: &Receipt) -> Option<OpenAttempt> {
        let content = self.claim_ring.find(presented.claim_slot)?;
        let batch = content.batches.get(&presented.id.batch())?;
        let member = batch.member(presented.id)?;
        if receipt(batch, presented.id, member, presented.claim_slot) != *presented {
            return None;
        }
        let asked: ReceiptSet = [presented.id].into_iter().collect();
        let id = presented.id.batch();
        let admission = admit(&asked, &batch.claimed(id), &content.closed(id));
        (admission.granted == asked).then(|| self.attempt_of(batch, member, presented.id, presented.claim_slot))
    }

    /// The attempt of a member, with its job as it is while the attempt is open.
    pub(super) fn attempt_of(&self, batch: &Batch, member: &Member, id: ReceiptId, claim_slot: Slot) -> OpenAttempt {
        let ready = self.queue_ring.content(batch.ready_slot).row(&batch.lane, member.key);
        let ReadyRow { row, ready_at } = ready.expect("the row of an open attempt is not truncated");
        let place = ReadyPlace { slot: batch.ready_slot, lane: batch.lane.clone(), key: member.key };
        OpenAttempt {
            id,
            held: Held::InRing { claim_slot, place },
            member: *member,
            row: Row { run_lease: member.run_lease, attempt: member.attempt, ..row.clone() },
            ready_at: *ready_at,
        }
    }

    /// Appends the closure of an attempt and moves its job, in one step.
    pub(super) fn end_attempt(&mut self, attempt: OpenAttempt, end: &AttemptEnd, now: Timestamp) {
        if let AttemptEnd::Park { timeout } = end {
            self.park(attempt, *timeout, now);
            return;
        }
        self.append_closure(&attempt);
        let job = attempt.member.key.job;
        match end {
            AttemptEnd::Park { .. } => unreachable!("a parked attempt has not ended"),
            AttemptEnd::Complete => self.complete(attempt, now),
            AttemptEnd::CompleteWith { result } => {
                self.file(job, attempt.row, JobState::Completed, Some(result.clone()), now);
            }
            AttemptEnd::Retry { delay, error } => {
                let disposition = RetryPolicy::default().after_failure(attempt.budget(), Some(*delay), 0.0);
                self.fail(attempt, error, disposition, now);
            }
            AttemptEnd::Fail { error } => self.fail(attempt, error, Disposition::Exhausted, now),
            AttemptEnd::Snooze { delay } => {
                self.defer(job, uncharged(attempt.row), now.saturating_add(*delay), DeferredReason::Snooze);
            }
            AttemptEnd::Release { delay } if delay.is_zero() => {
                self.carry(attempt.member.key, ReadyRow { row: uncharged(attempt.row), ready_at: attempt.ready_at });
            }
            AttemptEnd::Release { delay } => {
                self.defer(job, uncharged(attempt.row), now.saturating_add(*delay), DeferredReason::Release);
            }
            AttemptEnd::Cancel { reason } => {
                let row = Row { error: Some(reason.clone()), ..attempt.row };
                self.file(job, row, JobState::Cancelled, None, now);
            }
        }
    }

    /// Moves the job of a failed attempt that is closed already, whoever ended it.
    fn fail(&mut self, attempt: OpenAttempt, error: &ErrorText, disposition: Disposition, now: Timestamp) {
        let job = attempt.member.key.job;
        let row = Row { error: Some(error.clone()), ..attempt.row };
        match disposition {
            Disposition::Retry { delay } => {
                self.defer(job, row, now.saturating_add(delay), DeferredReason::Retry);
            }
            Disposition::Exhausted if self.queue_settings(&row.body.queue).dead_letter => {
                self.leave_key(job, &row.body, JobState::Dead);
                self.dead.insert(job, DeadRow { row, died_at: now });
            }
            Disposition::Exhausted => self.file(job, row, JobState::Failed, None, now),
        }
    }

    /// Makes an attempt closed: a closure beside its claim, or the end of its lease.
    pub(super) fn append_closure(&mut self, attempt: &OpenAttempt) {
        let id = attempt.id;
        match &attempt.held {
            Held::AsLease => {
                self.remove_lease(id);
            }
            Held::InRing { claim_slot, .. } => {
                self.claim_ring.content_mut(*claim_slot).close(id);
            }
        }
        self.transactions.write_and_commit();
    }

    /// Compact history, in the slot of the ready row that tells the rest; a lease has none, and leaves wide history.
    fn complete(&mut self, attempt: OpenAttempt, now: Timestamp) {
        let OpenAttempt { held, member: Member { key, run_lease, attempt }, row, .. } = attempt;
        match held {
            Held::AsLease => self.file(key.job, row, JobState::Completed, None, now),
            Held::InRing { place: ReadyPlace { slot, lane, key }, .. } => {
                self.leave_key(key.job, &row.body, JobState::Completed);
                self.forget(key.job);
                let completion = Completion { lane, key, run_lease, attempt, finalized_at: now };
                self.queue_ring.content_mut(slot).completions.insert(key.job, completion);
            }
        }
    }

    /// Wide history, in the open slot.
    pub(super) fn file(
        &mut self,
        job: JobId,
        row: Row,
        state: JobState,
        result: Option<JsonText>,
        finalized_at: Timestamp,
    ) {
        self.leave_key(job, &row.body, state);
        self.forget(job);
        self.queue_ring.open_mut().done.insert(job, DoneRow { row, state, finalized_at, result });
    }

    fn defer(&mut self, job: JobId, row: Row, run_at: Timestamp, reason: DeferredReason) {
        let xid = self.transactions.write_and_commit();
        let before = self.deferred.insert(job, DeferredRow { xid, row, run_at, reason });
        assert!(before.is_none(), "job {job} was deferred while it ran");
    }
}

/// The job as it is after an attempt that does not count.
pub(super) fn uncharged(row: Row) -> Row {
    Row { attempt: row.attempt.saturating_sub(1), ..row }
}
