use async_trait::async_trait;

use crate::error::StoreError;
use crate::job::{Enqueued, NewJob};

/// Takes in jobs.
///
/// Enqueueing inside a transaction of the caller's is a method of each driver's own store, because the transaction has
/// the driver's type; it keeps every clause that this trait keeps, and blocks nobody until the caller commits (C10).
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Producer: Send + Sync {
    /// Stores `jobs` in one transaction that ends with the call: all or none (C1, C9), but for those whose key another job holds
    /// (C14). Calls that overlap may share the transaction; each is answered for its own jobs (C8).
    ///
    /// Returns one answer per job, in input order (C8). An empty slice is answered without asking the store.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when nothing was stored, or when the outcome is unknown (C7).
    async fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError>;
}
