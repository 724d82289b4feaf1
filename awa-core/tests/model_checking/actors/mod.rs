//! The actors, each a script of statements. Between any two of them everybody else may act, and the actor may crash.
//!
//! A script mirrors the statements of the SQL functions that its file names, with the decisions taken by the functions of
//! `awa-core`. Statements between which nobody can make a difference are one step.

mod cancel;
mod claim;
mod close;
mod drain;
mod enter;
mod forward;
mod produce;
mod promote;
mod prune;
mod rescue;
mod rotate;
mod unpin;

use awa_core::frontier::Snapshot;
use awa_core::id::{JobId, LaneId, Slot};
use awa_core::ring::RingKind;
use awa_core::sweep::SweepKind;

use super::database::{Isolation, Who};
use super::turn::Turn;
use super::world::{Reach, Rules, World};

pub(crate) use close::End;

/// Something that an actor does, from its beginning to its end.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Op {
    /// Enqueues so many jobs in one transaction.
    Produce(u8, Isolation),
    /// Enqueues a job, claims, and enqueues another one, in one transaction. The SQL function refuses to be called like
    /// this; that its cursor would be right all the same is a second safety.
    ProduceAroundClaim,
    /// Claims at most so many jobs, with or without a deadline.
    Claim(usize, Deadline),
    /// Ends every attempt in hand.
    Close(End, Isolation),
    /// Cancels a job.
    Cancel(JobId),
    /// One pass over the claims of a slot.
    Rescue(SweepKind, Slot),
    /// One pass over the leases.
    RescueLeases,
    /// Makes due jobs ready.
    Promote,
    /// Turns a ring.
    Rotate(RingKind),
    /// Looks whether a slot of the queue ring is drained.
    Drain(Slot),
    /// Frees the oldest slot of a ring that little keeps: carry-over, eviction, and moving leases.
    Unpin(RingKind),
    /// Reclaims a slot.
    Prune(RingKind, Slot),
    /// Time goes by for everybody.
    PassTime,
    /// The database is away for longer than the staleness time.
    Outage,
    /// One beat of this process.
    Beat,
}

/// Whether a claim sets a deadline.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Deadline {
    /// It does not.
    None,
    /// It does, and it is over before anybody looks.
    Short,
}

/// The lane of all worlds. What lanes share are slots, and those are shared by the rows of one lane as well.
pub(crate) const LANE: LaneId = LaneId(1);

/// Where a script stands.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Script {
    Produce(produce::Produce),
    Claim(claim::Claim),
    Close(close::CloseAll),
    Cancel(cancel::Cancel),
    Rescue(Box<rescue::Rescue>),
    RescueLeases(rescue::RescueLeases),
    Promote(promote::Promote),
    Rotate(rotate::Rotate),
    Drain(drain::Drain),
    Unpin(unpin::Unpin),
    Forward(forward::Forward),
    Prune(prune::Prune),
    Pass(Op),
}

/// How a statement ended that was carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Flow {
    /// The transaction goes on.
    Next(Script),
    /// The transaction commits, and the script may go on in another one.
    Commit(Option<Script>),
    /// The transaction is rolled back on purpose, and the script may go on.
    Rollback(Option<Script>),
}

/// Why a statement was not carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Halt {
    /// Somebody is in the way.
    Wait,
    /// It fails, and its transaction with it.
    Abort,
}

/// The result of a statement.
pub(crate) type Outcome = Result<Flow, Halt>;

/// What a step of an actor came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Stepped {
    /// It went on; `None`: the operation is over.
    On(Option<Box<Script>>, Vec<Reach>),
    /// Somebody is in its way. What the statement has done so far is to be forgotten, but not what it saw when it began.
    Waiting(Snapshot),
}

impl Script {
    /// The beginning of an operation.
    pub(crate) fn of(op: &Op) -> Self {
        match op {
            Op::Produce(jobs, isolation) => Self::Produce(produce::Produce::new(*jobs, *isolation)),
            Op::ProduceAroundClaim => Self::Produce(produce::Produce::around_a_claim()),
            Op::Claim(max, deadline) => Self::Claim(claim::Claim::new(*max, *deadline)),
            Op::Close(end, isolation) => Self::Close(close::CloseAll::new(*end, *isolation)),
            Op::Cancel(job) => Self::Cancel(cancel::Cancel::new(*job)),
            Op::Rescue(kind, slot) => Self::Rescue(Box::new(rescue::Rescue::new(*kind, *slot))),
            Op::RescueLeases => Self::RescueLeases(rescue::RescueLeases::new()),
            Op::Promote => Self::Promote(promote::Promote::new()),
            Op::Rotate(ring) => Self::Rotate(rotate::Rotate::new(*ring)),
            Op::Drain(slot) => Self::Drain(drain::Drain::new(*slot)),
            Op::Unpin(RingKind::Lease) => Self::Forward(forward::Forward::new()),
            Op::Unpin(ring) => Self::Unpin(unpin::Unpin::new(*ring)),
            Op::Prune(ring, slot) => Self::Prune(prune::Prune::new(*ring, *slot)),
            Op::PassTime | Op::Outage | Op::Beat => Self::Pass(op.clone()),
        }
    }

    /// The isolation level of its transactions.
    pub(crate) fn isolation(&self) -> Isolation {
        match self {
            Self::Produce(script) => script.isolation(),
            Self::Close(script) => script.isolation(),
            _ => Isolation::ReadCommitted,
        }
    }

    /// Whether it gives up waiting after a while and goes on with something else.
    pub(crate) fn has_timeout(&self) -> bool {
        matches!(self, Self::Close(_) | Self::Rescue(_) | Self::RescueLeases(_) | Self::Unpin(_) | Self::Cancel(_))
    }

    /// Where it goes on when a wait was given up and its transaction was rolled back.
    fn after_timeout(self) -> Option<Self> {
        match self {
            Self::Rescue(script) => script.contended(),
            Self::RescueLeases(script) => script.contended(),
            _ => None,
        }
    }

    fn run(self, turn: &mut Turn<'_>) -> Outcome {
        match self {
            Self::Produce(script) => script.step(turn),
            Self::Claim(script) => script.step(turn),
            Self::Close(script) => script.step(turn),
            Self::Cancel(script) => script.step(turn),
            Self::Rescue(script) => script.step(turn),
            Self::RescueLeases(script) => script.step(turn),
            Self::Promote(script) => script.step(turn),
            Self::Rotate(script) => script.step(turn),
            Self::Drain(script) => script.step(turn),
            Self::Unpin(script) => script.step(turn),
            Self::Forward(script) => script.step(turn),
            Self::Prune(script) => script.step(turn),
            Self::Pass(op) => {
                match op {
                    Op::PassTime => turn.world.pass_time(),
                    Op::Outage => turn.world.pass_outage(),
                    _ => turn.world.beat(turn.who),
                }
                Ok(Flow::Commit(None))
            }
        }
    }

    /// Carries out the next statement of `who`.
    pub(crate) fn step(self, world: &mut World, who: Who, rules: &Rules) -> Stepped {
        let mut turn = Turn::begin(world, who, rules, self.isolation());
        match self.run(&mut turn) {
            Ok(Flow::Next(script)) => Stepped::On(Some(Box::new(script)), Vec::new()),
            Ok(Flow::Commit(script)) => Stepped::On(script.map(Box::new), world.commit(who, rules)),
            Ok(Flow::Rollback(script)) => {
                world.abort(who);
                Stepped::On(script.map(Box::new), Vec::new())
            }
            Err(Halt::Abort) => {
                world.abort(who);
                Stepped::On(None, Vec::new())
            }
            Err(Halt::Wait) => Stepped::Waiting(turn.into_snapshot()),
        }
    }

    /// Gives up a wait.
    pub(crate) fn give_up(self, world: &mut World, who: Who) -> Option<Self> {
        world.abort(who);
        self.after_timeout()
    }
}
