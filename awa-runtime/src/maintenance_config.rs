use std::time::Duration;

use awa_core::BadInput;
use awa_core::retry::RetryPolicy;
use awa_core::ring::RotationPolicy;
use awa_core::store::{RetentionPolicy, Task};
use awa_core::unpin::UnpinPolicy;

/// How a process keeps the store in order. The intervals hold for the whole fleet: however many processes maintain,
/// each task runs about once per interval. Who does not get its turn asks again less and less often, so that a task comes up to
/// three seconds late, or its interval if that is longer, when the process dies that had it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MaintenanceConfig {
    /// How often due jobs are made ready. Default: 250 ms.
    pub promote_every: Duration,
    /// How often attempts of dead workers and attempts past their deadline are ended. Default: 2 s.
    pub rescue_every: Duration,
    /// How often rings are looked at. Default: 1 s.
    pub rings_every: Duration,
    /// How often left-overs are put in order. Default: 60 s.
    pub tidy_every: Duration,
    /// The age of a process's last sign of life from which on its attempts are rescued. Default: 30 s.
    pub staleness: Duration,
    /// When a rescued attempt is tried again.
    pub retry: RetryPolicy,
    /// When the queue ring moves on. Default: 75 s or 256 MiB.
    pub queue_rotation: RotationPolicy,
    /// When the claim ring moves on. Default: 60 s or 64 MiB.
    pub claim_rotation: RotationPolicy,
    /// When the lease ring moves on. Default: 60 s or 64 MiB.
    pub lease_rotation: RotationPolicy,
    /// How long the history of finished jobs is kept, by how they ended. Default: 15 minutes or 1 GiB, whichever ends first,
    /// and 24 hours for jobs that failed in a queue without a dead-letter queue; afterwards they and their results are gone,
    /// also for `get`.
    pub retention: RetentionPolicy,
    /// How long dead jobs are held for an operator; then they are deleted for good. Default: `None`, for ever.
    pub dead_retention: Option<Duration>,
    /// When jobs that nobody claims and attempts that run for long are moved out of old slots.
    pub unpin: UnpinPolicy,
    /// The largest number of jobs of one promotion. Default: 1,000.
    pub promote_limit: usize,
    /// The largest number of claim batches that one rescue looks at per slot. Default: 500.
    pub rescue_page: usize,
    /// How long one turn of a task may go on while there is more to do. Default: 1 s.
    pub turn: Duration,
}

impl Default for MaintenanceConfig {
    fn default() -> Self {
        let rotation =
            |seconds, mib: u64| RotationPolicy { min_age: Duration::from_secs(seconds), max_bytes: mib << 20 };
        Self {
            promote_every: Duration::from_millis(250),
            rescue_every: Duration::from_secs(2),
            rings_every: Duration::from_secs(1),
            tidy_every: Duration::from_mins(1),
            staleness: Duration::from_secs(30),
            retry: RetryPolicy::default(),
            queue_rotation: rotation(75, 256),
            claim_rotation: rotation(60, 64),
            lease_rotation: rotation(60, 64),
            retention: RetentionPolicy::default(),
            dead_retention: None,
            unpin: UnpinPolicy::default(),
            promote_limit: 1_000,
            rescue_page: 500,
            turn: Duration::from_secs(1),
        }
    }
}

impl MaintenanceConfig {
    /// How often `task` runs.
    pub fn every(&self, task: Task) -> Duration {
        match task {
            Task::Promote => self.promote_every,
            Task::Rescue => self.rescue_every,
            Task::Rings => self.rings_every,
            _ => self.tidy_every,
        }
    }

    pub(crate) fn check(&self) -> Result<(), BadInput> {
        const SHORTEST: Duration = Duration::from_millis(10);
        if let Some(task) = Task::ALL.into_iter().find(|&task| self.every(task) < SHORTEST) {
            let problem = format!("{:?} of task {} is below {SHORTEST:?}", self.every(task), task.as_str());
            return Err(BadInput::new("maintenance interval", problem));
        }
        if self.promote_limit == 0 || self.rescue_page == 0 {
            return Err(BadInput::new("maintenance limit", "promote_limit and rescue_page must be at least 1"));
        }
        Ok(())
    }
}
