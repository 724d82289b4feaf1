//! Watches the run: kills a worker on the way, and notices when all is done or nothing moves any more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use awa_core::attempt::Receipt;
use awa_core::{InstanceId, QueueName, Store};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::crew::Crew;
use super::producer::{Produced, Production};
use crate::failure::Failure;
use crate::progress::Progress;

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

impl Monitor {
    /// Watches until every committed job has ended and the workers have stopped.
    pub(super) async fn watch(self, mut crew: Crew, mut production: Production) -> Result<Watched, Failure> {
        let mut progress = Progress::new(Some(self.jobs as u64));
        let tally = crew.tally();
        let workers = tally.0.len();
        let kill_after = (self.jobs as u64).div_ceil(KILL_AFTER_PART);
        let (mut stands_still, mut held) = (false, None);
        let said = |held: usize| format!("killed worker 1 of {workers} with {held} jobs in its hands");
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
            let has_drained = completed >= committed && production.waits_for_second_half();
            if !stands_still && (completed >= kill_after || has_drained || all_produced) {
                crew.hold_first().await?;
                production.begin_second_half();
                stands_still = true;
            } else if stands_still && held.is_none() {
                held = self.kill_if_holding(&mut crew).await?;
                if let Some(held) = &held {
                    progress.say(&said(held.len()));
                }
            }
            if all_produced && last_asked.elapsed() >= ASK_EVERY {
                last_asked = Instant::now();
                if self.is_idle().await? {
                    break;
                }
            }
        }
        if held.is_none() {
            // So few files that the worker never came to hold one of the rest.
            crew.kill_first().await?;
            progress.say(&said(0));
        }
        progress.finish();
        crew.stop().await?;
        Ok(Watched { produced: production.into_produced(), held: held.unwrap_or_default() })
    }

    /// Kills the first worker when it holds something, and returns the attempts that it held.
    async fn kill_if_holding(&self, crew: &mut Crew) -> Result<Option<Vec<Receipt>>, Failure> {
        let victim = crew.victim();
        if self.store.open_attempts(victim, 1).await?.is_empty() {
            return Ok(None);
        }
        crew.kill_first().await?;
        Ok(Some(self.held_by(victim).await?))
    }

    /// The attempts that a dead worker holds. A statement that it has sent may still have an
    /// effect for a moment, so the answer counts when two in a row agree; long before the staleness time is over.
    async fn held_by(&self, instance: InstanceId) -> Result<Vec<Receipt>, Failure> {
        const MAX_HELD: usize = 10_000;
        const ROUNDS: usize = 20;
        const BETWEEN: Duration = Duration::from_millis(30);
        let mut held = self.store.open_attempts(instance, MAX_HELD).await?;
        for _ in 0..ROUNDS {
            sleep(BETWEEN).await;
            let again = self.store.open_attempts(instance, MAX_HELD).await?;
            if again == held {
                break;
            }
            held = again;
        }
        Ok(held)
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
