//! The laws, looked at whenever something was committed, by somebody who sees what is committed and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use awa_core::frontier::Frontier;
use awa_core::id::{BatchId, JobId, LaneId, ReceiptId, RunLease, Slot, Xid};
use awa_core::receipt::{ReceiptSet, open};
use awa_core::ring::{RingKind, RingView, SlotState};
use awa_core::sweep::SweepKind;

use super::database::{Row, Table, Who};
use super::mutants::Mutant;
use super::rows::{ClaimRow, CursorRow, JobRow, LeaseRow};
use super::turn::view;
use super::world::{Effect, Rules, World};

/// What must always hold. The names are those of the invariants in the storage design where there is one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Law {
    /// I1: every committed job is in exactly one place.
    OnePlace,
    /// I2: a row is handed out once, and a job has at most one open attempt.
    OneAttempt,
    /// I3: an attempt ends once.
    EndsOnce,
    /// I4: whoever is told that an attempt is over is told the truth, and a stale writer ends nothing.
    TrueAnswer,
    /// I5: nothing is truncated over rows that wait, open claims, or what a running transaction wrote.
    NoTruncationOverLife,
    /// I8: a job that waits is where the next claim looks.
    Claimable,
    /// I9: a claim takes an exact prefix of what is eligible.
    Order,
    /// A cancellation that was answered as final is final.
    FinalCancel,
    /// A worker that lives and shows it is not rescued from.
    LivingWorker,
    /// An open claim that a pass of a sweep could not close is looked at by the next pass.
    HeldClaim,
}

/// Where a job is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Waiting,
    Running,
    Ended,
}

/// Where each job is, and in which slot of the queue ring that is stored, if it is stored there.
type Census = BTreeMap<JobId, Vec<(Place, Option<Slot>)>>;

/// The rows that are committed.
fn committed<'a, R: Row>(world: &'a World, table: &'a Table<R>) -> impl Iterator<Item = &'a R> {
    let is_running = |xid: Xid| world.transactions.running().any(|running| running == xid);
    let counts = move |version: &&super::database::Version<R>| {
        !is_running(version.made_by) && version.removed_by.is_none_or(is_running)
    };
    table.versions().iter().filter(counts).map(|version| &version.row)
}

/// The frontier of a lane among these cursors.
pub(crate) fn frontier_of<'a>(cursors: impl Iterator<Item = &'a CursorRow>, lane: LaneId) -> Frontier {
    let last = cursors.filter(|cursor| cursor.lane == lane).max_by_key(|cursor| cursor.seq);
    last.map_or_else(Frontier::start, |cursor| cursor.frontier.clone())
}

/// What is closed among these.
pub(crate) fn closed<'a>(closures: impl Iterator<Item = &'a super::rows::ClosureRow>) -> ReceiptSet {
    closures.fold(ReceiptSet::new(), |all, closure| all.union(&closure.receipts))
}

fn waiting_rows(world: &World, slot: Slot) -> Vec<(&JobRow, bool)> {
    let stored = world.tables.of_queue(slot);
    let cursors: Vec<&CursorRow> = committed(world, &stored.cursors).collect();
    let taken: BTreeSet<(JobId, RunLease)> = cursors.iter().flat_map(|cursor| cursor.rows.iter().copied()).collect();
    let is_dead = |row: &JobRow| {
        committed(world, &stored.tombstones).any(|dead| (dead.job, dead.run_lease) == (row.job, row.run_lease))
            && !taken.contains(&(row.job, row.run_lease))
    };
    let rows = committed(world, &stored.ready).map(|row| (row, is_dead(row)));
    rows.filter(|(row, dead)| *dead || !frontier_of(cursors.iter().copied(), row.lane).passed(row.place())).collect()
}

fn members(world: &World, slot: Slot, lane: LaneId, seq: i64) -> Option<&CursorRow> {
    committed(world, &world.tables.of_queue(slot).cursors).find(|cursor| cursor.lane == lane && cursor.seq == seq)
}

fn job_of(world: &World, claim: &ClaimRow, receipt: ReceiptId) -> Option<JobId> {
    let cursor = members(world, claim.ready_slot, claim.lane, claim.seq)?;
    cursor.rows.get(usize::from(receipt.index()) - 1).map(|row| row.0)
}

fn open_claims(world: &World) -> Vec<(Slot, &ClaimRow, ReceiptSet)> {
    let slots = (0_u8..).map(Slot).zip(&world.tables.claim);
    slots
        .flat_map(|(slot, stored)| {
            let closed = closed(committed(world, &stored.closures));
            committed(world, &stored.claims).map(move |claim| (slot, claim, open(&claim.receipts(), &closed)))
        })
        .filter(|(_, _, open)| !open.is_empty())
        .collect()
}

fn census(world: &World) -> Census {
    let mut census = Census::new();
    let mut put = |job: JobId, place: Place, slot: Option<Slot>| census.entry(job).or_default().push((place, slot));
    for (slot, stored) in (0_u8..).map(Slot).zip(&world.tables.queue) {
        for (row, is_dead) in waiting_rows(world, slot) {
            put(row.job, if is_dead { Place::Ended } else { Place::Waiting }, Some(slot));
        }
        for completion in committed(world, &stored.completions) {
            let Some(cursor) = members(world, slot, completion.lane, completion.seq) else { continue };
            for receipt in completion.receipts.iter() {
                put(cursor.rows[usize::from(receipt.index()) - 1].0, Place::Ended, Some(slot));
            }
        }
        for done in committed(world, &stored.done) {
            put(done.job, Place::Ended, Some(slot));
        }
    }
    for (_, claim, open) in open_claims(world) {
        for job in open.iter().filter_map(|receipt| job_of(world, claim, receipt)) {
            put(job, Place::Running, None);
        }
    }
    for row in committed(world, &world.tables.carried) {
        put(row.job, Place::Waiting, None);
    }
    for row in committed(world, &world.tables.deferred) {
        put(row.job, Place::Waiting, None);
    }
    for row in world.tables.leases.iter().flat_map(|child| committed(world, child)) {
        put(row.job.job, Place::Running, None);
    }
    for row in committed(world, &world.tables.dead) {
        put(row.job, Place::Ended, None);
    }
    for job in &world.ghost().reclaimed {
        put(*job, Place::Ended, None);
    }
    census
}

/// Whether every job has ended and every slot but the open one is free.
pub(crate) fn all_is_over(world: &World) -> bool {
    let census = census(world);
    let is_over = |places: &Vec<(Place, Option<Slot>)>| places.iter().all(|(place, _)| *place == Place::Ended);
    let rings = RingKind::ALL.map(|ring| {
        let rows: Vec<_> = committed(world, &world.tables.ring(ring).slots).collect();
        let view = view(&world.tables, ring, rows.iter().copied(), world.pointer(ring));
        view.slots().iter().filter(|slot| slot.state != SlotState::Free).count() <= 1
    });
    world.ghost().jobs.iter().all(|job| census.get(job).is_some_and(is_over)) && rings == [true; 3]
}

/// Looks at everything that is committed.
pub(crate) fn check(world: &mut World, rules: &Rules) {
    let mut broken = BTreeSet::new();
    let census = census(world);
    if census.keys().any(|job| !world.ghost().jobs.contains(job))
        || world.ghost().jobs.iter().any(|job| census.get(job).is_none_or(|places| places.len() != 1))
    {
        broken.insert(Law::OnePlace);
    }
    let running =
        |places: &Vec<(Place, Option<Slot>)>| places.iter().filter(|(place, _)| *place == Place::Running).count();
    if census.values().any(|places| running(places) > 1) || emitted_twice(world) {
        broken.insert(Law::OneAttempt);
    }
    if closed_twice(world) {
        broken.insert(Law::EndsOnce);
    }
    if !unlisted_rows(world, rules).is_empty() {
        broken.insert(Law::Claimable);
    }
    if open_claims(world).iter().any(|(_, claim, _)| members(world, claim.ready_slot, claim.lane, claim.seq).is_none())
    {
        broken.insert(Law::NoTruncationOverLife);
    }
    let cancelled =
        |job: &JobId| census.get(job).is_some_and(|places| places.iter().any(|(place, _)| *place != Place::Ended));
    if world.ghost().cancelled.iter().any(cancelled) {
        broken.insert(Law::FinalCancel);
    }
    if !broken.is_empty() {
        world.ghost_mut().broken.append(&mut broken);
    }
}

fn emitted_twice(world: &World) -> bool {
    let mut seen = BTreeSet::new();
    let rows =
        world.tables.queue.iter().flat_map(|slot| committed(world, &slot.cursors)).flat_map(|cursor| &cursor.rows);
    rows.into_iter().any(|row| !seen.insert(*row))
}

fn closed_twice(world: &World) -> bool {
    world.tables.claim.iter().any(|slot| {
        let count: u64 = committed(world, &slot.closures).map(|closure| closure.receipts.len()).sum();
        count != closed(committed(world, &slot.closures)).len()
    })
}

/// Slots with rows that wait and in which no claim looks.
fn unlisted_rows(world: &World, rules: &Rules) -> Vec<Slot> {
    let rows: Vec<_> = committed(world, &world.tables.queue_ring.slots).collect();
    let view = view(&world.tables, RingKind::Queue, rows.iter().copied(), world.queue_pointer);
    let listed = listed(&view, rules);
    (0..world.tables.queue.len() as u8)
        .map(Slot)
        .filter(|slot| !listed.contains(slot) && waiting_rows(world, *slot).iter().any(|(_, is_dead)| !is_dead))
        .collect()
}

/// The slots in which a claim looks, oldest first.
pub(crate) fn listed(view: &RingView, rules: &Rules) -> Vec<Slot> {
    let listed = view.claim_slots().into_iter().map(|pointer| pointer.slot);
    let by_ledger = |slot: &Slot| view.slot(*slot).state.is_undrained();
    listed.filter(|slot| !rules.breaks(Mutant::PointerSlotNotListed) || by_ledger(slot)).collect()
}

fn breaks(world: &mut World, law: Law, is_broken: bool) {
    if is_broken {
        world.ghost_mut().broken.insert(law);
    }
}

/// Notes what a commit made true.
pub(crate) fn note(world: &mut World, who: Who, effect: &Effect) {
    match effect {
        Effect::Enqueued(job) => drop(world.ghost_mut().jobs.insert(*job)),
        Effect::Ended(job, run_lease) => {
            let is_new = world.ghost_mut().ended.insert((*job, *run_lease));
            breaks(world, Law::EndsOnce, !is_new);
        }
        Effect::Rescued(instance) => {
            let lives = world.instances.get(instance).is_some_and(|instance| instance.is_beating);
            breaks(world, Law::LivingWorker, lives);
        }
        Effect::Moved(job, generation) => drop(world.ghost_mut().moved.insert(*job, *generation)),
        Effect::Cancelled(job) => drop(world.ghost_mut().cancelled.insert(*job)),
        Effect::Answered { receipt, closed } => {
            if let Some(hands) = world.hands.get_mut(&who) {
                hands.retain(|held| held != receipt);
            }
            let is_kept =
                |child: &Table<LeaseRow>| committed(world, child).any(|lease: &LeaseRow| lease.receipt == receipt.id);
            let is_leased = world.tables.leases.iter().any(is_kept);
            let is_open = is_leased || open_claims(world).iter().any(|(_, _, open)| open.contains(receipt.id));
            if is_open && !closed {
                world.ghost_mut().broken.insert(Law::TrueAnswer);
            }
        }
        Effect::Swept { slot, kind, held, visited } => {
            let is_stale = *kind == SweepKind::Stale;
            let before = world.ghost_mut().held.remove(&(*slot, is_stale)).unwrap_or_default();
            let still_open =
                |batch: &BatchId| open_claims(world).iter().any(|(at, claim, _)| at == slot && claim.batch == *batch);
            if before.iter().any(|batch| !visited.contains(batch) && still_open(batch)) {
                world.ghost_mut().broken.insert(Law::HeldClaim);
            }
            if !held.is_empty() {
                world.ghost_mut().held.insert((*slot, is_stale), held.clone());
            }
        }
        Effect::Claimed(receipt) => {
            let is_new = world.ghost_mut().claimed.insert((receipt.job, receipt.run_lease));
            breaks(world, Law::OneAttempt, !is_new);
        }
        Effect::Truncated(..) | Effect::Reached(_) => {}
    }
}

/// Empties a slot, having looked what would be lost by it.
pub(crate) fn truncate(world: &mut World, ring: RingKind, slot: Slot) {
    let before = census(world);
    if is_alive(world, ring, slot) {
        world.ghost_mut().broken.insert(Law::NoTruncationOverLife);
    }
    world.tables.truncate(ring, slot);
    match ring {
        RingKind::Queue => {
            let ended = before.iter().filter(|(_, places)| places.contains(&(Place::Ended, Some(slot))));
            world.ghost_mut().reclaimed.extend(ended.map(|(job, _)| *job));
        }
        RingKind::Claim => {
            world.ghost_mut().held.remove(&(slot, true));
            world.ghost_mut().held.remove(&(slot, false));
        }
        RingKind::Lease => {}
    }
}

/// Whether anything in a slot waits, runs or is being written.
fn is_alive(world: &World, ring: RingKind, slot: Slot) -> bool {
    match ring {
        RingKind::Queue => {
            let stored = world.tables.of_queue(slot);
            waiting_rows(world, slot).iter().any(|(_, is_dead)| !is_dead)
                || open_claims(world).iter().any(|(_, claim, _)| claim.ready_slot == slot)
                || has_running(world, &stored.ready)
                || has_running(world, &stored.cursors)
                || has_running(world, &stored.tombstones)
                || has_running(world, &stored.done)
                || has_running(world, &stored.completions)
        }
        RingKind::Claim => {
            let stored = world.tables.of_claim(slot);
            open_claims(world).iter().any(|(at, _, _)| *at == slot)
                || has_running(world, &stored.claims)
                || has_running(world, &stored.closures)
        }
        RingKind::Lease => {
            let stored = world.tables.of_lease(slot);
            committed(world, stored).next().is_some() || has_running(world, stored)
        }
    }
}

/// Whether a transaction that has not ended wrote to the table. The one that truncates has ended by now.
fn has_running<R: Row>(world: &World, table: &Table<R>) -> bool {
    let is_running = |xid: Xid| world.transactions.running().any(|running| running == xid);
    table.versions().iter().any(|version| is_running(version.made_by) || version.removed_by.is_some_and(is_running))
}
