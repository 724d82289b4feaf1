use std::time::Duration;

use async_trait::async_trait;

use crate::error::StoreError;
use crate::id::{Generation, InstanceId, JobId, RunLease, Slot};
use crate::name::QueueName;
use crate::prune::{KeepReason, RetentionPolicy};
use crate::retry::RetryPolicy;
use crate::ring::{RingKind, RotationPolicy, StayReason};
use crate::sweep::RescueCause;
use crate::unpin::{PinReason, UnpinPolicy};

/// A recurring task of maintenance. Each is small, bounded, independent of the others, and safe when two run at once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Task {
    /// Due deferred jobs become ready.
    Promote,
    /// Attempts whose worker is gone, whose deadline is over, or whose callback did not come, are ended.
    Rescue,
    /// Rings move on, slots that are spent are marked, and reclaimed.
    Rings,
    /// What is left over from dead instances and from the first use of queues is put in order.
    Tidy,
}

impl Task {
    /// All tasks.
    pub const ALL: [Self; 4] = [Self::Promote, Self::Rescue, Self::Rings, Self::Tidy];

    /// The name in logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Promote => "promote",
            Self::Rescue => "rescue",
            Self::Rings => "rings",
            Self::Tidy => "tidy",
        }
    }
}

/// What one promotion did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Promoted {
    /// Jobs that became ready.
    pub jobs: usize,
    /// The call stopped at a limit, its own or that of the store, so that more may be due: promote again at once.
    pub more: bool,
}

/// What a rescue needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RescueRequest {
    /// The process that rescues. It may act only when its own beats were unbroken for the staleness time, so that an
    /// outage of the database does not make every worker look dead.
    pub rescuer: InstanceId,
    /// The age of the last sign of life from which on an attempt may be rescued.
    pub staleness: Duration,
    /// At most so many claim batches are looked at per slot.
    pub page: usize,
}

/// One rescued attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RescuedAttempt {
    /// The job.
    pub job: JobId,
    /// Its queue.
    pub queue: QueueName,
    /// The lease of the attempt that was ended.
    pub run_lease: RunLease,
    /// Whether its budget was used up, so that it went the way of failed jobs.
    pub exhausted: bool,
    /// Why it was ended.
    pub cause: RescueCause,
}

/// What one rescue pass did.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Rescued {
    /// The attempts it ended.
    pub attempts: Vec<RescuedAttempt>,
    /// Stale attempts that somebody else was about to end; the next pass looks again.
    pub contended: usize,
    /// The rescuer was not healthy long enough to judge others; nothing was looked at.
    pub rescuer_too_young: bool,
    /// There was more to look at than one pass may: rescue again soon.
    pub more: bool,
}

/// What one rotation did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Rotated {
    /// The ring writes into this slot from now on.
    Opened(Slot, Generation),
    /// A rotation that had been cut off was completed.
    Repaired(Slot, Generation),
    /// It stays where it is, for this reason.
    Stayed(StayReason),
    /// Another process is rotating.
    Contended,
}

/// What one draining pass did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Drained {
    /// Slots whose every row has been passed; claims no longer look at them.
    pub slots: Vec<Slot>,
    /// Slots that could not be proven, or that somebody was in the way of.
    pub kept: Vec<Slot>,
}

/// What became of one slot in a prune pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PruneReport {
    /// The slot.
    pub slot: Slot,
    /// `None`: truncated, and free again. Otherwise the reason why it was kept.
    pub kept: Option<KeepReason>,
}

/// What one unpinning pass did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Unpinned {
    /// Jobs that were moved out of the ring; claims take them first.
    pub carried: usize,
    /// Attempts that go on as leases.
    pub evicted: usize,
    /// Leases that were moved into the open slot of their ring.
    pub forwarded: usize,
    /// Slots that should be free to go and are kept by more than is moved.
    pub kept: Vec<PinReport>,
}

/// A slot that is kept, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PinReport {
    /// The ring.
    pub ring: RingKind,
    /// The slot.
    pub slot: Slot,
    /// Why.
    pub reason: PinReason,
}

/// Keeps a store in order. Every method is one bounded step, safe to run in many processes at once and to be cut off
/// anywhere, and never waits for a lock of a hot path.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Maintainer: Send + Sync {
    /// Asks for the turn of `task`: true for one caller in the whole fleet per `every`. There is no leader: a process
    /// that dies after it got the turn delays the task by one interval.
    async fn try_tick(&self, task: Task, every: Duration) -> Result<bool, StoreError>;

    /// Makes at most `limit` due deferred jobs ready. One that cannot be moved keeps no other back (C8).
    async fn promote(&self, limit: usize) -> Result<Promoted, StoreError>;

    /// Ends attempts whose instance is stale, or whose deadline is over (C3, C4, C12), and parked ones whose time has run
    /// out. An attempt's own notes are signs of life beside those of its instance. An attempt ended this way is charged; `retry` gives the delay of the next one, and one whose budget is used up goes the way of failed jobs.
    async fn rescue(&self, request: &RescueRequest, retry: &RetryPolicy) -> Result<Rescued, StoreError>;

    /// Opens the next slot of a ring when the policy asks for it (C11).
    async fn rotate(&self, ring: RingKind, policy: &RotationPolicy) -> Result<Rotated, StoreError>;

    /// Marks sealed slots of the queue ring whose rows have all been passed, so that claims stop looking at them.
    async fn drain(&self) -> Result<Drained, StoreError>;

    /// Moves out what little keeps the oldest slots, when free slots run short (C15): jobs that nobody claims are carried
    /// over, and attempts that run for long go on as leases. Neither their order nor their receipts change.
    async fn unpin(&self, policy: &UnpinPolicy) -> Result<Unpinned, StoreError>;

    /// Truncates slots of a ring that are proven spent (C11). One report per slot that is neither free nor open.
    async fn prune(&self, ring: RingKind, retention: &RetentionPolicy) -> Result<Vec<PruneReport>, StoreError>;

    /// Puts in order what the first use of queues and dead instances left behind.
    async fn tidy(&self) -> Result<(), StoreError>;

    /// Makes sure that the lanes of `queue` exist, so that its first job is found at once. Idempotent.
    async fn open_queue(&self, queue: &QueueName) -> Result<(), StoreError>;

    /// Deletes at most `limit` jobs that died `age` ago or before, longest dead first, with the keys that they may hold;
    /// returns how many. One that somebody else holds is passed over.
    async fn forget_dead(&self, age: Duration, limit: usize) -> Result<usize, StoreError>;

    /// Does what [`Self::open_queue`] does for each of `queues`, in one step. Whoever opens the same queues in another order
    /// at the same time is not in the way.
    async fn open_queues(&self, queues: &[QueueName]) -> Result<(), StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_is_on_the_list_once() {
        // A new one has to be put here to compile.
        let next = |task: &Task| match task {
            Task::Promote => Some(Task::Rescue),
            Task::Rescue => Some(Task::Rings),
            Task::Rings => Some(Task::Tidy),
            Task::Tidy => None,
        };
        let tasks: Vec<_> = std::iter::successors(Some(Task::Promote), next).collect();
        assert_eq!(tasks, Task::ALL);
    }
}
