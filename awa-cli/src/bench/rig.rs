//! One measurement: a fresh store, producers, workers, a meter, and what comes of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use awa_core::JobState;
use awa_core::store::Accuracy;
use awa_runtime::Job;
use tokio::time::sleep;

use super::args::{BenchArgs, WorkerArgs};
use super::cost::{Meter, Stopped};
use super::crew::{Crew, Recruits};
use super::ends::{Ends, Probe};
use super::hold::Beside;
use super::job::Noop;
use super::load::{Load, Pace, Producers, Production};
use super::place::Place;
use super::result::{Counted, Measured, Name};
use super::site::Site;
use crate::failure::Failure;
use crate::output::complain;
use crate::progress::Progress;

/// See the module.
#[derive(Debug)]
pub(super) struct Rig<'p> {
    pub(super) site: Site<'p>,
    pub(super) args: &'p BenchArgs,
    name: Name,
    ends: &'p Ends,
}

impl<'p> Rig<'p> {
    /// A rig on a fresh store.
    pub(super) async fn open(
        place: &'p Place,
        args: &'p BenchArgs,
        ends: &'p Ends,
        name: Name,
    ) -> Result<Self, Failure> {
        complain(&format!("{name} ..."));
        Ok(Self { site: Site::open(place).await?, args, name, ends })
    }

    /// Removes the store.
    pub(super) async fn remove(self) -> Result<(), Failure> {
        self.ends.tell(None);
        self.site.remove().await
    }

    /// Enqueues `jobs` that wait when the measurement begins.
    pub(super) async fn preload(&self, jobs: u64) -> Result<(), Failure> {
        const PRODUCERS: u16 = 2;
        let load = Load {
            producers: PRODUCERS,
            pace: Pace::Flat { batch: self.args.load.bulk },
            jobs: Some(jobs),
            duration: None,
            payload: self.args.load.payload,
            queues: only_queue(),
        };
        let mut production = Producers::enlist(&self.site, load, &Arc::new(Probe::new())).await?.start();
        production.finish().await?;
        production.close().await;
        self.site.settle().await
    }

    /// Measures producers alone, beside what stays open.
    pub(super) async fn produce(&self, load: Load, beside: Beside) -> Result<Measured, Failure> {
        let probe = Arc::new(Probe::new());
        let producers = Producers::enlist(&self.site, load, &probe).await?;
        let holder = self.site.hand(1).await?;
        let meter = Meter::start(&self.site).await?;
        let held = holder.hold(beside).await?;
        let mut production = producers.start();
        production.finish().await?;
        let stopped = meter.stop(&self.site).await?;
        held.release().await?;
        holder.close().await;
        let produced = production.close().await;
        let waiting = self.count_waiting().await?;
        let counted = Counted { enqueued: produced.jobs, ended: waiting };
        let measured = self.conclude(counted, stopped).await?;
        Ok(measured.with_calls(&produced.calls))
    }

    /// Measures workers on `jobs` that wait already, until all are completed or `limit` is over. Only the jobs are counted,
    /// because how long they waited says nothing.
    pub(super) async fn drain(
        &self,
        jobs: u64,
        workers: &WorkerArgs,
        limit: Option<Duration>,
    ) -> Result<Measured, Failure> {
        let recruits = Recruits::enlist(&self.site, workers, &only_queue(), None).await?;
        let meter = Meter::start(&self.site).await?;
        let crew = recruits.start();
        let mut progress = Progress::new(Some(jobs));
        let until = limit.and_then(|limit| Instant::now().checked_add(limit));
        let completed = crew.complete(jobs, until, &mut progress).await?;
        let stopped = meter.stop(&self.site).await?;
        progress.finish();
        let tally = crew.tally();
        crew.stop().await?;
        // What was completed while they stopped is not part of the measurement, and must not be lost either.
        let afterwards = tally.completed() - completed;
        let ended = self.count_completed().await?.saturating_sub(afterwards);
        self.conclude(Counted { enqueued: completed, ended }, stopped).await
    }

    /// Measures producers and workers together, beside what stays open, until all that was enqueued is completed.
    pub(super) async fn run(
        &self,
        workers: &WorkerArgs,
        queues: &[String],
        beside: Beside,
        load: impl FnOnce(&Crew) -> Load,
    ) -> Result<Measured, Failure> {
        let probe = Arc::new(Probe::new());
        self.ends.tell(Some(Arc::clone(&probe)));
        let crew = Recruits::enlist(&self.site, workers, queues, Some(&probe)).await?.start();
        self.warm_up(queues).await;
        let load = load(&crew);
        let mut progress = Progress::new(load.jobs);
        let producers = Producers::enlist(&self.site, load, &probe).await?;
        let holder = self.site.hand(1).await?;
        let meter = Meter::start(&self.site).await?;
        let held = holder.hold(beside).await?;
        let mut production = producers.start();
        watch(&mut production, &crew, &mut progress).await?;
        crew.complete(production.enqueued(), None, &mut progress).await?;
        let stopped = meter.stop(&self.site).await?;
        progress.finish();
        held.release().await?;
        holder.close().await;
        crew.stop().await?;
        let produced = production.close().await;
        let counted = Counted { enqueued: produced.jobs, ended: self.count_completed().await? };
        let measured = self.conclude(counted, stopped).await?.with_calls(&produced.calls).with_probe(&probe);
        Ok(measured.with_backlog(produced.max_backlog))
    }

    /// Measures workers that have nothing to do.
    pub(super) async fn idle(&self, workers: &WorkerArgs, queues: &[String]) -> Result<Measured, Failure> {
        let crew = Recruits::enlist(&self.site, workers, queues, None).await?.start();
        self.warm_up(queues).await;
        let meter = Meter::start(&self.site).await?;
        sleep(self.args.load.duration()).await;
        let stopped = meter.stop(&self.site).await?;
        crew.stop().await?;
        self.conclude(Counted { enqueued: 0, ended: 0 }, stopped).await
    }

    /// Lets workers on many queues get ready: what they do once is not what is measured.
    async fn warm_up(&self, queues: &[String]) {
        /// Opening a queue takes the server some milliseconds.
        const PER_QUEUE: Duration = Duration::from_millis(2);
        sleep(PER_QUEUE * u32::try_from(queues.len()).unwrap_or(u32::MAX)).await;
    }

    pub(super) async fn conclude(&self, counted: Counted, stopped: Stopped) -> Result<Measured, Failure> {
        Ok(Measured::new(self.name.clone(), counted, &stopped.settle(&self.site).await?))
    }

    /// How many jobs wait, as the store counts them one by one.
    async fn count_waiting(&self) -> Result<u64, Failure> {
        let counts = self.site.look().counts(Accuracy::Exact).await?;
        Ok(counts.queues.iter().map(|queue| queue.in_states(&[JobState::Ready])).sum())
    }

    /// How many jobs have ever been completed, as the store counts them.
    async fn count_completed(&self) -> Result<u64, Failure> {
        let counts = self.site.look().counts(Accuracy::Estimate).await?;
        Ok(counts.queues.iter().map(|queue| queue.ever_in(&[JobState::Completed])).sum())
    }
}

/// Waits until all is enqueued, and shows how far it is.
async fn watch(production: &mut Production, crew: &Crew, progress: &mut Progress) -> Result<(), Failure> {
    const LOOK_EVERY: Duration = Duration::from_millis(100);
    loop {
        match tokio::time::timeout(LOOK_EVERY, production.finish()).await {
            Ok(finished) => return finished,
            Err(_) => progress.show(crew.tally().completed(), production.enqueued()),
        }
    }
}

/// The queue of the jobs that go to one queue.
pub(super) fn only_queue() -> Arc<[String]> {
    [Noop::QUEUE.to_owned()].into()
}
