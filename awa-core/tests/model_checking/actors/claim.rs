//! A claim: `claim_jobs` with `peek_lane`, `claim_carried`, `claim_lane`, `enter_claim_slot` and `record_claim_in`.
//!
//! That a slot which reads free under its lock is dropped, and that the carry-over is looked at again under the lane's
//! lock, are said by SQL alone; the order of the slots, the walk and the cursor are `awa-core`'s.

use std::collections::BTreeMap;

use awa_core::attempt::Receipt;
use awa_core::frontier::{RowKey, Snapshot, Step};
use awa_core::id::{BatchId, Generation, Nonce, ReceiptId, RunLease, Slot};
use awa_core::ring::{Pointer, RingKind, SlotState};
use awa_core::time::Timestamp;

use super::enter::{Door, Enter, Entered};
use super::{Deadline, Flow, Halt, LANE, Outcome, Script};
use crate::laws::{Law, frontier_of, listed};
use crate::locks::{Child, Mode, Sole};
use crate::mutants::Mutant;
use crate::rows::{ClaimRow, CursorRow, JobRow, LeaseRow};
use crate::turn::Turn;
use crate::world::{Effect, Reach, World};

/// A claimer's script.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Claim {
    left: usize,
    deadline: Deadline,
    /// The snapshot of the call, taken before everything else.
    snapshot: Option<Snapshot>,
    /// The slots still to look in, oldest first, as pointers.
    slots: Vec<Pointer>,
    /// Where the claims go, once that is known.
    entered: Option<Slot>,
    stage: Stage,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Stage {
    Look,
    List(Pointer),
    Peek(Pointer),
    LockLane(Pointer),
    Carried,
    EnterLeases(Enter),
    Take,
    Enter(Enter, Taken),
    Record(Slot, Taken),
    Commit,
}

/// What one slot gave.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Taken {
    from: Pointer,
    seq: i64,
    batch: BatchId,
    rows: Vec<JobRow>,
    is_full: bool,
}

impl Claim {
    pub(crate) fn new(max: usize, deadline: Deadline) -> Self {
        Self { left: max, deadline, snapshot: None, slots: Vec::new(), entered: None, stage: Stage::Look }
    }

    pub(crate) fn step(mut self, turn: &mut Turn<'_>) -> Outcome {
        self.stage = match self.stage.clone() {
            Stage::Look => {
                self.snapshot = Some(turn.own_snapshot());
                Stage::List(turn.world.queue_pointer)
            }
            Stage::List(pointer) => {
                self.slots = list(turn, pointer);
                Stage::Peek(pointer)
            }
            Stage::Peek(pointer) => {
                for at in &self.slots {
                    turn.lock(Child::Ready(at.slot), Mode::AccessShare)?;
                    turn.lock(Child::Cursors(at.slot), Mode::AccessShare)?;
                }
                if !turn.rules.breaks(Mutant::SlotReadBeforeLock) && !self.finds_something(turn) {
                    return Ok(Flow::Rollback(None));
                }
                Stage::LockLane(pointer)
            }
            Stage::LockLane(pointer) => {
                if !self.lock_lane(turn, pointer) {
                    return Ok(Flow::Rollback(None));
                }
                Stage::Carried
            }
            Stage::Carried if turn.seen(&turn.world.tables.carried).next().is_none() => Stage::Take,
            // As for the claim ring below: the pointer is read at once.
            Stage::Carried => Stage::EnterLeases(Enter::Lock(turn.world.lease_pointer)),
            Stage::EnterLeases(at) => match at.step(turn, Door::Leases)? {
                Entered::Next(next) => Stage::EnterLeases(next),
                Entered::In(slot) => {
                    self.take_carried(turn, slot);
                    if self.left == 0 { Stage::Commit } else { Stage::Take }
                }
            },
            Stage::Take => match self.take(turn)? {
                Some(taken) => match self.entered {
                    Some(slot) => Stage::Record(slot, taken),
                    // The pointer is read at once: nobody can tell it from a moment later.
                    None => Stage::Enter(Enter::Lock(turn.world.claim_pointer), taken),
                },
                None if self.slots.is_empty() => Stage::Commit,
                None => Stage::Take,
            },
            Stage::Enter(at, taken) => match at.step(turn, Door::Claims)? {
                Entered::Next(next) => Stage::Enter(next, taken),
                Entered::In(slot) => Stage::Record(slot, taken),
            },
            Stage::Record(slot, taken) => {
                self.entered = Some(slot);
                self.record(turn, slot, &taken);
                let goes_on = !taken.is_full && !self.slots.is_empty() && self.left > 0;
                if goes_on { Stage::Take } else { Stage::Commit }
            }
            Stage::Commit => return Ok(Flow::Commit(None)),
        };
        Ok(Flow::Next(Script::Claim(self)))
    }

    /// Keeps the slots with a row that may be there to take; whether there are any, or rows that were carried over. Rows
    /// under a tombstone count.
    fn finds_something(&mut self, turn: &Turn<'_>) -> bool {
        let snapshot = self.snapshot.as_ref().expect("it was taken first");
        let has_head = |at: &Pointer| {
            let stored = turn.world.tables.of_queue(at.slot);
            let probes = frontier_of(turn.seen(&stored.cursors), LANE).candidates(snapshot);
            turn.seen(&stored.ready).any(|row| probes.iter().any(|probe| probe.covers(row.place())))
        };
        self.slots.retain(has_head);
        turn.seen(&turn.world.tables.carried).next().is_some() || !self.slots.is_empty()
    }

    /// Drops slots that were reclaimed before they were locked, and takes the lane; false when somebody else has it.
    fn lock_lane(&mut self, turn: &mut Turn<'_>, pointer: Pointer) -> bool {
        if turn.rules.breaks(Mutant::SlotReadBeforeLock) {
            // What was read before the children were locked is believed, and rows are looked for by a later snapshot.
            self.snapshot = None;
        } else {
            let view = turn.ring(RingKind::Queue);
            self.slots.retain(|at| view.slot(at.slot).state != SlotState::Free || at.slot == pointer.slot);
        }
        turn.rules.breaks(Mutant::NeitherLaneLockNorChain) || turn.try_hold(Sole::Lane(LANE))
    }

    /// The first rows of the lane that were carried over become leases, in this slot.
    fn take_carried(&mut self, turn: &mut Turn<'_>, slot: Slot) {
        let mut rows: Vec<JobRow> = turn.seen(&turn.world.tables.carried).cloned().collect();
        rows.sort_by_key(JobRow::place);
        rows.truncate(self.left);
        if rows.is_empty() {
            return;
        }
        turn.world.last_batch += 1;
        let batch = BatchId(turn.world.last_batch);
        let nonce = Nonce(batch.0);
        for (row, index) in rows.into_iter().zip(1..) {
            turn.remove(|tables| &mut tables.carried, |old| *old == row);
            // A row that was never claimed comes before everything in younger slots, and before nothing in older ones.
            let moved_from = turn.world.ghost().moved.get(&row.job).copied().filter(|_| row.run_lease == RunLease(0));
            let snapshot = self.snapshot.clone().unwrap_or_else(|| turn.own_snapshot());
            if moved_from.is_some_and(|generation| is_left_before(turn, generation, &snapshot)) {
                turn.world.ghost_mut().broken.insert(Law::Order);
            }
            let id = ReceiptId::new(batch, index);
            let job = JobRow { run_lease: RunLease(row.run_lease.0 + 1), attempt: row.attempt + 1, ..row };
            let (claimed_at, deadline_at) = (turn.world.time(), self.deadline_at(turn));
            let instance = World::instance_of(turn.who);
            let receipt = Receipt { id, claim_slot: Slot::LEASED, nonce, job: job.job, run_lease: job.run_lease };
            let lease =
                LeaseRow { receipt: id, claim_slot: Slot::LEASED, nonce, instance, claimed_at, deadline_at, job };
            turn.insert(|tables| tables.of_lease_mut(slot), lease);
            turn.effect(Effect::Claimed(receipt));
            self.left -= 1;
        }
        turn.reach(Reach::ClaimOfCarried);
    }

    /// The next rows of the next slot, with the cursor that passes them; `None` when it gave nothing.
    fn take(&mut self, turn: &mut Turn<'_>) -> Result<Option<Taken>, Halt> {
        if self.slots.is_empty() {
            return Ok(None);
        }
        let from = self.slots.remove(0);
        turn.lock(Child::Cursors(from.slot), Mode::RowExclusive)?;
        let snapshot = self.snapshot.clone().unwrap_or_else(|| turn.own_snapshot());
        let stored = turn.world.tables.of_queue(from.slot);
        let before = frontier_of(turn.seen(&stored.cursors), LANE);
        let seq = turn.seen(&stored.cursors).map(|cursor| cursor.seq).max().unwrap_or(0) + 1;
        let ready: BTreeMap<RowKey, JobRow> = turn.seen(&stored.ready).map(|row| (row.place(), row.clone())).collect();
        let dead: Vec<_> = turn.seen(&stored.tombstones).map(|dead| (dead.job, dead.run_lease)).collect();
        let mut rows: Vec<JobRow> = Vec::new();
        let walk = before.walk(&snapshot, &ready, |_, row| {
            if !dead.contains(&(row.job, row.run_lease)) {
                rows.push(row.clone());
            }
            if rows.len() == self.left { Step::StopHere } else { Step::Continue }
        });
        if rows.is_empty() && !stored.tombstones.has_pages() {
            return Ok(None);
        }
        if !rows.is_empty() && is_left_before(turn, generation_of(turn, from.slot), &snapshot) {
            turn.world.ghost_mut().broken.insert(Law::Order);
        }
        let is_new = turn.is_unique(&turn.world.tables.of_queue(from.slot).cursors, |cursor| cursor.seq == seq);
        if !turn.rules.breaks(Mutant::NeitherLaneLockNorChain) && !is_new? {
            return Err(Halt::Abort);
        }
        turn.world.last_batch += i64::from(!rows.is_empty());
        let batch = BatchId(turn.world.last_batch);
        let emitted: Vec<_> = rows.iter().map(|row| (row.job, row.run_lease)).collect();
        let named = (!emitted.is_empty()).then_some(batch);
        let cursor = CursorRow { lane: LANE, seq, frontier: walk.frontier, batch: named, rows: emitted };
        turn.insert(|tables| &mut tables.of_queue_mut(from.slot).cursors, cursor);
        self.left -= rows.len();
        Ok((!rows.is_empty()).then_some(Taken { from, seq, batch, rows, is_full: !walk.exhausted }))
    }

    fn record(&self, turn: &mut Turn<'_>, claim_slot: Slot, taken: &Taken) {
        let nonce = Nonce(taken.batch.0);
        let claim = ClaimRow {
            batch: taken.batch,
            lane: LANE,
            seq: taken.seq,
            members: taken.rows.len() as u16,
            ready_slot: taken.from.slot,
            ready_generation: taken.from.generation,
            instance: World::instance_of(turn.who),
            nonce,
            claimed_at: turn.world.time(),
            deadline_at: self.deadline_at(turn),
        };
        turn.insert(|tables| &mut tables.of_claim_mut(claim_slot).claims, claim);
        for (row, index) in taken.rows.iter().zip(1..) {
            let id = ReceiptId::new(taken.batch, index);
            let run_lease = RunLease(row.run_lease.0 + 1);
            turn.effect(Effect::Claimed(Receipt { id, claim_slot, nonce, job: row.job, run_lease }));
        }
        turn.reach(Reach::Claim);
    }

    fn deadline_at(&self, turn: &Turn<'_>) -> Option<Timestamp> {
        (self.deadline == Deadline::Short).then(|| turn.world.time())
    }
}

/// The slots to look in, oldest first. The pointer was read one statement before.
fn list(turn: &Turn<'_>, pointer: Pointer) -> Vec<Pointer> {
    let view = turn.ring_at(RingKind::Queue, pointer);
    let named = |slot| if slot == pointer.slot { pointer.generation } else { Generation(0) };
    let at = |slot| Pointer { generation: view.slot(slot).generation.max(named(slot)), slot };
    listed(&view, turn.rules).into_iter().map(at).collect()
}

/// The generation in which a slot is open, or was last.
fn generation_of(turn: &Turn<'_>, slot: Slot) -> Generation {
    let pointer = turn.world.queue_pointer;
    if pointer.slot == slot { pointer.generation } else { turn.slot_row(RingKind::Queue, slot).generation }
}

/// Whether a row that this snapshot sees was left behind in a slot of an older generation.
fn is_left_before(turn: &Turn<'_>, generation: Generation, snapshot: &Snapshot) -> bool {
    let is_left_in = |slot: Slot| {
        let stored = turn.world.tables.of_queue(slot);
        let frontier = frontier_of(turn.seen(&stored.cursors), LANE);
        let dead: Vec<_> = turn.seen(&stored.tombstones).map(|dead| (dead.job, dead.run_lease)).collect();
        turn.seen(&stored.ready).any(|row| {
            snapshot.sees(row.xid) && !frontier.passed(row.place()) && !dead.contains(&(row.job, row.run_lease))
        })
    };
    let mut slots = (0..turn.world.tables.queue.len() as u8).map(Slot);
    slots.any(|slot| generation_of(turn, slot) < generation && is_left_in(slot))
}
