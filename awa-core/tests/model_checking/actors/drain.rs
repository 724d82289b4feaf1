//! Draining: `PgStore::drain` with `try_lock_queue_slot`, `unpassed_lanes` and `pass_tombstones`. The decision is
//! `ring::drain`'s.

use std::collections::BTreeMap;

use awa_core::frontier::{Frontier, Snapshot, Step};
use awa_core::id::Slot;
use awa_core::ring::{self, DrainDecision, DrainFacts, RingKind, SlotState};

use super::{Flow, Halt, LANE, Outcome, Script};
use crate::laws::frontier_of;
use crate::locks::{Child, Mode, Sole};
use crate::mutants::Mutant;
use crate::rows::{CursorRow, SlotRow};
use crate::turn::Turn;
use crate::world::Reach;

/// A drainer's script.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Drain {
    slot: Slot,
    stage: Stage,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Stage {
    Look,
    Lock(Option<DrainFacts>),
    Facts(bool),
    Mark(DrainFacts),
    Commit,
}

impl Drain {
    pub(crate) fn new(slot: Slot) -> Self {
        Self { slot, stage: Stage::Look }
    }

    pub(crate) fn step(mut self, turn: &mut Turn<'_>) -> Outcome {
        self.stage = match self.stage {
            Stage::Look => {
                let is_sealed = turn.ring(RingKind::Queue).slot(self.slot).state == SlotState::Sealed;
                if !is_sealed || has_unpassed_rows(turn, self.slot)? {
                    return Ok(if is_sealed { Flow::Commit(None) } else { Flow::Rollback(None) });
                }
                let is_early = turn.rules.breaks(Mutant::DrainReadBeforeLock);
                let early = if is_early { Some(self.facts(turn, true)?) } else { None };
                let next = Self { stage: Stage::Lock(early), ..self };
                return Ok(Flow::Commit(Some(Script::Drain(next))));
            }
            Stage::Lock(early) => {
                let is_locked = turn.rules.breaks(Mutant::DrainWithoutWritersLock)
                    || turn.try_lock(Child::Ready(self.slot), Mode::Share);
                match early {
                    Some(facts) => Stage::Mark(DrainFacts { writers_in_flight: !is_locked, ..facts }),
                    None => Stage::Facts(is_locked),
                }
            }
            Stage::Facts(is_locked) => Stage::Mark(self.facts(turn, is_locked)?),
            Stage::Mark(facts) => {
                if ring::drain(&facts) != DrainDecision::Drain {
                    return Ok(Flow::Rollback(None));
                }
                let row = turn.take_slot(RingKind::Queue, self.slot, true, |row| row.state == SlotState::Sealed)?;
                let Some(row) = row else { return Ok(Flow::Rollback(None)) };
                turn.put_slot(RingKind::Queue, SlotRow { state: SlotState::Drained, ..row });
                Stage::Commit
            }
            Stage::Commit => {
                turn.reach(Reach::Drain);
                return Ok(Flow::Commit(None));
            }
        };
        Ok(Flow::Next(Script::Drain(self)))
    }

    fn facts(&self, turn: &mut Turn<'_>, is_locked: bool) -> Result<DrainFacts, Halt> {
        let state = turn.ring(RingKind::Queue).slot(self.slot).state;
        let has_unpassed_rows = has_unpassed_rows(turn, self.slot)?;
        let pointer = turn.world.queue_pointer;
        Ok(DrainFacts { slot: self.slot, state, pointer, writers_in_flight: !is_locked, has_unpassed_rows })
    }
}

/// Whether a slot has a row that no cursor has passed. Where only tombstones wait, the cursor is moved over them.
pub(super) fn has_unpassed_rows(turn: &mut Turn<'_>, slot: Slot) -> Result<bool, Halt> {
    for child in [Child::Ready(slot), Child::Cursors(slot), Child::Tombstones(slot)] {
        turn.lock(child, Mode::AccessShare)?;
    }
    let snapshot = turn.own_snapshot();
    Ok(has_row(turn, slot, &snapshot, true) && !pass_tombstones(turn, slot, &snapshot))
}

fn has_row(turn: &Turn<'_>, slot: Slot, snapshot: &Snapshot, counts_dead: bool) -> bool {
    let stored = turn.world.tables.of_queue(slot);
    let probes = frontier_of(turn.seen(&stored.cursors), LANE).candidates(snapshot);
    let dead: Vec<_> = turn.seen(&stored.tombstones).map(|dead| (dead.job, dead.run_lease)).collect();
    turn.seen(&stored.ready)
        .filter(|row| counts_dead || !dead.contains(&(row.job, row.run_lease)))
        .any(|row| probes.iter().any(|probe| probe.covers(row.place())))
}

fn pass_tombstones(turn: &mut Turn<'_>, slot: Slot, snapshot: &Snapshot) -> bool {
    let has_dead = turn.world.tables.of_queue(slot).tombstones.has_pages();
    if !has_dead || has_row(turn, slot, snapshot, false) || !turn.try_hold(Sole::Lane(LANE)) {
        return false;
    }
    let stored = turn.world.tables.of_queue(slot);
    let before: Frontier = frontier_of(turn.seen(&stored.cursors), LANE);
    let seq = turn.seen(&stored.cursors).map(|cursor| cursor.seq).max().unwrap_or(0) + 1;
    let ready: BTreeMap<_, _> = turn.seen(&stored.ready).map(|row| (row.place(), row.run_lease)).collect();
    let walk = before.walk(snapshot, &ready, |_, _| Step::Continue);
    let cursor = CursorRow { lane: LANE, seq, frontier: walk.frontier, batch: None, rows: Vec::new() };
    turn.insert(|tables| &mut tables.of_queue_mut(slot).cursors, cursor);
    true
}
