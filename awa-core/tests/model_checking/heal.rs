//! Running alone: operations one after the other, for what came before a world begins, for the wrap of a ring during
//! which somebody stalls, and for the fair schedule at the end.

use awa_core::id::Slot;
use awa_core::ring::RingKind;
use awa_core::sweep::SweepKind;

use super::actors::{Deadline, End, Op, Script, Stepped};
use super::database::{Isolation, Who};
use super::laws::all_is_over;
use super::world::{Reach, Rules, World};

/// Maintenance and a worker that are there when everybody else is done, or while somebody stalls.
pub(crate) const OTHER: Who = Who(200);
/// Rounds of the fair schedule. A round is all of maintenance and a worker; every job must have ended after so many.
const ROUNDS: usize = 8;

/// Carries out one operation of `who` while nobody else acts. Where somebody is in its way, it gives up.
pub(crate) fn carry_out(world: &mut World, who: Who, op: &Op, rules: &Rules) -> Vec<Reach> {
    let mut reached = Vec::new();
    let mut script = Some(Script::of(op));
    while let Some(at) = script {
        match at.clone().step(world, who, rules) {
            Stepped::On(next, more) => {
                reached.extend(more);
                script = next.map(|next| *next);
            }
            Stepped::Waiting(_) => script = at.give_up(world, who),
        }
    }
    reached
}

fn all_slots(count: usize) -> impl Iterator<Item = Slot> {
    (0..count as u8).map(Slot)
}

/// One turn of maintenance over everything.
pub(crate) fn maintenance(world: &World) -> Vec<Op> {
    let (queue, claim) = (world.tables.queue.len(), world.tables.claim.len());
    let mut ops = vec![Op::PassTime];
    for kind in [SweepKind::Stale, SweepKind::Deadline] {
        ops.extend(all_slots(claim).map(|slot| Op::Rescue(kind, slot)));
    }
    ops.extend([Op::RescueLeases, Op::Promote]);
    ops.extend(RingKind::ALL.map(Op::Rotate));
    ops.extend(RingKind::ALL.map(Op::Unpin));
    ops.extend(all_slots(queue).map(Op::Drain));
    ops.extend(all_slots(queue).map(|slot| Op::Prune(RingKind::Queue, slot)));
    ops.extend(all_slots(claim).map(|slot| Op::Prune(RingKind::Claim, slot)));
    ops.extend(all_slots(world.tables.leases.len()).map(|slot| Op::Prune(RingKind::Lease, slot)));
    ops
}

/// A worker that takes what is there and ends it well.
pub(crate) fn work() -> [Op; 2] {
    [Op::Claim(8, Deadline::None), Op::Close(End::Complete, Isolation::ReadCommitted)]
}

/// Whoever still lives ends what it holds; then maintenance and a worker take turns until everything is over.
pub(crate) fn heal(world: &mut World, rules: &Rules) -> Vec<Reach> {
    let mut reached = Vec::new();
    world.start(OTHER, true);
    for who in world.hands.keys().copied().collect::<Vec<_>>() {
        reached.extend(carry_out(world, who, &Op::Close(End::Complete, Isolation::ReadCommitted), rules));
    }
    for _ in 0..ROUNDS {
        for op in work().into_iter().chain(maintenance(world)) {
            reached.extend(carry_out(world, OTHER, &op, rules));
        }
        if all_is_over(world) || !world.ghost().broken.is_empty() {
            break;
        }
    }
    reached
}
