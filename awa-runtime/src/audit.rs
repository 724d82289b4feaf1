//! The self-audit: what the store believes this process to hold, and it does not, is handed back.
//!
//! Such attempts come from claims whose answer was lost. Nobody else would rescue them, because the process is alive.

use std::sync::Arc;
use std::time::Duration;

use awa_core::{AttemptEnd, Closure, ClosureAnswer, InstanceId, Store, StoreError};
use tokio::sync::Notify;
use tokio::time::timeout;
use tracing::{info, warn};

use crate::backoff::{Trouble, varied};
use crate::call::bounded;
use crate::flights::Flights;
use crate::hands::Hands;
use crate::stats::Counters;

/// See the module.
#[derive(Clone)]
pub(crate) struct Audit {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) instance: InstanceId,
    pub(crate) interval: Duration,
    pub(crate) call_timeout: Duration,
    pub(crate) hands: Arc<Hands>,
    pub(crate) flights: Arc<Flights>,
    pub(crate) counters: Arc<Counters>,
    /// Fired after a claim whose outcome is unknown: audit soon.
    pub(crate) soon: Arc<Notify>,
}

impl Audit {
    /// Strays looked for in one audit, beyond what is held.
    const PAGE: usize = 1_000;
    /// Closures of one call.
    const BATCH: usize = 500;
    /// After a claim whose outcome is unknown, so that one outage does not make a storm of audits.
    const SOON: Duration = Duration::from_secs(2);

    /// Audits for ever.
    pub(crate) async fn run(self) {
        let mut trouble = Trouble::default();
        loop {
            if timeout(varied(self.interval), self.soon.notified()).await.is_ok() {
                tokio::time::sleep(varied(Self::SOON)).await;
            }
            match self.audit().await {
                Ok(0) => drop(trouble.over()),
                Ok(strays) => {
                    trouble.over();
                    info!(strays, "attempts that were claimed for this process and never reached it are handed back");
                }
                Err(error) => {
                    if let Some(failures) = trouble.failed() {
                        warn!(%error, failures, "self-audit failed; it is repeated");
                    }
                }
            }
        }
    }

    /// One audit: the number of attempts that it handed back.
    pub(crate) async fn audit(&self) -> Result<usize, StoreError> {
        // What is held may be older than every stray, and the list begins with the oldest.
        let page = self.hands.count() + Self::PAGE;
        let listed = self.store.open_attempts(self.instance, page);
        let listed = bounded("open_attempts", self.call_timeout, listed).await?;
        // A claim may have been committed before the list was read, with its answer still on the way.
        self.flights.landed().await;
        let strays: Vec<Closure> = listed
            .into_iter()
            .filter(|receipt| !self.hands.hold(receipt))
            .map(|receipt| Closure { receipt, end: AttemptEnd::Release { delay: Duration::ZERO } })
            .collect();
        let mut released = 0;
        for batch in strays.chunks(Self::BATCH) {
            let answers = bounded("close", self.call_timeout, self.store.close(batch)).await?;
            for end in batch.iter().zip(&answers).filter(|(_, answer)| **answer == ClosureAnswer::Closed) {
                self.counters.add_end(&end.0.end, true);
                released += 1;
            }
        }
        Ok(released)
    }
}
