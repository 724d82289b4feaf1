//! Handlers without their types, found by kind.

use std::collections::HashMap;
use std::fmt;
use std::future::ready;
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;

use awa_core::{ClaimedJob, JobKind};
use serde::de::DeserializeOwned;
use tokio::task::spawn_blocking;
use tracing::Span;

use crate::context::JobContext;
use crate::failure::{Interrupted, JobError};
use crate::job::Job;
use crate::outcome::HandlerResult;

/// A handler as a type, for those that are more than a closure. Register it with
/// [`WorkerBuilder::job_handler`](crate::WorkerBuilder::job_handler).
///
/// ```
/// use awa_runtime::{HandlerResult, Job, JobContext, JobHandler, Outcome};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize, Job)]
/// # #[job(kind = "send_email")]
/// # struct SendEmail { to: String }
///
/// struct Mailer { sender: String }
///
/// impl JobHandler for Mailer {
///     type Job = SendEmail;
///
///     async fn handle(&self, job: SendEmail, _: JobContext) -> HandlerResult {
///         println!("from {} to {}", self.sender, job.to);
///         Ok(Outcome::Done)
///     }
/// }
/// ```
pub trait JobHandler: Send + Sync + 'static {
    /// The type of job it handles.
    type Job: Job;

    /// Runs one attempt.
    fn handle(&self, job: Self::Job, cx: JobContext) -> impl Future<Output = HandlerResult> + Send;
}

/// An attempt that has been started.
pub(crate) type Running = Pin<Box<dyn Future<Output = HandlerResult> + Send>>;

/// A handler of one kind, or of any.
pub(crate) trait ErasedHandler: Send + Sync {
    /// Starts one attempt, on the runtime of the handlers. What is caught and what is not is the caller's business.
    fn start(&self, cx: JobContext) -> Running;

    /// Whether dropping the future ends the work.
    fn ends_when_dropped(&self) -> bool;
}

/// All handlers of a worker.
#[derive(Default)]
pub(crate) struct Handlers {
    pub(crate) by_kind: HashMap<JobKind, Arc<dyn ErasedHandler>>,
    pub(crate) fallback: Option<Arc<dyn ErasedHandler>>,
}

impl Handlers {
    /// The handler of `kind`.
    pub(crate) fn find(&self, kind: &JobKind) -> Option<&dyn ErasedHandler> {
        self.by_kind.get(kind).or(self.fallback.as_ref()).map(AsRef::as_ref)
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_kind.is_empty() && self.fallback.is_none()
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handlers")
            .field("by_kind", &self.by_kind.keys())
            .field("fallback", &self.fallback.is_some())
            .finish()
    }
}

/// An async closure or function over typed arguments.
pub(crate) struct Typed<J, F> {
    handle: F,
    job: PhantomData<fn(J)>,
}

impl<J, F> Typed<J, F> {
    pub(crate) fn new(handle: F) -> Self {
        Self { handle, job: PhantomData }
    }
}

impl<J, F, Fut> ErasedHandler for Typed<J, F>
where
    J: DeserializeOwned + 'static,
    F: Fn(J, JobContext) -> Fut + Send + Sync,
    Fut: Future<Output = HandlerResult> + Send + 'static,
{
    fn start(&self, cx: JobContext) -> Running {
        match decode(&cx) {
            Ok(job) => Box::pin((self.handle)(job, cx)),
            Err(refusal) => Box::pin(ready(Err(refusal))),
        }
    }

    fn ends_when_dropped(&self) -> bool {
        true
    }
}

/// A type that implements [`JobHandler`].
pub(crate) struct ByType<H>(Arc<H>);

impl<H> ByType<H> {
    pub(crate) fn new(handler: H) -> Self {
        Self(Arc::new(handler))
    }
}

impl<H: JobHandler> ErasedHandler for ByType<H> {
    fn start(&self, cx: JobContext) -> Running {
        let handler = Arc::clone(&self.0);
        match decode(&cx) {
            Ok(job) => Box::pin(async move { handler.handle(job, cx).await }),
            Err(refusal) => Box::pin(ready(Err(refusal))),
        }
    }

    fn ends_when_dropped(&self) -> bool {
        true
    }
}

/// An async closure or function over the claimed job as it is.
pub(crate) struct Raw<F>(pub(crate) F);

impl<F, Fut> ErasedHandler for Raw<F>
where
    F: Fn(ClaimedJob, JobContext) -> Fut + Send + Sync,
    Fut: Future<Output = HandlerResult> + Send + 'static,
{
    fn start(&self, cx: JobContext) -> Running {
        Box::pin((self.0)(cx.claimed_job().clone(), cx))
    }

    fn ends_when_dropped(&self) -> bool {
        true
    }
}

/// A closure or function that blocks its thread.
pub(crate) struct Blocking<J, F> {
    handle: Arc<F>,
    job: PhantomData<fn(J)>,
}

impl<J, F> Blocking<J, F> {
    pub(crate) fn new(handle: F) -> Self {
        Self { handle: Arc::new(handle), job: PhantomData }
    }
}

impl<J, F> ErasedHandler for Blocking<J, F>
where
    J: DeserializeOwned + Send + 'static,
    F: Fn(J, JobContext) -> HandlerResult + Send + Sync + 'static,
{
    fn start(&self, cx: JobContext) -> Running {
        let job: J = match decode(&cx) {
            Ok(job) => job,
            Err(refusal) => return Box::pin(ready(Err(refusal))),
        };
        let (handle, span) = (Arc::clone(&self.handle), Span::current());
        let work = spawn_blocking(move || span.in_scope(|| handle(job, cx)));
        Box::pin(async move {
            match work.await {
                Ok(result) => result,
                // The panic goes on in the task that awaits it, where every handler's panic is caught.
                Err(end) if end.is_panic() => resume_unwind(end.into_panic()),
                Err(_) => Err(Interrupted.into()),
            }
        })
    }

    fn ends_when_dropped(&self) -> bool {
        false
    }
}

/// Decodes the arguments straight from their text.
fn decode<J: DeserializeOwned>(cx: &JobContext) -> Result<J, JobError> {
    let args = &cx.claimed_job().args;
    args.decode().map_err(|error| JobError::from(format!("the arguments do not fit kind {}: {error}", cx.kind())))
}
