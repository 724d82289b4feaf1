use std::fmt;
use std::sync::Arc;

use awa_core::store::{BatchLimit, ClaimRequest};
use awa_core::{
    AttemptEnd, ClaimedJob, ClosureAnswer, InstanceId, Nonce, QueueName, Store, StoreError, StoreErrorKind,
};
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::attempt::Attempt;
use crate::executor::Executor;
use crate::queue::QueueConfig;

/// How often a call is repeated that says that there is more.
const ROUNDS: usize = 1_000;
/// More jobs than any test drains.
const MAX_RUNS: usize = 10_000;

/// A worker that runs jobs when it is told to, one after the other, on the task that tells it. Made by
/// [`Worker::inline`](crate::Worker::inline).
///
/// Handlers, state, panics, retries and results are treated as by a worker; there are no heartbeats, no maintenance but the
/// promotion of jobs whose time has come, and no deadlines: a handler that waits for ever keeps the test waiting.
pub struct InlineWorker {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) instance: InstanceId,
    pub(crate) queues: Vec<(QueueName, QueueConfig)>,
    pub(crate) executor: Executor,
}

/// An attempt that was run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ran {
    /// The job as it was claimed.
    pub job: ClaimedJob,
    /// How the attempt ended: what the handler's result, error or panic came to.
    pub end: AttemptEnd,
    /// What the store made of it; [`Stale`](ClosureAnswer::Stale) when the job was cancelled while it ran.
    pub answer: ClosureAnswer,
}

impl InlineWorker {
    /// Runs one attempt at the next job of the queues, in the order in which they were given. `None` when no job can run
    /// now. Jobs whose time has come by the store's clock are made ready first.
    ///
    /// # Errors
    ///
    /// The store's.
    pub async fn run_one(&self) -> Result<Option<Ran>, StoreError> {
        self.executor.desk.open(&Handle::current());
        for _ in 0..ROUNDS {
            if !self.store.promote(1_000).await?.more {
                break;
            }
        }
        for (queue, config) in &self.queues {
            if let Some(job) = self.claim(queue, config).await? {
                return self.run(job, config).await.map(Some);
            }
        }
        Ok(None)
    }

    /// Runs attempts until no job can run now, and tells them in order. Jobs that handlers enqueue are run too.
    ///
    /// # Errors
    ///
    /// The store's; [`Refused`](StoreErrorKind::Refused) when 10,000 attempts do not come to an end.
    pub async fn run_until_idle(&self) -> Result<Vec<Ran>, StoreError> {
        let mut ran = Vec::new();
        while let Some(one) = self.run_one().await? {
            ran.push(one);
            if ran.len() >= MAX_RUNS {
                let problem = "jobs come without end; a handler snoozes for no time or enqueues its own successor";
                return Err(StoreError::new(StoreErrorKind::Refused, "run_until_idle", problem));
            }
        }
        Ok(ran)
    }

    async fn claim(&self, queue: &QueueName, config: &QueueConfig) -> Result<Option<ClaimedJob>, StoreError> {
        self.store.open_queue(queue).await?;
        for _ in 0..ROUNDS {
            let request = ClaimRequest {
                queue: queue.clone(),
                instance: self.instance,
                nonce: Nonce(rand::random()),
                max_jobs: BatchLimit::clamped(1),
                max_bytes: config.max_bytes,
                deadline: config.deadline,
                aging: config.aging,
                shape: config.claim_shape,
            };
            let mut claimed = self.store.claim(&request).await?;
            if let Some(job) = claimed.jobs.pop() {
                return Ok(Some(job));
            }
            if !claimed.more && !claimed.contended {
                break;
            }
        }
        Ok(None)
    }

    async fn run(&self, job: ClaimedJob, config: &QueueConfig) -> Result<Ran, StoreError> {
        let attempt = Arc::new(Attempt::new(job.clone(), Instant::now(), config.deadline));
        self.executor.outbox.expect(1);
        self.executor.run(&attempt).await;
        let closures = self.executor.outbox.collect();
        self.executor.outbox.confirmed(closures.len());
        let answers = self.store.close(&closures).await?;
        match (closures.into_iter().next(), answers.first()) {
            (Some(closure), Some(answer)) => Ok(Ran { job, end: closure.end, answer: *answer }),
            _ => Err(StoreError::new(
                StoreErrorKind::Internal,
                "close",
                "the attempt has no end; this is a fault of awa",
            )),
        }
    }
}

impl fmt::Debug for InlineWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InlineWorker")
            .field("store", &self.store.describe())
            .field("queues", &self.queues)
            .finish_non_exhaustive()
    }
}
