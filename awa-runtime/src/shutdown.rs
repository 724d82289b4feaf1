use std::time::Duration;

use awa_core::{JobId, JobKind, QueueName};

use crate::stats::WorkerStats;

/// How a worker ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Attempts that did not end within the grace period. They were handed back uncharged; a blocking handler among
    /// them may still be running, and its result will be refused.
    pub abandoned: Vec<AbandonedAttempt>,
    /// Claimed jobs that had not been started and were handed back at once.
    pub returned: usize,
    /// Ends that the store had not confirmed when the time was up. Their jobs are rescued and run again.
    pub unconfirmed: usize,
    /// Whether the store knows that this instance is gone, so that whatever it still holds is rescued at once.
    pub retired: bool,
    /// From the signal to the end.
    pub took: Duration,
    /// The counters at the end.
    pub stats: WorkerStats,
}

/// An attempt that was still running when the grace period was over.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AbandonedAttempt {
    /// The job.
    pub job: JobId,
    /// Its kind.
    pub kind: JobKind,
    /// Its queue.
    pub queue: QueueName,
    /// The number of the attempt.
    pub attempt: u32,
    /// The time since its claim.
    pub age: Duration,
}
