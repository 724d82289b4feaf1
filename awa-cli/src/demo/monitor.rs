//! Watches the run: kills a worker on the way, and notices when all is done or nothing moves any more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use awa_core::attempt::Receipt;
use awa_core::{InstanceId, QueueName, Store};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::crew::Crew;
use super::producer::{Produced, Production};
use super::progress::Progress;
use crate::failure::Failure;

/// The pause between two looks at the counts.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The pause between two looks at the store, which counts one by one.
const ASK_EVERY: Duration = Duration::from_millis(200);
/// A demo in which nothing moves for so long has failed.
const STALL_LIMIT: Duration = Duration::from_mins(1);
/// The worker is killed when this part of the jobs is done.
const KILL_AFTER_PART: u64 = 3;

/// See the module.
pub(super) struct Monitor {
    pub(super) store: Arc<dyn Store>,
    pub(super) queue: QueueName,
    /// Planned jobs.
    pub(super) jobs: usize,
}

/// How the run went.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) produced: Produced,
    /// The attempts that the killed worker held when it died.
    pub(super) held: Vec<Receipt>,
}

/// What happened to the worker that is killed.
enum Victim {
    Alive,
    Dead(tokio::task::JoinHandle<Result<Vec<Receipt>, Failure>>),
}

impl Monitor {
    /// Watches until every committed job has ended and the workers have stopped.
    pub(super) async fn watch(self, mut crew: Crew, mut production: Production) -> Result<Watched, Failure> {
        let mut progress = Progress::new(self.jobs as u64);
        let tally = crew.tally();
        let mut victim = Victim::Alive;
        let mut last_move = (Instant::now(), 0, 0);
        let mut last_asked = Instant::now();
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            crew.check()?;
            let (completed, committed) = (tally.completed(), production.committed());
            progress.show(completed, committed);
            if (completed, committed) != (last_move.1, last_move.2) {
                last_move = (Instant::now(), completed, committed);
            } else if last_move.0.elapsed() > STALL_LIMIT {
                progress.finish();
                return Err(self.stalled(completed, committed));
            }
            let all_produced = production.has_ended()?;
            if matches!(victim, Victim::Alive) && (self.is_time_to_kill(completed, &crew).await? || all_produced) {
                let instance = crew.victim();
                crew.kill_first().await?;
                progress.say(&format!("killed worker 1 of {} after {completed} jobs", crew.tally().0.len()));
                victim = Victim::Dead(tokio::spawn(held_by(Arc::clone(&self.store), instance)));
            }
            if all_produced && last_asked.elapsed() >= ASK_EVERY {
                last_asked = Instant::now();
                if self.is_idle().await? {
                    break;
                }
            }
        }
        progress.finish();
        crew.stop().await?;
        let held = match victim {
            Victim::Dead(asking) => {
                asking.await.map_err(|error| Failure::of("asking about the killed worker", &error))??
            }
            Victim::Alive => Vec::new(),
        };
        Ok(Watched { produced: production.into_produced(), held })
    }

    /// In mid-run, and at a moment when the victim holds something.
    async fn is_time_to_kill(&self, completed: u64, crew: &Crew) -> Result<bool, Failure> {
        if completed < (self.jobs as u64).div_ceil(KILL_AFTER_PART) {
            return Ok(false);
        }
        Ok(!self.store.open_attempts(crew.victim(), 1).await?.is_empty())
    }

    /// Whether no job of the queue is left that could still run.
    async fn is_idle(&self) -> Result<bool, Failure> {
        let queues = self.store.queues().await?;
        let ours = queues.iter().find(|view| view.queue == self.queue);
        Ok(ours.is_none_or(|view| view.ready + view.running + view.deferred == 0))
    }

    fn stalled(&self, completed: u64, committed: u64) -> Failure {
        Failure::new(format!(
            "nothing has moved for {STALL_LIMIT:?}: {completed} jobs completed, {committed} enqueued in queue {}",
            self.queue
        ))
    }
}

/// The attempts that a killed worker holds. A statement that it sent before its death may still have an effect for a
/// moment, so the answer counts when two in a row agree; long before the staleness time is over.
async fn held_by(store: Arc<dyn Store>, instance: InstanceId) -> Result<Vec<Receipt>, Failure> {
    const MAX_HELD: usize = 10_000;
    const ROUNDS: usize = 10;
    const BETWEEN: Duration = Duration::from_millis(100);
    let mut before: Option<Vec<Receipt>> = None;
    for _ in 0..ROUNDS {
        let held = store.open_attempts(instance, MAX_HELD).await?;
        if before.as_ref() == Some(&held) {
            break;
        }
        before = Some(held);
        sleep(BETWEEN).await;
    }
    Ok(before.unwrap_or_default())
}
