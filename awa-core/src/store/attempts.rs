use async_trait::async_trait;

use crate::attempt::Receipt;
use crate::callback::{CallbackAnswer, CallbackToken};
use crate::error::StoreError;
use crate::json::JsonText;

/// Something to write down about a running attempt. Whatever it is, it is a sign of life of that attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttemptNote {
    /// The attempt.
    pub receipt: Receipt,
    /// How far it has come, if that is noted; takes the place of what the job had noted before.
    pub progress: Option<JsonText>,
    /// A random token for a callback, if one is wanted. An attempt has one token: the answer tells which, also when it was
    /// noted before. A new attempt's token takes the place of the old one's, and of the payload that came with that.
    pub callback: Option<CallbackToken>,
}

impl AttemptNote {
    /// A sign of life and nothing else.
    pub const fn heartbeat(receipt: Receipt) -> Self {
        Self { receipt, progress: None, callback: None }
    }

    /// How far the attempt has come.
    pub const fn checkpoint(receipt: Receipt, progress: JsonText) -> Self {
        Self { receipt, progress: Some(progress), callback: None }
    }

    /// The wish for a callback, with a token drawn at random for this call.
    pub const fn callback(receipt: Receipt, token: CallbackToken) -> Self {
        Self { receipt, progress: None, callback: Some(token) }
    }
}

/// The answer to one [`AttemptNote`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NoteAnswer {
    /// It is stored, durably.
    Noted {
        /// The token of the attempt, if it has one.
        callback: Option<CallbackToken>,
    },
    /// The attempt has ended or is parked, or never existed: nothing was changed.
    Stale,
    /// Somebody else's open transaction is about to end or move the attempt; ask again.
    Contended,
}

/// What the attempts of a job have left for the next.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    /// The latest checkpoint.
    pub progress: Option<JsonText>,
    /// What came with the callback of the latest token; `None` until it came.
    pub payload: Option<JsonText>,
}

/// A callback from outside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Callback {
    /// The token that the attempt gave away.
    pub token: CallbackToken,
    /// What the next attempt is to read.
    pub payload: JsonText,
}

/// Attempts that last longer than a call: their progress, their own signs of life, and their callbacks.
///
/// What a job has noted is kept between its attempts, whatever ended them, and in the dead-letter queue, so that an
/// operator's retry goes on from the last checkpoint. It is gone when the job is completed, cancelled or failed.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Attempts: Send + Sync {
    /// Writes notes of running attempts (C3, C8). One answer per note, in input order.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when nothing was changed or the outcome is unknown; noting again is safe (C7).
    async fn note(&self, notes: &[AttemptNote]) -> Result<Vec<NoteAnswer>, StoreError>;

    /// What was noted for the jobs of these attempts; `None` for one that is not running (C3). One answer per receipt, in
    /// input order.
    async fn recall(&self, receipts: &[Receipt]) -> Result<Vec<Option<Memory>>, StoreError>;

    /// Takes callbacks from outside (C4, C8, C12): each token is good for one. One answer per callback, in input order.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when nothing was changed or the outcome is unknown. Calling again is safe: what had been accepted
    /// answers [`AlreadyUsed`](CallbackAnswer::AlreadyUsed), or [`Unknown`](CallbackAnswer::Unknown) when the job has ended.
    async fn resume(&self, callbacks: &[Callback]) -> Result<Vec<CallbackAnswer>, StoreError>;
}
