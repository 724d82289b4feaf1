//! Proof of life, and the end of attempts whose worker is gone or whose deadline is over.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Model;
use super::claims::Batch;
use super::close::OpenAttempt;
use super::leases::{Lease, leased};
use super::sweeps::Pass;
use crate::attempt::AttemptEnd;
use crate::id::{BatchId, InstanceId, ReceiptId, Slot};
use crate::retry::{Disposition, RetryPolicy};
use crate::store::{RescueRequest, Rescued, RescuedAttempt};
use crate::sweep::{BatchKey, Beats, LifeSigns, RescueCause, RescuerHealth, RowLocalKey, SweepKind};
use crate::time::Timestamp;

/// A row of `runtime_instances`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Process {
    beats: Beats,
    /// The silence after which it wants to be taken for dead.
    staleness: Duration,
    /// It said goodbye; what it left behind may be rescued at once.
    retired: bool,
}

impl Model {
    /// A sign of life of a process. See [`Consumer::beat`](crate::store::Consumer::beat).
    pub fn beat(&mut self, instance: InstanceId, staleness: Duration, now: Timestamp) {
        let before = self.processes.get(&instance);
        let beats = before.map_or(Beats::first(now), |process| process.beats.beat(now, staleness));
        let retired = before.is_some_and(|process| process.retired);
        self.processes.insert(instance, Process { beats, staleness, retired });
    }

    /// A process says goodbye. See [`Consumer::retire`](crate::store::Consumer::retire).
    pub fn retire(&mut self, instance: InstanceId, now: Timestamp) {
        let gone = Process { beats: Beats::first(now), staleness: Duration::ZERO, retired: true };
        self.processes.entry(instance).or_insert(gone).retired = true;
    }

    /// Forgets processes that are gone and hold nothing, and were silent for `keep`.
    pub(super) fn forget_processes(&mut self, keep: Duration, now: Timestamp) {
        let holders: BTreeSet<InstanceId> = self
            .claim_ring
            .numbered()
            .flat_map(|(_, content)| content.open_attempts().map(|(batch, _)| batch.instance))
            .chain(self.leases().filter(|(_, lease)| lease.waiting_until.is_none()).map(|(_, lease)| lease.instance))
            .collect();
        self.processes.retain(|instance, process| {
            holders.contains(instance) || !process.retired && now.since(process.beats.last) < keep
        });
    }

    /// Ends attempts whose worker is gone or whose deadline is over. See
    /// [`Maintainer::rescue`](crate::store::Maintainer::rescue).
    ///
    /// # Panics
    ///
    /// When the page is empty.
    pub fn rescue(&mut self, request: &RescueRequest, retry: &RetryPolicy, now: Timestamp) -> Rescued {
        let beats = self.processes.get(&request.rescuer).map(|process| process.beats);
        if !RescuerHealth::of(beats, now, request.staleness).may_rescue() {
            return Rescued { rescuer_too_young: true, ..Rescued::default() };
        }
        let mut rescued = Rescued::default();
        self.rescue_retired(request, retry, now, &mut rescued);
        for slot in (0..self.claim_ring.len()).map(Slot) {
            for kind in [SweepKind::Stale, SweepKind::Deadline] {
                let pass = Pass { kind, slot, request, retry, now };
                self.sweep::<BatchKey>(&pass, &mut rescued);
                self.sweep::<RowLocalKey>(&pass, &mut rescued);
            }
        }
        self.rescue_leases(request, retry, now, &mut rescued);
        rescued
    }

    /// Leases are few and are looked at one by one: the first of each kind in the order of their receipts.
    fn rescue_leases(&mut self, request: &RescueRequest, retry: &RetryPolicy, now: Timestamp, rescued: &mut Rescued) {
        let cause = |lease: &Lease| {
            if let Some(until) = lease.waiting_until {
                (until <= now).then_some(RescueCause::NotCalled)
            } else if self.is_gone(lease.instance, lease.claimed_at, self.attempt_seen_at(lease), request, now) {
                Some(RescueCause::Gone)
            } else {
                lease.deadline_at.is_some_and(|deadline| deadline <= now).then_some(RescueCause::DeadlineOver)
            }
        };
        let mut found: Vec<(ReceiptId, RescueCause)> =
            self.leases().filter_map(|(id, lease)| cause(lease).map(|cause| (id, cause))).collect();
        found.sort_unstable_by_key(|(id, _)| *id);
        rescued.more |= found.len() > request.page;
        found.truncate(request.page);
        for (id, cause) in found {
            let attempt = leased(id, self.lease(id).expect("it was just found"));
            rescued.attempts.push(self.rescue_attempt(cause, attempt, request.staleness, retry, now));
        }
    }

    /// The claims of a process that said goodbye need no sweep: they are not too new.
    fn rescue_retired(&mut self, request: &RescueRequest, retry: &RetryPolicy, now: Timestamp, rescued: &mut Rescued) {
        let is_retired = |batch: &Batch| self.processes.get(&batch.instance).is_some_and(|process| process.retired);
        let slots = self.claim_ring.numbered();
        let left: BTreeSet<(Slot, BatchId)> = slots
            .flat_map(|(slot, content)| content.open_attempts().map(move |(batch, id)| (batch, (slot, id.batch()))))
            .filter(|(batch, _)| is_retired(batch))
            .map(|(_, place)| place)
            .collect();
        rescued.more |= left.len() > request.page;
        for (slot, batch) in left.into_iter().take(request.page) {
            let open = self.claim_ring.content(slot).open(batch);
            self.rescue_members(&Pass { kind: SweepKind::Stale, slot, request, retry, now }, &open, rescued);
        }
    }

    /// Whether the worker of an attempt has given no sign of life for too long, or has said goodbye.
    pub(super) fn is_gone(
        &self,
        instance: InstanceId,
        claimed_at: Timestamp,
        attempt_seen_at: Option<Timestamp>,
        request: &RescueRequest,
        now: Timestamp,
    ) -> bool {
        let process = self.processes.get(&instance);
        let signs =
            LifeSigns { claimed_at, instance_seen_at: process.map(|process| process.beats.last), attempt_seen_at };
        // A process may ask for more patience than the rescuer has, never for less.
        let staleness = process.map_or(request.staleness, |process| process.staleness.max(request.staleness));
        process.is_some_and(|process| process.retired) || signs.is_stale(now, staleness)
    }

    /// Ends one attempt the way its handler would have ended it with an error.
    pub(super) fn rescue_attempt(
        &mut self,
        cause: RescueCause,
        attempt: OpenAttempt,
        staleness: Duration,
        retry: &RetryPolicy,
        now: Timestamp,
    ) -> RescuedAttempt {
        let disposition = retry.after_failure(attempt.budget(), None, 0.0);
        let error = cause.error(staleness, attempt.budget(), &disposition);
        let report = RescuedAttempt {
            job: attempt.member.key.job,
            queue: attempt.row.body.queue.clone(),
            run_lease: attempt.member.run_lease,
            exhausted: disposition == Disposition::Exhausted,
            cause,
        };
        let end = match disposition {
            Disposition::Retry { delay } => AttemptEnd::Retry { delay, error },
            Disposition::Exhausted => AttemptEnd::Fail { error },
        };
        self.end_attempt(attempt, &end, now);
        report
    }
}
