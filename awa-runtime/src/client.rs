use awa_core::store::{Attempts, Callback, Producer};
use awa_core::{CallbackAnswer, CallbackToken, Enqueued, JsonText, NewJob, StoreError, StoreErrorKind};
use serde::Serialize;

use crate::options::IntoNewJob;

/// Typed enqueueing on every store.
///
/// Each call is all or nothing, and durable when it is answered. To enqueue inside a transaction of yours, use the method of your driver's
/// store, with [`new_job`](crate::new_job).
pub trait StoreExt: Producer {
    /// Enqueues one job: a typed one, plain or [with options](crate::Job::with), or a [`NewJob`].
    ///
    /// When this returns `Ok`, the job is stored (clause C1).
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Refused`] with the field at fault as its source, before anything was sent; otherwise the
    /// store's error. When the outcome is unknown, calling again may store the job twice (C7).
    fn enqueue_job(&self, job: impl IntoNewJob) -> impl Future<Output = Result<Enqueued, StoreError>> + Send {
        let job = job.into_new_job();
        async move {
            let job = job?;
            let answers = self.enqueue(std::slice::from_ref(&job)).await?;
            one_answer_each(1, answers)?.pop().ok_or_else(|| wrong_count(1, 0))
        }
    }

    /// Enqueues many jobs in one transaction: all or none. Answers come in input order.
    ///
    /// # Errors
    ///
    /// As for [`Self::enqueue_job`]; one job that is refused refuses all, before anything was sent.
    fn enqueue_jobs<J: IntoNewJob>(
        &self,
        jobs: impl IntoIterator<Item = J>,
    ) -> impl Future<Output = Result<Vec<Enqueued>, StoreError>> + Send {
        let jobs: Result<Vec<NewJob>, _> = jobs.into_iter().map(J::into_new_job).collect();
        async move {
            let jobs = jobs?;
            one_answer_each(jobs.len(), self.enqueue(&jobs).await?)
        }
    }
}

impl<P: Producer + ?Sized> StoreExt for P {}

/// Calling back jobs that wait.
pub trait CallbackExt: Attempts {
    /// Resumes the job that gave `token` away, with `payload` for its next attempt. The answer says whether it was taken.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Refused`] for a payload that is no JSON a store can keep, before anything was sent; otherwise the
    /// store's error. When the outcome is unknown, calling again is safe: what had been taken answers
    /// [`CallbackAnswer::AlreadyUsed`].
    fn call_back<T: Serialize + ?Sized>(
        &self,
        token: CallbackToken,
        payload: &T,
    ) -> impl Future<Output = Result<CallbackAnswer, StoreError>> + Send {
        let payload = JsonText::of("payload", payload);
        async move {
            let callback = Callback { token, payload: payload? };
            let answers = self.resume(std::slice::from_ref(&callback)).await?;
            answers.first().copied().ok_or_else(|| {
                let problem = "the store gave no answer for a callback; this is a fault of the store";
                StoreError::new(StoreErrorKind::Internal, "resume", problem)
            })
        }
    }
}

impl<A: Attempts + ?Sized> CallbackExt for A {}

fn one_answer_each(jobs: usize, answers: Vec<Enqueued>) -> Result<Vec<Enqueued>, StoreError> {
    if answers.len() == jobs { Ok(answers) } else { Err(wrong_count(jobs, answers.len())) }
}

fn wrong_count(jobs: usize, answers: usize) -> StoreError {
    let problem = format!("the store gave {answers} answers for {jobs} jobs; this is a fault of the store");
    StoreError::new(StoreErrorKind::Internal, "enqueue", problem)
}
