//! The store, for handlers: their calls run on the worker's own threads, where the store's connections belong.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use awa_core::{Store, StoreError, StoreErrorKind};
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

use crate::call::bounded;

/// See the module.
pub(crate) struct Desk {
    /// `None` in a context for tests, which belongs to no store.
    store: Option<Arc<dyn Store>>,
    call_timeout: Duration,
    own: OnceLock<Handle>,
}

impl Desk {
    pub(crate) fn new(store: Arc<dyn Store>, call_timeout: Duration) -> Self {
        Self { store: Some(store), call_timeout, own: OnceLock::new() }
    }

    /// The desk of a context that belongs to no store.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn without_store() -> Self {
        Self { store: None, call_timeout: Duration::ZERO, own: OnceLock::new() }
    }

    /// Opens the desk on these threads, once.
    pub(crate) fn open(&self, own: &Handle) {
        let _ = self.own.set(own.clone());
    }

    /// Carries out one call. Dropping the future gives it up, its outcome unknown.
    pub(crate) async fn call<T, F>(
        &self,
        operation: &'static str,
        call: impl FnOnce(Arc<dyn Store>) -> F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let gone = |problem: String| StoreError::new(StoreErrorKind::Unavailable, operation, problem);
        let Some(store) = &self.store else {
            return Err(gone("this context belongs to no store; run the job with an inline worker".into()));
        };
        let call = bounded(operation, self.call_timeout, call(Arc::clone(store)));
        let Some(own) = self.own.get() else { return Err(gone("the worker has not started".into())) };
        let task = AbortOnDropHandle::new(own.spawn(call));
        task.await.map_err(|end| gone(format!("the worker has stopped: {end}")))?
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk")
            .field("store", &self.store.as_ref().map(|store| store.describe()))
            .finish_non_exhaustive()
    }
}
