//! A simulated transaction of an application.

use std::fmt;

use awa_core::attempt::ErrorText;
use awa_core::model::TransactionId;
use awa_core::store::Acted;
use awa_core::{Enqueued, JobId, NewJob, StoreError};

use crate::MemStore;

/// A transaction on a [`MemStore`]. Dropping it rolls it back.
#[must_use = "a transaction that is dropped is rolled back"]
pub struct MemTransaction {
    store: MemStore,
    open: Option<TransactionId>,
}

impl MemTransaction {
    pub(crate) fn new(store: MemStore, transaction: TransactionId) -> Self {
        Self { store, open: Some(transaction) }
    }

    /// Enqueues inside the transaction; one answer per job, in input order.
    ///
    /// # Errors
    ///
    /// As for every call of a store; [`Contended`](awa_core::StoreErrorKind::Contended), with nothing changed, when another
    /// open transaction has taken a unique key that is asked for.
    pub fn enqueue(&mut self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        let transaction = self.open.expect("only commit, rollback and drop end a transaction, and they take it");
        self.store.step("enqueue", |model, now| model.enqueue_in(transaction, jobs, now))?.map_err(StoreError::from)
    }

    /// Cancels jobs when the transaction commits; one answer per id, in input order.
    ///
    /// # Errors
    ///
    /// As for every call of a store.
    pub fn cancel(&mut self, jobs: &[JobId], reason: &ErrorText) -> Result<Vec<Acted>, StoreError> {
        let transaction = self.open.expect("only commit, rollback and drop end a transaction, and they take it");
        self.store.step("cancel", |model, _| model.cancel_in(transaction, jobs, reason))
    }

    /// Commits: the jobs exist from now on.
    ///
    /// # Errors
    ///
    /// As for every call of a store.
    pub fn commit(mut self) -> Result<(), StoreError> {
        match self.open.take() {
            Some(transaction) => self.store.step("commit", |model, now| model.commit(transaction, now)),
            None => Ok(()),
        }
    }

    /// Rolls back: the jobs have never existed.
    ///
    /// # Errors
    ///
    /// As for every call of a store.
    pub fn rollback(mut self) -> Result<(), StoreError> {
        self.undo()
    }

    fn undo(&mut self) -> Result<(), StoreError> {
        match self.open.take() {
            Some(transaction) => self.store.step("rollback", |model, _| model.rollback(transaction)),
            None => Ok(()),
        }
    }
}

impl Drop for MemTransaction {
    fn drop(&mut self) {
        // Only a store that is broken already refuses a rollback, and every further call says so.
        let _ = self.undo();
    }
}

impl fmt::Debug for MemTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemTransaction").field("open", &self.open).finish_non_exhaustive()
    }
}
