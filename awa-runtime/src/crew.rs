//! All tasks of one running worker: how they begin, and in which order they end.

use std::sync::Arc;
use std::time::Duration;

use awa_core::store::Task;
use awa_core::{InstanceId, QueueName, Store, StoreError, StoreErrorKind};
use futures::future::join_all;
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::attempt::{Attempt, CancelCause};
use crate::audit::Audit;
use crate::backoff::{Backoff, Trouble};
use crate::batcher;
use crate::call::bounded;
use crate::dispatcher::Dispatcher;
use crate::executor::Executor;
use crate::flights::Flights;
use crate::flush::Flusher;
use crate::handler::Handlers;
use crate::hands::Hands;
use crate::heartbeat::{Heartbeat, Pulse};
use crate::lookout::{Lookout, Opening};
use crate::maintenance::Maintenance;
use crate::outbox::{Limits, Outbox};
use crate::queue::QueueConfig;
use crate::seats::Seats;
use crate::settings::Settings;
use crate::shutdown::{AbandonedAttempt, ShutdownReport};
use crate::state::StateMap;
use crate::stats::Counters;
use crate::supervise::supervised;
use crate::watch::{Watch, enforce_deadlines};

/// What a worker is made of.
pub(crate) struct Plan {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) instance: InstanceId,
    pub(crate) queues: Vec<(QueueName, QueueConfig)>,
    pub(crate) handlers: Handlers,
    pub(crate) state: StateMap,
    pub(crate) settings: Settings,
    pub(crate) counters: Arc<Counters>,
}

/// The tasks of one running worker. Dropping it ends them at once; what its attempts were is then found by rescue.
pub(crate) struct Crew {
    store: Arc<dyn Store>,
    instance: InstanceId,
    settings: Settings,
    maintenance: Maintenance,
    queues: Vec<(QueueName, QueueConfig, Arc<Seats>)>,
    executor: Arc<Executor>,
    outbox: Arc<Outbox>,
    hands: Arc<Hands>,
    heartbeat: Heartbeat,
    counters: Arc<Counters>,
    stop: CancellationToken,
    draining: CancellationToken,
    dispatchers: JoinSet<()>,
    batcher: JoinSet<()>,
    loops: JoinSet<()>,
}

impl Crew {
    /// After the grace period, so long until what is left unconfirmed is given up.
    const LAST_FLUSH: Duration = Duration::from_millis(700);
    /// After the grace period, so long until everything has ended.
    const LAST_CALL: Duration = Duration::from_millis(950);

    /// Puts the parts together; nothing runs yet.
    pub(crate) fn assemble(plan: Plan) -> Self {
        let Plan { store, instance, queues, handlers, state, settings, counters } = plan;
        let outbox = Arc::new(Outbox::new(Limits::of(&settings)));
        let executor = Arc::new(Executor::new(
            Arc::clone(&store),
            handlers,
            state,
            &settings,
            Arc::clone(&outbox),
            Arc::clone(&counters),
        ));
        let heartbeat = Heartbeat {
            store: Arc::clone(&store),
            instance,
            interval: settings.heartbeat,
            staleness: settings.staleness,
            call_timeout: settings.call_timeout,
            pulse: Arc::new(Pulse::new(settings.staleness)),
        };
        let maintenance = Maintenance::of_worker(Arc::clone(&store), instance, &settings);
        let with_seats = |(queue, config): (QueueName, QueueConfig)| {
            let seats = Arc::new(Seats::new(config.concurrency, config.ahead()));
            (queue, config, seats)
        };
        Self {
            store,
            instance,
            settings,
            maintenance,
            queues: queues.into_iter().map(with_seats).collect(),
            executor,
            outbox,
            hands: Arc::default(),
            heartbeat,
            counters,
            stop: CancellationToken::new(),
            draining: CancellationToken::new(),
            dispatchers: JoinSet::new(),
            batcher: JoinSet::new(),
            loops: JoinSet::new(),
        }
    }

    /// Shows the store this process for the first time, however long the store takes to appear. A store that has to be
    /// set up first ends it.
    pub(crate) fn announce(&self) -> impl Future<Output = Result<(), StoreError>> + Send + 'static {
        let heartbeat = self.heartbeat.clone();
        async move {
            let (mut backoff, mut trouble) = (Backoff::for_trouble(), Trouble::default());
            while let Err(error) = heartbeat.beat().await {
                // Nobody repairs a store from here, but a failure that nobody expected may pass.
                if !error.is_transient() && error.kind() != StoreErrorKind::Internal {
                    return Err(error);
                }
                if let Some(failures) = trouble.failed() {
                    warn!(%error, failures, "the worker waits for its store");
                }
                sleep(backoff.pause()).await;
            }
            Ok(())
        }
    }

    /// Starts every task: those of the worker on `own`, handlers on `handlers`.
    pub(crate) fn start(&mut self, own: &Handle, handlers: &Handle) {
        self.executor.desk.open(own);
        let heartbeat = self.heartbeat.clone();
        self.loops.spawn_on(supervised("heartbeat", move || heartbeat.clone().run()), own);
        if self.settings.roles.claims {
            self.start_claiming(own, handlers);
        }
        if self.settings.roles.maintenance {
            for task in Task::ALL {
                let maintenance = self.maintenance.clone();
                self.loops.spawn_on(supervised(task.as_str(), move || maintenance.clone().run(task)), own);
            }
        }
        let queues: Vec<&str> = self.queues.iter().map(|(queue, ..)| queue.as_str()).collect();
        info!(instance = %self.instance, store = self.store.describe(), ?queues, "worker started");
    }

    fn start_claiming(&mut self, own: &Handle, handlers: &Handle) {
        let call_timeout = self.settings.call_timeout;
        let flusher = Flusher {
            store: Arc::clone(&self.store),
            outbox: Arc::clone(&self.outbox),
            hands: Arc::clone(&self.hands),
            counters: Arc::clone(&self.counters),
            call_timeout,
            single_file: Arc::new(Semaphore::new(1)),
            draining: self.draining.clone(),
        };
        let flights = self.settings.flights;
        let batcher = move || batcher::run(flusher.clone(), flights);
        self.batcher.spawn_on(supervised("batcher", batcher), own);

        let audit = Audit {
            store: Arc::clone(&self.store),
            instance: self.instance,
            interval: self.settings.audit,
            call_timeout,
            hands: Arc::clone(&self.hands),
            flights: Arc::<Flights>::default(),
            counters: Arc::clone(&self.counters),
            soon: Arc::new(Notify::new()),
        };
        let lookout = self.start_looking_out(own);
        for (place, (queue, config, seats)) in self.queues.iter().enumerate() {
            let dispatcher = Dispatcher {
                store: Arc::clone(&self.store),
                instance: self.instance,
                queue: queue.clone(),
                config: config.clone(),
                call_timeout,
                seats: Arc::clone(seats),
                executor: Arc::clone(&self.executor),
                hands: Arc::clone(&self.hands),
                flights: Arc::clone(&audit.flights),
                pulse: Arc::clone(&self.heartbeat.pulse),
                berth: lookout.berth(place),
                audit_soon: Arc::clone(&audit.soon),
                handlers: handlers.clone(),
                stop: self.stop.clone(),
            };
            self.dispatchers.spawn_on(supervised("dispatcher", move || dispatcher.clone().run()), own);
        }
        self.loops.spawn_on(supervised("audit", move || audit.clone().run()), own);

        let seats: Vec<_> = self.queues.iter().map(|(.., seats)| Arc::clone(seats)).collect();
        if self.queues.iter().any(|(_, config, _)| config.deadline.is_some()) {
            let (seats, executor) = (seats.clone(), Arc::clone(&self.executor));
            let deadlines = move || enforce_deadlines(seats.clone(), Arc::clone(&executor));
            self.loops.spawn_on(supervised("deadlines", deadlines), own);
        }
        let (store, interval) = (Arc::clone(&self.store), self.settings.heartbeat);
        let watch = Watch { store, seats, interval, call_timeout };
        self.loops.spawn_on(supervised("watch", move || watch.clone().run()), own);
    }

    /// Starts what the dispatchers share while they sleep. It ends with them, and takes their announcements back.
    fn start_looking_out(&mut self, own: &Handle) -> Arc<Lookout> {
        let polls = self.queues.iter().map(|(queue, config, _)| (queue.clone(), config.poll));
        let (store, call_timeout, stop) = (Arc::clone(&self.store), self.settings.call_timeout, self.stop.clone());
        let lookout = Arc::new(Lookout::new(store, self.instance, polls, call_timeout, stop));
        let opening = Opening::new(Arc::clone(&lookout));
        self.dispatchers.spawn_on(supervised("opening", move || opening.clone().run()), own);
        let shared = Arc::clone(&lookout);
        self.dispatchers.spawn_on(supervised("announcements", move || Arc::clone(&shared).announce()), own);
        let shared = Arc::clone(&lookout);
        self.dispatchers.spawn_on(supervised("rounds", move || Arc::clone(&shared).go_round()), own);
        let shared = Arc::clone(&lookout);
        self.dispatchers.spawn_on(supervised("wake-ups", move || Arc::clone(&shared).listen()), own);
        lookout
    }

    /// Ends everything in order: claims, then handlers, then the confirmation of their ends, then this instance.
    pub(crate) async fn stop(mut self) -> ShutdownReport {
        let began = Instant::now();
        let grace_over = began + self.settings.grace;
        info!(instance = %self.instance, grace = ?self.settings.grace, "worker stops");
        self.stop.cancel();
        for (.., seats) in &self.queues {
            self.executor.hand_back(&seats.close());
        }
        self.running().iter().for_each(|attempt| attempt.cancel(CancelCause::Shutdown));
        let idle = join_all(self.queues.iter().map(|(.., seats)| seats.wait_until_idle()));
        let _ = timeout_at(grace_over, idle).await;
        let abandoned = self.abandon();

        // A claim that is still on its way is awaited, so that its jobs can be handed back.
        let last_flush = grace_over + Self::LAST_FLUSH;
        let _ = timeout_at(last_flush, async { while self.dispatchers.join_next().await.is_some() {} }).await;
        self.draining.cancel();
        let _ = timeout_at(last_flush, async { while self.batcher.join_next().await.is_some() {} }).await;
        let unconfirmed = self.outbox.unconfirmed();

        self.loops.abort_all();
        let last_call = (grace_over + Self::LAST_CALL).saturating_duration_since(Instant::now());
        let patience = last_call.min(Self::LAST_CALL);
        let retired = bounded("retire", patience, self.store.retire(self.instance)).await;
        if let Err(error) = &retired {
            warn!(%error, "the store was not told that this instance is gone; it is found by its silence");
        }
        let report = ShutdownReport {
            abandoned,
            returned: self.executor.handed_back(),
            unconfirmed,
            retired: retired.is_ok(),
            took: began.elapsed(),
            stats: self.counters.read(),
        };
        announce(&report);
        report
    }

    /// Hands back what did not end in time.
    fn abandon(&self) -> Vec<AbandonedAttempt> {
        let left = self.running().into_iter().filter(|attempt| self.executor.abandon(attempt));
        let mut abandoned: Vec<_> = left
            .map(|attempt| AbandonedAttempt {
                job: attempt.job.receipt.job,
                kind: attempt.job.kind.clone(),
                queue: attempt.job.queue.clone(),
                attempt: attempt.job.attempt,
                age: attempt.claimed.elapsed(),
            })
            .collect();
        abandoned.sort_by_key(|attempt| attempt.job);
        abandoned
    }

    fn running(&self) -> Vec<Arc<Attempt>> {
        self.queues.iter().flat_map(|(.., seats)| seats.running()).collect()
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.stop.cancel();
        for (.., seats) in &self.queues {
            seats.close();
        }
        for attempt in self.running() {
            attempt.cancel(CancelCause::Shutdown);
            attempt.stop();
        }
    }
}

fn announce(report: &ShutdownReport) {
    for attempt in &report.abandoned {
        warn!(
            job = attempt.job.get(), kind = %attempt.kind, queue = %attempt.queue, age = ?attempt.age,
            "attempt abandoned: it did not end within the grace period, and its job was handed back"
        );
    }
    let ShutdownReport { returned, unconfirmed, retired, took, .. } = report;
    info!(returned, abandoned = report.abandoned.len(), unconfirmed, retired, ?took, "worker stopped");
}
