//! Reclaiming: `PgStore::prune` with `hold_*_slot`, `try_lock_*_slot` and `truncate_*_slot`. Both decisions, before and
//! under the lock, are `prune::decide`'s.

use std::time::Duration;

use awa_core::id::{Generation, Slot};
use awa_core::prune::{self, ClaimFacts, Phase, PruneDecision, PruneFacts, QueueFacts, SlotFacts};
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
    Hold(SlotFacts),
    Lock(SlotFacts),
    Prove(SlotFacts),
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
                let facts = self.facts(turn)?;
                let decision = prune::decide(Phase::BeforeLock, &facts);
                if matches!(decision, PruneDecision::Keep(_)) {
                    return Ok(Flow::Commit(None));
                }
                let next = Self { stage: Stage::Hold(*facts.slot()), ..self };
                return Ok(Flow::Commit(Some(Script::Prune(next))));
            }
            Stage::Hold(chosen) => {
                let is_same = |row: &SlotRow| row.generation == chosen.generation && row.state == chosen.state;
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
            Stage::Prove(chosen) => {
                let decision = if turn.rules.breaks(Mutant::NoSecondProof) {
                    PruneDecision::Truncate
                } else {
                    let phase = Phase::AfterLock { chosen: chosen.generation };
                    prune::decide(phase, &self.facts(turn)?)
                };
                Stage::Act(decision)
            }
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
            (PruneDecision::Truncate, _) => (SlotState::Free, Reach::ClaimTruncation),
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

    fn facts(&self, turn: &mut Turn<'_>) -> Result<PruneFacts, Halt> {
        let view = *turn.ring(self.ring).slot(self.slot);
        let (generation, state) = (view.generation, view.state);
        let slot = SlotFacts { slot: self.slot, generation, state, pointer: turn.world.pointer(self.ring) };
        let read = if self.ring == RingKind::Queue {
            0..turn.world.tables.claim.len() as u8
        } else {
            self.slot.0..self.slot.0 + 1
        };
        for claim_slot in read.map(Slot) {
            turn.lock(Child::Claims(claim_slot), Mode::AccessShare)?;
            turn.lock(Child::Closures(claim_slot), Mode::AccessShare)?;
        }
        if self.ring != RingKind::Queue {
            return Ok(PruneFacts::Claim(ClaimFacts { slot, open_claims: self.open_in_claim_slot(turn) }));
        }
        Ok(PruneFacts::Queue(QueueFacts {
            slot,
            has_unpassed_rows: has_unpassed_rows(turn, self.slot)?,
            open_claims: open_of_queue_slot(turn, self.slot, generation),
            // Tombstones are written under the lane's lock over rows that are not passed: none is ever too late.
            undelivered_cancels: 0,
            retention_left: Duration::ZERO,
        }))
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
