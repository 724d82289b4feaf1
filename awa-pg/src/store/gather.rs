//! Single enqueues that overlap, gathered: what comes while calls like it are on their way goes with the next of them, so
//! that many callers share a statement and a commit. Nobody waits for company: a call that finds none leaves at once.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use awa_core::error::{StoreError, StoreErrorKind};
use awa_core::job::{Enqueued, MaxAttempts, NewJob, Priority, RunAt};
use awa_core::name::{JobKind, QueueName};
use tokio::sync::oneshot;

const OPERATION: &str = "enqueue";
/// Statements that are on their way at a time for jobs that are alike. With one, the server would do nothing while an answer
/// travels; with many, each would carry one job.
const MAX_ON_THE_WAY: usize = 2;
/// Jobs of one statement.
const MAX_JOBS: usize = 128;
/// Bytes of arguments and metadata from which on a job goes alone.
const MAX_BYTES: usize = 64 << 10;

/// Stores jobs that are alike in one transaction.
#[async_trait]
pub(super) trait Carrier: Clone + Send + Sync + 'static {
    /// One answer per job in their order, or all of them are not stored, or the outcome is unknown
    /// ([`StoreErrorKind::Unavailable`]).
    async fn carry(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError>;
}

/// The single jobs that wait for calls like theirs.
#[derive(Debug, Clone, Default)]
pub(super) struct Gathering {
    roads: Arc<Mutex<HashMap<Alike, Road>>>,
}

/// What jobs of one statement have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Alike {
    queue: QueueName,
    priority: Priority,
    kind: JobKind,
    max_attempts: MaxAttempts,
}

/// Jobs that are alike. One is here as long as something is on its way.
#[derive(Debug, Default)]
struct Road {
    on_the_way: usize,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    job: NewJob,
    answer: oneshot::Sender<Word>,
}

/// What is said to somebody who waits.
#[derive(Debug)]
enum Word {
    /// The job went with others.
    Answer(Result<Enqueued, StoreError>),
    /// It is the caller's turn to go, with all who wait. The job has left the queue.
    Go(Turn),
}

/// The right to be on the way. When it is dropped, it goes to the next who waits.
#[derive(Debug)]
struct Turn {
    gathering: Option<Gathering>,
    alike: Alike,
}

impl Gathering {
    /// Whether a job may go together with others: it runs at once and is like many.
    pub(super) fn takes(job: &NewJob) -> bool {
        job.run_at() == RunAt::Now
            && job.unique().is_none()
            && job.ordering_key().is_none()
            && job.args().as_str().len() + job.metadata().map_or(0, |json| json.as_str().len()) < MAX_BYTES
    }

    /// Enqueues one job, which [may go with others](Self::takes).
    pub(super) async fn enqueue(&self, carrier: &impl Carrier, job: &NewJob) -> Result<Enqueued, StoreError> {
        let turn = match self.set_out(job) {
            Ok(turn) => turn,
            Err(word) => match word.await {
                Ok(Word::Go(turn)) => turn,
                Ok(Word::Answer(answer)) => return answer,
                Err(_) => return Err(forgotten()),
            },
        };
        let others = turn.take_who_waits();
        if others.is_empty() {
            let answer = carry_one(carrier, job).await;
            drop(turn);
            return answer;
        }
        let (answer, word) = oneshot::channel();
        // In the order in which they came.
        let together = std::iter::once(Waiting { job: job.clone(), answer }).chain(others).collect();
        // A task of its own, so that a caller who gives up takes nobody along.
        tokio::spawn(carry_all(carrier.clone(), together, turn));
        match word.await {
            Ok(Word::Answer(answer)) => answer,
            Ok(Word::Go(_)) | Err(_) => Err(forgotten()),
        }
    }

    /// The right to go at once, or to hear a word later.
    fn set_out(&self, job: &NewJob) -> Result<Turn, oneshot::Receiver<Word>> {
        let alike = Alike {
            queue: job.queue().clone(),
            priority: job.priority(),
            kind: job.kind().clone(),
            max_attempts: job.max_attempts(),
        };
        let mut roads = self.lock();
        let road = roads.entry(alike.clone()).or_default();
        if road.on_the_way < MAX_ON_THE_WAY {
            road.on_the_way += 1;
            drop(roads);
            return Ok(Turn { gathering: Some(self.clone()), alike });
        }
        let (answer, word) = oneshot::channel();
        road.waiting.push_back(Waiting { job: job.clone(), answer });
        Err(word)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Alike, Road>> {
        // Nothing that can panic runs under this lock.
        self.roads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Those who wait and have not given up, as many as go together with one more.
    fn take_who_waits(&self) -> Vec<Waiting> {
        let Some(gathering) = &self.gathering else { return Vec::new() };
        let mut roads = gathering.lock();
        let Some(road) = roads.get_mut(&self.alike) else { return Vec::new() };
        let mut taken = Vec::new();
        while taken.len() < MAX_JOBS - 1
            && let Some(next) = road.waiting.pop_front()
        {
            if !next.answer.is_closed() {
                taken.push(next);
            }
        }
        taken
    }

    /// Gives the turn to the next who waits, or gives it up.
    fn pass_on(gathering: &Gathering, alike: &Alike) {
        loop {
            let mut roads = gathering.lock();
            let Some(road) = roads.get_mut(alike) else { return };
            let Some(next) = road.waiting.pop_front() else {
                road.on_the_way -= 1;
                if road.on_the_way == 0 {
                    roads.remove(alike);
                }
                return;
            };
            drop(roads);
            let turn = Self { gathering: Some(gathering.clone()), alike: alike.clone() };
            match next.answer.send(Word::Go(turn)) {
                // Who has given up returns it.
                Err(Word::Go(mut turn)) => turn.gathering = None,
                _ => return,
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(gathering) = self.gathering.take() {
            Self::pass_on(&gathering, &self.alike);
        }
    }
}

async fn carry_one(carrier: &impl Carrier, job: &NewJob) -> Result<Enqueued, StoreError> {
    carrier
        .carry(std::slice::from_ref(job))
        .await?
        .pop()
        .ok_or_else(|| StoreError::new(StoreErrorKind::Internal, OPERATION, "the server gave no answer for a job"))
}

/// Whether an error may be the fault of a single job. Of the others, each job would hear the same alone, later; and of
/// [`StoreErrorKind::Unavailable`] nobody knows what was stored.
fn may_be_of_one(error: StoreErrorKind) -> bool {
    matches!(error, StoreErrorKind::Refused | StoreErrorKind::Internal)
}

/// Carries the jobs together. What may be one job's fault is found out by sending each alone, so that no other hears of it.
async fn carry_all(carrier: impl Carrier, together: Vec<Waiting>, turn: Turn) {
    let (jobs, senders): (Vec<_>, Vec<_>) = together.into_iter().map(|each| (each.job, each.answer)).unzip();
    match carrier.carry(&jobs).await {
        Ok(answers) if answers.len() == jobs.len() => {
            // The next may go while these hear of it.
            drop(turn);
            for (sender, answer) in senders.into_iter().zip(answers) {
                // Who has given up does not hear it.
                let _ = sender.send(Word::Answer(Ok(answer)));
            }
        }
        Err(error) if !may_be_of_one(error.kind()) => {
            drop(turn);
            let error = Arc::new(error);
            for sender in senders {
                let same = StoreError::new(error.kind(), OPERATION, error.message()).with_source(Arc::clone(&error));
                let _ = sender.send(Word::Answer(Err(same)));
            }
        }
        Ok(_) | Err(_) => {
            for (job, sender) in jobs.iter().zip(senders) {
                let _ = sender.send(Word::Answer(carry_one(&carrier, job).await));
            }
            drop(turn);
        }
    }
}

/// The task that had the job ended without a word.
fn forgotten() -> StoreError {
    let message =
        "the task that sent the job together with others was stopped, with its runtime or by a panic; enqueue again";
    StoreError::new(StoreErrorKind::Unavailable, OPERATION, message)
}

#[cfg(test)]
mod tests;
