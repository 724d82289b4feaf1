use std::time::Duration;

use awa_core::{BadInput, JsonText};
use serde::Serialize;

use crate::failure::JobError;

/// What a handler returns: how the attempt ends, or an error.
pub type HandlerResult = Result<Outcome, JobError>;

/// How an attempt ends when the handler returns `Ok`.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// Well: the job is completed.
    Done,
    /// Well, with a result to keep: see [`Self::done_with`].
    DoneWith(JobResult),
    /// Neither well nor badly: the job runs again after this time, uncharged.
    Snooze(Duration),
    /// Badly, to be tried again after a time that the handler knows better than the retry policy. It is charged; a job
    /// whose budget is used up ends as after any error.
    RetryAfter(Duration, JobError),
    /// Not yet: the job waits for a callback, and its seat is free meanwhile. When somebody calls back with the token from
    /// [`register_callback`](crate::JobContext::register_callback), the job runs again, before all others of its lane and
    /// uncharged. When nobody does within this time, the attempt has failed.
    ///
    /// Without a token it is a failure at once.
    WaitForCallback {
        /// From now.
        timeout: Duration,
    },
    /// Well, and said already: the handler has completed its attempt in a transaction of its own, with `complete_in` of the
    /// store and the [receipt](crate::JobContext::receipt), and that transaction has committed.
    ///
    /// A handler that says so although it did not has failed its attempt.
    Ended,
    /// The job is no longer wanted: it is cancelled, for this reason.
    Cancel(String),
}

impl Outcome {
    /// Done, with `value` as the result. A value that does not serialize, or to JSON that a store cannot keep (too
    /// large, U+0000), becomes a failed attempt with that as its error.
    pub fn done_with(value: &(impl Serialize + ?Sized)) -> Self {
        Self::DoneWith(JobResult::of(value))
    }
}

/// The result of a job as JSON, or the reason why it cannot be kept.
#[derive(Debug, Clone)]
pub struct JobResult(Result<JsonText, BadInput>);

impl JobResult {
    /// The JSON of `value`.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Self {
        Self(JsonText::of("result", value))
    }

    /// A result that is JSON text already.
    pub fn json(text: impl Into<std::sync::Arc<str>>) -> Self {
        Self(JsonText::new("result", text))
    }

    pub(crate) fn into_json(self) -> Result<JsonText, BadInput> {
        self.0
    }
}

impl From<JsonText> for JobResult {
    fn from(text: JsonText) -> Self {
        Self(Ok(text))
    }
}
