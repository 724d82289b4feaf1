//! What attempts note down for themselves and for those that follow, and attempts that wait for a callback.

use std::time::Duration;

use super::Model;
use super::close::{OpenAttempt, uncharged};
use super::leases::{Lease, leased};
use super::rows::ReadyRow;
use crate::attempt::Receipt;
use crate::callback::{CallbackAnswer, CallbackFacts, CallbackToken, TokenAttempt, admit};
use crate::id::{JobId, RunLease};
use crate::json::JsonText;
use crate::state::JobState;
use crate::store::{AttemptNote, Callback, Memory, NoteAnswer};
use crate::time::Timestamp;

/// A row of `attempt_state`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct JobMemory {
    /// Of the attempt that wrote last.
    run_lease: RunLease,
    heartbeat_at: Timestamp,
    progress: Option<JsonText>,
    callback: Option<Token>,
}

/// The latest token of a job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Token {
    number: CallbackToken,
    /// Of the attempt that it belongs to.
    run_lease: RunLease,
    /// What came with the callback.
    payload: Option<JsonText>,
}

impl Model {
    /// Writes notes of running attempts. See [`Attempts::note`](crate::store::Attempts::note).
    pub fn note(&mut self, notes: &[AttemptNote], now: Timestamp) -> Vec<NoteAnswer> {
        notes.iter().map(|note| self.note_one(note, now)).collect()
    }

    /// The note is fenced by a lease: an attempt of the claim ring becomes one first.
    fn note_one(&mut self, note: &AttemptNote, now: Timestamp) -> NoteAnswer {
        let Some(attempt) = self.open_attempt(&note.receipt) else { return NoteAnswer::Stale };
        self.materialise(&attempt);
        let run_lease = attempt.member.run_lease;
        let new = JobMemory { run_lease, heartbeat_at: now, progress: None, callback: None };
        let memory = self.memory.entry(attempt.member.key.job).or_insert(new);
        memory.run_lease = run_lease;
        memory.heartbeat_at = memory.heartbeat_at.max(now);
        if let Some(progress) = &note.progress {
            memory.progress = Some(progress.clone());
        }
        let own = memory.callback.as_ref().filter(|known| known.run_lease == run_lease).map(|known| known.number);
        if let (Some(token), None) = (note.callback, own) {
            memory.callback = Some(Token { number: token, run_lease, payload: None });
        }
        self.transactions.write_and_commit();
        NoteAnswer::Noted { callback: own.or(note.callback) }
    }

    /// What was noted for the jobs of running attempts. See [`Attempts::recall`](crate::store::Attempts::recall).
    pub fn recall(&self, receipts: &[Receipt]) -> Vec<Option<Memory>> {
        let recall = |receipt: &Receipt| {
            self.open_attempt(receipt)?;
            let memory = self.memory.get(&receipt.job);
            Some(Memory {
                progress: memory.and_then(|memory| memory.progress.clone()),
                payload: memory.and_then(|memory| memory.callback.as_ref()?.payload.clone()),
            })
        };
        receipts.iter().map(recall).collect()
    }

    /// Takes callbacks from outside. See [`Attempts::resume`](crate::store::Attempts::resume).
    pub fn resume(&mut self, callbacks: &[Callback], now: Timestamp) -> Vec<CallbackAnswer> {
        callbacks.iter().map(|callback| self.resume_one(callback, now)).collect()
    }

    fn resume_one(&mut self, callback: &Callback, now: Timestamp) -> CallbackAnswer {
        let mut tokens = self.memory.iter().filter_map(|(job, memory)| Some((*job, memory.callback.as_ref()?)));
        let Some((job, known)) = tokens.find(|(_, known)| known.number == callback.token) else {
            return CallbackAnswer::Unknown;
        };
        let lease = self.leases().find(|(_, lease)| lease.key.job == job && lease.row.run_lease == known.run_lease);
        let attempt = match lease.map(|(_, lease)| lease.waiting_until) {
            None => TokenAttempt::Over,
            Some(None) => TokenAttempt::Running,
            Some(Some(until)) => TokenAttempt::Waiting { until },
        };
        let waiting = lease.map(|(id, lease)| leased(id, lease));
        let answer = admit(&CallbackFacts { is_used: known.payload.is_some(), attempt }, now);
        if answer.is_accepted() {
            let memory = self.memory.get_mut(&job).and_then(|memory| memory.callback.as_mut());
            memory.expect("it was just found").payload = Some(callback.payload.clone());
            self.transactions.write_and_commit();
        }
        if answer == CallbackAnswer::Resumed {
            self.go_on(waiting.expect("a parked attempt is a lease"));
        }
        answer
    }

    /// Parks an attempt: it goes on as a lease that no worker holds, or at once when its callback came already.
    pub(super) fn park(&mut self, attempt: OpenAttempt, timeout: Duration, now: Timestamp) {
        let (job, run_lease) = (attempt.member.key.job, attempt.member.run_lease);
        let callback = self.memory.get(&job).and_then(|memory| memory.callback.as_ref());
        if callback.is_some_and(|known| known.run_lease == run_lease && known.payload.is_some()) {
            self.go_on(attempt);
            return;
        }
        self.leave_key(job, &attempt.row.body, JobState::Waiting);
        self.materialise(&attempt);
        let mut lease = self.remove_lease(attempt.id);
        lease.park(now.saturating_add(timeout));
        self.insert_lease(attempt.id, lease);
        self.transactions.write_and_commit();
    }

    /// The job of an attempt whose callback came is ready, before all others of its lane, and the attempt is not charged.
    fn go_on(&mut self, attempt: OpenAttempt) {
        self.append_closure(&attempt);
        self.carry(attempt.member.key, ReadyRow { row: uncharged(attempt.row), ready_at: attempt.ready_at });
    }

    /// The last sign of life that an attempt has given itself.
    pub(super) fn attempt_seen_at(&self, lease: &Lease) -> Option<Timestamp> {
        let memory = self.memory.get(&lease.key.job)?;
        (memory.run_lease == lease.row.run_lease).then_some(memory.heartbeat_at)
    }

    /// What was noted for a job that is now completed, cancelled or failed is of no use to anybody.
    pub(super) fn forget(&mut self, job: JobId) {
        self.memory.remove(&job);
    }

    /// Whether somebody may still ask for what was noted for a job.
    pub(super) fn is_remembered(&self, job: JobId) -> bool {
        self.place(job).is_some_and(|place| {
            let state = self.state_at(job, &place);
            !state.is_terminal() || state == JobState::Dead
        })
    }

    /// The jobs for which something was noted.
    pub(super) fn remembered(&self) -> impl Iterator<Item = JobId> {
        self.memory.keys().copied()
    }
}
