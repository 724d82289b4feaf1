use std::sync::Arc;

use awa_core::attempt::Receipt;
use awa_core::id::Slot;
use awa_core::{BadInput, BatchId, ClaimedJob, JobId, Nonce, ReceiptId, RunLease, Timestamp};
use tokio::time::Instant;

use crate::attempt::{Attempt, CancelCause};
use crate::context::JobContext;
use crate::desk::Desk;
use crate::options::IntoNewJob;
use crate::state::StateMap;

/// The context of an attempt that no store knows, to call a handler with.
///
/// ```
/// use awa_runtime::testing::TestContext;
/// use awa_runtime::{HandlerResult, Job, JobContext, Outcome};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize, Job, Clone)]
/// # #[job(kind = "send_email", max_attempts = 3)]
/// # struct SendEmail { to: String }
///
/// async fn send(job: SendEmail, cx: JobContext) -> HandlerResult {
///     if cx.is_last_attempt() { Ok(Outcome::Cancel(format!("nobody answers at {}", job.to))) } else { Err("busy".into()) }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let job = SendEmail { to: "ada@example.org".into() };
/// let cx = TestContext::of(job.clone()).unwrap().attempt(3).build();
/// assert!(matches!(send(job, cx).await, Ok(Outcome::Cancel(_))));
/// # }
/// ```
#[derive(Debug)]
pub struct TestContext {
    job: ClaimedJob,
    state: StateMap,
    cancelled: Option<CancelCause>,
}

impl TestContext {
    /// The context of the first attempt at `job`, typed, plain or [with options](crate::Job::with).
    ///
    /// # Errors
    ///
    /// [`BadInput`] for a job that could not be enqueued.
    pub fn of(job: impl IntoNewJob) -> Result<Self, BadInput> {
        let job = job.into_new_job()?;
        let job = ClaimedJob {
            receipt: Receipt {
                id: ReceiptId::new(BatchId(1), 1),
                claim_slot: Slot(0),
                nonce: Nonce(1),
                job: JobId(1),
                run_lease: RunLease(1),
            },
            queue: job.queue().clone(),
            kind: job.kind().clone(),
            args: job.args().clone(),
            metadata: job.metadata().cloned(),
            priority: job.priority(),
            attempt: 1,
            max_attempts: job.max_attempts(),
            created_at: Timestamp::EPOCH,
            claimed_at: Timestamp::EPOCH,
            deadline_at: None,
        };
        Ok(Self { job, state: StateMap::default(), cancelled: None })
    }

    /// The number of the attempt, from 1.
    #[must_use]
    pub fn attempt(mut self, number: u32) -> Self {
        self.job.attempt = number;
        self
    }

    /// The id of the job; 1 unless told.
    #[must_use]
    pub fn id(mut self, id: JobId) -> Self {
        self.job.receipt.job = id;
        self
    }

    /// A value that the handler reads with [`JobContext::state`]; one per type, the last counts.
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(mut self, value: Arc<T>) -> Self {
        self.state.insert(value);
        self
    }

    /// An attempt that has been asked to stop.
    #[must_use]
    pub fn cancelled(mut self, cause: CancelCause) -> Self {
        self.cancelled = Some(cause);
        self
    }

    /// The context.
    pub fn build(self) -> JobContext {
        let attempt = Attempt::new(self.job, Instant::now(), None);
        if let Some(cause) = self.cancelled {
            attempt.cancel(cause);
        }
        JobContext::new(Arc::new(attempt), Arc::new(self.state), Arc::new(Desk::without_store()))
    }
}
