//! The application of a scene: transactions that enqueue and commit at once, late or not at all, whatever happens to the server.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use awa_core::NewJob;
use awa_store_sqlx::SqlxStore;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::Failure;
use super::job::Errand;
use super::ledger::{Known, Ledger, Outcome};
use crate::seed::Seed;

/// Producers at a time.
const PRODUCERS: u64 = 3;
/// The pause of a producer that was refused, and between two transactions.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a transaction may take before its producer gives up on the connection.
const PATIENCE: Duration = Duration::from_secs(8);

/// Producers at work. Dropping it stops them.
#[derive(Debug)]
pub(super) struct Producers {
    tasks: JoinSet<Result<(), Failure>>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: SqlxStore,
    ledger: Ledger,
    is_over: AtomicBool,
    numbers: AtomicU64,
    acknowledged: AtomicU64,
}

impl Producers {
    /// Starts them on a store of theirs.
    pub(super) fn start(store: SqlxStore, folder: &Path, seed: &Seed) -> Result<Self, Failure> {
        let shared = Arc::new(Shared {
            store,
            ledger: Ledger::open(folder)?,
            is_over: AtomicBool::new(false),
            numbers: AtomicU64::new(0),
            acknowledged: AtomicU64::new(0),
        });
        let mut tasks = JoinSet::new();
        for number in 0..PRODUCERS {
            tasks.spawn(produce(Arc::clone(&shared), seed.split(100 + number)));
        }
        Ok(Self { tasks, shared })
    }

    /// Jobs whose commit was acknowledged so far.
    pub(super) fn acknowledged(&self) -> u64 {
        self.shared.acknowledged.load(Ordering::Relaxed)
    }

    /// Waits until so many jobs have been acknowledged, or the limit is over; gives whether they have.
    pub(super) async fn reach(&self, jobs: u64, limit: Duration) -> bool {
        let wait = async {
            while self.acknowledged() < jobs {
                sleep(PAUSE).await;
            }
        };
        tokio::time::timeout(limit, wait).await.is_ok()
    }

    /// Stops them and gives what they know.
    pub(super) async fn end(mut self) -> Result<Known, Failure> {
        self.shared.is_over.store(true, Ordering::Relaxed);
        while let Some(ended) = self.tasks.join_next().await {
            ended??;
        }
        self.shared.store.pool().close().await;
        self.shared.ledger.read()
    }
}

async fn produce(shared: Arc<Shared>, mut seed: Seed) -> Result<(), Failure> {
    while !shared.is_over.load(Ordering::Relaxed) {
        let count = *seed.pick(&[1, 1, 2, 5, 20]);
        let mut jobs = Vec::with_capacity(count);
        for _ in 0..count {
            let number = shared.numbers.fetch_add(1, Ordering::Relaxed);
            jobs.push(Errand::random(number, &mut seed).into_job(&mut seed)?);
        }
        let fate = Fate { late: Duration::from_millis(seed.below(60)), rolls_back: seed.one_in(10) };
        let (outcome, ids) = shared.carry_out(&jobs, fate).await;
        if outcome == Outcome::Acknowledged {
            shared.acknowledged.fetch_add(ids.len() as u64, Ordering::Relaxed);
        }
        shared.ledger.write(outcome, ids)?;
        sleep(PAUSE).await;
    }
    Ok(())
}

struct Fate {
    late: Duration,
    rolls_back: bool,
}

impl Shared {
    /// One transaction: its outcome, and the jobs that it enqueued as far as their ids came back.
    async fn carry_out(&self, jobs: &[NewJob], fate: Fate) -> (Outcome, Vec<i64>) {
        let nothing = (Outcome::NotCommitted, Vec::new());
        let enqueued = tokio::time::timeout(PATIENCE, async {
            let mut transaction = self.store.pool().begin().await.ok()?;
            let answers = self.store.enqueue_in(&mut transaction, jobs).await.ok()?;
            Some((transaction, answers.iter().map(|answer| answer.id().0).collect::<Vec<_>>()))
        });
        let Ok(Some((transaction, ids))) = enqueued.await else {
            sleep(PAUSE).await;
            return nothing;
        };
        sleep(fate.late).await;
        if fate.rolls_back {
            // Also a rollback that the server never hears of is one.
            drop(tokio::time::timeout(PATIENCE, transaction.rollback()).await);
            return (Outcome::NotCommitted, ids);
        }
        match tokio::time::timeout(PATIENCE, transaction.commit()).await {
            Ok(Ok(())) => (Outcome::Acknowledged, ids),
            // A refusal is an outcome, but whether an error was one or a lost answer is for nobody to guess here.
            Ok(Err(_)) | Err(_) => (Outcome::Unknown, ids),
        }
    }
}
