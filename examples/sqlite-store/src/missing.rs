//! What this store does not have. It says so, with a kind of error that nobody repeats, and its subject in the conformance suite
//! does not declare it.

use async_trait::async_trait;
use awa_core::attempt::Receipt;
use awa_core::store::{AttemptNote, Attempts, Callback, Memory, NoteAnswer};
use awa_core::{CallbackAnswer, StoreError, StoreErrorKind};

use crate::SqliteStore;

/// The refusal of a call that this store does not have.
pub(crate) fn missing(operation: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Refused, operation, "the example on SQLite does not have this; use another store")
}

#[async_trait]
impl Attempts for SqliteStore {
    async fn note(&self, notes: &[AttemptNote]) -> Result<Vec<NoteAnswer>, StoreError> {
        if notes.is_empty() { Ok(Vec::new()) } else { Err(missing("note")) }
    }

    /// No attempt has noted anything.
    async fn recall(&self, receipts: &[Receipt]) -> Result<Vec<Option<Memory>>, StoreError> {
        if receipts.is_empty() { Ok(Vec::new()) } else { Err(missing("recall")) }
    }

    async fn resume(&self, callbacks: &[Callback]) -> Result<Vec<CallbackAnswer>, StoreError> {
        if callbacks.is_empty() { Ok(Vec::new()) } else { Err(missing("resume")) }
    }
}
