//! Freeing a slot that little keeps: `PgStore::unpin` with `carry_slot`, `carry_lane` and `materialize_attempts`. Which
//! slots, and what is done with each, is said by `UnpinPlan` and `unpin::decide`.

use std::collections::BTreeMap;

use awa_core::frontier::{RowKey, Step};
use awa_core::id::{BatchId, Nonce, Slot};
use awa_core::prune::SlotFacts;
use awa_core::receipt::{ReceiptSet, open};
use awa_core::ring::{RingKind, SlotState, SlotView};
use awa_core::unpin::{UnpinDecision, UnpinFacts, UnpinPlan, UnpinPolicy, decide};

use super::close::{Closed, Closing, End};
use super::{Flow, Halt, LANE, Outcome, Script};
use crate::laws::{closed, frontier_of};
use crate::locks::{Child, Mode, Sole};
use crate::mutants::Mutant;
use crate::rows::{CursorRow, JobRow};
use crate::turn::Turn;
use crate::world::{Effect, Reach};

/// The script of whoever frees a slot.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Unpin {
    ring: RingKind,
    slot: Slot,
    /// Slots that take their turn when this one cannot be freed.
    others: Vec<Slot>,
    /// The open attempts that keep the slot, batch by batch.
    attempts: Vec<Attempts>,
    stage: Stage,
}

/// Open attempts of one batch.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Attempts {
    claim_slot: Slot,
    nonce: Nonce,
    open: ReceiptSet,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Stage {
    Plan,
    Attempts,
    LockWriters,
    Decide { own_writers: bool, older_writers: bool },
    LockTombstones,
    Carry,
    CommitCarry,
    Evict(Closing),
    CommitEvict,
}

impl Unpin {
    pub(crate) fn new(ring: RingKind) -> Self {
        Self { ring, slot: Slot(0), others: Vec::new(), attempts: Vec::new(), stage: Stage::Plan }
    }

    pub(crate) fn step(mut self, turn: &mut Turn<'_>) -> Outcome {
        self.stage = match self.stage.clone() {
            Stage::Plan => {
                let mut plan = UnpinPlan::new(&UnpinPolicy::default(), &turn.ring(self.ring));
                self.others = std::iter::from_fn(|| plan.next_slot()).collect();
                return Ok(Flow::Rollback(self.next_slot()));
            }
            Stage::Attempts => {
                self.attempts = self.open_attempts(turn)?;
                let next = Self { stage: Stage::LockWriters, ..self };
                return Ok(Flow::Rollback(Some(Script::Unpin(next))));
            }
            Stage::LockWriters => self.lock_writers(turn),
            Stage::Decide { own_writers, older_writers } => {
                match decide(&UnpinPolicy::default(), &self.facts(turn, own_writers, older_writers)) {
                    UnpinDecision::Keep(_) => return Ok(Flow::Rollback(self.next_slot())),
                    UnpinDecision::MoveOut if waits(turn, self.slot).is_some() && self.ring == RingKind::Queue => {
                        Stage::LockTombstones
                    }
                    UnpinDecision::MoveOut | UnpinDecision::Unpinned => return Ok(Flow::Rollback(self.evict())),
                }
            }
            Stage::LockTombstones => {
                // A job that an open transaction is about to cancel stays where the tombstone is.
                let is_mine =
                    turn.try_lock(Child::Tombstones(self.slot), Mode::Share) && turn.try_hold(Sole::Lane(LANE));
                if !is_mine {
                    return Ok(Flow::Rollback(self.next_slot()));
                }
                Stage::Carry
            }
            Stage::Carry => {
                carry(turn, self.slot);
                Stage::CommitCarry
            }
            Stage::CommitCarry => {
                turn.reach(Reach::CarryOver);
                return Ok(Flow::Commit(self.evict()));
            }
            Stage::Evict(closing) => match closing.step(turn)? {
                Closed::Next(closing) => Stage::Evict(closing),
                Closed::Done(_) => match self.attempts.pop() {
                    Some(next) => Stage::Evict(next.closing()),
                    None => Stage::CommitEvict,
                },
            },
            Stage::CommitEvict => return Ok(Flow::Commit(None)),
        };
        Ok(Flow::Next(Script::Unpin(self)))
    }

    /// On to the next slot of the plan. One slot that is freed is enough in a ring as small as these.
    fn next_slot(mut self) -> Option<Script> {
        if self.others.is_empty() {
            return None;
        }
        let slot = self.others.remove(0);
        Some(Script::Unpin(Self { slot, stage: Stage::Attempts, ..self }))
    }

    /// On to the attempts, in another transaction.
    fn evict(mut self) -> Option<Script> {
        let first = self.attempts.pop()?;
        self.stage = Stage::Evict(first.closing());
        Some(Script::Unpin(self))
    }

    fn open_attempts(&self, turn: &mut Turn<'_>) -> Result<Vec<Attempts>, Halt> {
        for claim_slot in (0..turn.world.tables.claim.len() as u8).map(Slot) {
            turn.lock(Child::Claims(claim_slot), Mode::AccessShare)?;
            turn.lock(Child::Closures(claim_slot), Mode::AccessShare)?;
        }
        let mut attempts: BTreeMap<(Slot, BatchId), Attempts> = BTreeMap::new();
        for (claim_slot, stored) in (0..).map(Slot).zip(&turn.world.tables.claim) {
            let closed = closed(turn.seen(&stored.closures));
            let is_on =
                |ready: Slot| if self.ring == RingKind::Queue { ready == self.slot } else { claim_slot == self.slot };
            for claim in turn.seen(&stored.claims).filter(|claim| is_on(claim.ready_slot)) {
                let open = open(&claim.receipts(), &closed);
                if !open.is_empty() {
                    attempts.insert((claim_slot, claim.batch), Attempts { claim_slot, nonce: claim.nonce, open });
                }
            }
        }
        Ok(attempts.into_values().collect())
    }

    /// Asks for the lock against writers of this slot and of older sealed ones.
    fn lock_writers(&self, turn: &mut Turn<'_>) -> Stage {
        let (mut own_writers, mut older_writers) = (false, false);
        if self.ring == RingKind::Queue {
            let view = turn.ring(self.ring);
            let this = view.slot(self.slot).generation;
            let sealed = (0..).map(Slot).zip(view.slots());
            let sealed = sealed.filter(|(_, other)| other.generation <= this && other.state == SlotState::Sealed);
            for (other, _) in sealed {
                let is_free = turn.try_lock(Child::Ready(other), Mode::Share);
                own_writers |= !is_free && other == self.slot;
                older_writers |= !is_free && other != self.slot;
            }
        }
        Stage::Decide { own_writers, older_writers }
    }

    /// The facts, read after the locks were asked for.
    fn facts(&self, turn: &Turn<'_>, own_writers: bool, older_writers: bool) -> UnpinFacts {
        let view = turn.ring(self.ring);
        let this = *view.slot(self.slot);
        let pointer = turn.world.pointer(self.ring);
        let slot = SlotFacts { slot: self.slot, generation: this.generation, state: this.state, pointer };
        let waiting = if self.ring == RingKind::Queue { waits(turn, self.slot).unwrap_or(0) } else { 0 };
        // Which older slots have rows of the same lane is found out by SQL alone.
        let is_older = |other: &SlotView| other.state == SlotState::Sealed && other.generation < this.generation;
        let older = (0..).map(Slot).zip(view.slots()).filter(|(_, other)| is_older(other));
        let has_older = self.ring == RingKind::Queue
            && waiting > 0
            && (older_writers || older.into_iter().any(|(other, _)| waits(turn, other).is_some()));
        UnpinFacts {
            slot,
            writers_in_flight: own_writers,
            waiting_rows: waiting,
            has_older_rows: has_older && !turn.rules.breaks(Mutant::CarryOverOvertakes),
            open_attempts: self.attempts.iter().map(|attempts| attempts.open.len()).sum(),
        }
    }
}

impl Attempts {
    fn closing(self) -> Closing {
        Closing::new(self.claim_slot, self.nonce, self.open, End::Materialise)
    }
}

/// The rows of a slot that wait: not passed, and without a tombstone.
fn waiting(turn: &Turn<'_>, slot: Slot) -> BTreeMap<RowKey, JobRow> {
    let stored = turn.world.tables.of_queue(slot);
    let snapshot = turn.own_snapshot();
    let probes = frontier_of(turn.seen(&stored.cursors), LANE).candidates(&snapshot);
    let dead: Vec<_> = turn.seen(&stored.tombstones).map(|dead| (dead.job, dead.run_lease)).collect();
    turn.seen(&stored.ready)
        .filter(|row| !dead.contains(&(row.job, row.run_lease)))
        .filter(|row| probes.iter().any(|probe| probe.covers(row.place())))
        .map(|row| (row.place(), row.clone()))
        .collect()
}

fn waits(turn: &Turn<'_>, slot: Slot) -> Option<u64> {
    Some(waiting(turn, slot).len() as u64).filter(|waiting| *waiting > 0)
}

/// Moves the rows that wait, and appends the cursor that passes them and lists them.
fn carry(turn: &mut Turn<'_>, slot: Slot) {
    let snapshot = turn.own_snapshot();
    let moved: Vec<JobRow> = waiting(turn, slot).into_values().collect();
    if moved.is_empty() {
        return;
    }
    let stored = turn.world.tables.of_queue(slot);
    let before = frontier_of(turn.seen(&stored.cursors), LANE);
    let seq = turn.seen(&stored.cursors).map(|cursor| cursor.seq).max().unwrap_or(0) + 1;
    let ready: BTreeMap<_, _> = turn.seen(&stored.ready).map(|row| (row.place(), row.run_lease)).collect();
    let frontier = before.walk(&snapshot, &ready, |_, _| Step::Continue).frontier;
    let rows = moved.iter().map(|row| (row.job, row.run_lease)).collect();
    let cursor = CursorRow { lane: LANE, seq, frontier, batch: None, rows };
    turn.insert(|tables| &mut tables.of_queue_mut(slot).cursors, cursor);
    let generation = turn.slot_row(RingKind::Queue, slot).generation;
    for row in moved {
        turn.effect(Effect::Moved(row.job, generation));
        turn.insert(|tables| &mut tables.carried, row);
    }
}
