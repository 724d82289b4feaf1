use std::time::Duration;

use awa_core::BadInput;
use awa_core::store::{BatchLimit, ClaimShape};

use crate::ahead::Ahead;

/// How a worker serves one queue.
///
/// ```
/// use awa_runtime::QueueConfig;
/// use std::time::Duration;
///
/// let config = QueueConfig::default().concurrency(64).deadline(Duration::from_secs(30));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    pub(crate) concurrency: usize,
    pub(crate) prefetch: Option<usize>,
    pub(crate) max_batch: usize,
    pub(crate) max_bytes: u64,
    pub(crate) deadline: Option<Duration>,
    pub(crate) aging: Option<Duration>,
    pub(crate) claim_shape: ClaimShape,
    pub(crate) poll: Duration,
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self {
            concurrency: 16,
            prefetch: None,
            max_batch: 1_000,
            max_bytes: 8 << 20,
            deadline: None,
            aging: None,
            claim_shape: ClaimShape::Compact,
            poll: Duration::from_secs(1),
        }
    }
}

impl QueueConfig {
    /// The largest number of handlers of one queue in one process.
    pub const MAX_CONCURRENCY: usize = 100_000;
    /// The shortest poll interval.
    pub const MIN_POLL: Duration = Duration::from_millis(10);

    /// How many handlers run at a time: 1 to [`Self::MAX_CONCURRENCY`]; 16 unless told.
    #[must_use]
    pub fn concurrency(mut self, handlers: usize) -> Self {
        self.concurrency = handlers;
        self
    }

    /// How many jobs may be claimed beyond those that run, so that a handler that ends finds the next one at hand; 0
    /// claims only what can start at once.
    ///
    /// Unless told, as many as are started within 50 ms at the pace of the moment, at most two batches of
    /// [`Self::max_batch`]: thousands of jobs that take microseconds, none that take seconds. What waits here cannot be
    /// run by another process; where jobs have turned long, what would wait for more than a second is handed back, uncharged.
    #[must_use]
    pub fn prefetch(mut self, jobs: usize) -> Self {
        self.prefetch = Some(jobs);
        self
    }

    /// The largest number of jobs of one claim, 1 to 1,023; 1,000 unless told.
    #[must_use]
    pub fn max_batch(mut self, jobs: usize) -> Self {
        self.max_batch = jobs;
        self
    }

    /// A claim stops after the job whose arguments reach this many bytes together; 8 MiB unless told.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// How long an attempt may last from its claim on. Then it has failed: an async handler is dropped at its next
    /// await, a blocking one is told by its context and its late result is refused. No deadline unless told.
    #[must_use]
    pub fn deadline(mut self, length: Duration) -> Self {
        self.deadline = Some(length);
        self
    }

    /// How long a job waits before it counts as one priority more urgent, so that bulk work is not starved. Priorities
    /// do not age unless told.
    #[must_use]
    pub fn aging(mut self, interval: Duration) -> Self {
        self.aging = Some(interval);
        self
    }

    /// How the store records who holds the jobs: [`ClaimShape::Compact`], one record per claim, unless told. Both shapes
    /// behave alike and may be mixed, also in one queue.
    #[must_use]
    pub fn claim_shape(mut self, shape: ClaimShape) -> Self {
        self.claim_shape = shape;
        self
    }

    /// How often an idle queue is looked for when no wake-up comes; 1 s unless told, at least [`Self::MIN_POLL`]. Each pause is
    /// varied by a quarter, so that processes do not poll in phase.
    ///
    /// A process looks for all its idle queues in one call. While wake-ups come, looks for many queues are at least 2 s
    /// apart, however short the interval; and they never take more than a twentieth of the time.
    #[must_use]
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll = interval;
        self
    }

    pub(crate) fn ahead(&self) -> Ahead {
        self.prefetch.map_or_else(|| Ahead::by_pace(2 * self.max_batch), Ahead::fixed)
    }

    pub(crate) fn check(&self) -> Result<(), BadInput> {
        let refuse = |field, problem: String| Err(BadInput::new(field, problem));
        if !(1..=Self::MAX_CONCURRENCY).contains(&self.concurrency) {
            return refuse("concurrency", format!("{} is outside 1 to {}", self.concurrency, Self::MAX_CONCURRENCY));
        }
        if let Some(prefetch) = self.prefetch.filter(|prefetch| *prefetch > Self::MAX_CONCURRENCY) {
            return refuse("prefetch", format!("{prefetch} is above {}", Self::MAX_CONCURRENCY));
        }
        if self.poll < Self::MIN_POLL {
            return refuse("poll_interval", format!("{:?} is below {:?}", self.poll, Self::MIN_POLL));
        }
        if self.deadline.is_some_and(|deadline| deadline.is_zero()) {
            return refuse("deadline", "it is zero; leave it out for attempts without a deadline".into());
        }
        if self.aging.is_some_and(|aging| aging.is_zero()) {
            return refuse("aging", "it is zero; leave it out for priorities that do not age".into());
        }
        BatchLimit::new(self.max_batch).map_err(|refusal| BadInput::new("max_batch", refusal.problem)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_make_no_sense_are_refused_with_their_name() {
        let field = |config: QueueConfig| config.check().unwrap_err().field;
        let config = QueueConfig::default;
        assert_eq!(field(config().concurrency(0)), "concurrency");
        assert_eq!(field(config().concurrency(usize::MAX)), "concurrency");
        assert_eq!(field(config().prefetch(usize::MAX)), "prefetch");
        assert_eq!(field(config().poll_interval(Duration::from_millis(1))), "poll_interval");
        assert_eq!(field(config().deadline(Duration::ZERO)), "deadline");
        assert_eq!(field(config().aging(Duration::ZERO)), "aging");
        assert_eq!(field(config().max_batch(1024)), "max_batch");
        assert!(config().check().is_ok());
    }
}
