//! The worlds that are explored: few actors, small rings, one idea each.

use awa_core::id::{JobId, Slot};
use awa_core::ring::RingKind;
use awa_core::sweep::SweepKind;

use super::actors::{Deadline, End, Op};
use super::database::Isolation::{self, ReadCommitted, RepeatableRead};
use super::database::Who;
use super::heal::OTHER;
use super::model::{Plan, Setting};
use super::mutants::Mutant;
use super::world::{Reach, Rules};

/// A world with a name, and what must happen somewhere in it.
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    pub(crate) setting: Setting,
    pub(crate) reaches: &'static [Reach],
}

/// An actor whose beats arrive.
fn live(ops: impl Into<Vec<Op>>) -> Plan {
    Plan { ops: ops.into(), is_beating: true }
}

/// An actor that is stopped, or cut off from the database as far as its beats go, and goes on all the same.
fn silent(ops: impl Into<Vec<Op>>) -> Plan {
    Plan { is_beating: false, ..live(ops) }
}

fn produce(jobs: u8) -> Op {
    Op::Produce(jobs, ReadCommitted)
}

fn claim(max: usize) -> Op {
    Op::Claim(max, Deadline::None)
}

fn close(end: End) -> Op {
    Op::Close(end, ReadCommitted)
}

const QUEUE: RingKind = RingKind::Queue;
const CLAIM: RingKind = RingKind::Claim;
const LEASE: RingKind = RingKind::Lease;

impl Scene {
    fn new(name: &'static str, actors: Vec<Plan>, reaches: &'static [Reach]) -> Self {
        let setting = Setting {
            rules: Rules::default(),
            queue_slots: 3,
            claim_slots: 2,
            before: Vec::new(),
            actors,
            crashes: 1,
            reached: std::sync::Mutex::default(),
        };
        Self { name, setting, reaches }
    }

    /// The same with operations that were carried out before.
    fn before(mut self, who: Who, ops: impl IntoIterator<Item = Op>) -> Self {
        self.setting.before.extend(ops.into_iter().map(|op| (who, op)));
        self
    }

    /// The same in which nobody crashes.
    fn without_crashes(mut self) -> Self {
        self.setting.crashes = 0;
        self
    }

    /// The same with smaller pages of a sweep.
    fn with_sweep_page(mut self, page: usize) -> Self {
        self.setting.rules.sweep_page = page;
        self
    }

    /// The same with a hole in the protocol.
    pub(crate) fn with(mut self, mutant: Mutant) -> Self {
        self.setting.rules.mutant = Some(mutant);
        self
    }
}

/// Two producers, of which either may commit first or roll back, and two claimers.
pub(crate) fn late_commits() -> Scene {
    let actors = vec![live([produce(2)]), live([produce(1)]), live([claim(1), close(End::Complete)]), live([claim(2)])];
    Scene::new("late commits, two claimers", actors, &[Reach::Claim, Reach::Completion, Reach::LateCommit])
        .without_crashes()
}

/// A producer and two claimers, one of which may crash anywhere.
pub(crate) fn crashing_claimers() -> Scene {
    let actors = vec![live([produce(2)]), live([claim(1), close(End::Complete)]), live([claim(2), close(End::Retry)])];
    Scene::new("crash of a producer or a claimer", actors, &[Reach::Claim, Reach::StaleRescue, Reach::Retry])
}

/// A claim inside a transaction that writes to the same lane.
pub(crate) fn claim_within_a_transaction() -> Scene {
    let actors = vec![live([Op::ProduceAroundClaim]), live([produce(1)]), live([claim(2)])];
    Scene::new("claim within a writer's transaction", actors, &[Reach::Claim])
}

/// One attempt, and four who want to end it.
pub(crate) fn four_closers() -> Scene {
    let actors = vec![
        silent([close(End::Complete)]),
        live([Op::Cancel(JobId(1))]),
        live([Op::Rescue(SweepKind::Stale, Slot(0))]),
        live([Op::Rescue(SweepKind::Deadline, Slot(0))]),
    ];
    let reaches =
        &[Reach::Completion, Reach::CancelRunning, Reach::StaleRescue, Reach::DeadlineRescue, Reach::StaleAnswer];
    Scene::new("complete, cancel, stale and deadline rescue", actors, reaches)
        .before(OTHER, [produce(1)])
        .before(Who(0), [Op::Claim(1, Deadline::Short)])
        .before(OTHER, [Op::PassTime])
        .without_crashes()
}

/// The two closers that meet most often; either may crash.
pub(crate) fn complete_or_rescue() -> Scene {
    let actors =
        vec![silent([close(End::Complete)]), live([Op::Rescue(SweepKind::Stale, Slot(0)), Op::Promote, claim(1)])];
    Scene::new(
        "complete or rescue",
        actors,
        &[Reach::Completion, Reach::StaleRescue, Reach::LostRace, Reach::Promotion],
    )
    .before(OTHER, [produce(2)])
    .before(Who(0), [claim(2)])
    .before(OTHER, [Op::PassTime])
}

/// A handler's own end at REPEATABLE READ against rescue and cancellation.
pub(crate) fn frozen_closer() -> Scene {
    let closer = Op::Close(End::Complete, RepeatableRead);
    let actors = vec![silent([closer.clone(), closer]), live([Op::Rescue(SweepKind::Stale, Slot(0))])];
    Scene::new("closer at REPEATABLE READ", actors, &[Reach::Completion, Reach::StaleRescue])
        .before(OTHER, [produce(1)])
        .before(Who(0), [claim(1)])
        .before(OTHER, [Op::PassTime])
}

/// A cancellation against a claim, and against what follows.
pub(crate) fn cancel_or_claim() -> Scene {
    let actors = vec![live([Op::Cancel(JobId(1))]), live([claim(1), close(End::Retry), Op::Promote]), live([claim(2)])];
    let reaches = &[Reach::CancelReady, Reach::CancelRunning, Reach::Claim, Reach::Promotion];
    Scene::new("cancel or claim", actors, reaches).before(OTHER, [produce(2)])
}

/// A producer in flight while its slot is sealed, drained and, perhaps, reclaimed.
pub(crate) fn late_commit_into_a_sealed_slot(isolation: Isolation) -> Scene {
    let name = match isolation {
        ReadCommitted => "late commit into a sealed slot",
        RepeatableRead => "the same at REPEATABLE READ",
    };
    let actors = vec![
        live([Op::Produce(1, isolation)]),
        live([Op::Rotate(QUEUE), Op::Drain(Slot(0)), Op::Prune(QUEUE, Slot(0))]),
        live([claim(2), close(End::Complete)]),
    ];
    let reaches = &[Reach::Rotation, Reach::Drain, Reach::QueueTruncation, Reach::Claim];
    Scene::new(name, actors, reaches).before(OTHER, [produce(1), claim(1), close(End::Complete)])
}

/// A producer that chases a pointer that moves twice.
pub(crate) fn chased_pointer() -> Scene {
    let actors = vec![
        live([produce(1)]),
        live([Op::Rotate(QUEUE), produce(1), claim(2), close(End::Complete), Op::Rotate(QUEUE), Op::Drain(Slot(1))]),
    ];
    Scene::new("producer chases the pointer", actors, &[Reach::Rotation, Reach::Drain])
        .before(OTHER, [produce(1), claim(1), close(End::Complete)])
}

/// Two rotators, a producer and a claimer; a rotator may die behind the pointer.
pub(crate) fn two_rotators() -> Scene {
    let actors = vec![live([Op::Rotate(QUEUE)]), live([Op::Rotate(QUEUE)]), live([produce(1)]), live([claim(2)])];
    Scene::new("two rotators", actors, &[Reach::Rotation, Reach::LedgerRepair, Reach::Claim])
        .before(OTHER, [produce(1)])
}

/// A claim in flight while the claim ring turns under it.
pub(crate) fn claim_ring_turns() -> Scene {
    let actors = vec![
        live([claim(1), close(End::Complete)]),
        live([Op::Rotate(CLAIM), Op::Prune(CLAIM, Slot(0))]),
        live([claim(1)]),
    ];
    Scene::new("claim ring turns under a claim", actors, &[Reach::Rotation, Reach::ClaimTruncation])
        .before(OTHER, [produce(3), claim(1), close(End::Complete)])
}

/// Eviction against the handler's own end, and the slot that it frees.
pub(crate) fn evict_or_complete(isolation: Isolation) -> Scene {
    let name = match isolation {
        ReadCommitted => "evict or complete",
        RepeatableRead => "evict or complete at REPEATABLE READ",
    };
    let actors = vec![live([Op::Close(End::Complete, isolation)]), live([Op::Unpin(CLAIM), Op::Prune(CLAIM, Slot(0))])];
    Scene::new(name, actors, &[Reach::Eviction, Reach::Completion, Reach::ClaimTruncation])
        .before(OTHER, [produce(1)])
        .before(Who(0), [claim(1)])
        .before(OTHER, [Op::Rotate(CLAIM)])
}

/// Eviction of the attempts that keep a slot of the queue ring, a cancellation, and a claim.
pub(crate) fn evict_from_the_queue_ring() -> Scene {
    let actors = vec![
        live([close(End::Release)]),
        live([Op::Unpin(QUEUE), Op::Drain(Slot(0)), Op::Prune(QUEUE, Slot(0))]),
        live([Op::Cancel(JobId(1))]),
    ];
    let reaches = &[Reach::Eviction, Reach::QueueTruncation, Reach::CancelRunning, Reach::Release];
    Scene::new("evict, release or cancel", actors, reaches)
        .before(OTHER, [produce(1)])
        .before(Who(0), [claim(1)])
        .before(OTHER, [Op::Rotate(QUEUE), produce(1), Op::Rotate(QUEUE), produce(1)])
        .without_crashes()
}

/// Carry-over against a claim and a cancellation.
pub(crate) fn carry_over() -> Scene {
    let actors = vec![
        live([Op::Unpin(QUEUE), Op::Drain(Slot(0)), Op::Prune(QUEUE, Slot(0))]),
        live([claim(1)]),
        live([Op::Cancel(JobId(1))]),
    ];
    let reaches = &[Reach::CarryOver, Reach::Claim, Reach::ClaimOfCarried, Reach::CancelReady, Reach::QueueTruncation];
    Scene::new("carry over, claim or cancel", actors, reaches)
        .before(OTHER, [produce(1), Op::Rotate(QUEUE), produce(1), Op::Rotate(QUEUE), produce(1)])
        .without_crashes()
}

/// Carry-over beside a producer that has not committed in an older slot.
pub(crate) fn carry_over_beside_an_older_writer() -> Scene {
    let actors = vec![live([produce(1)]), live([Op::Rotate(QUEUE), produce(1), Op::Rotate(QUEUE), Op::Unpin(QUEUE)])];
    Scene::new("carry over beside an older writer", actors, &[Reach::CarryOver, Reach::ClaimOfCarried])
        .before(OTHER, [produce(1), claim(1), close(End::Complete)])
        .without_crashes()
}

/// The database is away, and everybody looks dead behind it.
pub(crate) fn outage() -> Scene {
    let actors = vec![
        live([Op::Beat, close(End::Complete)]),
        live([Op::Beat, Op::Rescue(SweepKind::Stale, Slot(0)), Op::RescueLeases]),
        live([Op::Outage, Op::Outage]),
    ];
    Scene::new("outage", actors, &[Reach::RescueRefused, Reach::StaleRescue])
        .before(OTHER, [produce(1)])
        .before(Who(0), [claim(1)])
}

/// A sweep that meets a claim which somebody else is about to end.
pub(crate) fn held_claim() -> Scene {
    let rescue = Op::Rescue(SweepKind::Stale, Slot(0));
    let actors = vec![silent([close(End::Complete)]), live([rescue.clone(), rescue]), live([])];
    Scene::new("sweep behind a held claim", actors, &[Reach::StaleRescue, Reach::Completion])
        .before(OTHER, [produce(7)])
        .before(Who(0), [claim(1)])
        .before(Who(2), std::iter::repeat_n(claim(1), 6))
        .before(OTHER, [Op::PassTime])
        .with_sweep_page(1)
}

/// Two claimers of one row.
pub(crate) fn two_claimers() -> Scene {
    let actors = vec![live([claim(1), close(End::Complete)]), live([claim(1)])];
    Scene::new("two claimers of one row", actors, &[Reach::Claim]).before(OTHER, [produce(1)])
}

/// Attempts that end in all ways that are not success, and come back.
pub(crate) fn other_ends() -> Scene {
    let actors = vec![
        live([close(End::Retry), Op::Promote, claim(1), close(End::Retry)]),
        live([Op::Rotate(QUEUE), Op::Drain(Slot(0)), Op::Prune(QUEUE, Slot(0))]),
        live([Op::Cancel(JobId(1))]),
    ];
    let reaches = &[Reach::Retry, Reach::Promotion, Reach::DeadLetter, Reach::CancelReady];
    Scene::new("retry, promote, cancel, drain", actors, reaches)
        .before(OTHER, [produce(1)])
        .before(Who(0), [claim(1)])
        .without_crashes()
}

/// An attempt that becomes a lease, and all who want to end it.
pub(crate) fn lease() -> Scene {
    let actors =
        vec![silent([close(End::Complete)]), live([Op::Unpin(CLAIM), Op::RescueLeases]), live([Op::Cancel(JobId(1))])];
    let reaches = &[Reach::Eviction, Reach::CompletionOfLease, Reach::CancelRunning, Reach::StaleRescue];
    Scene::new("evict, then complete, rescue or cancel", actors, reaches)
        .before(OTHER, [produce(1)])
        .before(Who(0), [claim(1)])
        .before(OTHER, [Op::PassTime, Op::Rotate(CLAIM)])
}

/// A lease that is moved into another slot of its ring, and all who want to end it meanwhile.
pub(crate) fn lease_is_moved() -> Scene {
    let actors = vec![
        silent([close(End::Complete)]),
        live([Op::Unpin(LEASE), Op::Prune(LEASE, Slot(0))]),
        live([Op::RescueLeases]),
        live([Op::Cancel(JobId(1))]),
    ];
    let reaches = &[
        Reach::LeaseMoved,
        Reach::LeaseTruncation,
        Reach::CompletionOfLease,
        Reach::CancelRunning,
        Reach::StaleRescue,
        Reach::StaleAnswer,
    ];
    Scene::new("move a lease, complete, rescue or cancel", actors, reaches)
        .before(OTHER, [produce(1)])
        .before(Who(0), [claim(1)])
        .before(OTHER, [Op::PassTime, Op::Rotate(CLAIM), Op::Unpin(CLAIM), Op::Rotate(LEASE)])
        .without_crashes()
}

/// An attempt that becomes a lease while the lease ring turns and is pruned.
pub(crate) fn lease_ring_turns() -> Scene {
    let actors = vec![
        live([Op::Unpin(CLAIM)]),
        live([Op::Rotate(LEASE), Op::Unpin(LEASE)]),
        live([Op::Prune(LEASE, Slot(0))]),
        live([close(End::Complete)]),
    ];
    let reaches = &[Reach::Eviction, Reach::LeaseMoved, Reach::LeaseTruncation, Reach::CompletionOfLease];
    Scene::new("evict while the lease ring turns", actors, reaches)
        .before(OTHER, [produce(1)])
        .before(Who(3), [claim(1)])
        .before(OTHER, [Op::Rotate(CLAIM), Op::Unpin(CLAIM), Op::Prune(CLAIM, Slot(0)), produce(1)])
        .before(Who(3), [claim(1)])
        .before(OTHER, [Op::Rotate(CLAIM)])
}

/// An attempt that becomes a lease in a slot that is about to be pruned.
pub(crate) fn lease_slot_is_pruned() -> Scene {
    let actors = vec![live([Op::Unpin(CLAIM)]), live([Op::Rotate(LEASE), Op::Prune(LEASE, Slot(0))]), live([])];
    Scene::new("evict into a slot that is pruned", actors, &[Reach::Eviction, Reach::LeaseTruncation])
        .before(OTHER, [produce(1)])
        .before(Who(2), [claim(1)])
        .before(OTHER, [Op::Rotate(CLAIM), Op::Unpin(CLAIM)])
        .before(Who(2), [close(End::Complete)])
        .before(OTHER, [Op::Prune(CLAIM, Slot(0)), produce(1)])
        .before(Who(2), [claim(1)])
        .before(OTHER, [Op::Rotate(CLAIM)])
}

/// Two processes that maintain the same rings, beside a producer and a worker.
pub(crate) fn two_maintainers() -> Scene {
    let actors = vec![
        live([Op::Drain(Slot(0)), Op::Prune(QUEUE, Slot(0)), Op::Rotate(QUEUE)]),
        live([Op::Prune(QUEUE, Slot(0)), Op::Rotate(QUEUE), Op::Drain(Slot(0))]),
        live([produce(1)]),
        live([claim(1)]),
    ];
    let reaches = &[Reach::Drain, Reach::QueueTruncation, Reach::Rotation, Reach::Claim];
    Scene::new("two maintainers", actors, reaches)
        .before(OTHER, [produce(1), claim(1), close(End::Complete), Op::Rotate(QUEUE), produce(1)])
}

/// Everybody at once, for the long run.
pub(crate) fn everybody() -> Scene {
    let actors = vec![
        live([produce(2)]),
        live([claim(1), close(End::Complete), claim(1), close(End::Retry)]),
        silent([claim(2), close(End::Complete)]),
        live([Op::Rotate(QUEUE), Op::Drain(Slot(0)), Op::Prune(QUEUE, Slot(0))]),
        live([Op::Rotate(CLAIM), Op::Prune(CLAIM, Slot(0)), Op::Rescue(SweepKind::Stale, Slot(0)), Op::Promote]),
        live([Op::Cancel(JobId(1)), Op::Unpin(QUEUE)]),
    ];
    Scene::new("everybody at once", actors, &[Reach::Claim, Reach::Rotation]).before(OTHER, [produce(1)])
}
