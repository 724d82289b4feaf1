//! Makes the lanes of all queues of a process, so that their first jobs are found at once.

use std::sync::Arc;
use std::time::Duration;

use awa_core::{QueueName, StoreError};
use tokio::time::sleep;
use tracing::{error, warn};

use super::Lookout;
use crate::backoff::{Backoff, Trouble};
use crate::call::bounded;

/// See the module. Nobody waits for it for long: without it, the store finds a queue a little later by itself.
#[derive(Clone)]
pub(crate) struct Opening {
    lookout: Arc<Lookout>,
}

impl Opening {
    /// Queues of one call.
    const PAGE: usize = 500;
    /// How long the first looks wait for it.
    pub(super) const PATIENCE: Duration = Duration::from_secs(5);

    pub(crate) fn new(lookout: Arc<Lookout>) -> Self {
        Self { lookout }
    }

    /// Opens all queues, again and again where that fails and may pass.
    pub(crate) async fn run(self) {
        let stop = self.lookout.stop.clone();
        stop.run_until_cancelled(self.open_all()).await;
    }

    async fn open_all(&self) {
        let queues = self.lookout.all_queues();
        let mut pages: Vec<&[QueueName]> = queues.chunks(Self::PAGE).collect();
        let (mut backoff, mut trouble) = (Backoff::for_trouble(), Trouble::default());
        loop {
            let mut left = Vec::new();
            for page in pages {
                if let Err(error) = self.open(page).await {
                    say(&error, &mut trouble);
                    if error.is_transient() {
                        left.push(page);
                    }
                }
            }
            self.lookout.opened.cancel();
            if left.is_empty() {
                return;
            }
            pages = left;
            sleep(backoff.pause()).await;
        }
    }

    async fn open(&self, queues: &[QueueName]) -> Result<(), StoreError> {
        let lookout = &self.lookout;
        bounded("open_queues", lookout.call_timeout, lookout.store.open_queues(queues)).await
    }
}

fn say(error: &StoreError, trouble: &mut Trouble) {
    let Some(failures) = trouble.failed() else { return };
    if error.is_transient() {
        warn!(%error, failures, "queues cannot be opened; it is repeated, and their first jobs are found late");
    } else {
        error!(%error, failures, "queues cannot be opened; their first jobs are found late");
    }
}
