//! What a handler may note down and ask for while its attempt runs.

use std::time::Duration;

use awa_core::attempt::Receipt;
use awa_core::store::{AttemptNote, Memory, NoteAnswer};
use awa_core::{BadInput, CallbackToken, JobId, JsonText, StoreError, StoreErrorKind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::sleep;

use crate::backoff::Backoff;
use crate::context::JobContext;

/// Why something that a handler asked of its context was not done. By `?` it fails the attempt, or is refused with it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttemptError {
    /// The attempt has ended: by its deadline, a rescue, an operator or the shutdown of the worker. Nothing was changed, and
    /// whatever the handler returns is refused.
    #[error("{operation} of job {job} refused: attempt {attempt} has ended; stop and return from the handler")]
    Over {
        /// What was asked for.
        operation: &'static str,
        /// The job.
        job: JobId,
        /// The number of the attempt.
        attempt: u32,
    },
    /// The value cannot be stored, or what is stored does not fit the type asked for.
    #[error(transparent)]
    BadValue(#[from] BadInput),
    /// The store could not answer; asking again is safe.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl JobContext {
    /// Notes how far the attempt has come. The job's next attempt finds it, whatever ends this one: an error, a crash, a
    /// shutdown, a callback that did not come. It takes the place of what was noted before.
    ///
    /// When this returns `Ok`, it is stored. It is also a sign of life, see [`Self::heartbeat`].
    ///
    /// # Errors
    ///
    /// [`AttemptError::Over`] once the attempt has ended, and nothing is stored then.
    ///
    /// ```
    /// use awa_runtime::{HandlerResult, JobContext, Outcome};
    ///
    /// async fn import(rows: Vec<String>, cx: JobContext) -> HandlerResult {
    ///     let done: usize = cx.progress().await?.unwrap_or(0);
    ///     for (at, row) in rows.iter().enumerate().skip(done) {
    ///         println!("{row}");
    ///         cx.checkpoint(&(at + 1)).await?;
    ///     }
    ///     Ok(Outcome::Done)
    /// }
    /// ```
    pub async fn checkpoint<T: Serialize + ?Sized + Sync>(&self, progress: &T) -> Result<(), AttemptError> {
        let progress = JsonText::of("progress", progress)?;
        self.note("checkpoint", AttemptNote::checkpoint(self.receipt(), progress)).await.map(drop)
    }

    /// The latest checkpoint of the job, by this attempt or an earlier one; `None` when there is none.
    ///
    /// # Errors
    ///
    /// [`AttemptError::BadValue`] when it does not fit `T`.
    pub async fn progress<T: DeserializeOwned>(&self) -> Result<Option<T>, AttemptError> {
        decode("progress", self.recall("progress").await?.progress)
    }

    /// Shows that this attempt lives, whatever becomes of the heartbeat of its process: for work that goes on elsewhere.
    ///
    /// # Errors
    ///
    /// [`AttemptError::Over`] once the attempt has ended.
    pub async fn heartbeat(&self) -> Result<(), AttemptError> {
        self.note("heartbeat", AttemptNote::heartbeat(self.receipt())).await.map(drop)
    }

    /// The token with which somebody outside can resume this job; an attempt has one, however often it asks. Give it
    /// away, then return [`Outcome::WaitForCallback`](crate::Outcome::WaitForCallback). A callback that comes before is
    /// kept.
    ///
    /// The first call in an attempt makes the token and the payload of an earlier attempt's callback void: read that
    /// first, and note what is still needed.
    ///
    /// # Errors
    ///
    /// [`AttemptError::Over`] once the attempt has ended.
    pub async fn register_callback(&self) -> Result<CallbackToken, AttemptError> {
        const OPERATION: &str = "register_callback";
        let note = AttemptNote::callback(self.receipt(), CallbackToken(rand::random()));
        let token = self.note(OPERATION, note).await?.ok_or_else(|| {
            let problem = "the store gave no token for the attempt; this is a fault of the store";
            StoreError::new(StoreErrorKind::Internal, OPERATION, problem)
        })?;
        self.mark_callback();
        Ok(token)
    }

    /// What came with the callback; `None` until it came. It stays for later attempts until one of them registers another
    /// callback.
    ///
    /// # Errors
    ///
    /// [`AttemptError::BadValue`] when it does not fit `T`.
    pub async fn callback_payload<T: DeserializeOwned>(&self) -> Result<Option<T>, AttemptError> {
        decode("payload", self.recall("callback_payload").await?.payload)
    }

    async fn note(&self, operation: &'static str, note: AttemptNote) -> Result<Option<CallbackToken>, AttemptError> {
        let mut backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(500));
        for _ in 0..TRIES {
            self.refuse_when_over(operation)?;
            let notes = vec![note.clone()];
            let answers = self.desk().call(operation, |store| async move { store.note(&notes).await }).await?;
            match answers.first() {
                Some(NoteAnswer::Noted { callback }) => return Ok(*callback),
                Some(NoteAnswer::Stale) => return Err(self.over(operation)),
                _ => sleep(backoff.pause()).await,
            }
        }
        let problem = "somebody's open transaction holds the attempt; try again";
        Err(StoreError::new(StoreErrorKind::Contended, operation, problem).into())
    }

    async fn recall(&self, operation: &'static str) -> Result<Memory, AttemptError> {
        self.refuse_when_over(operation)?;
        let receipts: [Receipt; 1] = [self.receipt()];
        let memories = self.desk().call(operation, |store| async move { store.recall(&receipts).await }).await?;
        memories.into_iter().next().flatten().ok_or_else(|| self.over(operation))
    }

    /// An attempt that was ended in this process needs no call to learn it.
    fn refuse_when_over(&self, operation: &'static str) -> Result<(), AttemptError> {
        if self.has_ended() { Err(self.over(operation)) } else { Ok(()) }
    }

    fn over(&self, operation: &'static str) -> AttemptError {
        AttemptError::Over { operation, job: self.id(), attempt: self.attempt() }
    }
}

/// How often a note is repeated while somebody is in its way.
const TRIES: usize = 20;

fn decode<T: DeserializeOwned>(field: &'static str, text: Option<JsonText>) -> Result<Option<T>, AttemptError> {
    let decoded = text.map(|text| text.decode()).transpose();
    decoded.map_err(|error| BadInput::new(field, format!("what is stored does not fit the type: {error}")).into())
}
