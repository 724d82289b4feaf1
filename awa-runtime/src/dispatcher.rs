//! Claims the jobs of one queue, as many as can soon run.

use std::sync::Arc;
use std::time::Duration;

use awa_core::store::{BatchLimit, ClaimRequest, Claimed, Horizon};
use awa_core::{ClaimedJob, InstanceId, Nonce, QueueName, Store, StoreError, StoreErrorKind};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::ahead::Ahead;
use crate::attempt::Attempt;
use crate::backoff::{Backoff, Trouble};
use crate::call::bounded;
use crate::executor::{Executor, start_runners};
use crate::flights::Flights;
use crate::hands::Hands;
use crate::heartbeat::Pulse;
use crate::lookout::Berth;
use crate::queue::QueueConfig;
use crate::seats::Seats;
use crate::vigil::Vigil;

/// See the module.
#[derive(Clone)]
pub(crate) struct Dispatcher {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) instance: InstanceId,
    pub(crate) queue: QueueName,
    pub(crate) config: QueueConfig,
    pub(crate) call_timeout: Duration,
    pub(crate) seats: Arc<Seats>,
    pub(crate) executor: Arc<Executor>,
    pub(crate) hands: Arc<Hands>,
    pub(crate) flights: Arc<Flights>,
    pub(crate) pulse: Arc<Pulse>,
    pub(crate) berth: Berth,
    /// Fired after a claim whose outcome is unknown.
    pub(crate) audit_soon: Arc<Notify>,
    /// The runtime of the handlers.
    pub(crate) handlers: Handle,
    pub(crate) stop: CancellationToken,
}

impl Dispatcher {
    /// Claims until `stop` fires. A claim call under way then is awaited, and its jobs are handed back unstarted.
    pub(crate) async fn run(self) {
        self.unless_stopped(self.berth.rest(None)).await;
        let (mut backoff, mut trouble) = (Backoff::for_trouble(), Trouble::default());
        let mut contention = Backoff::new(Duration::from_millis(1), Duration::from_millis(50));
        let mut vigil = Vigil::default();
        while let Some(room) = self.unless_stopped(self.room()).await {
            let began = Instant::now();
            let max_jobs = BatchLimit::clamped(room.min(self.config.max_batch));
            let found = match self.claim(max_jobs).await {
                Ok(found) => found,
                Err(error) => {
                    self.say(&error, &mut trouble);
                    self.unless_stopped(sleep(backoff.pause())).await;
                    continue;
                }
            };
            backoff.reset();
            if let Some(failures) = trouble.over() {
                info!(queue = %self.queue, failures, "claims get through again");
            }
            vigil.note(found.jobs, Instant::now());
            let filled = found.jobs >= usize::from(max_jobs.get());
            if filled || (found.more && found.jobs > 0) {
                contention.reset();
            } else if found.more || found.contended {
                // Nearly at once, but not in step with whoever is in the way, nor in a hot loop.
                self.unless_stopped(sleep(contention.pause())).await;
            } else if let Some(next) = vigil.next(began, Instant::now()) {
                contention.reset();
                self.unless_stopped(sleep_until(next)).await;
            } else {
                contention.reset();
                // Also after jobs: what a claim leaves behind that stopped at no limit, it could not see.
                self.unless_stopped(self.berth.rest(Some(found.horizon))).await;
            }
        }
    }

    /// Waits until a claim makes sense, and gives the number of jobs there is room for. What waits too long for a handler
    /// meanwhile goes back.
    async fn room(&self) -> usize {
        self.executor.outbox.wait_for_room().await;
        self.pulse.wait_until_fresh().await;
        loop {
            match timeout(Ahead::LONGEST_WAIT, self.seats.wait_for_room()).await {
                Ok(room) => return room,
                Err(_) => self.executor.release(&self.seats.give_up_surplus()),
            }
        }
    }

    /// One claim call, and its jobs on their way to a seat.
    async fn claim(&self, max_jobs: BatchLimit) -> Result<Found, StoreError> {
        let request = ClaimRequest {
            queue: self.queue.clone(),
            instance: self.instance,
            nonce: Nonce(rand::random()),
            max_jobs,
            max_bytes: self.config.max_bytes,
            deadline: self.config.deadline,
            aging: self.config.aging,
            shape: self.config.claim_shape,
        };
        let (flight, sent) = (self.flights.take_off(), Instant::now());
        self.berth.begin_claim();
        let answer = bounded("claim", self.call_timeout, self.store.claim(&request)).await;
        self.berth.end_claim();
        let claimed = answer.inspect_err(|error| {
            if matches!(error.kind(), StoreErrorKind::Unavailable | StoreErrorKind::Internal) {
                self.audit_soon.notify_one();
            }
        })?;
        let Claimed { jobs, contended, more, horizon } = claimed;
        let found = Found { jobs: jobs.len(), contended, more, horizon };
        self.hands.take(jobs.iter().map(|job| &job.receipt));
        drop(flight);
        if found.jobs > 0 {
            self.executor.counters.add_claimed(found.jobs);
            self.executor.outbox.expect(found.jobs);
            self.start(jobs, sent);
        }
        Ok(found)
    }

    fn start(&self, jobs: Vec<ClaimedJob>, sent: Instant) {
        let deadline = self.config.deadline;
        let attempts = jobs.into_iter().map(|job| Arc::new(Attempt::new(job, sent, deadline))).collect();
        match self.seats.fill(attempts) {
            Ok(seats) => start_runners(&self.executor, seats, &self.handlers),
            Err(unstarted) => self.executor.hand_back(&unstarted),
        }
    }

    fn say(&self, error: &StoreError, trouble: &mut Trouble) {
        let Some(failures) = trouble.failed() else { return };
        if error.is_transient() {
            warn!(queue = %self.queue, %error, failures, "claims fail; they are repeated");
        } else {
            error!(queue = %self.queue, %error, failures, "claims are refused until somebody acts; they are repeated");
        }
    }

    /// The outcome of `wait`, or `None` as soon as the worker stops.
    async fn unless_stopped<T>(&self, wait: impl Future<Output = T>) -> Option<T> {
        self.stop.run_until_cancelled(wait).await
    }
}

/// What a claim found, its jobs counted.
#[derive(Debug, Clone, Copy)]
struct Found {
    jobs: usize,
    contended: bool,
    more: bool,
    horizon: Horizon,
}
