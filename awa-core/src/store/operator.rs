use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::attempt::ErrorText;
use crate::error::StoreError;
use crate::id::{JobId, RunLease};
use crate::job::{MaxAttempts, Priority};
use crate::json::JsonText;
use crate::name::{JobKind, QueueName};
use crate::queue::QueueSettings;
use crate::ring::{GrowRefusal, RingKind};
use crate::state::JobState;
use crate::store::{MoveTo, PurgeScope, Purged};
use crate::time::Timestamp;

/// Why a job waits for its time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DeferredReason {
    /// It was enqueued for later.
    Scheduled,
    /// An attempt failed.
    Retry,
    /// An attempt asked to be run again later.
    Snooze,
    /// A worker handed it back.
    Release,
}

impl DeferredReason {
    /// The name in JSON and SQL.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Retry => "retry",
            Self::Snooze => "snooze",
            Self::Release => "release",
        }
    }

    /// The reason with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Scheduled, Self::Retry, Self::Snooze, Self::Release].into_iter().find(|reason| reason.as_str() == name)
    }
}

/// A job as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobView {
    /// The job.
    pub id: JobId,
    /// Where it is.
    pub state: JobState,
    /// Its queue.
    pub queue: QueueName,
    /// Its kind.
    pub kind: JobKind,
    /// The priority it was enqueued with.
    pub priority: Priority,
    /// Charged attempts so far, an open one included.
    pub attempt: u32,
    /// The budget of attempts.
    pub max_attempts: MaxAttempts,
    /// How often it has been claimed or moved.
    pub run_lease: RunLease,
    /// The arguments.
    pub args: JsonText,
    /// The document attached at enqueue.
    pub metadata: Option<JsonText>,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// The earliest moment of its next attempt, when deferred.
    pub run_at: Option<Timestamp>,
    /// Why it waits, when deferred.
    pub deferred: Option<DeferredReason>,
    /// When its open attempt was claimed, when running.
    pub claimed_at: Option<Timestamp>,
    /// When it ended, when in a terminal state.
    pub finalized_at: Option<Timestamp>,
    /// What it left, when completed with a result.
    pub result: Option<JsonText>,
    /// The error of its latest failed attempt, or why it was cancelled.
    pub error: Option<ErrorText>,
}

/// Which jobs to list. All conditions must hold.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct JobFilter {
    /// Only this queue.
    pub queue: Option<QueueName>,
    /// Only this state.
    pub state: Option<JobState>,
    /// Only this kind.
    pub kind: Option<JobKind>,
    /// Only ids below this one: the last id of the page before.
    pub before: Option<JobId>,
    /// At most so many, 1 to 1,000; larger values are cut to it.
    pub limit: usize,
}

impl JobFilter {
    /// The longest page.
    pub const MAX_LIMIT: usize = 1_000;
}

/// A queue as an operator sees it. All counts are exact at the moment of the call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueView {
    /// The queue.
    pub queue: QueueName,
    /// Whether claims of it are held back.
    pub paused: bool,
    /// Jobs that a claim could take.
    pub ready: u64,
    /// Open attempts.
    pub running: u64,
    /// Jobs that wait for their time.
    pub deferred: u64,
    /// Jobs that wait for a callback.
    pub waiting: u64,
    /// Completed, failed and cancelled jobs still in the retained history.
    pub finished: u64,
    /// Jobs in the dead-letter queue.
    pub dead: u64,
}

/// One line of a census: how many jobs are in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CensusCount {
    /// The state.
    pub state: JobState,
    /// Jobs in it, counted one by one at one instant.
    pub jobs: u64,
}

/// How carefully jobs are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Accuracy {
    /// One by one, at one instant. As slow as reading everything.
    Exact,
    /// By what is counted already: as many looks as there were batches, not jobs. While jobs move, one may be missed or
    /// seen twice; of a long backlog only a part is counted ([`Counts::MOST_READY`]); and finished jobs that were deleted
    /// count until their history is reclaimed.
    Estimate,
}

impl Accuracy {
    /// The name in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Estimate => "estimate",
        }
    }
}

/// How many jobs each queue has.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Counts {
    /// How they were counted.
    pub accuracy: Accuracy,
    /// A line per queue with at least one lane or job, by name.
    pub queues: Vec<QueueCounts>,
}

impl Counts {
    /// Of the ready jobs of one ring slot, an estimate counts at most so many.
    pub const MOST_READY: u32 = 100_000;

    /// The answer with these lines.
    pub fn new(accuracy: Accuracy, queues: Vec<QueueCounts>) -> Self {
        Self { accuracy, queues }
    }
}

/// How many jobs one queue has.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct QueueCounts {
    /// The queue.
    pub queue: QueueName,
    /// Whether claims of it are held back.
    pub paused: bool,
    /// Jobs by state. One entry per [`JobState`], in the order of [`JobState::ALL`].
    pub jobs: Vec<CensusCount>,
    /// Jobs that have ever ended in a state, also those whose history is no longer retained; only completed, failed and
    /// cancelled ones are counted. One entry per [`JobState`]. Always an estimate: a job that is cancelled in the moment
    /// in which it is claimed may count twice.
    pub ever: Vec<CensusCount>,
}

impl QueueCounts {
    /// A queue without jobs.
    pub fn empty(queue: QueueName, paused: bool) -> Self {
        let nothing = JobState::ALL.map(|state| CensusCount { state, jobs: 0 }).to_vec();
        Self { queue, paused, jobs: nothing.clone(), ever: nothing }
    }

    /// Counts `jobs` more in `state`, and `ever` more that have ended in it.
    pub fn add(&mut self, state: JobState, jobs: u64, ever: u64) {
        for (counts, more) in [(&mut self.jobs, jobs), (&mut self.ever, ever)] {
            if let Some(count) = counts.iter_mut().find(|count| count.state == state) {
                count.jobs = count.jobs.saturating_add(more);
            }
        }
    }

    /// Jobs in any of these states.
    pub fn in_states(&self, states: &[JobState]) -> u64 {
        sum(&self.jobs, states)
    }

    /// Jobs that have ever ended in any of these states.
    pub fn ever_in(&self, states: &[JobState]) -> u64 {
        sum(&self.ever, states)
    }
}

fn sum(counts: &[CensusCount], states: &[JobState]) -> u64 {
    counts.iter().filter(|count| states.contains(&count.state)).map(|count| count.jobs).sum()
}

/// Why an operator's wish was not carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Refusal {
    /// No such job, or its history is no longer retained.
    NotFound,
    /// The job is in a state in which this is not possible.
    WrongState(JobState),
    /// Somebody else is changing the job; ask again.
    Contended,
    /// Another job holds the key that this one would have to take again (C14).
    KeyTaken(JobId),
}

/// The answer to one wish of an operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Acted {
    /// Done, durably; the job was in this state before.
    Done {
        /// Where the job was.
        from: JobState,
    },
    /// It was asked for, in a transaction that may yet roll back: when that has committed, the job is not handed out any more
    /// unless it is being handed out at that very moment; an attempt of it that is open then, or was begun then, is ended by
    /// the next [`Maintainer::tidy`](crate::store::Maintainer::tidy), or by whoever ends it otherwise than for good.
    Asked {
        /// Where the job is.
        from: JobState,
    },
    /// Nothing was changed.
    Refused(Refusal),
}

/// What became of a wish for a larger ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Grown {
    /// The ring has the size that was asked for.
    Done {
        /// The slots that it had.
        from: u8,
        /// The slots that it has.
        to: u8,
    },
    /// Nothing was changed.
    Refused(GrowRefusal),
}

/// Looks at jobs and intervenes.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Operator: Send + Sync {
    /// One job, or `None` when there is none with this id or its history is no longer retained. An older attempt never
    /// shadows a newer state (C2).
    async fn get(&self, job: JobId) -> Result<Option<JobView>, StoreError>;

    /// Jobs that match `filter`, newest id first, at most [`JobFilter::MAX_LIMIT`].
    async fn list(&self, filter: &JobFilter) -> Result<Vec<JobView>, StoreError>;

    /// All queues with at least one lane or job, by name.
    async fn queues(&self) -> Result<Vec<QueueView>, StoreError>;

    /// Counts every job once, by state, at one instant: exact, and as slow as reading everything. One entry per
    /// [`JobState`], in the order of [`JobState::ALL`] (C2).
    async fn census(&self) -> Result<Vec<CensusCount>, StoreError>;

    /// Cancels jobs that are ready, deferred, running or waiting; one answer per id in input order (C8). The open
    /// attempt of a running job ends at once, and its worker's closure will be stale (C3).
    async fn cancel(&self, jobs: &[JobId], reason: &ErrorText) -> Result<Vec<Acted>, StoreError>;

    /// Makes jobs ready again that are dead or failed (with their attempts counted from zero) or deferred (at once, with
    /// their attempts as they are); one answer per id in input order (C8). A dead or failed job takes its key again, or is
    /// refused when another has it (C14). A failed job can be retried as long as its history is retained.
    async fn retry(&self, jobs: &[JobId]) -> Result<Vec<Acted>, StoreError>;

    /// Holds back claims of a queue, or lets them go on. Survives restarts; twice is fine; running jobs go on. A queue
    /// that nobody has used yet can be paused.
    async fn set_paused(&self, queue: &QueueName, paused: bool) -> Result<(), StoreError>;

    /// Sets what holds for a queue from now on, for jobs that are enqueued or fail after this call; survives restarts. A queue
    /// that nobody has used yet can be set.
    async fn configure_queue(&self, queue: &QueueName, settings: &QueueSettings) -> Result<(), StoreError>;

    /// What is set for a queue: the defaults where nothing was.
    async fn queue_settings(&self, queue: &QueueName) -> Result<QueueSettings, StoreError>;

    /// Puts jobs that are ready or deferred into another queue, to another priority, or both; one answer per id in input order
    /// (C8). A ready job joins the tail of its new lane (C6); a deferred one goes there when its time comes. It keeps its id,
    /// its shard, its attempts and its key (C14), and is at no instant in two places or in none (C2). A job that is there
    /// already is answered as done and keeps its place. Running and ended jobs are refused with their state. Among each other
    /// the jobs of one call are in no promised order.
    async fn move_jobs(&self, jobs: &[JobId], to: &MoveTo) -> Result<Vec<Acted>, StoreError>;

    /// Removes the jobs of a queue that wait and were committed when the call began, for good: they are in no state any more,
    /// no history tells of them, and their keys are free (C14). Running jobs go on. Costs a look at each job, and writes a
    /// row per lane and partition, however many there are.
    async fn purge_queue(&self, queue: &QueueName, scope: PurgeScope) -> Result<Purged, StoreError>;

    /// Removes jobs that have ended from every view at once, dead ones with the key that they may hold; one answer per id
    /// in input order (C8). A job that has not ended is refused ([`Refusal::WrongState`]): cancel it first. What finished
    /// jobs occupy is given back with the rest of their history.
    async fn delete(&self, jobs: &[JobId]) -> Result<Vec<Acted>, StoreError>;

    /// Gives a ring more slots while everybody goes on working, also in transactions that are open (C10). Slot by slot: when
    /// it is cut off, the ring has some of them and is sound. The answer is the same when it has that many already.
    async fn grow_ring(&self, ring: RingKind, slots: u8) -> Result<Grown, StoreError>;

    /// Counts the jobs of all queues, as carefully as asked for.
    async fn counts(&self, accuracy: Accuracy) -> Result<Counts, StoreError>;
}
