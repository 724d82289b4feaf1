//! Looks after running attempts: tells a handler that its attempt was ended by somebody else, and enforces deadlines.
//! One pass over all of them per interval takes the place of a timer and a query for each.

use std::sync::Arc;
use std::time::Duration;

use awa_core::Store;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::attempt::{Attempt, CancelCause};
use crate::backoff::Trouble;
use crate::call::bounded;
use crate::executor::Executor;
use crate::seats::Seats;

/// Tells handlers whose attempt was ended by somebody else.
#[derive(Clone)]
pub(crate) struct Watch {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) seats: Vec<Arc<Seats>>,
    pub(crate) interval: Duration,
    pub(crate) call_timeout: Duration,
}

impl Watch {
    /// Receipts of one question.
    const PAGE: usize = 1_000;

    /// Watches for ever.
    pub(crate) async fn run(self) {
        let mut trouble = Trouble::default();
        loop {
            sleep(self.interval).await;
            match self.look().await {
                Ok(()) => drop(trouble.over()),
                Err(error) => {
                    if let Some(failures) = trouble.failed() {
                        warn!(%error, failures, "cancellations of running jobs are noticed late");
                    }
                }
            }
        }
    }

    /// Asks once for all attempts that are at least half an interval old. A short one ends before it could be told; one
    /// that waits for its seat is then not started.
    async fn look(&self) -> Result<(), awa_core::StoreError> {
        let (now, enough) = (Instant::now(), self.interval / 2);
        let held: Vec<Arc<Attempt>> = self
            .seats
            .iter()
            .flat_map(|seats| seats.held())
            .filter(|attempt| now.duration_since(attempt.claimed) >= enough && attempt.cancelled().is_none())
            .collect();
        for page in held.chunks(Self::PAGE) {
            let receipts: Vec<_> = page.iter().map(|attempt| attempt.job.receipt).collect();
            let open = bounded("are_open", self.call_timeout, self.store.are_open(&receipts)).await?;
            for (attempt, _) in page.iter().zip(open).filter(|(attempt, open)| !open && !attempt.has_ended()) {
                info!(
                    job = attempt.job.receipt.job.get(),
                    "the attempt was ended elsewhere; its handler is told to stop"
                );
                attempt.cancel(CancelCause::EndedElsewhere);
            }
        }
        Ok(())
    }
}

/// Ends attempts whose deadline is over, within [`DEADLINE_STEP`].
pub(crate) async fn enforce_deadlines(seats: Vec<Arc<Seats>>, executor: Arc<Executor>) {
    loop {
        sleep(DEADLINE_STEP).await;
        let now = Instant::now();
        for attempt in seats.iter().flat_map(|seats| seats.running()) {
            if let Some(deadline) = attempt.deadline.filter(|deadline| deadline.at <= now && !attempt.has_ended()) {
                executor.expire(&attempt, deadline.length);
            }
        }
    }
}

/// How late a deadline may be enforced.
pub(crate) const DEADLINE_STEP: Duration = Duration::from_millis(50);
