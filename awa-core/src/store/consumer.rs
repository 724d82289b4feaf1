use std::time::Duration;

use async_trait::async_trait;

use crate::attempt::{ClaimedJob, Closure, ClosureAnswer, Receipt};
use crate::error::{BadInput, StoreError};
use crate::id::{InstanceId, Nonce, ReceiptId};
use crate::name::QueueName;

/// How many jobs one claim may take: 1 to 1,023, the width of a receipt's index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct BatchLimit(u16);

impl BatchLimit {
    /// The largest batch.
    pub const MAX: Self = Self(ReceiptId::MAX_INDEX);

    /// A limit of `jobs`.
    ///
    /// # Errors
    ///
    /// [`BadInput`] of the field `max_jobs` outside 1 to 1,023.
    pub fn new(jobs: usize) -> Result<Self, BadInput> {
        match u16::try_from(jobs) {
            Ok(n @ 1..=ReceiptId::MAX_INDEX) => Ok(Self(n)),
            _ => Err(BadInput::new("max_jobs", format!("{jobs} is outside 1 to {}", ReceiptId::MAX_INDEX))),
        }
    }

    /// The nearest limit to `jobs`.
    pub fn clamped(jobs: usize) -> Self {
        Self(u16::try_from(jobs).unwrap_or(u16::MAX).clamp(1, ReceiptId::MAX_INDEX))
    }

    /// The number of jobs.
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// How a store records who holds the jobs of a claim. Nothing that a worker does or sees depends on it; an attempt is
/// closed in the shape in which it was claimed, whoever ends it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[non_exhaustive]
pub enum ClaimShape {
    /// One record for all jobs of a call and lane, closed in ranges: the cheapest for jobs that are short.
    #[default]
    Compact,
    /// One record for each job, closed one by one: for whoever wants to read each claim, with its job, lease and deadline,
    /// in a row of its own. It costs one more row per job to claim and one to close.
    RowLocal,
}

/// What a worker asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    /// The queue.
    pub queue: QueueName,
    /// The process that claims.
    pub instance: InstanceId,
    /// A random number, fresh for each call.
    pub nonce: Nonce,
    /// At most so many jobs.
    pub max_jobs: BatchLimit,
    /// Stop after the job whose arguments reach this many bytes; at least one job is handed out.
    pub max_bytes: u64,
    /// How long each attempt may last from the claim on; then the store may end it.
    pub deadline: Option<Duration>,
    /// How long a job waits before it counts as one priority more urgent; never above
    /// [`Priority::URGENT`](crate::Priority::URGENT). `None`: priorities do not age.
    pub aging: Option<Duration>,
    /// How the claim is recorded. Jobs that are claimed as leases are not affected.
    pub shape: ClaimShape,
}

/// A moment in the order of transactions, comparable with others of the same store. See [`Wakeups`](super::Wakeups).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Horizon(pub u64);

/// What a claim returned. Fewer jobs than asked for, not contended and no more means: nothing else is eligible.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Claimed {
    /// The jobs, in the order in which they should start.
    pub jobs: Vec<ClaimedJob>,
    /// Somebody else held a lane that may have had jobs: ask again soon.
    pub contended: bool,
    /// The call stopped at a limit of its own while jobs remained: ask again at once.
    pub more: bool,
    /// Everything that began to write before this moment was visible to the claim.
    pub horizon: Horizon,
}

/// What a look at many queues found.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Peeked {
    /// For each queue, in input order, whether a claim may find something in it.
    pub waiting: Vec<bool>,
    /// Everything that began to write before this moment was visible to the look.
    pub horizon: Horizon,
}

/// Takes out jobs and ends attempts.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Consumer: Send + Sync {
    /// Claims jobs of one queue (C5, C6, C9). An empty claim writes nothing.
    ///
    /// # Errors
    ///
    /// [`StoreError`]. When the outcome is unknown, jobs may have been claimed for `request.instance`;
    /// [`Self::open_attempts`] finds them.
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed, StoreError>;

    /// Ends attempts (C3, C4, C8), and moves each job to where its end says in the same transaction.
    ///
    /// Returns one answer per closure, in input order.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when nothing was changed or the outcome is unknown; calling again is safe, and what had been
    /// closed answers [`Stale`](ClosureAnswer::Stale).
    async fn close(&self, closures: &[Closure]) -> Result<Vec<ClosureAnswer>, StoreError>;

    /// Shows that the process `instance` is alive; the first call announces it.
    ///
    /// `staleness` is the time after which the instance wants to be taken for dead: each beat must come sooner.
    async fn beat(&self, instance: InstanceId, staleness: Duration) -> Result<(), StoreError>;

    /// Withdraws `instance`: whatever it still holds may be rescued at once.
    async fn retire(&self, instance: InstanceId) -> Result<(), StoreError>;

    /// The open attempts that name `instance`, at most `limit`, oldest first: what the store believes this process to
    /// hold. For the self-audit of a worker, and after a claim whose outcome is unknown.
    async fn open_attempts(&self, instance: InstanceId, limit: usize) -> Result<Vec<Receipt>, StoreError>;

    /// Which of `receipts` are still open, in input order. A worker asks for its running attempts, to learn that one
    /// of them was cancelled or rescued.
    async fn are_open(&self, receipts: &[Receipt]) -> Result<Vec<bool>, StoreError>;

    /// Looks which of `queues` have something to claim, in one step: what a process asks that serves many queues of which
    /// few have jobs. Takes nothing and writes nothing.
    ///
    /// A queue with a job that a claim at the beginning of the call would have found is told as waiting. One that is told
    /// so by mistake costs an empty claim; one that nobody knows is not waiting. For the queues that are not waiting the
    /// answer proves as much as an empty claim with the same horizon.
    async fn peek(&self, queues: &[QueueName]) -> Result<Peeked, StoreError>;
}
