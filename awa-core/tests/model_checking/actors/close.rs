//! Ending attempts: `close_receipts`, `complete_attempts`, `end_attempts`, `route_ended`, `take_leases`, `place_ended` and
//! `materialize_attempts`. Handlers, cancellation, rescue and eviction all come through here.
//!
//! What is granted is `receipt::admit`'s word; that the insert has the last one is the database's.

use awa_core::attempt::Receipt;
use awa_core::id::{BatchId, InstanceId, JobId, Nonce, ReceiptId, RunLease, Slot};
use awa_core::receipt::{Admission, ReceiptSet, admit};
use awa_core::retry::{AttemptBudget, Disposition, RetryPolicy};

use super::enter::{Door, Enter, Entered};
use super::{Flow, Halt, Outcome, Script};
use crate::database::Isolation;
use crate::laws::{Law, closed};
use crate::locks::{Child, Mode, Sole};
use crate::mutants::Mutant;
use crate::rows::{ClaimRow, ClosureRow, CompletionRow, EndedRow, JobRow, LeaseRow};
use crate::turn::Turn;
use crate::world::{Effect, Reach};

/// How attempts end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum End {
    /// Well, with nothing to keep.
    Complete,
    /// Badly; the budget decides.
    Retry,
    /// Handed back, to run next.
    Release,
    /// On demand.
    Cancel,
    /// Because the process of the attempt looks dead.
    RescueStale,
    /// Because its deadline is over.
    RescueDeadline,
    /// It goes on as a lease.
    Materialise,
}

/// A wish to end attempts of one batch.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Closing {
    pub(crate) claim_slot: Slot,
    pub(crate) nonce: Nonce,
    pub(crate) wanted: ReceiptSet,
    pub(crate) end: End,
    /// What this call has ended so far.
    closed: ReceiptSet,
    stage: Stage,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Stage {
    Read,
    Insert(ReceiptSet),
    Route(ReceiptSet),
    Enter(Enter, Vec<Ended>),
    Place(Slot, Vec<Ended>),
    EnterLeases(Enter, Vec<LeaseRow>),
    Leases,
    LookAgain,
}

/// An attempt that has just been ended: its job, its lease and attempt being those of the attempt.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Ended {
    receipt: ReceiptId,
    job: JobRow,
}

/// What a statement of a closing came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Closed {
    /// There is more to do.
    Next(Closing),
    /// These were ended. The caller commits.
    Done(ReceiptSet),
}

impl Closing {
    pub(crate) fn new(claim_slot: Slot, nonce: Nonce, wanted: ReceiptSet, end: End) -> Self {
        let stage = if claim_slot == Slot::LEASED { Stage::Leases } else { Stage::Read };
        Self { claim_slot, nonce, wanted, end, closed: ReceiptSet::new(), stage }
    }

    pub(crate) fn step(mut self, turn: &mut Turn<'_>) -> Result<Closed, Halt> {
        self.stage = match self.stage.clone() {
            Stage::Read => self.read(turn)?,
            Stage::Insert(granted) => self.insert(turn, granted)?,
            Stage::Route(granted) => self.route(turn, &granted)?,
            Stage::Enter(at, ended) => match at.step(turn, Door::Done)? {
                Entered::Next(next) => Stage::Enter(next, ended),
                Entered::In(slot) => Stage::Place(slot, ended),
            },
            Stage::Place(slot, ended) => {
                self.place(turn, slot, &ended);
                Stage::Leases
            }
            Stage::EnterLeases(at, leases) => match at.step(turn, Door::Leases)? {
                Entered::Next(next) => Stage::EnterLeases(next, leases),
                Entered::In(slot) => {
                    for lease in leases {
                        turn.insert(|tables| tables.of_lease_mut(slot), lease);
                    }
                    turn.reach(Reach::Eviction);
                    Stage::Leases
                }
            },
            // What this statement cannot see is found by the next one, for which the children are locked already.
            Stage::LookAgain if turn.rules.breaks(Mutant::MovedLeaseLooksOver) => return Ok(Closed::Done(self.closed)),
            Stage::LookAgain => {
                let leases = turn.leases(Mode::AccessShare)?;
                if !leases.iter().any(|(_, lease)| self.is_meant(lease)) {
                    return Ok(Closed::Done(self.closed));
                }
                Stage::Leases
            }
            Stage::Leases => match self.take_leases(turn)? {
                Some(next) => next,
                None => Stage::LookAgain,
            },
        };
        let is_over = self.stage == Stage::Leases && (self.end == End::Materialise || self.missing().is_empty());
        Ok(if is_over { Closed::Done(self.closed) } else { Closed::Next(self) })
    }

    fn missing(&self) -> ReceiptSet {
        self.wanted.difference(&self.closed)
    }

    fn is_meant(&self, lease: &LeaseRow) -> bool {
        self.missing().contains(lease.receipt) && lease.nonce == self.nonce && lease.claim_slot == self.claim_slot
    }

    fn batch(&self) -> BatchId {
        self.wanted.iter().next().expect("somebody wants something").batch()
    }

    fn claim(&self, turn: &Turn<'_>) -> Option<ClaimRow> {
        let batch = self.batch();
        let mut claims = turn.seen(&turn.world.tables.of_claim(self.claim_slot).claims);
        claims.find(|claim| claim.batch == batch && claim.nonce == self.nonce).cloned()
    }

    /// What is open of the wanted, in a statement of its own.
    fn read(&self, turn: &mut Turn<'_>) -> Result<Stage, Halt> {
        turn.lock(Child::Closures(self.claim_slot), Mode::RowExclusive)?;
        turn.lock(Child::Claims(self.claim_slot), Mode::AccessShare)?;
        let claimed = self.claim(turn).map_or_else(ReceiptSet::new, |claim| claim.receipts());
        let Admission { granted, .. } = admit(&self.missing(), &claimed, &closed_seen(turn, self.claim_slot));
        Ok(if granted.is_empty() { Stage::Leases } else { Stage::Insert(granted) })
    }

    /// The constraints have the last word: a closure of the same receipts that is being written makes this one wait, and
    /// a committed one refuses it.
    fn insert(&self, turn: &mut Turn<'_>, granted: ReceiptSet) -> Result<Stage, Halt> {
        let overlaps = |row: &ClosureRow| !row.receipts.intersection(&granted).is_empty();
        let closures = &turn.world.tables.of_claim(self.claim_slot).closures;
        if turn.rules.breaks(Mutant::NoClosureConstraint) || turn.is_unique(closures, overlaps)? {
            let row = ClosureRow { receipts: granted.clone() };
            turn.insert(|tables| &mut tables.of_claim_mut(self.claim_slot).closures, row);
            return Ok(Stage::Route(granted));
        }
        turn.reach(Reach::LostRace);
        if turn.is_frozen() {
            return Err(Halt::Abort);
        }
        if turn.rules.breaks(Mutant::ClosureReadWhileWaiting) {
            return Ok(Stage::Route(granted));
        }
        Ok(Stage::Read)
    }

    /// Where the jobs of what was closed go. A plain completion only names them.
    fn route(&mut self, turn: &mut Turn<'_>, granted: &ReceiptSet) -> Result<Stage, Halt> {
        let claim = self.claim(turn).ok_or(Halt::Abort)?;
        self.closed = self.closed.union(granted);
        for child in [Child::Ready(claim.ready_slot), Child::Cursors(claim.ready_slot)] {
            if self.end != End::Complete {
                turn.lock(child, Mode::AccessShare)?;
            }
        }
        let Some(ended) = bodies(turn, &claim, granted) else {
            turn.world.ghost_mut().broken.insert(Law::NoTruncationOverLife);
            return Err(Halt::Abort);
        };
        match self.end {
            End::Complete => {
                turn.lock(Child::Completions(claim.ready_slot), Mode::RowExclusive)?;
                let row = CompletionRow { lane: claim.lane, seq: claim.seq, receipts: granted.clone() };
                turn.insert(|tables| &mut tables.of_queue_mut(claim.ready_slot).completions, row);
                for ended in &ended {
                    turn.effect(Effect::Ended(ended.job.job, ended.job.run_lease));
                }
                turn.reach(Reach::Completion);
                Ok(Stage::Leases)
            }
            End::Materialise => {
                let (claim_slot, nonce, instance) = (self.claim_slot, self.nonce, claim.instance);
                let (claimed_at, deadline_at) = (claim.claimed_at, claim.deadline_at);
                let lease = |Ended { receipt, job }| LeaseRow {
                    receipt,
                    claim_slot,
                    nonce,
                    instance,
                    claimed_at,
                    deadline_at,
                    job,
                };
                Ok(Stage::EnterLeases(Enter::Read, ended.into_iter().map(lease).collect()))
            }
            _ => {
                self.note_rescue(turn, claim.instance);
                Ok(self.placing(ended))
            }
        }
    }

    /// Wide rows go to the slot of `done_entries` that is open now; everything else has a table of its own.
    fn placing(&self, ended: Vec<Ended>) -> Stage {
        if matches!(self.end, End::Complete | End::Cancel) {
            Stage::Enter(Enter::Read, ended)
        } else {
            Stage::Place(Slot::LEASED, ended)
        }
    }

    fn note_rescue(&self, turn: &mut Turn<'_>, instance: InstanceId) {
        match self.end {
            End::RescueStale => {
                turn.effect(Effect::Rescued(instance));
                turn.reach(Reach::StaleRescue);
            }
            End::RescueDeadline => turn.reach(Reach::DeadlineRescue),
            _ => {}
        }
    }

    fn place(&self, turn: &mut Turn<'_>, done: Slot, ended: &[Ended]) {
        for Ended { job: row, .. } in ended {
            turn.effect(Effect::Ended(row.job, row.run_lease));
            let ended = EndedRow { job: row.job };
            match self.end {
                End::Complete => {
                    turn.insert(|tables| &mut tables.of_queue_mut(done).done, ended);
                    turn.reach(Reach::CompletionOfLease);
                }
                End::Cancel => {
                    turn.insert(|tables| &mut tables.of_queue_mut(done).done, ended);
                    turn.reach(Reach::CancelRunning);
                }
                End::Release => {
                    let row = JobRow { attempt: row.attempt - 1, ..row.clone() };
                    turn.insert(|tables| &mut tables.carried, row);
                    turn.reach(Reach::Release);
                }
                _ => match RetryPolicy::default().after_failure(budget(row, turn), None, 0.0) {
                    Disposition::Exhausted => {
                        turn.insert(|tables| &mut tables.dead, ended);
                        turn.reach(Reach::DeadLetter);
                    }
                    Disposition::Retry { .. } => {
                        turn.insert(|tables| &mut tables.deferred, row.clone());
                        turn.reach(Reach::Retry);
                    }
                },
            }
        }
    }

    /// What is not in the claim ring may go on as a lease, and ends with its row. `None`: nothing more is to be found.
    fn take_leases(&mut self, turn: &mut Turn<'_>) -> Result<Option<Stage>, Halt> {
        let mut seen = turn.leases(Mode::RowExclusive)?;
        seen.retain(|(_, lease)| self.is_meant(lease));
        let mut ended = Vec::new();
        for (slot, lease) in seen {
            turn.hold(Sole::Lease(lease.receipt))?;
            if turn.remove(|tables| tables.of_lease_mut(slot), |old| old.receipt == lease.receipt) > 0 {
                self.note_rescue(turn, lease.instance);
                self.closed = self.closed.union(&[lease.receipt].into_iter().collect());
                ended.push(Ended { receipt: lease.receipt, job: lease.job });
            } else if turn.is_frozen() {
                return Err(Halt::Abort);
            }
        }
        if !ended.is_empty() {
            return Ok(Some(self.placing(ended)));
        }
        // Only a new transaction can tell a closed attempt from one that lives on where this one cannot see.
        if turn.is_frozen() && !turn.rules.breaks(Mutant::FrozenCloserBelieves) {
            return Err(Halt::Abort);
        }
        Ok(None)
    }
}

fn closed_seen(turn: &Turn<'_>, slot: Slot) -> ReceiptSet {
    closed(turn.seen(&turn.world.tables.of_claim(slot).closures))
}

fn budget(row: &JobRow, turn: &Turn<'_>) -> AttemptBudget {
    AttemptBudget { attempt: row.attempt, max_attempts: turn.rules.max_attempts }
}

/// The jobs behind members of a claim, by the cursor that emitted them and the ready rows of the same slot.
fn bodies(turn: &Turn<'_>, claim: &ClaimRow, receipts: &ReceiptSet) -> Option<Vec<Ended>> {
    let stored = turn.world.tables.of_queue(claim.ready_slot);
    let cursor = turn.seen(&stored.cursors).find(|cursor| cursor.lane == claim.lane && cursor.seq == claim.seq)?;
    let body = |receipt: ReceiptId| {
        let (job, run_lease): (JobId, RunLease) = *cursor.rows.get(usize::from(receipt.index()) - 1)?;
        let row = turn.seen(&stored.ready).find(|row| row.job == job && row.run_lease == run_lease)?;
        let job = JobRow { run_lease: RunLease(run_lease.0 + 1), attempt: row.attempt + 1, ..row.clone() };
        Some(Ended { receipt, job })
    };
    receipts.iter().map(body).collect()
}

/// A worker's script: ends what it holds, batch by batch, each in a transaction of its own.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct CloseAll {
    end: End,
    isolation: Isolation,
    /// The handler's own statements, with which its transaction begins, are still to come.
    is_new: bool,
    asked: Vec<Receipt>,
    closing: Option<Closing>,
    answer: Option<ReceiptSet>,
}

impl CloseAll {
    pub(crate) fn new(end: End, isolation: Isolation) -> Self {
        let is_new = isolation == Isolation::RepeatableRead;
        Self { end, isolation, is_new, asked: Vec::new(), closing: None, answer: None }
    }

    pub(crate) fn isolation(&self) -> Isolation {
        self.isolation
    }

    pub(crate) fn step(mut self, turn: &mut Turn<'_>) -> Outcome {
        if let Some(closed) = self.answer.take() {
            for receipt in std::mem::take(&mut self.asked) {
                let closed = closed.contains(receipt.id);
                turn.effect(Effect::Answered { receipt, closed });
                if !closed {
                    turn.reach(Reach::StaleAnswer);
                }
            }
            self.is_new = self.isolation == Isolation::RepeatableRead;
            return Ok(Flow::Commit(Some(Script::Close(self))));
        }
        if self.is_new {
            return Ok(Flow::Next(Script::Close(Self { is_new: false, ..self })));
        }
        let closing = match self.closing.take() {
            Some(closing) => closing,
            None => match self.next(turn) {
                Some(closing) => closing,
                None => return Ok(Flow::Commit(None)),
            },
        };
        match closing.step(turn)? {
            Closed::Next(closing) => self.closing = Some(closing),
            Closed::Done(closed) => self.answer = Some(closed),
        }
        Ok(Flow::Next(Script::Close(self)))
    }

    /// The next batch in hand.
    fn next(&mut self, turn: &Turn<'_>) -> Option<Closing> {
        let hands = turn.world.hands.get(&turn.who)?;
        let first = *hands.first()?;
        let same = |held: &&Receipt| held.id.batch() == first.id.batch() && held.nonce == first.nonce;
        self.asked = hands.iter().filter(same).copied().collect();
        let wanted = self.asked.iter().map(|receipt| receipt.id).collect();
        Some(Closing::new(first.claim_slot, first.nonce, wanted, self.end))
    }
}
