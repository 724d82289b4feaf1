//! Operators look at jobs and intervene.

use std::collections::BTreeMap;
use std::time::Duration;

use super::places::Place;
use super::rows::{ReadyPlace, Row, Tombstone, TombstoneKind};
use super::{Model, TransactionId};
use crate::attempt::{AttemptEnd, ErrorText};
use crate::id::{JobId, RunLease};
use crate::name::QueueName;
use crate::queue::QueueSettings;
use crate::state::JobState;
use crate::store::{Acted, CensusCount, JobFilter, JobView, QueueView, Refusal};
use crate::time::Timestamp;

impl Model {
    /// One job, or `None` when it does not exist.
    pub fn get(&self, job: JobId) -> Option<JobView> {
        self.place(job).map(|place| self.view_at(job, &place))
    }

    /// Jobs that match `filter`, newest first.
    pub fn list(&self, filter: &JobFilter) -> Vec<JobView> {
        let mut places = self.places(None);
        places.retain(|(job, place)| {
            filter.before.is_none_or(|before| *job < before)
                && filter.state.is_none_or(|state| self.state_at(*job, place) == state)
        });
        places.sort_unstable_by_key(|(job, _)| std::cmp::Reverse(*job));
        places
            .iter()
            .map(|(job, place)| self.view_at(*job, place))
            .filter(|view| filter.queue.as_ref().is_none_or(|queue| view.queue == *queue))
            .filter(|view| filter.kind.as_ref().is_none_or(|kind| view.kind == *kind))
            .take(filter.limit.clamp(1, JobFilter::MAX_LIMIT))
            .collect()
    }

    /// All queues that are known or have jobs, by name.
    pub fn queues(&self) -> Vec<QueueView> {
        let empty = |queue: &QueueName, paused| QueueView {
            queue: queue.clone(),
            paused,
            ready: 0,
            running: 0,
            deferred: 0,
            waiting: 0,
            finished: 0,
            dead: 0,
        };
        let mut views: BTreeMap<QueueName, QueueView> =
            self.queues.iter().map(|(name, queue)| (name.clone(), empty(name, queue.paused))).collect();
        for (job, place) in self.places(None) {
            let job = self.view_at(job, &place);
            let view = views.entry(job.queue.clone()).or_insert_with(|| empty(&job.queue, false));
            match job.state {
                JobState::Ready => view.ready += 1,
                JobState::Running => view.running += 1,
                JobState::Deferred => view.deferred += 1,
                JobState::Completed | JobState::Failed | JobState::Cancelled => view.finished += 1,
                JobState::Dead => view.dead += 1,
                JobState::Waiting => view.waiting += 1,
            }
        }
        views.into_values().collect()
    }

    /// How many jobs are in each state.
    pub fn census(&self) -> Vec<CensusCount> {
        let places = self.places(None);
        let states: Vec<JobState> = places.iter().map(|(job, place)| self.state_at(*job, place)).collect();
        let count = |state| states.iter().filter(|counted| **counted == state).count() as u64;
        JobState::ALL.into_iter().map(|state| CensusCount { state, jobs: count(state) }).collect()
    }

    /// Cancels jobs that have not ended. See [`Operator::cancel`](crate::store::Operator::cancel).
    pub fn cancel(&mut self, jobs: &[JobId], reason: &ErrorText, now: Timestamp) -> Vec<Acted> {
        jobs.iter().map(|job| self.cancel_one(*job, reason, now)).collect()
    }

    /// Cancels jobs when `transaction` commits.
    ///
    /// # Panics
    ///
    /// When the transaction is over.
    pub fn cancel_in(&mut self, transaction: TransactionId, jobs: &[JobId], reason: &ErrorText) -> Vec<Acted> {
        jobs.iter().map(|job| self.cancel_later(transaction, *job, reason)).collect()
    }

    fn cancel_later(&mut self, transaction: TransactionId, job: JobId, reason: &ErrorText) -> Acted {
        let seen = self.places_seen(&self.transactions.snapshot_in(transaction), Some(job));
        let Some((_, place)) = seen.last() else { return Acted::Refused(Refusal::NotFound) };
        let from = self.state_at(job, place);
        if self.transactions.open_mut(transaction).cancelled.iter().any(|(cancelled, _)| *cancelled == job) {
            return Acted::Refused(Refusal::WrongState(JobState::Cancelled));
        }
        if from.is_terminal() {
            return Acted::Refused(Refusal::WrongState(from));
        }
        let row = self.row_of_waiting(job, place);
        if row.is_some_and(|lease| self.transactions.is_held(job, lease)) {
            return Acted::Refused(Refusal::Contended);
        }
        self.transactions.xid_of(transaction);
        let open = self.transactions.open_mut(transaction);
        open.cancelled.push((job, reason.clone()));
        open.held.extend(row.map(|lease| (job, lease)));
        if from == JobState::Deferred {
            let body = self.row_at(job, place).body.clone();
            self.give_key_up_in(transaction, job, &body);
        }
        if from == JobState::Deferred { Acted::Done { from } } else { Acted::Asked { from } }
    }

    /// The lease of a job in the ring or waiting for its time, which with the id names the row that it is in.
    pub(super) fn row_of_waiting(&self, job: JobId, place: &Place) -> Option<RunLease> {
        matches!(place, Place::Ready(_) | Place::Deferred).then(|| self.row_at(job, place).run_lease)
    }

    fn cancel_one(&mut self, job: JobId, reason: &ErrorText, now: Timestamp) -> Acted {
        let Some(place) = self.place(job) else { return Acted::Refused(Refusal::NotFound) };
        if self.row_of_waiting(job, &place).is_some_and(|lease| self.transactions.is_held(job, lease)) {
            return Acted::Refused(Refusal::Contended);
        }
        self.cancel_now(job, reason, now)
    }

    /// Cancels a job, whoever else is about to.
    pub(super) fn cancel_now(&mut self, job: JobId, reason: &ErrorText, now: Timestamp) -> Acted {
        let Some(place) = self.place(job) else { return Acted::Refused(Refusal::NotFound) };
        let from = self.state_at(job, &place);
        match place {
            Place::Ready(place) => self.bury(place, reason, now),
            Place::Carried(lane, key) => {
                let ready = self.take_carried(&lane, key);
                let row = Row { error: Some(reason.clone()), ..ready.row };
                self.transactions.write_and_commit();
                self.file(job, row, JobState::Cancelled, None, now);
            }
            Place::Running(receipt) | Place::Waiting(receipt) => {
                let attempt = self.open_attempt(&receipt).expect("a running job has an open attempt");
                self.end_attempt(attempt, &AttemptEnd::Cancel { reason: reason.clone() }, now);
            }
            Place::Deferred => {
                let deferred = self.deferred.remove(&job).expect("a place names a row that exists");
                let row = Row { error: Some(reason.clone()), ..deferred.row };
                self.transactions.write_and_commit();
                self.file(job, row, JobState::Cancelled, None, now);
            }
            Place::Dead | Place::Done(_) | Place::Completed(_) | Place::Cancelled(..) => {
                return Acted::Refused(Refusal::WrongState(from));
            }
        }
        Acted::Done { from }
    }

    /// Appends a tombstone over a ready row: claims pass it without handing it out.
    fn bury(&mut self, place: ReadyPlace, reason: &ErrorText, now: Timestamp) {
        let Row { body, run_lease: lease, .. } = self.ready_row(&place).row.clone();
        self.leave_key(place.key.job, &body, JobState::Cancelled);
        self.forget(place.key.job);
        let ReadyPlace { slot, lane, key } = place;
        let kind = TombstoneKind::Cancelled;
        let tombstone = Tombstone { kind, lane, key, reason: reason.clone(), cancelled_at: now };
        self.transactions.write_and_commit();
        self.queue_ring.content_mut(slot).tombstones.insert((key.job, lease), tombstone);
    }

    /// Makes dead, failed or deferred jobs ready. See [`Operator::retry`](crate::store::Operator::retry).
    pub fn retry(&mut self, jobs: &[JobId], now: Timestamp) -> Vec<Acted> {
        jobs.iter().map(|job| self.retry_one(*job, now)).collect()
    }

    fn retry_one(&mut self, job: JobId, now: Timestamp) -> Acted {
        let Some(place) = self.place(job) else { return Acted::Refused(Refusal::NotFound) };
        let from = self.state_at(job, &place);
        if matches!(from, JobState::Dead | JobState::Failed) {
            let row = self.row_at(job, &place).clone();
            if let Err(refusal) = self.take_key_again(job, &row, from) {
                return Acted::Refused(refusal);
            }
        }
        let row = match place {
            Place::Dead => self.dead.remove(&job).map(|dead| Row { attempt: 0, ..dead.row }),
            Place::Done(slot) if from == JobState::Failed => {
                let failed = self.queue_ring.content_mut(slot).done.remove(&job);
                failed.map(|failed| Row { attempt: 0, ..failed.row })
            }
            Place::Deferred => self.deferred.remove(&job).map(|deferred| deferred.row),
            _ => None,
        };
        let Some(row) = row else { return Acted::Refused(Refusal::WrongState(from)) };
        let xid = self.transactions.write_and_commit();
        self.append_ready(xid, job, row, now);
        Acted::Done { from }
    }

    /// Removes jobs that have ended. See [`Operator::delete`](crate::store::Operator::delete).
    pub fn delete(&mut self, jobs: &[JobId]) -> Vec<Acted> {
        jobs.iter().map(|job| self.delete_one(*job)).collect()
    }

    /// Deletes jobs that died long ago. See [`Maintainer::forget_dead`](crate::store::Maintainer::forget_dead).
    pub fn forget_dead(&mut self, age: Duration, limit: usize, now: Timestamp) -> usize {
        let dead = self.dead.iter().filter(|(_, dead)| now.since(dead.died_at) >= age);
        let mut old: Vec<(Timestamp, JobId)> = dead.map(|(job, dead)| (dead.died_at, *job)).collect();
        old.sort_unstable();
        old.truncate(limit);
        old.iter().filter(|(_, job)| matches!(self.delete_one(*job), Acted::Done { .. })).count()
    }

    fn delete_one(&mut self, job: JobId) -> Acted {
        let Some(place) = self.place(job) else { return Acted::Refused(Refusal::NotFound) };
        let from = self.state_at(job, &place);
        match place {
            Place::Dead => {
                let dead = self.dead.remove(&job).expect("a place names a row that exists");
                // No key is held in that state.
                self.leave_key(job, &dead.row.body, JobState::Cancelled);
            }
            Place::Done(slot) | Place::Completed(slot) | Place::Cancelled(slot, _) => {
                self.queue_ring.content_mut(slot).hidden.insert(job);
            }
            Place::Ready(_) | Place::Carried(..) | Place::Running(_) | Place::Waiting(_) | Place::Deferred => {
                return Acted::Refused(Refusal::WrongState(from));
            }
        }
        self.forget(job);
        self.transactions.write_and_commit();
        Acted::Done { from }
    }

    /// Holds back claims of a queue, or lets them go on and wakes its sleepers.
    pub fn set_paused(&mut self, queue: &QueueName, paused: bool) {
        self.queues.entry(queue.clone()).or_default().paused = paused;
        if !paused {
            self.wake(queue);
        }
    }

    /// Sets what holds for a queue from now on. See [`Operator::configure_queue`](crate::store::Operator::configure_queue).
    pub fn configure_queue(&mut self, queue: &QueueName, settings: &QueueSettings) {
        self.queues.entry(queue.clone()).or_default().settings = *settings;
    }

    /// What is set for a queue.
    pub fn queue_settings(&self, queue: &QueueName) -> QueueSettings {
        self.queues.get(queue).map(|queue| queue.settings).unwrap_or_default()
    }
}
