//! The workers: those of the runtime, with a typed handler that does nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use awa_runtime::{JobContext, Outcome, QueueConfig, RuntimeError, ShutdownReport, StatsHandle, Worker};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use super::args::WorkerArgs;
use super::ends::Probe;
use super::job::Noop;
use super::site::{Hand, Site};
use crate::failure::Failure;
use crate::progress::Progress;

/// The pause between two looks at the counts: what a measured time may be too long by.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// A run in which nothing moves for so long has failed.
const STALL_LIMIT: Duration = Duration::from_mins(1);

/// Workers that have not begun.
#[derive(Debug)]
pub(super) struct Recruits {
    workers: Vec<Worker>,
    hands: Vec<Hand>,
}

/// Workers at work.
#[derive(Debug)]
pub(super) struct Crew {
    members: Vec<Member>,
    tally: Tally,
    hands: Vec<Hand>,
}

#[derive(Debug)]
struct Member {
    run: JoinHandle<Result<ShutdownReport, RuntimeError>>,
    stop: oneshot::Sender<()>,
}

/// What the workers have completed so far. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Tally(Arc<[StatsHandle]>);

impl Tally {
    /// Jobs whose completion the store has confirmed.
    pub(super) fn completed(&self) -> u64 {
        self.0.iter().map(|stats| stats.read().completed).sum()
    }
}

impl Recruits {
    /// Workers on `queues`, connected and not at work yet. The probe, when there is one, is told of each start.
    pub(super) async fn enlist(
        site: &Site<'_>,
        args: &WorkerArgs,
        queues: &[String],
        probe: Option<&Arc<Probe>>,
    ) -> Result<Self, Failure> {
        let (mut workers, mut hands) = (Vec::new(), Vec::new());
        for _ in 0..args.workers {
            let hand = site.hand(args.worker_connections).await?;
            workers.push(build(&hand, args, queues, probe.cloned())?);
            hands.push(hand);
        }
        Ok(Self { workers, hands })
    }

    /// Sets them to work.
    pub(super) fn start(self) -> Crew {
        let tally = Tally(self.workers.iter().map(Worker::stats).collect());
        let start = |worker: Worker| {
            let (stop, stopped) = oneshot::channel::<()>();
            let run = worker.run_until(async move {
                // A sender that is gone means the same.
                let _ = stopped.await;
            });
            Member { run: tokio::spawn(run), stop }
        };
        Crew { members: self.workers.into_iter().map(start).collect(), tally, hands: self.hands }
    }
}

impl Crew {
    /// What they have completed.
    pub(super) fn tally(&self) -> Tally {
        self.tally.clone()
    }

    /// Waits until `jobs` of `enqueued` jobs are completed, at most until `until`; how many there are then.
    pub(super) async fn complete(
        &self,
        jobs: u64,
        until: Option<Instant>,
        progress: &mut Progress,
    ) -> Result<u64, Failure> {
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last_move = (Instant::now(), 0);
        loop {
            let completed = self.tally.completed();
            if completed >= jobs || until.is_some_and(|until| Instant::now() >= until) {
                return Ok(completed);
            }
            if completed != last_move.1 {
                last_move = (Instant::now(), completed);
            } else if last_move.0.elapsed() > STALL_LIMIT || self.members.iter().any(|member| member.run.is_finished())
            {
                return Err(Failure::new(format!("the workers stopped at {completed} of {jobs} jobs")));
            }
            progress.show(completed, jobs);
            looks.tick().await;
        }
    }

    /// Stops them and closes their connections. Every attempt must have ended well: handlers that do nothing cannot fail.
    pub(super) async fn stop(self) -> Result<(), Failure> {
        let (mut runs, mut problem) = (Vec::new(), None);
        for Member { run, stop } in self.members {
            drop(stop);
            runs.push(run);
        }
        for run in runs {
            let report = run.await.map_err(|error| Failure::of("a worker broke off", &error))??;
            let stats = report.stats;
            let amiss = stats.failed + stats.retried + stats.stale + report.unconfirmed as u64;
            if amiss > 0 || !report.abandoned.is_empty() {
                problem = Some(Failure::new(format!("a worker did not end all its attempts well: {stats:?}")));
            }
        }
        for hand in self.hands {
            hand.close().await;
        }
        problem.map_or(Ok(()), Err)
    }
}

fn build(hand: &Hand, args: &WorkerArgs, queues: &[String], probe: Option<Arc<Probe>>) -> Result<Worker, Failure> {
    let mut config = QueueConfig::default().concurrency(args.concurrency as usize);
    if let Some(prefetch) = args.prefetch {
        config = config.prefetch(prefetch as usize);
    }
    if let Some(batch) = args.claim_batch {
        config = config.max_batch(batch.into());
    }
    let mut builder = Worker::builder(hand.store()).maintenance(!args.no_maintenance);
    for queue in queues {
        builder = builder.queue(queue, config.clone());
    }
    if let Some(flush_at) = args.flush_at {
        builder = builder.flush_at(flush_at.into());
    }
    if let Some(threads) = args.own_threads {
        builder = builder.own_threads(threads.into());
    }
    let handler = move |job: Noop, cx: JobContext| {
        if let Some(probe) = &probe {
            probe.started(cx.id(), job.due);
        }
        std::future::ready(Ok(Outcome::Done))
    };
    Ok(builder.handler(handler).build()?)
}
