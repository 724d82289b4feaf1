//! A producer: `enqueue_jobs`, in a transaction of its own or of a caller.

use awa_core::attempt::Receipt;
use awa_core::frontier::Step;
use awa_core::id::{BatchId, JobId, Nonce, ReceiptId, RunLease, Slot};
use awa_core::ring::RingKind;

use super::enter::{Door, Enter, Entered};
use super::{Flow, LANE, Outcome, Script};
use crate::database::Isolation;
use crate::laws::frontier_of;
use crate::locks::{Child, Mode, Sole};
use crate::rows::{ClaimRow, CursorRow, JobRow};
use crate::turn::Turn;
use crate::world::{Effect, Reach, World};

/// A producer's script.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Produce {
    left: u8,
    isolation: Isolation,
    /// Claims between its first and its last job.
    claims: bool,
    stage: Stage,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Stage {
    Enter(Enter),
    Insert(Slot),
    Claim(Slot),
    Commit,
}

impl Produce {
    pub(crate) fn new(jobs: u8, isolation: Isolation) -> Self {
        Self { left: jobs, isolation, claims: false, stage: Stage::Enter(Enter::Read) }
    }

    pub(crate) fn around_a_claim() -> Self {
        Self { claims: true, ..Self::new(2, Isolation::ReadCommitted) }
    }

    pub(crate) fn isolation(&self) -> Isolation {
        self.isolation
    }

    pub(crate) fn step(mut self, turn: &mut Turn<'_>) -> Outcome {
        self.stage = match self.stage {
            Stage::Enter(at) => {
                // The number is drawn first of all, before the pointer is read.
                turn.xid();
                match at.step(turn, Door::Ready)? {
                    Entered::Next(next) => Stage::Enter(next),
                    Entered::In(slot) => Stage::Insert(slot),
                }
            }
            Stage::Insert(slot) => {
                append_new(turn, slot);
                self.left -= 1;
                match self.left {
                    0 => Stage::Commit,
                    _ if self.claims => Stage::Claim(slot),
                    _ => Stage::Insert(slot),
                }
            }
            Stage::Claim(slot) => {
                claim_here(turn, slot);
                Stage::Insert(slot)
            }
            Stage::Commit => return Ok(Flow::Commit(None)),
        };
        Ok(Flow::Next(Script::Produce(self)))
    }
}

fn append_new(turn: &mut Turn<'_>, slot: Slot) {
    turn.world.last_job += 1;
    let (xid, job) = (turn.xid(), JobId(turn.world.last_job));
    let latest = turn.world.transactions.snapshot(None);
    let row = JobRow { lane: LANE, xid, job, run_lease: RunLease(0), attempt: 0 };
    turn.insert(|tables| &mut tables.of_queue_mut(slot).ready, row);
    turn.effect(Effect::Enqueued(job));
    if latest.xmax() > xid {
        turn.reach(Reach::LateCommit);
    }
}

/// A claim of everything in one slot, in a transaction that writes to the same lane. Only its cursor is of interest.
fn claim_here(turn: &mut Turn<'_>, slot: Slot) {
    if !turn.try_hold(Sole::Lane(LANE))
        || !turn.try_lock(Child::Claims(turn.world.claim_pointer.slot), Mode::RowExclusive)
    {
        return;
    }
    let snapshot = turn.own_snapshot();
    let stored = turn.world.tables.of_queue(slot);
    let before = frontier_of(turn.seen(&stored.cursors), LANE);
    let seq = turn.seen(&stored.cursors).map(|cursor| cursor.seq).max().unwrap_or(0) + 1;
    let ready = turn.seen(&stored.ready).filter(|row| row.lane == LANE).map(|row| (row.place(), row.clone())).collect();
    let mut taken: Vec<JobRow> = Vec::new();
    let walk = before.walk(&snapshot, &ready, |_, row| {
        taken.push(row.clone());
        Step::Continue
    });
    turn.world.last_batch += 1;
    let batch = BatchId(turn.world.last_batch);
    let rows: Vec<_> = taken.iter().map(|row| (row.job, row.run_lease)).collect();
    let members = rows.len() as u16;
    let cursor = CursorRow { lane: LANE, seq, frontier: walk.frontier, batch: Some(batch), rows };
    turn.insert(|tables| &mut tables.of_queue_mut(slot).cursors, cursor);
    if members > 0 {
        let claim = ClaimRow {
            batch,
            lane: LANE,
            seq,
            members,
            ready_slot: slot,
            ready_generation: turn.slot_row(RingKind::Queue, slot).generation,
            instance: World::instance_of(turn.who),
            nonce: Nonce(batch.0),
            claimed_at: turn.world.time(),
            deadline_at: None,
        };
        let claim_slot = turn.world.claim_pointer.slot;
        for (row, index) in taken.iter().zip(1..) {
            let id = ReceiptId::new(batch, index);
            let run_lease = RunLease(row.run_lease.0 + 1);
            turn.effect(Effect::Claimed(Receipt { id, claim_slot, nonce: claim.nonce, job: row.job, run_lease }));
        }
        turn.insert(|tables| &mut tables.of_claim_mut(claim_slot).claims, claim);
    }
}
