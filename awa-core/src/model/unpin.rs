//! What little keeps an old slot is moved out of it.

use std::collections::BTreeSet;

use super::Model;
use super::claim::receipt;
use super::rows::Lane;
use super::slots::{Content, Ring};
use crate::attempt::Receipt;
use crate::frontier::{RowKey, Step};
use crate::id::Slot;
use crate::prune::SlotFacts;
use crate::ring::{RingKind, SlotState};
use crate::store::{PinReport, Unpinned};
use crate::unpin::{PinReason, UnpinDecision, UnpinFacts, UnpinPlan, UnpinPolicy, decide};

impl Model {
    /// Moves out what little keeps the oldest slots. See [`Maintainer::unpin`](crate::store::Maintainer::unpin).
    pub fn unpin(&mut self, policy: &UnpinPolicy) -> Unpinned {
        let mut unpinned = Unpinned::default();
        self.unpin_queue(policy, &mut unpinned);
        self.unpin_claims(policy, &mut unpinned);
        self.unpin_leases(policy, &mut unpinned);
        unpinned
    }

    fn unpin_queue(&mut self, policy: &UnpinPolicy, unpinned: &mut Unpinned) {
        let mut plan = UnpinPlan::new(policy, &self.queue_ring.view());
        while let Some(slot) = plan.next_slot() {
            let attempts = self.attempts_on(slot);
            let waiting = self.queue_ring.content(slot).waiting();
            let facts = UnpinFacts {
                slot: facts(&self.queue_ring, slot),
                writers_in_flight: self.transactions.has_writer_in(slot),
                waiting_rows: waiting.len() as u64,
                has_older_rows: self.may_have_older_rows(slot, &waiting),
                open_attempts: attempts.len() as u64,
            };
            match decide(policy, &facts) {
                UnpinDecision::Keep(reason) => unpinned.keep(RingKind::Queue, slot, reason),
                UnpinDecision::Unpinned => plan.freed(),
                UnpinDecision::MoveOut => {
                    plan.freed();
                    unpinned.carried += self.carry_out_of(slot, &waiting);
                    unpinned.evicted += self.evict(&attempts);
                }
            }
        }
    }

    fn unpin_claims(&mut self, policy: &UnpinPolicy, unpinned: &mut Unpinned) {
        let mut plan = UnpinPlan::new(policy, &self.claim_ring.view());
        while let Some(slot) = plan.next_slot() {
            let attempts = self.attempts_in(slot);
            let facts = UnpinFacts {
                slot: facts(&self.claim_ring, slot),
                writers_in_flight: false,
                waiting_rows: 0,
                has_older_rows: false,
                open_attempts: attempts.len() as u64,
            };
            match decide(policy, &facts) {
                UnpinDecision::Keep(reason) => unpinned.keep(RingKind::Claim, slot, reason),
                UnpinDecision::Unpinned => plan.freed(),
                UnpinDecision::MoveOut => {
                    plan.freed();
                    unpinned.evicted += self.evict(&attempts);
                }
            }
        }
    }

    /// Leases are moved forward in batches; their slot is free to go when none is left.
    fn unpin_leases(&mut self, policy: &UnpinPolicy, unpinned: &mut Unpinned) {
        let mut plan = UnpinPlan::new(policy, &self.lease_ring.view());
        while let Some(slot) = plan.next_slot() {
            unpinned.forwarded += self.forward_leases(slot, policy.max_attempts as usize);
            if self.lease_ring.content(slot).len() > 0 {
                unpinned.keep(RingKind::Lease, slot, PinReason::Busy);
            } else {
                plan.freed();
            }
        }
    }

    /// The open attempts that were claimed from a slot of the queue ring.
    fn attempts_on(&self, ready_slot: Slot) -> Vec<Receipt> {
        let slots = (0..self.claim_ring.len()).map(Slot);
        let all = slots.flat_map(|slot| {
            let open = self.claim_ring.content(slot).open_attempts();
            open.filter(|(batch, _)| batch.ready_slot == ready_slot).map(move |(batch, id)| (slot, batch, id))
        });
        all.map(|(slot, batch, id)| receipt(batch, id, batch.member(id).expect("open attempts are members"), slot))
            .collect()
    }

    /// The open attempts of a slot of the claim ring.
    fn attempts_in(&self, slot: Slot) -> Vec<Receipt> {
        let open = self.claim_ring.content(slot).open_attempts();
        open.map(|(batch, id)| receipt(batch, id, batch.member(id).expect("open attempts are members"), slot)).collect()
    }

    fn evict(&mut self, attempts: &[Receipt]) -> usize {
        for receipt in attempts {
            let attempt = self.open_attempt(receipt).expect("only open attempts are evicted");
            self.materialise(&attempt);
        }
        attempts.len()
    }

    /// Whether a lane of `waiting` has rows in an older slot, or may get some from a writer that is in flight there.
    fn may_have_older_rows(&self, slot: Slot, waiting: &[(Lane, RowKey)]) -> bool {
        let lanes: BTreeSet<&Lane> = waiting.iter().map(|(lane, _)| lane).collect();
        let generation = self.queue_ring.generation(slot);
        let older = self.queue_ring.numbered().filter(|(other, _)| {
            self.queue_ring.state(*other) == SlotState::Sealed && self.queue_ring.generation(*other) < generation
        });
        let mut older = older.map(|(other, content)| {
            self.transactions.has_writer_in(other) || content.waiting().iter().any(|(lane, _)| lanes.contains(lane))
        });
        older.any(|may_have| may_have)
    }

    /// Moves rows into the carry-over and appends the cursors that pass them.
    fn carry_out_of(&mut self, slot: Slot, waiting: &[(Lane, RowKey)]) -> usize {
        let snapshot = self.transactions.snapshot();
        let lanes: BTreeSet<&Lane> = waiting.iter().map(|(lane, _)| lane).collect();
        for lane in lanes {
            let content = self.queue_ring.content(slot);
            let walk = content.frontier(lane).walk(&snapshot, &content.ready[lane], |_, _| Step::Continue);
            self.queue_ring.content_mut(slot).frontiers.insert(lane.clone(), walk.frontier);
        }
        for (lane, key) in waiting {
            let ready = self.queue_ring.content(slot).row(lane, *key).expect("a waiting row is there").clone();
            self.carry(*key, ready);
        }
        waiting.len()
    }
}

impl Unpinned {
    fn keep(&mut self, ring: RingKind, slot: Slot, reason: PinReason) {
        self.kept.push(PinReport { ring, slot, reason });
    }
}

fn facts<C: Content>(ring: &Ring<C>, slot: Slot) -> SlotFacts {
    SlotFacts { slot, generation: ring.generation(slot), state: ring.state(slot), pointer: ring.pointer() }
}
