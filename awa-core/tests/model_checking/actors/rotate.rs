//! Rotation: `PgStore::rotate` with `try_lock_rotation` and `open_queue_slot`. The decision is `ring::rotate`'s.

use std::time::Duration;

use awa_core::ring::{self, Pointer, RingKind, RotateDecision, RotationPolicy, SlotState};

use super::{Flow, Halt, Outcome, Script};
use crate::locks::Sole;
use crate::rows::{LedgerRow, SlotRow};
use crate::turn::Turn;
use crate::world::Reach;

/// A rotator's script.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Rotate {
    ring: RingKind,
    stage: Stage,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Stage {
    Look,
    Decide,
    Ledger(Pointer, bool),
    Slots(Pointer, bool),
    Point(Pointer, bool),
    Commit(bool),
}

impl Rotate {
    pub(crate) fn new(ring: RingKind) -> Self {
        Self { ring, stage: Stage::Look }
    }

    pub(crate) fn step(mut self, turn: &mut Turn<'_>) -> Outcome {
        self.stage = match self.stage {
            Stage::Look => match self.decide(turn) {
                None => return Ok(Flow::Rollback(None)),
                // What it was decided here is decided again.
                Some(_) => return Ok(Flow::Rollback(Some(Script::Rotate(Self { stage: Stage::Decide, ..self })))),
            },
            Stage::Decide => {
                if !turn.try_hold(Sole::Rotation(self.ring)) {
                    return Ok(Flow::Rollback(None));
                }
                match self.decide(turn) {
                    None => return Ok(Flow::Rollback(None)),
                    Some((pointer, is_repair)) => Stage::Ledger(pointer, is_repair),
                }
            }
            Stage::Ledger(pointer, is_repair) => {
                // The primary key makes it a compare-and-swap.
                let row = LedgerRow { generation: pointer.generation };
                if !turn.is_unique(&turn.world.tables.ring(self.ring).ledger, |old| *old == row)? {
                    return Ok(Flow::Rollback(None));
                }
                turn.insert(|tables| &mut tables.ring_mut(self.ring).ledger, row);
                Stage::Slots(pointer, is_repair)
            }
            Stage::Slots(pointer, is_repair) => {
                self.turn_slots(turn, pointer)?;
                Stage::Point(pointer, is_repair)
            }
            Stage::Point(pointer, is_repair) => {
                // Last, and only forward: from here on writers use the slot, whether or not this transaction commits.
                if pointer.pack() > turn.world.pointer(self.ring).pack() {
                    turn.set_pointer(self.ring, pointer);
                }
                Stage::Commit(is_repair)
            }
            Stage::Commit(is_repair) => {
                turn.reach(if is_repair { Reach::LedgerRepair } else { Reach::Rotation });
                return Ok(Flow::Commit(None));
            }
        };
        Ok(Flow::Next(Script::Rotate(self)))
    }

    /// The pointer to set, and whether it repairs the ledger.
    fn decide(&self, turn: &Turn<'_>) -> Option<(Pointer, bool)> {
        let policy = RotationPolicy { min_age: Duration::ZERO, max_bytes: u64::MAX };
        let view = turn.ring(self.ring);
        match ring::rotate(&view, &policy, &turn.open_slot(self.ring, &view)) {
            RotateDecision::Open(pointer) => Some((pointer, false)),
            RotateDecision::RepairLedger(pointer) => Some((pointer, true)),
            RotateDecision::Stay(_) => None,
        }
    }

    /// Seals the open slot and opens the other; the transaction fails when that one is not free.
    fn turn_slots(&self, turn: &mut Turn<'_>, pointer: Pointer) -> Result<(), Halt> {
        let slots = turn.ring(self.ring).slots().len() as u8;
        for slot in (0..slots).map(awa_core::id::Slot) {
            if let Some(row) = turn.take_slot(self.ring, slot, true, |row| row.state == SlotState::Open)? {
                turn.put_slot(self.ring, SlotRow { state: SlotState::Sealed, ..row });
            }
        }
        let free = turn.take_slot(self.ring, pointer.slot, true, |row| row.state == SlotState::Free)?;
        let row = free.ok_or(Halt::Abort)?;
        turn.put_slot(self.ring, SlotRow { state: SlotState::Open, generation: pointer.generation, ..row });
        Ok(())
    }
}
