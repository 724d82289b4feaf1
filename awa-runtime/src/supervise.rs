//! Loops that must not end: a panic in one is caught, said, and the loop begins anew.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use tokio::time::sleep;
use tracing::error;

use crate::panic::message;

/// Runs the loop that `begin` makes until it returns, and again after each panic.
pub(crate) async fn supervised<F: Future<Output = ()>>(name: &'static str, mut begin: impl FnMut() -> F) {
    /// A loop that panics at once does not become a hot one.
    const PAUSE: Duration = Duration::from_secs(1);
    while let Err(payload) = AssertUnwindSafe(begin()).catch_unwind().await {
        error!(task = name, panic = message(payload), "a loop of the worker panicked; it is begun anew");
        sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_panics_is_begun_anew() {
        let mut begun = 0;
        supervised("test", || {
            begun += 1;
            let fail = begun < 3;
            async move { assert!(!fail, "on purpose") }
        })
        .await;
        assert_eq!(begun, 3);
    }
}
