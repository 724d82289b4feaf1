//! Calls of a store, bounded in time and fenced against panics, so that no loop of the worker can hang or die of one.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use awa_core::{StoreError, StoreErrorKind};
use futures::FutureExt;
use tokio::time::timeout;

use crate::panic::message;

/// The answer of `call`. One that takes longer than `limit` is given up as [`StoreErrorKind::Unavailable`], its outcome
/// unknown; a panic is an [`StoreErrorKind::Internal`] failure.
pub(crate) async fn bounded<T>(
    operation: &'static str,
    limit: Duration,
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    match timeout(limit, AssertUnwindSafe(call).catch_unwind()).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(payload)) => {
            let problem = format!("the store panicked: {}; this is a fault of the store", message(payload));
            Err(StoreError::new(StoreErrorKind::Internal, operation, problem))
        }
        Err(_) => {
            let problem = format!("no answer within {limit:?}; look at the load and the locks of the database");
            Err(StoreError::new(StoreErrorKind::Unavailable, operation, problem))
        }
    }
}

/// Whether somebody has to act before the call can succeed, although the call itself is right.
pub(crate) fn waits_for_an_operator(error: &StoreError) -> bool {
    matches!(error.kind(), StoreErrorKind::NotReady | StoreErrorKind::Denied)
}
