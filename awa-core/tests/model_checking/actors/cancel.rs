//! A canceller: `cancel_jobs` with `cancel_deferred`, `cancel_carried`, `cancel_lease` and `cancel_in_ring`, in one
//! transaction. Where the job is looked for, and in which order, is said by SQL alone.

use awa_core::id::{JobId, Nonce, ReceiptId, RunLease, Slot};
use awa_core::receipt::ReceiptSet;

use super::close::{Closed, Closing, End};
use super::enter::{Door, Enter, Entered};
use super::{Flow, Halt, LANE, Outcome, Script};
use crate::laws::{closed, frontier_of};
use crate::locks::{Child, Mode, Sole};
use crate::mutants::Mutant;
use crate::rows::{EndedRow, JobRow, TombstoneRow};
use crate::turn::Turn;
use crate::world::{Effect, Reach};

/// A canceller's script.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Cancel {
    job: JobId,
    stage: Stage,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Stage {
    Deferred,
    Carried,
    Lease,
    Ring,
    /// The newest row of the job was found there.
    Lane(Slot, JobRow),
    Decide(Slot, JobRow),
    Close(Closing),
    Enter(Enter, From),
    Record(Slot, From),
    Commit,
}

/// From where a job that waits is taken out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum From {
    Deferred,
    Carried,
}

impl Cancel {
    pub(crate) fn new(job: JobId) -> Self {
        Self { job, stage: Stage::Deferred }
    }

    pub(crate) fn step(mut self, turn: &mut Turn<'_>) -> Outcome {
        let next = match self.stage.clone() {
            Stage::Deferred => self.deferred(turn),
            Stage::Carried => self.carried(turn),
            Stage::Lease => Some(self.lease(turn)?),
            Stage::Ring => self.ring(turn)?,
            Stage::Lane(slot, row) => {
                let has_lane = turn.rules.breaks(Mutant::CancelWithoutLaneLock) || turn.try_hold(Sole::Lane(LANE));
                has_lane.then_some(Stage::Decide(slot, row))
            }
            Stage::Decide(slot, row) => self.decide(turn, slot, &row)?,
            Stage::Close(closing) => Some(match closing.step(turn)? {
                Closed::Next(closing) => Stage::Close(closing),
                Closed::Done(_) => Stage::Commit,
            }),
            Stage::Enter(at, from) => Some(match at.step(turn, Door::Done)? {
                Entered::Next(next) => Stage::Enter(next, from),
                Entered::In(slot) => Stage::Record(slot, from),
            }),
            Stage::Record(slot, from) => {
                self.record(turn, slot, from);
                Some(Stage::Commit)
            }
            Stage::Commit => return Ok(Flow::Commit(None)),
        };
        let Some(stage) = next else { return Ok(Flow::Rollback(None)) };
        self.stage = stage;
        Ok(Flow::Next(Script::Cancel(self)))
    }

    fn deferred(&self, turn: &mut Turn<'_>) -> Option<Stage> {
        if !turn.seen(&turn.world.tables.deferred).any(|row| row.job == self.job) {
            return Some(Stage::Carried);
        }
        // SKIP LOCKED: whoever promotes it has it, and the answer is "contended".
        if !turn.try_hold(Sole::Deferred(self.job)) {
            return None;
        }
        let removed = turn.remove(|tables| &mut tables.deferred, |row| row.job == self.job);
        (removed > 0).then_some(Stage::Enter(Enter::Read, From::Deferred))
    }

    fn carried(&self, turn: &mut Turn<'_>) -> Option<Stage> {
        if !turn.seen(&turn.world.tables.carried).any(|row| row.job == self.job) {
            return Some(Stage::Lease);
        }
        turn.try_hold(Sole::Lane(LANE)).then_some(Stage::Enter(Enter::Read, From::Carried))
    }

    fn record(&self, turn: &mut Turn<'_>, slot: Slot, from: From) {
        let row = EndedRow { job: self.job };
        if from == From::Carried {
            let mut seen = turn.seen(&turn.world.tables.carried);
            if !seen.any(|row| row.job == self.job) {
                return;
            }
            drop(seen);
            turn.remove(|tables| &mut tables.carried, |row| row.job == self.job);
        }
        turn.insert(|tables| &mut tables.of_queue_mut(slot).done, row);
        turn.effect(Effect::Cancelled(self.job));
        turn.reach(Reach::CancelReady);
    }

    fn lease(&self, turn: &mut Turn<'_>) -> Result<Stage, Halt> {
        let mut leases = turn.leases(Mode::AccessShare)?.into_iter();
        Ok(match leases.find(|(_, lease)| lease.job.job == self.job) {
            Some((_, lease)) => Stage::Close(closing(lease.claim_slot, lease.nonce, lease.receipt)),
            None => Stage::Ring,
        })
    }

    /// The newest row of the job, of all slots.
    fn ring(&self, turn: &mut Turn<'_>) -> Result<Option<Stage>, Halt> {
        let slots = || (0..).map(Slot);
        let count = turn.world.tables.queue.len();
        for slot in slots().take(count) {
            turn.lock(Child::Ready(slot), Mode::AccessShare)?;
        }
        let rows = slots().zip(&turn.world.tables.queue);
        let rows = rows.flat_map(|(slot, stored)| turn.seen(&stored.ready).map(move |row| (slot, row)));
        let newest = rows.filter(|(_, row)| row.job == self.job).max_by_key(|(_, row)| row.run_lease);
        Ok(newest.map(|(slot, row)| Stage::Lane(slot, row.clone())))
    }

    /// Under the lane's lock nobody can move the cursor: the row waits, or it was taken.
    fn decide(&self, turn: &mut Turn<'_>, slot: Slot, row: &JobRow) -> Result<Option<Stage>, Halt> {
        turn.lock(Child::Cursors(slot), Mode::AccessShare)?;
        turn.lock(Child::Tombstones(slot), Mode::RowExclusive)?;
        let stored = turn.world.tables.of_queue(slot);
        if !frontier_of(turn.seen(&stored.cursors), LANE).passed(row.place()) {
            let tombstone = TombstoneRow { job: self.job, run_lease: row.run_lease };
            if !turn.is_unique(&turn.world.tables.of_queue(slot).tombstones, |old| *old == tombstone)? {
                return Ok(None);
            }
            turn.insert(|tables| &mut tables.of_queue_mut(slot).tombstones, tombstone);
            turn.effect(Effect::Cancelled(self.job));
            turn.reach(Reach::CancelReady);
            return Ok(Some(Stage::Commit));
        }
        Ok(self.running(turn, slot, row.run_lease).map(Stage::Close))
    }

    /// The open claim that took the row.
    fn running(&self, turn: &Turn<'_>, slot: Slot, run_lease: RunLease) -> Option<Closing> {
        let cursors = turn.seen(&turn.world.tables.of_queue(slot).cursors);
        let taken = |row: &(JobId, RunLease)| *row == (self.job, run_lease);
        let mut emitted = cursors.filter_map(|cursor| Some((cursor.batch?, cursor.rows.iter().position(taken)?)));
        let (batch, index) = emitted.next()?;
        let receipt = ReceiptId::new(batch, index as u16 + 1);
        (0..).map(Slot).zip(&turn.world.tables.claim).find_map(|(claim_slot, stored)| {
            let claim = turn.seen(&stored.claims).find(|claim| claim.batch == batch)?;
            let is_open = !closed(turn.seen(&stored.closures)).contains(receipt);
            is_open.then(|| closing(claim_slot, claim.nonce, receipt))
        })
    }
}

fn closing(claim_slot: Slot, nonce: Nonce, receipt: ReceiptId) -> Closing {
    Closing::new(claim_slot, nonce, ReceiptSet::from_iter([receipt]), End::Cancel)
}
