use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use awa_core::prune::KeepReason;
use awa_core::ring::{RingKind, StayReason};
use awa_core::store::{PinReport, RescueRequest, RescuedAttempt, Rotated, Task};
use awa_core::{InstanceId, Store, StoreError};
use tokio::time::{Instant, sleep};
use tracing::{debug, info, warn};

use crate::backoff::{Trouble, varied};
use crate::call::bounded;
use crate::maintenance_config::MaintenanceConfig;
use crate::settings::Settings;

/// What one [`Maintenance::tick`] did.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct TickReport {
    /// Tasks whose turn it was, and that went through.
    pub ran: Vec<Task>,
    /// Tasks that another process has done lately.
    pub not_due: Vec<Task>,
    /// Steps that failed, by their task. The other steps were done all the same.
    pub failed: Vec<(Task, StoreError)>,
    /// Jobs that became ready.
    pub promoted: usize,
    /// Attempts that were ended because their worker is gone or their deadline is over.
    pub rescued: Vec<RescuedAttempt>,
    /// This process has not shown itself for long enough to judge others; see [`Maintenance::with_instance`].
    pub rescuer_too_young: bool,
    /// Ring slots that were opened or repaired.
    pub rotated: usize,
    /// Ring slots that were emptied.
    pub pruned: usize,
    /// Jobs that waited in old slots, and attempts that ran on them, that were moved out so that the slots can go.
    pub unpinned: usize,
    /// Dead jobs that were deleted because their time was over.
    pub forgotten: usize,
    /// Rings that should have moved on and could not.
    pub stuck: Vec<StuckRing>,
    /// The budget was used up while there was more to do: tick again.
    pub more: bool,
}

/// A ring that should have moved on and could not. Its open slot takes everything, and nothing is reclaimed any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StuckRing {
    /// The ring.
    pub ring: RingKind,
    /// Why it did not move on.
    pub reason: StayReason,
    /// How many of its slots are kept by nothing but history, whose time is not over. When these are most of them, the history is
    /// kept for longer than the ring takes to go around: keep it for a shorter time, turn the ring more slowly
    /// ([`MaintenanceConfig::queue_rotation`]), or grow it (`awa rings grow`).
    pub retained: usize,
}

/// Keeps a store in order, without a leader: each task is a bounded step that any process may do, guarded by a turn
/// that the store gives to one process per interval.
///
/// A [`Worker`](crate::Worker) does this by itself. Use this type where nothing runs for long: call [`Self::tick`] from
/// a scheduled function.
#[derive(Clone)]
pub struct Maintenance {
    store: Arc<dyn Store>,
    instance: InstanceId,
    config: Arc<MaintenanceConfig>,
    call_timeout: Duration,
}

impl Maintenance {
    /// Maintenance of `store` under a fresh instance name.
    ///
    /// # Errors
    ///
    /// [`BadInput`](awa_core::BadInput) with the setting at fault.
    pub fn new(store: Arc<dyn Store>, config: MaintenanceConfig) -> Result<Self, awa_core::BadInput> {
        config.check()?;
        let call_timeout = Duration::from_secs(30);
        Ok(Self { store, instance: InstanceId(rand::random()), config: Arc::new(config), call_timeout })
    }

    /// The same under another instance name.
    ///
    /// Only a process that the store has seen alive for the staleness time may rescue others' attempts. A function that
    /// starts anew for each tick should therefore keep its name, and be called more often than that.
    #[must_use]
    pub fn with_instance(mut self, instance: InstanceId) -> Self {
        self.instance = instance;
        self
    }

    /// The maintenance of a worker, under its name and with its staleness time and retry policy.
    pub(crate) fn of_worker(store: Arc<dyn Store>, instance: InstanceId, settings: &Settings) -> Self {
        let Settings { staleness, retry, call_timeout, .. } = *settings;
        let config = MaintenanceConfig { staleness, retry, ..settings.maintenance.clone() };
        Self { store, instance, config: Arc::new(config), call_timeout }
    }

    /// Does every task whose turn it is once, and goes on with those that have more to do for as long as `budget`
    /// allows. Failures are in the report; one task or step that fails stops no other.
    pub async fn tick(&self, budget: Duration) -> TickReport {
        let until = Instant::now() + budget;
        let mut report = TickReport::default();
        let beat = bounded("beat", self.call_timeout, self.store.beat(self.instance, self.config.staleness));
        if let Err(error) = beat.await {
            report.failed.push((Task::Rescue, error));
        }
        for task in Task::ALL {
            self.take_turn(task, until, &mut report).await;
        }
        report
    }

    /// A process that does not get the turn of a task because others do it asks again after twice as long, up to this time: after
    /// their death a task is late by it, and fifty processes ask fifty times a second instead of three hundred times.
    const STANDBY: Duration = Duration::from_secs(3);

    /// Runs one task for ever, whenever it is this process's turn.
    pub(crate) async fn run(self, task: Task) {
        let every = self.config.every(task);
        let (mut trouble, mut standstill) = (Trouble::default(), Trouble::default());
        let mut pause = varied(every);
        loop {
            sleep(pause).await;
            let mut report = TickReport::default();
            self.take_turn(task, Instant::now() + self.config.turn, &mut report).await;
            self.announce(task, &report);
            announce_stuck(&report, &mut standstill);
            pause = if report.not_due.is_empty() {
                // Not before the turn is over that this process had itself.
                every + varied(every) / 8
            } else {
                varied((pause * 2).min(Self::STANDBY.max(every)))
            };
            match report.failed.pop() {
                None => {
                    if let Some(failures) = trouble.over() {
                        info!(task = task.as_str(), failures, "maintenance goes through again");
                    }
                }
                Some((_, error)) => {
                    if let Some(failures) = trouble.failed() {
                        warn!(task = task.as_str(), %error, failures, "maintenance failed; it is repeated");
                    }
                }
            }
        }
    }

    async fn take_turn(&self, task: Task, until: Instant, report: &mut TickReport) {
        let turn = self.store.try_tick(task, self.config.every(task));
        match bounded("try_tick", self.call_timeout, turn).await {
            Ok(false) => report.not_due.push(task),
            Err(error) => report.failed.push((task, error)),
            Ok(true) => {
                let failures = report.failed.len();
                match task {
                    Task::Promote => self.promote(until, report).await,
                    Task::Rescue => self.rescue(until, report).await,
                    Task::Rings => self.turn_rings(report).await,
                    Task::Tidy => {
                        let tidied = bounded("tidy", self.call_timeout, self.store.tidy()).await;
                        note(task, tidied, report);
                        self.forget_dead(until, report).await;
                    }
                    // A task that a later core adds is left to processes that know it.
                    _ => {}
                }
                if report.failed.len() == failures {
                    report.ran.push(task);
                }
            }
        }
    }

    async fn forget_dead(&self, until: Instant, report: &mut TickReport) {
        /// Jobs of one step.
        const LIMIT: usize = 1_000;
        let Some(age) = self.config.dead_retention else { return };
        loop {
            let step = bounded("forget_dead", self.call_timeout, self.store.forget_dead(age, LIMIT)).await;
            let Some(jobs) = note(Task::Tidy, step, report) else { return };
            report.forgotten += jobs;
            if jobs < LIMIT {
                return;
            }
            if Instant::now() >= until {
                report.more = true;
                return;
            }
        }
    }

    async fn promote(&self, until: Instant, report: &mut TickReport) {
        loop {
            let step = bounded("promote", self.call_timeout, self.store.promote(self.config.promote_limit)).await;
            let Some(promoted) = note(Task::Promote, step, report) else { return };
            report.promoted += promoted.jobs;
            if !promoted.more || promoted.jobs == 0 {
                return;
            }
            if Instant::now() >= until {
                report.more = true;
                return;
            }
        }
    }

    async fn rescue(&self, until: Instant, report: &mut TickReport) {
        let config = &self.config;
        let request = RescueRequest { rescuer: self.instance, staleness: config.staleness, page: config.rescue_page };
        loop {
            let step = bounded("rescue", self.call_timeout, self.store.rescue(&request, &config.retry)).await;
            let Some(rescued) = note(Task::Rescue, step, report) else { return };
            report.rescued.extend(rescued.attempts);
            report.rescuer_too_young |= rescued.rescuer_too_young;
            if !rescued.more {
                return;
            }
            if Instant::now() >= until {
                report.more = true;
                return;
            }
        }
    }

    /// Rotates first, so that what was sealed can be drained, and what was drained be emptied, in the same turn.
    async fn turn_rings(&self, report: &mut TickReport) {
        let (limit, config) = (self.call_timeout, &self.config);
        for ring in RingKind::ALL {
            let policy = match ring {
                RingKind::Queue => &config.queue_rotation,
                RingKind::Claim => &config.claim_rotation,
                RingKind::Lease => &config.lease_rotation,
            };
            let step = bounded("rotate", limit, self.store.rotate(ring, policy)).await;
            match note(Task::Rings, step, report) {
                Some(Rotated::Opened(slot, generation) | Rotated::Repaired(slot, generation)) => {
                    report.rotated += 1;
                    debug!(%ring, %slot, %generation, "ring moved on");
                }
                Some(Rotated::Stayed(reason)) if reason.is_alarming() => {
                    report.stuck.push(StuckRing { ring, reason, retained: 0 });
                }
                _ => {}
            }
        }
        let step = bounded("unpin", limit, self.store.unpin(&config.unpin)).await;
        if let Some(unpinned) = note(Task::Rings, step, report) {
            report.unpinned += unpinned.carried + unpinned.evicted;
            for PinReport { ring, slot, reason } in unpinned.kept {
                debug!(%ring, %slot, %reason, "an old ring slot is still needed");
            }
        }
        let step = bounded("drain", limit, self.store.drain()).await;
        note(Task::Rings, step, report);
        for ring in RingKind::ALL {
            let step = bounded("prune", limit, self.store.prune(ring, &config.retention)).await;
            for slot in note(Task::Rings, step, report).unwrap_or_default() {
                match slot.kept {
                    None => report.pruned += 1,
                    Some(reason) => {
                        debug!(%ring, slot = %slot.slot, ?reason, "ring slot kept");
                        let is_history = matches!(reason, KeepReason::Retained(_));
                        for stuck in report.stuck.iter_mut().filter(|stuck| stuck.ring == ring && is_history) {
                            stuck.retained += 1;
                        }
                    }
                }
            }
        }
    }

    fn announce(&self, task: Task, report: &TickReport) {
        for attempt in &report.rescued {
            warn!(
                job = attempt.job.get(), queue = %attempt.queue, run_lease = attempt.run_lease.get(),
                exhausted = attempt.exhausted, cause = attempt.cause.as_str(),
                "attempt ended by rescue"
            );
        }
        if report.promoted + report.pruned + report.rotated > 0 {
            let TickReport { promoted, pruned, rotated, .. } = report;
            debug!(task = task.as_str(), instance = %self.instance, promoted, pruned, rotated, "maintenance turn");
        }
    }
}

/// A line now and then, as long as rings stand still.
fn announce_stuck(report: &TickReport, standstill: &mut Trouble) {
    if report.stuck.is_empty() {
        // Another task, or a turn of somebody else's, tells nothing about the rings.
        if report.ran.contains(&Task::Rings)
            && let Some(turns) = standstill.over()
        {
            info!(turns, "the rings move on again");
        }
        return;
    }
    if let Some(turns) = standstill.failed() {
        for StuckRing { ring, reason, retained } in &report.stuck {
            warn!(%ring, %reason, retained, turns, "a ring cannot move on");
        }
    }
}

impl fmt::Debug for Maintenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Maintenance")
            .field("store", &self.store.describe())
            .field("instance", &self.instance)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// The answer of a step; a failure goes into the report.
fn note<T>(task: Task, step: Result<T, StoreError>, report: &mut TickReport) -> Option<T> {
    step.map_err(|error| report.failed.push((task, error))).ok()
}
