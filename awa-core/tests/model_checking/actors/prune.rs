//! Reclaiming: `PgStore::prune` with `hold_*_slot`, `try_lock_*_slot` and `truncate_*_slot`. Both decisions, before and
//! under the lock, are `prune::decide`'s, and whether the first proof still holds is said by `ClaimProof`.

use std::time::Duration;

use awa_core::id::{Generation, Slot};
use awa_core::prune::{
    self, ClaimFacts, ClaimProof, LeaseFacts, Phase, PruneDecision, PruneFacts, QueueFacts, SlotFacts,
};
use awa_core::receipt::open;
use awa_core::ring::{RingKind, SlotState};
use awa_core::sweep::SweepCursor;

use super::drain::has_unpassed_rows;
use super::{Flow, Halt, Outcome, Script};
use crate::laws::closed;
use crate::locks::{Child, Mode};
use crate::mutants::Mutant;
use crate::rows::SlotRow;
use crate::turn::Turn;
use crate::world::{Effect, Reach};

/// A pruner's script.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Prune {
    ring: RingKind,
    slot: Slot,
    stage: Stage,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Stage {
    Look,
    /// What is known of the slot, and whether rows wait in it.
    Claims(SlotFacts, bool),
    Hold(ClaimProof, SlotState),
    Lock(ClaimProof),
    Prove(ClaimProof),
    Act(PruneDecision),
    Commit(Reach),
}

impl Prune {
    pub(crate) fn new(ring: RingKind, slot: Slot) -> Self {
        Self { ring, slot, stage: Stage::Look }
    }

    pub(crate) fn step(mut self, turn: &mut Turn<'_>) -> Outcome {
        self.stage = match self.stage {
            Stage::Look => {
                let slot = self.slot_facts(turn);
                if !matches!(slot.state, SlotState::Sealed | SlotState::Drained) {
                    return Ok(Flow::Rollback(None));
                }
                let has_unpassed_rows = self.ring == RingKind::Queue && has_unpassed_rows(turn, self.slot)?;
                let next = Self { stage: Stage::Claims(slot, has_unpassed_rows), ..self };
                return Ok(Flow::Commit(Some(Script::Prune(next))));
            }
            Stage::Claims(slot, has_unpassed_rows) => {
                let proof = self.proof(turn, slot.generation)?;
                let decision = prune::decide(Phase::BeforeLock, &self.facts(slot, has_unpassed_rows, proof.open));
                if matches!(decision, PruneDecision::Keep(_)) {
                    return Ok(Flow::Rollback(None));
                }
                let next = Self { stage: Stage::Hold(proof, slot.state), ..self };
                return Ok(Flow::Rollback(Some(Script::Prune(next))));
            }
            Stage::Hold(chosen, state) => {
                let is_same = |row: &SlotRow| row.generation == chosen.generation && row.state == state;
                if turn.take_slot(self.ring, self.slot, false, is_same)?.is_none() {
                    return Ok(Flow::Rollback(None));
                }
                Stage::Lock(chosen)
            }
            Stage::Lock(chosen) => {
                let children = Child::of_slot(self.ring, self.slot);
                if !children.into_iter().all(|child| turn.try_lock(child, Mode::AccessExclusive)) {
                    return Ok(Flow::Rollback(None));
                }
                Stage::Prove(chosen)
            }
            Stage::Prove(chosen) => Stage::Act(self.prove_again(turn, chosen)?),
            Stage::Act(decision) => match self.act(turn, decision)? {
                Some(reach) => Stage::Commit(reach),
                None => return Ok(Flow::Rollback(None)),
            },
            Stage::Commit(reach) => {
                turn.reach(reach);
                return Ok(Flow::Commit(None));
            }
        };
        Ok(Flow::Next(Script::Prune(self)))
    }

    fn act(&self, turn: &mut Turn<'_>, decision: PruneDecision) -> Result<Option<Reach>, Halt> {
        let (state, reach) = match (decision, self.ring) {
            (PruneDecision::Truncate, RingKind::Queue) => (SlotState::Free, Reach::QueueTruncation),
            (PruneDecision::Truncate, RingKind::Claim) => (SlotState::Free, Reach::ClaimTruncation),
            (PruneDecision::Truncate, RingKind::Lease) => (SlotState::Free, Reach::LeaseTruncation),
            (PruneDecision::Undrain, _) => (SlotState::Sealed, Reach::Undrain),
            (PruneDecision::Keep(_), _) => return Ok(None),
        };
        let Some(row) = turn.take_slot(self.ring, self.slot, true, |_| true)? else { return Ok(None) };
        let (stale, deadline) = (SweepCursor::default(), SweepCursor::default());
        turn.put_slot(self.ring, SlotRow { state, stale, deadline, ..row });
        if state == SlotState::Free {
            turn.effect(Effect::Truncated(self.ring, self.slot));
        }
        Ok(Some(reach))
    }

    /// The decision under the lock, by facts that are read anew.
    fn prove_again(&self, turn: &mut Turn<'_>, chosen: ClaimProof) -> Result<PruneDecision, Halt> {
        let is_left_out =
            if self.ring == RingKind::Lease { Mutant::NoSecondLookAtLeases } else { Mutant::NoSecondProof };
        if turn.rules.breaks(is_left_out) {
            return Ok(PruneDecision::Truncate);
        }
        let slot = self.slot_facts(turn);
        // Leases are few, and counted again.
        let still_holds = self.ring != RingKind::Lease && chosen.still_holds(slot.generation, self.claims(turn)?);
        let open = if still_holds { 0 } else { self.proof(turn, slot.generation)?.open };
        let has_unpassed_rows = self.ring == RingKind::Queue && has_unpassed_rows(turn, self.slot)?;
        let phase = Phase::AfterLock { chosen: chosen.generation };
        Ok(prune::decide(phase, &self.facts(slot, has_unpassed_rows, open)))
    }

    fn slot_facts(&self, turn: &Turn<'_>) -> SlotFacts {
        let view = *turn.ring(self.ring).slot(self.slot);
        let (generation, state) = (view.generation, view.state);
        SlotFacts { slot: self.slot, generation, state, pointer: turn.world.pointer(self.ring) }
    }

    /// `open` attempts are claims, or leases in the lease ring.
    fn facts(&self, slot: SlotFacts, has_unpassed_rows: bool, open: u64) -> PruneFacts {
        let (open_claims, leases, retention_left) = (open, open, Duration::ZERO);
        match self.ring {
            RingKind::Queue => PruneFacts::Queue(QueueFacts { slot, has_unpassed_rows, open_claims, retention_left }),
            RingKind::Claim => PruneFacts::Claim(ClaimFacts { slot, open_claims }),
            RingKind::Lease => PruneFacts::Lease(LeaseFacts { slot, leases }),
        }
    }

    /// A number that grows with each claim of the slot: `recorded_claims` and `stored_claims`.
    fn claims(&self, turn: &mut Turn<'_>) -> Result<u64, Halt> {
        if self.ring == RingKind::Queue {
            turn.lock(Child::Cursors(self.slot), Mode::AccessShare)?;
            let cursors = turn.seen(&turn.world.tables.of_queue(self.slot).cursors);
            return Ok(cursors.map(|cursor| cursor.seq.unsigned_abs()).max().unwrap_or(0));
        }
        turn.lock(Child::Claims(self.slot), Mode::AccessShare)?;
        Ok(turn.seen(&turn.world.tables.of_claim(self.slot).claims).count() as u64)
    }

    /// Reads every claim of the slot and every closure beside them.
    fn proof(&self, turn: &mut Turn<'_>, generation: Generation) -> Result<ClaimProof, Halt> {
        if self.ring == RingKind::Lease {
            turn.lock(Child::Leases(self.slot), Mode::AccessShare)?;
            let leases = turn.seen(turn.world.tables.of_lease(self.slot)).count() as u64;
            return Ok(ClaimProof { generation, claims: 0, open: leases });
        }
        let of_queue = self.ring == RingKind::Queue;
        let read = if of_queue { 0..turn.world.tables.claim.len() as u8 } else { self.slot.0..self.slot.0 + 1 };
        for claim_slot in read.map(Slot) {
            turn.lock(Child::Claims(claim_slot), Mode::AccessShare)?;
            turn.lock(Child::Closures(claim_slot), Mode::AccessShare)?;
        }
        let claims = self.claims(turn)?;
        let open =
            if of_queue { open_of_queue_slot(turn, self.slot, generation) } else { self.open_in_claim_slot(turn) };
        Ok(ClaimProof { generation, claims, open })
    }

    fn open_in_claim_slot(&self, turn: &Turn<'_>) -> u64 {
        let stored = turn.world.tables.of_claim(self.slot);
        let closed = closed(turn.seen(&stored.closures));
        turn.seen(&stored.claims).map(|claim| open(&claim.receipts(), &closed).len()).sum()
    }
}

/// Open claims of rows in a slot, by the slot alone.
fn open_of_queue_slot(turn: &Turn<'_>, slot: Slot, generation: Generation) -> u64 {
    let by_generation = turn.rules.breaks(Mutant::SlotReadBeforeLock);
    let of_claim_slot = |stored: &crate::rows::ClaimSlot| -> u64 {
        let closed = closed(turn.seen(&stored.closures));
        turn.seen(&stored.claims)
            .filter(|claim| claim.ready_slot == slot && (!by_generation || claim.ready_generation == generation))
            .map(|claim| open(&claim.receipts(), &closed).len())
            .sum()
    };
    turn.world.tables.claim.iter().map(of_claim_slot).sum()
}
