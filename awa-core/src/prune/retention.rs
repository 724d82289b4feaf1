//! How long the history of finished jobs is kept, by how they ended.

use std::time::Duration;

use super::{Phase, PruneDecision, PruneFacts, QueueFacts, decide};
use crate::id::Slot;

/// How long the history of finished jobs is kept, by how they ended: for its time, or until it takes too much room,
/// whichever ends first.
///
/// History is reclaimed slot by slot, so it may be there for longer. A slot is kept for its completed and cancelled jobs.
/// Failed ones, of queues without a dead-letter queue, keep no slot: within their own limits they are carried forward into
/// the open one when theirs is reclaimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RetentionPolicy {
    /// How long completed jobs are kept, from the end of the youngest of a slot. Default: 15 minutes.
    pub completed: Duration,
    /// How long cancelled jobs are kept, likewise. Default: 15 minutes.
    pub cancelled: Duration,
    /// How long each failed job is kept at least. Default: 24 hours.
    pub failed: Duration,
    /// The bytes that slots which only their history keeps may hold together. Default: 1 GiB.
    pub max_bytes: u64,
    /// The bytes of arguments, metadata and errors of failed jobs that are carried forward out of one slot, the youngest
    /// first. Default: 16 MiB.
    pub max_failed_bytes: u64,
}

/// The history in one slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SlotHistory {
    /// The age of its youngest completed job; `None` when it has none.
    pub completed: Option<Duration>,
    /// The age of its youngest cancelled job; `None` when it has none.
    pub cancelled: Option<Duration>,
    /// The size of all its children.
    pub bytes: u64,
}

/// A failed job in the history of a slot, neither deleted nor tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FailedJob {
    /// How long ago it failed.
    pub age: Duration,
    /// Its arguments, metadata and error, as text.
    pub bytes: u64,
}

impl Default for RetentionPolicy {
    fn default() -> Self {
        Self {
            completed: Duration::from_mins(15),
            cancelled: Duration::from_mins(15),
            failed: Duration::from_hours(24),
            max_bytes: 1 << 30,
            max_failed_bytes: 16 << 20,
        }
    }
}

impl RetentionPolicy {
    /// No history is kept for longer than its slot is needed for something else.
    pub const NONE: Self = Self::uniform(Duration::ZERO, 0);

    /// The same time for each way to end, and the same room for all history and for failed jobs alone.
    pub const fn uniform(time: Duration, max_bytes: u64) -> Self {
        Self { completed: time, cancelled: time, failed: time, max_bytes, max_failed_bytes: max_bytes }
    }

    /// The decision before the lock for each slot of the queue ring, oldest generation first; what
    /// [`QueueFacts::retention_left`] says on the way in is ignored.
    ///
    /// Only slots that nothing but their history keeps count against the byte cap. When they exceed it together, the
    /// oldest go until the rest fits.
    pub fn plan(&self, slots: &[(QueueFacts, SlotHistory)]) -> Vec<(Slot, PruneDecision)> {
        let mut slots = slots.to_vec();
        slots.sort_by_key(|(facts, _)| (facts.slot.generation, facts.slot.slot));
        let before_lock = |facts: &QueueFacts, retention_left| {
            decide(Phase::BeforeLock, &PruneFacts::Queue(QueueFacts { retention_left, ..*facts }))
        };
        let spent = |facts: &QueueFacts| before_lock(facts, Duration::ZERO) == PruneDecision::Truncate;
        let mut bytes: u64 = slots
            .iter()
            .filter(|(facts, _)| spent(facts))
            .fold(0, |sum, (_, history)| sum.saturating_add(history.bytes));
        let mut plan = Vec::with_capacity(slots.len());
        for (facts, history) in &slots {
            let left = if bytes > self.max_bytes { Duration::ZERO } else { self.time_left(history) };
            let decision = before_lock(facts, left);
            if decision == PruneDecision::Truncate {
                bytes = bytes.saturating_sub(history.bytes);
            }
            plan.push((facts.slot.slot, decision));
        }
        plan
    }

    /// The shortest time for which history may keep a slot: before that, its ages need not be looked at.
    pub fn shortest(&self) -> Duration {
        self.completed.min(self.cancelled)
    }

    /// How many of the failed jobs of a slot that is reclaimed are carried forward, counted from the youngest.
    /// `failed` has them in that order.
    pub fn carried_forward(&self, failed: &[FailedJob]) -> usize {
        let mut bytes = 0_u64;
        let is_kept = |job: &&FailedJob| {
            bytes = bytes.saturating_add(job.bytes);
            job.age < self.failed && bytes <= self.max_failed_bytes
        };
        failed.iter().take_while(is_kept).count()
    }

    /// How much longer a slot is kept for this history, its size aside.
    pub fn time_left(&self, history: &SlotHistory) -> Duration {
        let left = |kept: Duration, age: Option<Duration>| age.map_or(Duration::ZERO, |age| kept.saturating_sub(age));
        left(self.completed, history.completed).max(left(self.cancelled, history.cancelled))
    }
}
