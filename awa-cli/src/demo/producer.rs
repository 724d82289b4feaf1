//! The application of the demo: enqueues one job per file, in the transactions of the plan.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use awa_core::{JobId, NewJob, QueueName};
use awa_runtime::{IntoNewJob, Job};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::Files;
use super::count::Tally;
use super::hash_file::HashFile;
use super::place::{Place, TransactionSource};
use super::plan::{Fate, PlannedTransaction};
use crate::failure::Failure;

/// Producers at a time.
const PRODUCERS: usize = 4;
/// Transactions that may stay open at a time.
const MAX_OPEN: usize = 12;
/// Jobs that may wait: the producers pause beyond it, so that work comes in as long as the demo lasts.
const BACKLOG: u64 = 500;
/// The pause before a producer looks again.
const PAUSE: Duration = Duration::from_millis(5);
/// How long a transaction stays open that rolls back.
const BEFORE_ROLLBACK: Duration = Duration::from_millis(100);

/// A job that was committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CommittedJob {
    pub(super) id: JobId,
    /// The index of its file.
    pub(super) file: usize,
    /// Its transaction stayed open for a while.
    pub(super) is_late: bool,
}

/// What the producers did.
#[derive(Debug, Default)]
pub(super) struct Produced {
    pub(super) committed: Vec<CommittedJob>,
    /// Files whose transaction rolled back.
    pub(super) rolled_back: usize,
    pub(super) transactions: usize,
}

/// Producers at work. Dropping it stops them.
#[derive(Debug)]
pub(super) struct Production {
    tasks: JoinSet<Result<Produced, Failure>>,
    committed: Arc<AtomicU64>,
    gate: Arc<HalfTime>,
    produced: Produced,
}

struct Shared {
    transactions: TransactionSource,
    queue: QueueName,
    files: Files,
    plan: Vec<PlannedTransaction>,
    next: AtomicUsize,
    committed: Arc<AtomicU64>,
    gate: Arc<HalfTime>,
    tally: Tally,
    open: Arc<Semaphore>,
}

/// The pause between the halves of the plan: what keeps a demo on few files from being over before a worker dies.
#[derive(Debug, Default)]
struct HalfTime {
    is_reached: AtomicBool,
    is_over: AtomicBool,
}

impl Production {
    /// Starts the producers.
    pub(super) fn start(
        place: &Place,
        queue: &QueueName,
        files: &Files,
        plan: Vec<PlannedTransaction>,
        tally: Tally,
    ) -> Self {
        let (committed, gate) = (Arc::<AtomicU64>::default(), Arc::<HalfTime>::default());
        let shared = Arc::new(Shared {
            transactions: place.transactions(),
            queue: queue.clone(),
            files: Arc::clone(files),
            plan,
            next: AtomicUsize::new(0),
            committed: Arc::clone(&committed),
            gate: Arc::clone(&gate),
            tally,
            open: Arc::new(Semaphore::new(MAX_OPEN)),
        });
        let mut tasks = JoinSet::new();
        for _ in 0..PRODUCERS {
            tasks.spawn(produce(Arc::clone(&shared)));
        }
        Self { tasks, committed, gate, produced: Produced::default() }
    }

    /// Jobs committed so far.
    pub(super) fn committed(&self) -> u64 {
        self.committed.load(Ordering::Relaxed)
    }

    /// Lets the second half of the plan begin.
    pub(super) fn begin_second_half(&self) {
        self.gate.is_over.store(true, Ordering::Relaxed);
    }

    /// Whether the first half of the plan has been carried out, and a producer waits for the second to begin.
    pub(super) fn waits_for_second_half(&self) -> bool {
        self.gate.is_reached.load(Ordering::Relaxed)
    }

    /// Whether all transactions have ended.
    ///
    /// # Errors
    ///
    /// What stopped a producer.
    pub(super) fn has_ended(&mut self) -> Result<bool, Failure> {
        while let Some(ended) = self.tasks.try_join_next() {
            let part = ended.map_err(|error| Failure::of("a producer broke off", &error))??;
            self.produced.add(part);
        }
        Ok(self.tasks.is_empty())
    }

    /// What they did, once they have ended.
    pub(super) fn into_produced(self) -> Produced {
        self.produced
    }
}

impl Produced {
    fn add(&mut self, part: Self) {
        self.committed.extend(part.committed);
        self.rolled_back += part.rolled_back;
        self.transactions += part.transactions;
    }
}

/// One producer: takes the next transaction of the plan until none is left. Those that stay open do so beside it.
async fn produce(shared: Arc<Shared>) -> Result<Produced, Failure> {
    let mut produced = Produced::default();
    let mut open = JoinSet::new();
    loop {
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        let Some(planned) = shared.plan.get(number) else { break };
        shared.wait_for_room(number).await;
        if planned.fate == Fate::Commit {
            produced.add(shared.carry_out(planned).await?);
        } else {
            let permit = Arc::clone(&shared.open).acquire_owned().await;
            let (shared, planned) = (Arc::clone(&shared), planned.clone());
            open.spawn(async move {
                let _permit = permit;
                shared.carry_out(&planned).await
            });
        }
    }
    while let Some(ended) = open.join_next().await {
        produced.add(ended.map_err(|error| Failure::of("a transaction broke off", &error))??);
    }
    Ok(produced)
}

impl Shared {
    /// Waits between the halves of the plan, and while enough jobs wait. The monitor ends a demo that stands still.
    async fn wait_for_room(&self, number: usize) {
        if number >= self.plan.len() / 2 {
            self.gate.is_reached.store(true, Ordering::Relaxed);
            while !self.gate.is_over.load(Ordering::Relaxed) {
                sleep(PAUSE).await;
            }
        }
        while self.committed.load(Ordering::Relaxed) > self.tally.completed() + BACKLOG {
            sleep(PAUSE).await;
        }
    }

    async fn carry_out(&self, planned: &PlannedTransaction) -> Result<Produced, Failure> {
        let jobs = planned.files.clone().map(|file| self.job(file)).collect::<Result<Vec<_>, _>>()?;
        let mut transaction = self.transactions.begin().await?;
        let ids = transaction.enqueue(&jobs).await?;
        let is_late = match planned.fate {
            Fate::Commit => false,
            Fate::CommitLate(open) => {
                sleep(open).await;
                true
            }
            Fate::RollBack => {
                sleep(BEFORE_ROLLBACK).await;
                transaction.roll_back().await?;
                return Ok(Produced { rolled_back: jobs.len(), transactions: 1, ..Produced::default() });
            }
        };
        transaction.commit().await?;
        self.committed.fetch_add(jobs.len() as u64, Ordering::Relaxed);
        let committed = planned.files.clone().zip(ids).map(|(file, id)| CommittedJob { id, file, is_late });
        Ok(Produced { committed: committed.collect(), transactions: 1, ..Produced::default() })
    }

    fn job(&self, file: usize) -> Result<NewJob, Failure> {
        let path = self.files.files[file].path.clone();
        Ok(HashFile { path }.with().queue(self.queue.as_str()).into_new_job()?)
    }
}
