//! Maintenance: due jobs become ready, rings turn, and slots that are spent are emptied.

use std::time::Duration;

use super::Model;
use super::claims::ClaimSlot;
use super::slots::{Content, Ring};
use crate::frontier::Step;
use crate::id::{JobId, Slot};
use crate::name::QueueName;
use crate::prune::{
    ClaimFacts, KeepReason, LeaseFacts, Phase, PruneDecision, PruneFacts, QueueFacts, SlotFacts, SlotHistory, decide,
};
use crate::ring::{
    DrainDecision, DrainFacts, RingKind, RotateDecision, RotationPolicy, SlotState, drain, grow, rotate,
};
use crate::store::{Drained, Grown, Promoted, PruneReport, RetentionPolicy, Rotated, Task};
use crate::time::Timestamp;

/// How long a silent process that holds nothing is remembered.
const FORGET_PROCESSES_AFTER: Duration = Duration::from_hours(24);

impl Model {
    /// Asks for the turn of a task. See [`Maintainer::try_tick`](crate::store::Maintainer::try_tick).
    pub fn try_tick(&mut self, task: Task, every: Duration, now: Timestamp) -> bool {
        let due = self.last_ticks.get(&task).is_none_or(|last| now.since(*last) >= every);
        if due {
            self.last_ticks.insert(task, now);
        }
        due
    }

    /// Makes due deferred jobs ready, in the order in which they became due.
    pub fn promote(&mut self, limit: usize, now: Timestamp) -> Promoted {
        let snapshot = self.transactions.snapshot();
        let mut due: Vec<(Timestamp, JobId)> = self
            .deferred
            .iter()
            .filter(|(_, row)| row.run_at <= now && snapshot.sees(row.xid))
            // What an open transaction cancels is passed over: PostgreSQL does not wait for the row.
            .filter(|(job, row)| !self.transactions.is_held(**job, row.row.run_lease))
            .map(|(job, row)| (row.run_at, *job))
            .collect();
        due.sort_unstable();
        let more = due.len() > limit;
        due.truncate(limit);
        if !due.is_empty() {
            let xid = self.transactions.write_and_commit();
            for (_, job) in &due {
                let deferred = self.deferred.remove(job).expect("it was just found");
                self.append_ready(xid, *job, deferred.row, now);
            }
        }
        Promoted { jobs: due.len(), more }
    }

    /// Opens the next slot of a ring when the policy asks for it.
    pub fn rotate(&mut self, ring: RingKind, policy: &RotationPolicy, now: Timestamp) -> Rotated {
        match ring {
            RingKind::Queue => turn(&mut self.queue_ring, policy, now),
            RingKind::Claim => turn(&mut self.claim_ring, policy, now),
            RingKind::Lease => turn(&mut self.lease_ring, policy, now),
        }
    }

    /// Gives a ring more slots. See [`Operator::grow_ring`](crate::store::Operator::grow_ring).
    pub fn grow_ring(&mut self, ring: RingKind, slots: u8, now: Timestamp) -> Grown {
        let from = match ring {
            RingKind::Queue => self.queue_ring.len(),
            RingKind::Claim => self.claim_ring.len(),
            RingKind::Lease => self.lease_ring.len(),
        };
        let added = match grow(from, slots) {
            Ok(added) => added,
            Err(refusal) => return Grown::Refused(refusal),
        };
        match ring {
            RingKind::Queue => self.queue_ring.grow(added, now),
            RingKind::Claim => self.claim_ring.grow(added, now),
            RingKind::Lease => self.lease_ring.grow(added, now),
        }
        Grown::Done { from, to: slots }
    }

    /// Marks sealed slots of the queue ring whose rows have all been passed.
    pub fn drain(&mut self) -> Drained {
        let mut drained = Drained::default();
        for slot in self.queue_ring.slots_in(SlotState::Sealed) {
            self.pass_tombstones(slot);
            let facts = DrainFacts {
                slot,
                state: self.queue_ring.state(slot),
                pointer: self.queue_ring.pointer(),
                writers_in_flight: self.transactions.has_writer_in(slot),
                has_unpassed_rows: self.has_unpassed_rows(slot),
            };
            match drain(&facts) {
                DrainDecision::Drain => {
                    self.queue_ring.set_state(slot, SlotState::Drained);
                    drained.slots.push(slot);
                }
                DrainDecision::Keep(_) => drained.kept.push(slot),
            }
        }
        drained
    }

    /// Appends a cursor over the rows of each lane in which only tombstones are left.
    fn pass_tombstones(&mut self, slot: Slot) {
        let snapshot = self.transactions.snapshot();
        let content = self.queue_ring.content(slot);
        let mut cursors = Vec::new();
        for (lane, rows) in &content.ready {
            let mut only_tombstones = true;
            let walk = content.frontier(lane).walk(&snapshot, rows, |key, ready| {
                only_tombstones = content.is_tombstoned(key, ready);
                if only_tombstones { Step::Continue } else { Step::StopHere }
            });
            if only_tombstones && walk.visited > 0 {
                cursors.push((lane.clone(), walk.frontier));
            }
        }
        if !cursors.is_empty() {
            self.transactions.write_and_commit();
            self.queue_ring.content_mut(slot).frontiers.extend(cursors);
        }
    }

    /// Truncates slots of a ring that are proven spent. See [`Maintainer::prune`](crate::store::Maintainer::prune).
    pub fn prune(&mut self, ring: RingKind, retention: &RetentionPolicy, now: Timestamp) -> Vec<PruneReport> {
        let plan = match ring {
            RingKind::Queue => self.plan_queue(retention, now),
            RingKind::Claim => self.plan_claims(),
            RingKind::Lease => self.plan_leases(),
        };
        plan.into_iter()
            .map(|(slot, decision)| PruneReport { slot, kept: self.carry_out(ring, slot, decision, retention, now) })
            .collect()
    }

    fn plan_queue(&self, retention: &RetentionPolicy, now: Timestamp) -> Vec<(Slot, PruneDecision)> {
        let history = |slot| {
            let content = self.queue_ring.content(slot);
            let age = |at: Option<Timestamp>| at.map(|at| now.since(at));
            let (completed, cancelled) = (age(content.last_completed()), age(content.last_cancelled()));
            SlotHistory { completed, cancelled, bytes: content.bytes() }
        };
        let slots: Vec<_> =
            in_use(&self.queue_ring).into_iter().map(|slot| (self.queue_facts(slot), history(slot))).collect();
        retention.plan(&slots)
    }

    fn plan_claims(&self) -> Vec<(Slot, PruneDecision)> {
        let decide = |slot| decide(Phase::BeforeLock, &PruneFacts::Claim(self.claim_facts(slot)));
        in_use(&self.claim_ring).into_iter().map(|slot| (slot, decide(slot))).collect()
    }

    fn plan_leases(&self) -> Vec<(Slot, PruneDecision)> {
        let decide = |slot| decide(Phase::BeforeLock, &PruneFacts::Lease(self.lease_facts(slot)));
        in_use(&self.lease_ring).into_iter().map(|slot| (slot, decide(slot))).collect()
    }

    fn lease_facts(&self, slot: Slot) -> LeaseFacts {
        LeaseFacts { slot: slot_facts(&self.lease_ring, slot), leases: self.lease_ring.content(slot).len() as u64 }
    }

    fn queue_facts(&self, slot: Slot) -> QueueFacts {
        let on_slot =
            |content: &ClaimSlot| content.open_attempts().filter(|(batch, _)| batch.ready_slot == slot).count();
        QueueFacts {
            slot: slot_facts(&self.queue_ring, slot),
            has_unpassed_rows: self.has_unpassed_rows(slot),
            open_claims: self.claim_ring.numbered().map(|(_, content)| on_slot(content) as u64).sum(),
            retention_left: Duration::ZERO,
        }
    }

    fn has_unpassed_rows(&self, slot: Slot) -> bool {
        self.queue_ring.content(slot).has_unpassed_rows(&self.transactions.snapshot())
    }

    fn claim_facts(&self, slot: Slot) -> ClaimFacts {
        ClaimFacts {
            slot: slot_facts(&self.claim_ring, slot),
            open_claims: self.claim_ring.content(slot).open_attempts().count() as u64,
        }
    }

    /// Carries out what was decided without a lock, after asking again as a store does that has taken it.
    fn carry_out(
        &mut self,
        ring: RingKind,
        slot: Slot,
        planned: PruneDecision,
        retention: &RetentionPolicy,
        now: Timestamp,
    ) -> Option<KeepReason> {
        let decision = match planned {
            PruneDecision::Keep(reason) => return Some(reason),
            _ if ring == RingKind::Queue && self.transactions.has_writer_in(slot) => return Some(KeepReason::InUse),
            _ if ring == RingKind::Queue => {
                let facts = self.queue_facts(slot);
                decide(Phase::AfterLock { chosen: facts.slot.generation }, &PruneFacts::Queue(facts))
            }
            _ if ring == RingKind::Lease => {
                let facts = self.lease_facts(slot);
                decide(Phase::AfterLock { chosen: facts.slot.generation }, &PruneFacts::Lease(facts))
            }
            _ => {
                let facts = self.claim_facts(slot);
                decide(Phase::AfterLock { chosen: facts.slot.generation }, &PruneFacts::Claim(facts))
            }
        };
        match decision {
            PruneDecision::Keep(reason) => Some(reason),
            PruneDecision::Undrain => {
                self.queue_ring.set_state(slot, SlotState::Sealed);
                Some(KeepReason::WrongState { is: SlotState::Sealed, needs: SlotState::Drained })
            }
            PruneDecision::Truncate if ring == RingKind::Queue => {
                let carried = self.take_failed(slot, retention, now);
                self.count_for_good(slot);
                self.queue_ring.truncate(slot);
                self.queue_ring.open_mut().done.extend(carried);
                None
            }
            PruneDecision::Truncate if ring == RingKind::Lease => {
                self.lease_ring.truncate(slot);
                None
            }
            PruneDecision::Truncate => {
                self.claim_ring.truncate(slot);
                None
            }
        }
    }

    /// Forgets processes that are long gone.
    pub fn tidy(&mut self, now: Timestamp) {
        self.forget_processes(FORGET_PROCESSES_AFTER, now);
    }

    /// Makes a queue known before its first job.
    pub fn open_queue(&mut self, queue: &QueueName) {
        self.queues.entry(queue.clone()).or_default();
    }
}

fn turn<C: Content>(ring: &mut Ring<C>, policy: &RotationPolicy, now: Timestamp) -> Rotated {
    match rotate(&ring.view(), policy, &ring.open_facts(now)) {
        RotateDecision::Open(next) => {
            ring.open_next(next, now);
            Rotated::Opened(next.slot, next.generation)
        }
        RotateDecision::RepairLedger(next) => {
            ring.open_next(next, now);
            Rotated::Repaired(next.slot, next.generation)
        }
        RotateDecision::Stay(reason) => Rotated::Stayed(reason),
    }
}

fn in_use<C: Content>(ring: &Ring<C>) -> Vec<Slot> {
    let busy = |slot: &Slot| !matches!(ring.state(*slot), SlotState::Free | SlotState::Open);
    ring.numbered().map(|(slot, _)| slot).filter(busy).collect()
}

fn slot_facts<C: Content>(ring: &Ring<C>, slot: Slot) -> SlotFacts {
    SlotFacts { slot, generation: ring.generation(slot), state: ring.state(slot), pointer: ring.pointer() }
}
