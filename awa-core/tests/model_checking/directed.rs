//! Directed schedules: one actor stalls between two of its statements for a whole wrap of the rings, and goes on. What
//! needs a wrap inside one stall is out of reach for free exploration.

use std::time::Instant;

use awa_core::id::{JobId, Slot};
use awa_core::ring::RingKind;
use awa_core::sweep::SweepKind;

use super::actors::{Deadline, End, Op, Script, Stepped};
use super::database::Isolation::{ReadCommitted, RepeatableRead};
use super::database::Who;
use super::explore::{is_long_run, report};
use super::heal::{OTHER, carry_out, heal, maintenance, work};
use super::laws::{Law, all_is_over};
use super::mutants::Mutant;
use super::world::{Rules, World};

/// Who stalls.
const VICTIM: Who = Who(0);
const QUEUE_SLOTS: u8 = 3;
const CLAIM_SLOTS: u8 = 3;

/// What somebody does who stalls in the middle of it, and what was done before.
pub(crate) struct Stall {
    pub(crate) name: &'static str,
    before: Vec<(Who, Op)>,
    op: Op,
}

/// Whether the one who stalls shows life meanwhile, and what becomes of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fate {
    is_beating: bool,
    comes_back: bool,
}

const FATES: [Fate; 3] = [
    Fate { is_beating: true, comes_back: true },
    Fate { is_beating: false, comes_back: true },
    Fate { is_beating: false, comes_back: false },
];

/// Every operation of every actor, where there is something to do for it.
pub(crate) fn stalls() -> Vec<Stall> {
    let produce = || (OTHER, Op::Produce(1, ReadCommitted));
    let claim = |deadline| (VICTIM, Op::Claim(1, deadline));
    let rotate = |ring| (OTHER, Op::Rotate(ring));
    let spent =
        || vec![produce(), (OTHER, Op::Claim(1, Deadline::None)), (OTHER, Op::Close(End::Complete, ReadCommitted))];
    let held = || vec![produce(), claim(Deadline::None)];
    let stall = |name, before: Vec<(Who, Op)>, op| Stall { name, before, op };
    let and = |mut before: Vec<(Who, Op)>, more: Vec<(Who, Op)>| {
        before.extend(more);
        before
    };
    // No slot of the claim ring is free, and one attempt keeps the oldest.
    let turned = || and(and(held(), and(vec![rotate(RingKind::Claim)], spent())), vec![rotate(RingKind::Claim)]);
    // The attempt goes on as a lease, in a slot that is not the open one any more.
    let leased = || and(turned(), vec![(OTHER, Op::Unpin(RingKind::Claim)), rotate(RingKind::Lease)]);
    let full = || vec![produce(), rotate(RingKind::Queue), produce(), rotate(RingKind::Queue), produce()];
    vec![
        stall("produce", vec![produce()], Op::Produce(2, ReadCommitted)),
        stall("produce at REPEATABLE READ", spent(), Op::Produce(1, RepeatableRead)),
        stall("claim", vec![produce()], Op::Claim(1, Deadline::None)),
        stall(
            "claim of what was carried over",
            and(full(), vec![(OTHER, Op::Unpin(RingKind::Queue))]),
            Op::Claim(2, Deadline::None),
        ),
        stall("complete", held(), Op::Close(End::Complete, ReadCommitted)),
        stall("complete at REPEATABLE READ", held(), Op::Close(End::Complete, RepeatableRead)),
        stall("retry", held(), Op::Close(End::Retry, ReadCommitted)),
        stall("release", held(), Op::Close(End::Release, ReadCommitted)),
        stall("cancel what waits", vec![produce()], Op::Cancel(JobId(1))),
        stall("cancel what runs", held(), Op::Cancel(JobId(1))),
        stall("rescue what is stale", and(held(), vec![(OTHER, Op::PassTime)]), Op::Rescue(SweepKind::Stale, Slot(0))),
        stall("rescue by deadline", vec![produce(), claim(Deadline::Short)], Op::Rescue(SweepKind::Deadline, Slot(0))),
        stall("promote", and(held(), vec![(VICTIM, Op::Close(End::Retry, ReadCommitted))]), Op::Promote),
        stall("rotate the queue ring", vec![produce()], Op::Rotate(RingKind::Queue)),
        stall("rotate the claim ring", held(), Op::Rotate(RingKind::Claim)),
        stall("drain", and(spent(), vec![rotate(RingKind::Queue)]), Op::Drain(Slot(0))),
        stall("carry over", full(), Op::Unpin(RingKind::Queue)),
        stall("evict", turned(), Op::Unpin(RingKind::Claim)),
        stall(
            "prune the queue ring",
            and(spent(), vec![rotate(RingKind::Queue), (OTHER, Op::Drain(Slot(0)))]),
            Op::Prune(RingKind::Queue, Slot(0)),
        ),
        stall("complete a lease", leased(), Op::Close(End::Complete, ReadCommitted)),
        stall("move leases", leased(), Op::Unpin(RingKind::Lease)),
        stall(
            "prune the lease ring",
            and(leased(), vec![(OTHER, Op::Unpin(RingKind::Lease))]),
            Op::Prune(RingKind::Lease, Slot(0)),
        ),
        stall("prune the claim ring", and(spent(), vec![rotate(RingKind::Claim)]), Op::Prune(RingKind::Claim, Slot(0))),
    ]
}

/// What one schedule came to.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) broken: Vec<Law>,
    /// Everything was over at the end.
    pub(crate) ended: bool,
    /// The victim was done before it could stall: there are no more stalls to try.
    pub(crate) was_done: bool,
}

/// A world in which `stall` is about to begin.
fn start(stall: &Stall, fate: Fate, rules: &Rules) -> World {
    let mut world = World::new(QUEUE_SLOTS, CLAIM_SLOTS);
    world.start(VICTIM, fate.is_beating);
    world.start(OTHER, true);
    for (who, op) in &stall.before {
        carry_out(&mut world, *who, op, rules);
    }
    world
}

/// All others go around the rings at least once, and leave a job that waits in the slot that was open at first.
fn wrap(world: &mut World, rules: &Rules) {
    let before = [world.queue_pointer, world.claim_pointer];
    let ops = |world: &World| {
        let produce = [Op::Produce(1, ReadCommitted)];
        produce.into_iter().chain(work()).chain(maintenance(world)).collect::<Vec<_>>()
    };
    for _ in 0..2 * QUEUE_SLOTS {
        let is_around = world.queue_pointer.generation.0 >= before[0].generation.0 + i64::from(QUEUE_SLOTS)
            && world.claim_pointer.generation.0 >= before[1].generation.0 + i64::from(CLAIM_SLOTS);
        if is_around && world.queue_pointer.slot == before[0].slot {
            break;
        }
        for op in ops(world) {
            carry_out(world, OTHER, &op, rules);
        }
    }
    carry_out(world, OTHER, &Op::Produce(1, ReadCommitted), rules);
}

/// Runs the victim for at most so many statements; whether it is over.
fn run(world: &mut World, script: &mut Option<Script>, statements: usize, rules: &Rules) -> bool {
    for _ in 0..statements {
        let Some(at) = script.clone() else { return true };
        *script = match at.clone().step(world, VICTIM, rules) {
            Stepped::On(next, _) => next.map(|next| *next),
            Stepped::Waiting(_) => at.give_up(world, VICTIM),
        };
    }
    script.is_none()
}

/// Stalls the victim behind each of these numbers of its statements.
pub(crate) fn try_schedule(stall: &Stall, fate: Fate, stops: &[usize], rules: &Rules) -> Verdict {
    let mut world = start(stall, fate, rules);
    let mut script = Some(Script::of(&stall.op));
    let mut verdict = Verdict::default();
    for (index, stop) in stops.iter().enumerate() {
        let passed = if index == 0 { 0 } else { stops[index - 1] };
        verdict.was_done = run(&mut world, &mut script, stop - passed, rules);
        wrap(&mut world, rules);
    }
    if fate.comes_back {
        run(&mut world, &mut script, usize::MAX, rules);
        // What it has begun to hold by now must outlive a wrap as well.
        wrap(&mut world, rules);
    } else {
        world.crash(VICTIM);
    }
    heal(&mut world, rules);
    verdict.broken = world.ghost().broken.iter().copied().collect();
    verdict.ended = all_is_over(&world);
    verdict
}

/// Every schedule of one actor that stalls once, or twice; how many, and the first that broke a law.
pub(crate) fn try_all(stall: &Stall, rules: &Rules, twice: bool) -> (usize, Option<String>) {
    let mut tried = 0;
    let mut judge = |fate: Fate, stops: &[usize]| {
        tried += 1;
        let verdict = try_schedule(stall, fate, stops, rules);
        let is_bad = !verdict.broken.is_empty() || !verdict.ended;
        if is_bad {
            Err(format!("{} {fate:?} stalled behind {stops:?}: {verdict:?}", stall.name))
        } else {
            Ok(verdict.was_done)
        }
    };
    let broken = FATES.into_iter().find_map(|fate| every_stop(fate, twice, &mut judge).err());
    (tried, broken)
}

/// Judges each stop of a script, and each pair of stops, until the script is over before it comes to the stop.
fn every_stop(
    fate: Fate,
    twice: bool,
    judge: &mut impl FnMut(Fate, &[usize]) -> Result<bool, String>,
) -> Result<(), String> {
    for first in 0.. {
        // What happens in the first stall may shorten the rest, so that the number of first stops is that of single ones.
        if judge(fate, &[first])? {
            break;
        }
        let mut second = first + 1;
        while twice && !judge(fate, &[first, second])? {
            second += 1;
        }
    }
    Ok(())
}

#[test]
fn whoever_stalls_for_a_wrap_of_the_rings_does_no_harm() {
    let begun = Instant::now();
    let mut tried = 0;
    let mut broken = Vec::new();
    for stall in stalls() {
        let (count, what) = try_all(&stall, &Rules::default(), is_long_run());
        tried += count;
        assert!(what.is_some() || count >= 3 * FATES.len(), "{} does nothing: {count} schedules", stall.name);
        broken.extend(what);
    }
    let verdict = if broken.is_empty() { "every law holds, all schedules" } else { "BROKEN" };
    report("stalled for a wrap, every actor and step", tried, begun.elapsed(), verdict);
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(tried > 100, "{tried} schedules are too few to mean anything");
}

/// The directed schedules under a mutant: the name of what broke, and how many schedules it took.
pub(crate) fn catch(mutant: Mutant) -> (usize, Option<String>) {
    let rules = Rules { mutant: Some(mutant), ..Rules::default() };
    let mut tried = 0;
    for stall in stalls() {
        let (count, what) = try_all(&stall, &rules, false);
        tried += count;
        if what.is_some() {
            return (tried, what);
        }
    }
    (tried, None)
}
