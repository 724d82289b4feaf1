use std::sync::Arc;

use awa_core::attempt::Receipt;
use awa_core::{ClaimedJob, JobId, JobKind, JsonText, QueueName};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::attempt::{Attempt, CancelCause};
use crate::desk::Desk;
use crate::state::{MissingState, StateMap};

/// What a handler knows about its attempt besides the arguments. Cheap to clone.
#[derive(Clone, Debug)]
pub struct JobContext {
    attempt: Arc<Attempt>,
    state: Arc<StateMap>,
    desk: Arc<Desk>,
}

impl JobContext {
    pub(crate) fn new(attempt: Arc<Attempt>, state: Arc<StateMap>, desk: Arc<Desk>) -> Self {
        Self { attempt, state, desk }
    }

    pub(crate) fn desk(&self) -> &Desk {
        &self.desk
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.attempt.has_ended()
    }

    pub(crate) fn mark_callback(&self) {
        self.attempt.mark_callback();
    }

    /// The job.
    pub fn id(&self) -> JobId {
        self.attempt.job.receipt.job
    }

    /// Its kind.
    pub fn kind(&self) -> &JobKind {
        &self.attempt.job.kind
    }

    /// The queue it was claimed from.
    pub fn queue(&self) -> &QueueName {
        &self.attempt.job.queue
    }

    /// The number of this attempt, from 1; snoozes and hand-backs are not counted.
    pub fn attempt(&self) -> u32 {
        self.attempt.job.attempt
    }

    /// The budget of attempts.
    pub fn max_attempts(&self) -> u32 {
        self.attempt.job.max_attempts.get().unsigned_abs().into()
    }

    /// Whether a failure of this attempt ends the job.
    pub fn is_last_attempt(&self) -> bool {
        self.attempt() >= self.max_attempts()
    }

    /// What names this attempt to the store: unique among all attempts of all jobs, so also a good idempotency key.
    pub fn receipt(&self) -> Receipt {
        self.attempt.job.receipt
    }

    /// Everything the claim handed out.
    pub fn claimed_job(&self) -> &ClaimedJob {
        &self.attempt.job
    }

    /// The document that was attached at enqueue, decoded. `None` when there is none.
    ///
    /// # Errors
    ///
    /// When it does not fit `T`.
    pub fn metadata<T: DeserializeOwned>(&self) -> Result<Option<T>, serde_json::Error> {
        self.attempt.job.metadata.as_ref().map(JsonText::decode).transpose()
    }

    /// The value given to the worker with [`WorkerBuilder::state`](crate::WorkerBuilder::state).
    ///
    /// # Errors
    ///
    /// [`MissingState`] when the worker has none of this type; by `?` it fails the attempt.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<Arc<T>, MissingState> {
        self.state.get()
    }

    /// Whether the handler should stop, and why. See [`CancelCause`] for what its result is still worth.
    ///
    /// A handler that looks here (or at [`Self::cancellation`]) counts as one that stops on demand: an error that it
    /// returns after the worker began to shut down hands the job back uncharged.
    pub fn cancelled(&self) -> Option<CancelCause> {
        let _ = self.attempt.listen();
        self.attempt.cancelled()
    }

    /// The token that fires when the handler should stop: with an operator's cancellation and a rescue within one
    /// heartbeat interval, with the deadline, and with the shutdown of the worker at once.
    pub fn cancellation(&self) -> CancellationToken {
        self.attempt.listen().clone()
    }

    /// Waits until the handler should stop.
    pub async fn until_cancelled(&self) {
        self.attempt.listen().cancelled().await;
    }
}
