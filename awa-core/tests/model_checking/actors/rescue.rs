//! Rescue: `PgStore::rescue` and `rescue_leases`. The visit, the cursor, who is alive and whether the rescuer may judge are
//! said by `Sweep`, `LifeSigns` and `RescuerHealth`; each attempt is ended in a statement of its own, which does not wait.

use std::collections::{BTreeMap, BTreeSet};

use awa_core::id::{BatchId, InstanceId, Nonce, ReceiptId, Slot};
use awa_core::receipt::{ReceiptSet, open};
use awa_core::ring::RingKind;
use awa_core::sweep::{
    BatchKey, Evidence, LifeSigns, Page, PageRequest, RescueOutcome, RescuerHealth, Sweep, SweepCursor, SweepKind,
    SweepLimits, Visited,
};
use awa_core::time::Timestamp;

use super::close::{Closed, Closing, End};
use super::{Flow, Halt, Outcome, Script};
use crate::laws::closed;
use crate::locks::{Child, Mode};
use crate::mutants::Mutant;
use crate::rows::{ClaimRow, LeaseRow, SlotRow};
use crate::turn::Turn;
use crate::world::{Effect, Reach, Rules, World};

/// A rescuer's script: one pass over one slot.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Rescue {
    kind: SweepKind,
    slot: Slot,
    visited: BTreeSet<BatchId>,
    held: BTreeSet<BatchId>,
    last: Option<BatchKey>,
    /// The present by which everybody is judged, the rescuer first.
    now: Timestamp,
    stage: Stage,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Stage {
    Judge,
    Begin,
    Read(Sweep<BatchKey>),
    End(Box<Ending>),
    Store(SweepCursor<BatchKey>),
    Commit,
}

/// A page whose claims are being ended.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Ending {
    page: Page<BatchKey>,
    left: Vec<(BatchKey, Nonce, ReceiptSet)>,
    outcomes: BTreeMap<BatchKey, RescueOutcome>,
    /// The one that is being ended, and what was wanted of it.
    now: Option<(BatchKey, ReceiptSet, Closing)>,
}

/// Whether the process of `turn` may rescue others.
fn may_rescue(turn: &mut Turn<'_>) -> bool {
    let beats = turn.world.instances.get(&World::instance_of(turn.who)).map(|instance| instance.beats);
    let health = RescuerHealth::of(beats, turn.world.time(), Rules::STALENESS);
    let may = health.may_rescue() || turn.rules.breaks(Mutant::RescuerNotHealthy);
    if !may {
        turn.reach(Reach::RescueRefused);
    }
    may
}

fn is_stale(turn: &Turn<'_>, claimed_at: Timestamp, instance: InstanceId, now: Timestamp) -> bool {
    let instance_seen_at = turn.world.instances.get(&instance).map(|instance| instance.beats.last);
    let signs = LifeSigns { claimed_at, instance_seen_at, attempt_seen_at: None };
    signs.is_stale(now, Rules::STALENESS) && !turn.rules.breaks(Mutant::NobodyLooksDead)
}

impl Rescue {
    pub(crate) fn new(kind: SweepKind, slot: Slot) -> Self {
        let (visited, held) = (BTreeSet::new(), BTreeSet::new());
        Self { kind, slot, visited, held, last: None, now: Timestamp::from_micros(0), stage: Stage::Judge }
    }

    /// Where it goes on when it gave up a wait: with the next claim, this one being contended.
    pub(crate) fn contended(mut self) -> Option<Script> {
        if let Stage::End(ending) = &mut self.stage {
            let (key, _, _) = ending.now.take()?;
            ending.outcomes.insert(key, RescueOutcome::Contended);
            return Some(Script::Rescue(Box::new(self)));
        }
        None
    }

    pub(crate) fn step(mut self, turn: &mut Turn<'_>) -> Outcome {
        match self.stage.clone() {
            Stage::Judge => {
                if !may_rescue(turn) {
                    return Ok(Flow::Commit(None));
                }
                self.now = turn.world.time();
                self.stage = Stage::Begin;
                Ok(Flow::Rollback(Some(Script::Rescue(Box::new(self)))))
            }
            Stage::Begin => {
                let row = turn.slot_row(RingKind::Claim, self.slot);
                let cursor = if self.kind == SweepKind::Stale { row.stale } else { row.deadline };
                let limits = SweepLimits::new(turn.rules.sweep_page, SweepLimits::MIN_PAGES);
                if turn.rules.breaks(Mutant::PresentReadAgain) {
                    self.now = turn.world.time();
                }
                self.stage = Stage::Read(Sweep::begin(self.kind, cursor, limits));
                Ok(Flow::Rollback(Some(Script::Rescue(Box::new(self)))))
            }
            Stage::Read(sweep) => {
                self.stage = match sweep.next_page() {
                    Some(asked) => self.read(turn, sweep, &asked)?,
                    None => self.finish(turn, sweep),
                };
                Ok(Flow::Rollback(Some(Script::Rescue(Box::new(self)))))
            }
            Stage::End(ending) => self.end(turn, *ending),
            Stage::Store(cursor) => self.store(turn, cursor),
            Stage::Commit => {
                let Self { kind, slot, visited, held, .. } = self;
                turn.effect(Effect::Swept { slot, kind, held, visited });
                Ok(Flow::Commit(None))
            }
        }
    }

    fn read(
        &mut self,
        turn: &mut Turn<'_>,
        sweep: Sweep<BatchKey>,
        asked: &PageRequest<BatchKey>,
    ) -> Result<Stage, Halt> {
        turn.lock(Child::Claims(self.slot), Mode::AccessShare)?;
        turn.lock(Child::Closures(self.slot), Mode::AccessShare)?;
        let stored = turn.world.tables.of_claim(self.slot);
        let closed = closed(turn.seen(&stored.closures));
        let (mut visited, mut left) = (Vec::new(), Vec::new());
        for claim in turn.seen(&stored.claims) {
            let Some(key) = self.key(turn, claim) else { continue };
            let is_asked =
                asked.after.is_none_or(|after| key > after) && asked.through.is_none_or(|through| key <= through);
            if !is_asked || visited.len() == asked.limit {
                continue;
            }
            let open = open(&claim.receipts(), &closed);
            let is_stale = is_stale(turn, claim.claimed_at, claim.instance, self.now);
            let too_new = self.kind == SweepKind::Stale && self.now.since(claim.claimed_at) < Rules::STALENESS;
            let evidence = match self.kind {
                _ if open.is_empty() => Evidence::Closed,
                SweepKind::Stale if !is_stale => Evidence::Alive,
                _ => Evidence::Open,
            };
            visited.push(Visited { key, too_new, evidence });
            left.push((key, claim.nonce, open));
        }
        self.visited.extend(visited.iter().filter(|visited| !visited.too_new).map(|visited| visited.key.batch));
        self.last = visited.iter().map(|visited| visited.key).max().max(self.last);
        let page = sweep.visit(visited);
        let wanted: Vec<BatchKey> = page.to_rescue().collect();
        left.retain(|(key, _, _)| wanted.contains(key));
        Ok(Stage::End(Box::new(Ending { page, left, outcomes: BTreeMap::new(), now: None })))
    }

    /// The place of a claim in the order of the sweep.
    fn key(&self, turn: &Turn<'_>, claim: &ClaimRow) -> Option<BatchKey> {
        let at = match self.kind {
            SweepKind::Stale => claim.claimed_at,
            SweepKind::Deadline => claim.deadline_at.filter(|at| *at <= turn.world.time())?,
        };
        Some(BatchKey { at, batch: claim.batch })
    }

    fn end(mut self, turn: &mut Turn<'_>, mut ending: Ending) -> Outcome {
        let end = if self.kind == SweepKind::Stale { End::RescueStale } else { End::RescueDeadline };
        let (key, wanted, closing) = match ending.now.take() {
            Some(now) => now,
            None if ending.left.is_empty() => {
                let contended = ending.outcomes.iter().filter(|(_, outcome)| **outcome == RescueOutcome::Contended);
                self.held.extend(contended.map(|(key, _)| key.batch));
                self.stage = Stage::Read(ending.page.settle(&ending.outcomes));
                return Ok(Flow::Rollback(Some(Script::Rescue(Box::new(self)))));
            }
            None => {
                let (key, nonce, open) = ending.left.remove(0);
                (key, open.clone(), Closing::new(self.slot, nonce, open, end))
            }
        };
        match closing.step(turn)? {
            Closed::Next(closing) => {
                ending.now = Some((key, wanted, closing));
                self.stage = Stage::End(Box::new(ending));
                Ok(Flow::Next(Script::Rescue(Box::new(self))))
            }
            Closed::Done(closed) => {
                let is_mine = wanted.difference(&closed).is_empty();
                ending.outcomes.insert(key, if is_mine { RescueOutcome::Closed } else { RescueOutcome::LostRace });
                self.stage = Stage::End(Box::new(ending));
                Ok(Flow::Commit(Some(Script::Rescue(Box::new(self)))))
            }
        }
    }

    fn finish(&self, turn: &Turn<'_>, sweep: Sweep<BatchKey>) -> Stage {
        let (cursor, _) = sweep.finish();
        if turn.rules.breaks(Mutant::CursorPassesHeldClaim) {
            return Stage::Store(SweepCursor { at: self.last, resume: None });
        }
        Stage::Store(cursor)
    }

    fn store(mut self, turn: &mut Turn<'_>, cursor: SweepCursor<BatchKey>) -> Outcome {
        if let Some(row) = turn.take_slot(RingKind::Claim, self.slot, true, |_| true)? {
            let row = match self.kind {
                SweepKind::Stale => SlotRow { stale: cursor, ..row },
                SweepKind::Deadline => SlotRow { deadline: cursor, ..row },
            };
            turn.put_slot(RingKind::Claim, row);
        }
        self.stage = Stage::Commit;
        Ok(Flow::Next(Script::Rescue(Box::new(self))))
    }
}

/// A rescuer's script for attempts that go on as leases.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct RescueLeases {
    /// The present by which everybody is judged, once the rescuer was.
    judged: Option<Timestamp>,
    left: Option<Vec<(Slot, Nonce, ReceiptId, End)>>,
    now: Option<Closing>,
}

impl RescueLeases {
    pub(crate) fn new() -> Self {
        Self { judged: None, left: None, now: None }
    }

    /// Where it goes on when it gave up a wait: with the next lease, if it has found any.
    pub(crate) fn contended(self) -> Option<Script> {
        self.left.is_some().then_some(Script::RescueLeases(Self { now: None, ..self }))
    }

    pub(crate) fn step(mut self, turn: &mut Turn<'_>) -> Outcome {
        let Some(judged) = self.judged else {
            if !may_rescue(turn) {
                return Ok(Flow::Commit(None));
            }
            self.judged = Some(turn.world.time());
            return Ok(Flow::Rollback(Some(Script::RescueLeases(self))));
        };
        let Some(left) = &mut self.left else {
            let now = if turn.rules.breaks(Mutant::PresentReadAgain) { turn.world.time() } else { judged };
            let leases = turn.leases(Mode::AccessShare)?;
            self.left = Some(leases.iter().filter_map(|(_, lease)| candidate(turn, lease, now)).collect());
            return Ok(Flow::Rollback(Some(Script::RescueLeases(self))));
        };
        let closing = match self.now.take() {
            Some(closing) => closing,
            None => match left.pop() {
                Some((slot, nonce, id, end)) => Closing::new(slot, nonce, ReceiptSet::from_iter([id]), end),
                None => return Ok(Flow::Rollback(None)),
            },
        };
        match closing.step(turn)? {
            Closed::Next(closing) => {
                self.now = Some(closing);
                Ok(Flow::Next(Script::RescueLeases(self)))
            }
            Closed::Done(_) => Ok(Flow::Commit(Some(Script::RescueLeases(self)))),
        }
    }
}

fn candidate(turn: &Turn<'_>, lease: &LeaseRow, now: Timestamp) -> Option<(Slot, Nonce, ReceiptId, End)> {
    let end = if is_stale(turn, lease.claimed_at, lease.instance, now) {
        End::RescueStale
    } else if lease.deadline_at.is_some_and(|deadline| deadline <= now) {
        End::RescueDeadline
    } else {
        return None;
    };
    Some((lease.claim_slot, lease.nonce, lease.receipt, end))
}
