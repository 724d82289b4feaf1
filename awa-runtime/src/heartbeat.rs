//! Shows the store that this process is alive.
//!
//! The beat is a task on the worker's own threads, not on the handlers' runtime: a handler that blocks its thread cannot
//! delay it. A thread of its own beside those would gain nothing, because only the worker's own short tasks run there.

use std::sync::Arc;
use std::time::Duration;

use awa_core::{InstanceId, Store};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tracing::{error, info};

use crate::backoff::Trouble;
use crate::call::bounded;

/// When this process last showed a sign of life that the store confirmed.
#[derive(Debug)]
pub(crate) struct Pulse {
    last: watch::Sender<Option<Instant>>,
    staleness: Duration,
}

impl Pulse {
    pub(crate) fn new(staleness: Duration) -> Self {
        Self { last: watch::Sender::new(None), staleness }
    }

    /// Notes a beat that was sent at `sent`.
    pub(crate) fn beat(&self, sent: Instant) {
        self.last.send_replace(Some(sent));
    }

    /// Waits until the store has seen this process lately enough that a claim of its would not be taken for a dead
    /// one's.
    pub(crate) async fn wait_until_fresh(&self) {
        let fresh = |last: &Option<Instant>| last.is_some_and(|last| last.elapsed() < self.staleness);
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.last.subscribe().wait_for(fresh).await;
    }
}

/// The heartbeat of one process.
#[derive(Clone)]
pub(crate) struct Heartbeat {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) instance: InstanceId,
    pub(crate) interval: Duration,
    pub(crate) staleness: Duration,
    pub(crate) call_timeout: Duration,
    pub(crate) pulse: Arc<Pulse>,
}

impl Heartbeat {
    /// Beats for ever: once per interval, and sooner after a beat that failed.
    pub(crate) async fn run(self) {
        let mut trouble = Trouble::default();
        let mut next = Instant::now();
        loop {
            tokio::time::sleep_until(next).await;
            next = Instant::now() + self.interval;
            while let Err(error) = self.beat().await {
                if let Some(failures) = trouble.failed() {
                    error!(
                        %error, failures, staleness = ?self.staleness,
                        "heartbeat failed; when none gets through for the staleness time, running jobs are rescued and \
                         run twice"
                    );
                }
                sleep(self.interval / 4).await;
                next = Instant::now() + self.interval;
            }
            if let Some(failures) = trouble.over() {
                info!(failures, "heartbeats get through again");
            }
        }
    }

    /// One beat. It is given up early enough for another before the staleness time is over.
    pub(crate) async fn beat(&self) -> Result<(), awa_core::StoreError> {
        let (sent, patience) = (Instant::now(), self.call_timeout.min(self.staleness / 3));
        bounded("beat", patience, self.store.beat(self.instance, self.staleness)).await?;
        self.pulse.beat(sent);
        Ok(())
    }
}
