//! The producers: as fast as they can, or so many jobs per second.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use awa_core::{Store, StoreError};
use awa_runtime::{Job, StoreExt};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::crew::Tally;
use super::ends::Probe;
use super::job::{EPOCH, Moment, Noop, padding};
use super::latency::{Latency, between};
use super::site::{Hand, Site};
use crate::failure::Failure;

/// The pause before a producer looks again whether there is room.
const PAUSE: Duration = Duration::from_millis(1);
/// The largest number of jobs that are due at once and enqueued by one call.
const MOST_DUE: usize = 500;

/// What is to be enqueued.
#[derive(Clone, Debug)]
pub(super) struct Load {
    /// Calls at a time, each on a connection of its own.
    pub(super) producers: u16,
    pub(super) pace: Pace,
    /// The end, whichever comes first.
    pub(super) jobs: Option<u64>,
    pub(super) duration: Option<Duration>,
    /// The bytes of a job's arguments.
    pub(super) payload: u32,
    /// Where the jobs go, in turn.
    pub(super) queues: Arc<[String]>,
}

/// How jobs come.
#[derive(Clone, Debug)]
pub(super) enum Pace {
    /// As fast as they are taken, so many per call.
    Flat { batch: u32 },
    /// The same, but producers pause while more than so many jobs wait.
    Bounded { batch: u32, max_backlog: u64, tally: Tally },
    /// So many per second, whether the store keeps up or not; what is due at once is enqueued at once.
    Steady { rate: u32 },
}

/// Producers that have not begun.
#[derive(Debug)]
pub(super) struct Producers {
    hand: Hand,
    load: Load,
    probe: Arc<Probe>,
}

/// Producers at work.
pub(super) struct Production {
    tasks: JoinSet<Result<(), Failure>>,
    shared: Arc<Shared>,
    hand: Hand,
}

/// What the producers did.
#[derive(Debug)]
pub(super) struct Produced {
    pub(super) jobs: u64,
    /// The length of each call.
    pub(super) calls: Arc<Latency>,
    /// The largest number of jobs that waited, where it was bounded.
    pub(super) max_backlog: Option<u64>,
}

struct Shared {
    store: Arc<dyn Store>,
    load: Load,
    probe: Arc<Probe>,
    pad: String,
    began: Instant,
    /// Jobs handed to producers.
    taken: AtomicU64,
    enqueued: AtomicU64,
    /// Counts the jobs that have been given a queue.
    routed: AtomicUsize,
    max_backlog: AtomicU64,
    /// Jobs that are due, of a load with a rate.
    due: Option<Mutex<UnboundedReceiver<Moment>>>,
    calls: Arc<Latency>,
}

impl Producers {
    /// Producers, connected and not at work yet.
    pub(super) async fn enlist(site: &Site<'_>, load: Load, probe: &Arc<Probe>) -> Result<Self, Failure> {
        // One more: a pool that has no other connection asks of each that comes back whether it still lives.
        let hand = site.hand(u32::from(load.producers) + 1).await?;
        Ok(Self { hand, load, probe: Arc::clone(probe) })
    }

    /// Sets them to work.
    pub(super) fn start(self) -> Production {
        let producers = self.load.producers;
        let due = match self.load.pace {
            Pace::Steady { rate } => Some(Mutex::new(pace(rate, &self.load, &self.probe))),
            _ => None,
        };
        let shared = Arc::new(Shared {
            store: self.hand.store(),
            pad: padding(self.load.payload),
            load: self.load,
            probe: self.probe,
            began: Instant::now(),
            taken: AtomicU64::new(0),
            enqueued: AtomicU64::new(0),
            routed: AtomicUsize::new(0),
            max_backlog: AtomicU64::new(0),
            due,
            calls: Arc::default(),
        });
        let mut tasks = JoinSet::new();
        for _ in 0..producers {
            tasks.spawn(Arc::clone(&shared).produce());
        }
        Production { tasks, shared, hand: self.hand }
    }
}

impl Production {
    /// Waits until all is enqueued. What is acknowledged is durable.
    pub(super) async fn finish(&mut self) -> Result<(), Failure> {
        while let Some(ended) = self.tasks.join_next().await {
            ended.map_err(|error| Failure::of("a producer broke off", &error))??;
        }
        Ok(())
    }

    /// Jobs enqueued so far.
    pub(super) fn enqueued(&self) -> u64 {
        self.shared.enqueued.load(Ordering::Relaxed)
    }

    /// Closes their connections; what they did.
    pub(super) async fn close(self) -> Produced {
        let jobs = self.enqueued();
        let is_bounded = matches!(self.shared.load.pace, Pace::Bounded { .. });
        let max_backlog = is_bounded.then(|| self.shared.max_backlog.load(Ordering::Relaxed));
        self.hand.close().await;
        Produced { jobs, calls: Arc::clone(&self.shared.calls), max_backlog }
    }
}

impl Shared {
    async fn produce(self: Arc<Self>) -> Result<(), Failure> {
        loop {
            let due = self.next().await;
            if due.is_empty() {
                return Ok(());
            }
            let called = self.probe.now();
            self.enqueue(&due).await?;
            let now = self.probe.now();
            self.calls.record(between(called, now), between(EPOCH, now));
            self.enqueued.fetch_add(due.len() as u64, Ordering::Relaxed);
        }
    }

    async fn enqueue(&self, due: &[Moment]) -> Result<(), StoreError> {
        let job = |due: &Moment| {
            let turn = self.routed.fetch_add(1, Ordering::Relaxed) % self.load.queues.len();
            Noop { due: *due, pad: self.pad.clone() }.with().queue(self.load.queues[turn].as_str())
        };
        let jobs = due.iter().map(job);
        self.store.enqueue_jobs(jobs).await.map(drop)
    }

    /// The moments at which the jobs of the next call were due; none when all have been enqueued.
    async fn next(&self) -> Vec<Moment> {
        match &self.load.pace {
            Pace::Flat { batch } => self.take(*batch),
            Pace::Bounded { batch, max_backlog, tally } => {
                self.wait_for_room(*max_backlog, tally).await;
                self.take(*batch)
            }
            Pace::Steady { .. } => {
                let mut due = Vec::new();
                if let Some(source) = &self.due {
                    source.lock().await.recv_many(&mut due, MOST_DUE).await;
                }
                due
            }
        }
    }

    /// Jobs that are due now, because their producer has nothing else to do.
    fn take(&self, batch: u32) -> Vec<Moment> {
        if self.load.duration.is_some_and(|duration| self.began.elapsed() >= duration) {
            return Vec::new();
        }
        let before = self.taken.fetch_add(batch.into(), Ordering::Relaxed);
        let left = self.load.jobs.map_or(u64::MAX, |jobs| jobs.saturating_sub(before));
        vec![self.probe.now(); left.min(batch.into()) as usize]
    }

    async fn wait_for_room(&self, max_backlog: u64, tally: &Tally) {
        loop {
            let waiting = self.enqueued.load(Ordering::Relaxed).saturating_sub(tally.completed());
            self.max_backlog.fetch_max(waiting, Ordering::Relaxed);
            if waiting <= max_backlog {
                return;
            }
            sleep(PAUSE).await;
        }
    }
}

/// Tells when each job is due, from a thread of its own, because the timer of an async runtime is a millisecond coarse. A job
/// is due whether or not those before it have been enqueued.
fn pace(rate: u32, load: &Load, probe: &Arc<Probe>) -> UnboundedReceiver<Moment> {
    let (sender, receiver) = unbounded_channel();
    let of_duration = load.duration.map(|duration| (duration.as_secs_f64() * f64::from(rate)).round() as u64);
    let jobs = load.jobs.unwrap_or(u64::MAX).min(of_duration.unwrap_or(u64::MAX));
    let probe = Arc::clone(probe);
    std::thread::spawn(move || tell_when_due(rate, jobs, &probe, &sender));
    receiver
}

fn tell_when_due(rate: u32, jobs: u64, probe: &Probe, sender: &UnboundedSender<Moment>) {
    let began = probe.now();
    for number in 0..jobs {
        let due = Moment(began.0 + number * 1_000_000 / u64::from(rate));
        let early = between(probe.now(), due);
        if !early.is_zero() {
            std::thread::sleep(early);
        }
        if sender.send(due).is_err() {
            // Nobody enqueues any more.
            return;
        }
    }
}
