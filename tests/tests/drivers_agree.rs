//! Two drivers on one database are one store: a random history in which each call goes through a driver drawn by lot leaves
//! the same answers and the same census as the same history through one driver.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use awa_conformance::{Subject as _, SubjectTransaction};
use awa_core::attempt::ErrorText;
use awa_core::retry::RetryPolicy;
use awa_core::ring::{RingKind, RotationPolicy};
use awa_core::store::{
    Acted, BatchLimit, ClaimRequest, ClaimShape, JobFilter, JobView, Maintainer, Refusal, RescueRequest,
    RetentionPolicy,
};
use awa_core::unpin::UnpinPolicy;
use awa_core::{
    AttemptEnd, ClaimedJob, Closure, Enqueued, InstanceId, JobId, JobKind, JsonText, NewJob, Nonce, OnConflict,
    Priority, QueueName, RunAt, Store, Timestamp, Unique, UniqueBy,
};
use awa_store_sqlx::Clock;
use awa_tests::diesel_store::AsyncTransaction;
use awa_tests::postgres::{FreshStore, SMALL_RINGS};
use awa_tests::seed::Seed;

const STEPS: usize = 300;
const QUEUES: [&str; 2] = ["left", "right"];
const WORKERS: [InstanceId; 2] = [InstanceId(1), InstanceId(2)];
const STALENESS: Duration = Duration::from_mins(1);
/// Where the clock of every history begins, so that answers can be compared to the microsecond.
const START: Timestamp = Timestamp::from_micros(1_790_000_000_000_000);

/// Through which driver a call goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Driver {
    Sqlx,
    Diesel,
}

/// One database, reached through both drivers, and all that a history has been told so far.
struct World {
    fresh: FreshStore,
    diesel: awa_store_diesel::DieselStore,
    /// Whose number decides what happens: the same for every run of a seed.
    fate: Seed,
    /// Whose number decides who carries it: `None` means sqlx always.
    lot: Option<Seed>,
    carried: BTreeMap<&'static str, usize>,
    running: Vec<ClaimedJob>,
    /// Each job by the order in which it was named first: ids of two databases need not be the same.
    names: BTreeMap<JobId, usize>,
    told: Vec<String>,
}

impl World {
    async fn new(fate: Seed, lot: Option<Seed>) -> Self {
        let fresh = FreshStore::new(SMALL_RINGS, Clock::manual(START)).await;
        let options = awa_store_diesel::DieselStore::options().clock(fresh.clock.clone()).max_connections(8);
        let diesel = options.connect(&fresh.database.url()).await.expect("the test's database can be reached");
        for queue in QUEUES {
            Maintainer::open_queue(&diesel, &QueueName::new(queue).unwrap()).await.expect("open_queue");
        }
        Self {
            fresh,
            diesel,
            fate,
            lot,
            carried: BTreeMap::new(),
            running: Vec::new(),
            names: BTreeMap::new(),
            told: Vec::new(),
        }
    }

    fn driver(&mut self) -> Driver {
        let is_diesel = self.lot.as_mut().is_some_and(|lot| lot.one_in(2));
        let driver = if is_diesel { Driver::Diesel } else { Driver::Sqlx };
        *self.carried.entry(if driver == Driver::Sqlx { "sqlx" } else { "diesel" }).or_default() += 1;
        driver
    }

    fn store(&mut self) -> Arc<dyn Store> {
        match self.driver() {
            Driver::Sqlx => Arc::new(self.fresh.store.clone()),
            Driver::Diesel => Arc::new(self.diesel.clone()),
        }
    }

    async fn begin(&mut self) -> Box<dyn SubjectTransaction> {
        match self.driver() {
            Driver::Sqlx => self.fresh.begin().await,
            Driver::Diesel => Box::new(AsyncTransaction::begin(&self.diesel).await),
        }
    }

    fn name(&mut self, job: JobId) -> usize {
        let next = self.names.len();
        *self.names.entry(job).or_insert(next)
    }

    fn tell(&mut self, what: &str, answer: impl std::fmt::Debug) {
        self.told.push(format!("{what}: {answer:?}"));
    }

    fn job(&mut self, number: usize) -> NewJob {
        let queue = QueueName::new(*self.fate.pick(&QUEUES)).unwrap();
        let args = JsonText::new("args", format!("{{\"number\":{number},\"text\":\"O'Reilly ü\"}}")).unwrap();
        let mut job = NewJob::new(queue, JobKind::new("agree").unwrap(), args)
            .with_priority(Priority::new(1 + self.fate.below(4) as i16).unwrap());
        if self.fate.one_in(4) {
            let delay = Duration::from_secs(self.fate.below(120));
            job = job.with_run_at(RunAt::after(delay).unwrap());
        }
        if self.fate.one_in(4) {
            job = job.with_metadata(JsonText::new("metadata", format!("[{number}]")).unwrap());
        }
        if self.fate.one_in(4) {
            let key = UniqueBy::text(format!("key {}", self.fate.below(5))).key_of(&job).unwrap();
            let on_conflict = *self.fate.pick(&[OnConflict::Skip, OnConflict::Error, OnConflict::Replace]);
            job = job.with_unique(Unique::new(key).on_conflict(on_conflict));
        }
        job
    }

    async fn enqueue(&mut self, step: usize) {
        let count = 1 + self.fate.below(6) as usize;
        let jobs: Vec<_> = (0..count).map(|index| self.job(step * 10 + index)).collect();
        let answers = match self.fate.below(4) {
            0 | 1 => self.store().enqueue(&jobs).await.expect("enqueue"),
            fate => {
                let mut transaction = self.begin().await;
                let answers = transaction.enqueue(&jobs).await.expect("enqueue in a transaction");
                if fate == 2 {
                    transaction.commit().await.expect("commit");
                    answers
                } else {
                    transaction.rollback().await.expect("rollback");
                    return self.tell("rolled back", answers.len());
                }
            }
        };
        for answer in answers {
            let kind = match answer {
                Enqueued::Inserted(_) => "inserted",
                Enqueued::Duplicate(_) => "duplicate",
                Enqueued::Replaced { .. } => "replaced",
                _ => "refused",
            };
            let name = self.name(answer.id());
            self.tell("enqueued", (kind, name));
        }
    }

    async fn claim(&mut self, step: usize) {
        let request = ClaimRequest {
            queue: QueueName::new(*self.fate.pick(&QUEUES)).unwrap(),
            instance: *self.fate.pick(&WORKERS),
            nonce: Nonce(step as i64),
            max_jobs: BatchLimit::new(1 + self.fate.below(8) as usize).unwrap(),
            max_bytes: 1 << 20,
            deadline: self.fate.one_in(3).then_some(Duration::from_mins(2)),
            aging: self.fate.one_in(3).then_some(Duration::from_secs(30)),
            shape: ClaimShape::Compact,
        };
        let claimed = self.store().claim(&request).await.expect("claim");
        for job in &claimed.jobs {
            let name = self.name(job.receipt.job);
            self.tell("claimed", (name, job.attempt, job.receipt.run_lease, &job.args, &job.metadata));
        }
        self.tell("claim", claimed.contended);
        self.running.extend(claimed.jobs);
    }

    async fn close(&mut self) {
        let count = self.running.len().min(1 + self.fate.below(6) as usize);
        let mut closures = Vec::new();
        for _ in 0..count {
            let at = self.fate.below(self.running.len() as u64) as usize;
            // A receipt that is presented again later must be stale in both.
            let job = if self.fate.one_in(8) { self.running[at].clone() } else { self.running.swap_remove(at) };
            let end = self.end();
            closures.push(Closure { receipt: job.receipt, end });
        }
        let answers = self.store().close(&closures).await.expect("close");
        self.tell("closed", answers);
    }

    fn end(&mut self) -> AttemptEnd {
        let error = ErrorText::new("it's \"broken\"");
        let delay = Duration::from_secs(self.fate.below(90));
        match self.fate.below(7) {
            0 | 1 => AttemptEnd::Complete,
            2 => AttemptEnd::CompleteWith { result: JsonText::new("result", "{\"ok\":true}").unwrap() },
            3 => AttemptEnd::Retry { delay, error },
            4 => AttemptEnd::Snooze { delay },
            5 => AttemptEnd::Release { delay },
            _ if self.fate.one_in(2) => AttemptEnd::Fail { error },
            _ => AttemptEnd::Cancel { reason: error },
        }
    }

    /// Maintenance. What it reclaims depends on the transactions of other databases, and nobody can tell by the jobs.
    async fn maintain(&mut self) {
        let second = Duration::from_secs(1);
        let store = self.store();
        match self.fate.below(7) {
            0 => self.tell("promoted", store.promote(3).await.expect("promote")),
            1 => {
                for worker in WORKERS {
                    store.beat(worker, STALENESS).await.expect("beat");
                }
                let retry =
                    RetryPolicy::exponential(second, second).and_then(|policy| policy.with_jitter(0.0)).unwrap();
                let request = RescueRequest { rescuer: WORKERS[0], staleness: STALENESS, page: 100 };
                let rescued = store.rescue(&request, &retry).await.expect("rescue");
                let mut jobs: Vec<_> = rescued.attempts.iter().map(|attempt| attempt.job).collect();
                jobs.sort_unstable();
                let names: Vec<_> = jobs.into_iter().map(|job| self.name(job)).collect();
                self.tell("rescued", (names, rescued.rescuer_too_young));
            }
            2 => {
                let ring = *self.fate.pick(&RingKind::ALL);
                let policy = RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 };
                store.rotate(ring, &policy).await.expect("rotate");
            }
            3 => drop(store.drain().await.expect("drain")),
            4 => drop(store.unpin(&UnpinPolicy::default()).await.expect("unpin")),
            5 => {
                let ring = *self.fate.pick(&RingKind::ALL);
                let policy = RetentionPolicy::uniform(Duration::from_hours(1_000), u64::MAX);
                drop(store.prune(ring, &policy).await.expect("prune"));
            }
            _ => {
                store.tidy().await.expect("tidy");
                self.tell("tidied", ());
            }
        }
    }

    async fn operate(&mut self) {
        let store = self.store();
        let mut jobs: Vec<JobId> = self.names.keys().copied().collect();
        while jobs.len() > 3 {
            jobs.remove(self.fate.below(jobs.len() as u64) as usize);
        }
        match self.fate.below(5) {
            4 => self.tell("deleted", store.delete(&jobs).await.expect("delete")),
            0 => self.tell("cancelled", store.cancel(&jobs, &ErrorText::new("no longer")).await.expect("cancel")),
            1 => {
                for acted in store.retry(&jobs).await.expect("retry") {
                    match acted {
                        Acted::Refused(Refusal::KeyTaken(holder)) => {
                            let holder = self.name(holder);
                            self.tell("refused, the key is held by", holder);
                        }
                        acted => self.tell("retried", acted),
                    }
                }
            }
            2 => {
                let queue = QueueName::new(*self.fate.pick(&QUEUES)).unwrap();
                let paused = self.fate.one_in(4);
                store.set_paused(&queue, paused).await.expect("set_paused");
                self.tell("paused", ());
            }
            _ => self.look().await,
        }
    }

    /// Everything that the store tells about itself, through the driver whose turn it is.
    async fn look(&mut self) {
        let store = self.store();
        self.tell("census", store.census().await.expect("census"));
        self.tell("queues", store.queues().await.expect("queues"));
        let filter = JobFilter { limit: JobFilter::MAX_LIMIT, ..JobFilter::default() };
        for view in store.list(&filter).await.expect("list") {
            assert_eq!(store.get(view.id).await.expect("get").as_ref(), Some(&view));
            let name = self.name(view.id);
            let text = described(name, &view);
            self.told.push(text);
        }
        for worker in WORKERS {
            let open = store.open_attempts(worker, 1_000).await.expect("open_attempts");
            let mut names: Vec<_> = open.into_iter().map(|receipt| self.name(receipt.job)).collect();
            names.sort_unstable();
            self.tell("open", names);
        }
    }

    async fn step(&mut self, step: usize) {
        match self.fate.below(20) {
            0..=4 => self.enqueue(step).await,
            5..=9 => self.claim(step).await,
            10..=13 => self.close().await,
            14..=16 => self.maintain().await,
            17 => self.operate().await,
            _ => self.fresh.clock.advance(Duration::from_secs(self.fate.below(40))),
        }
    }
}

/// A view without its id.
fn described(name: usize, view: &JobView) -> String {
    let view = JobView { id: JobId(0), ..view.clone() };
    format!("job {name}: {view:?}")
}

/// Lives through the history of `fate`, and tells everything that was answered.
async fn history(fate: Seed, lot: Option<Seed>) -> (Vec<String>, BTreeMap<&'static str, usize>) {
    let mut world = World::new(fate, lot).await;
    for step in 0..STEPS {
        world.step(step).await;
    }
    world.look().await;
    (world.told, world.carried)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_through_both_drivers_is_answered_as_through_one() {
    let seed = Seed::announced();
    let (alone, _) = history(seed.split(1), None).await;
    let (shared, carried) = history(seed.split(1), Some(seed.split(2))).await;
    let half = carried.values().sum::<usize>() / 2;
    assert!(carried["diesel"] > half / 2 && carried["sqlx"] > half / 2, "{carried:?}");
    let first = alone.iter().zip(&shared).position(|(alone, shared)| alone != shared);
    if let Some(at) = first {
        let mut before = String::new();
        alone[at.saturating_sub(5)..at].iter().for_each(|line| writeln!(before, "{line}").unwrap());
        panic!("after\n{before}\nsqlx alone: {}\n both: {}", alone[at], shared[at]);
    }
    assert_eq!(alone.len(), shared.len());
    for what in ["enqueued", "claimed", "closed", "rescued", "cancelled", "job "] {
        assert!(alone.iter().any(|line| line.starts_with(what)), "the history has nothing {what}");
    }
}
