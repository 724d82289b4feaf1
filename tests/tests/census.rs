//! A census under fire: every operation of a store at once, with tiny rings that turn all the time, from one seed. When it is
//! quiet again every committed job is in exactly one place, and each was completed at most once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use awa_core::attempt::ErrorText;
use awa_core::error::StoreErrorKind;
use awa_core::job::MaxAttempts;
use awa_core::prune::KeepReason;
use awa_core::retry::RetryPolicy;
use awa_core::ring::{RingKind, RotationPolicy};
use awa_core::store::{
    Acted, BatchLimit, ClaimRequest, ClaimShape, Consumer, Maintainer, Operator, Producer, RescueRequest,
    RetentionPolicy,
};
use awa_core::unpin::UnpinPolicy;
use awa_core::{
    AttemptEnd, Closure, ClosureAnswer, InstanceId, JobId, JobKind, JsonText, NewJob, Nonce, Priority, QueueName,
    RunAt, StoreError,
};
use awa_store_sqlx::{Clock, RingSizes, SqlxStore};
use awa_tests::postgres::FreshStore;
use awa_tests::seed::Seed;
use sqlx::Row;

/// How long the fire lasts.
const FIRE: Duration = Duration::from_secs(8);
/// Producers pause while so many more jobs were enqueued than claimed.
const BACKLOG: usize = 100;
/// The pace of those who look at everything: what they look at cannot be reclaimed meanwhile.
const PACE: Duration = Duration::from_millis(400);
/// Silence after which an attempt is rescued; claims of workers that never beat are.
const STALENESS: Duration = Duration::from_millis(400);
const RESCUER: InstanceId = InstanceId(0xC0);
/// The longest pause between beats of the rescuer, on a slow machine.
const PATIENCE: Duration = Duration::from_mins(1);
/// No history is kept, so that the rings turn as fast as they can.
const NOTHING: RetentionPolicy = RetentionPolicy::NONE;

/// What happened, by those who did it.
#[derive(Default)]
struct Book {
    committed: Mutex<BTreeSet<JobId>>,
    rolled_back: Mutex<BTreeSet<JobId>>,
    /// The acknowledged ends of each job: completed or cancelled. Dead jobs are kept until somebody retries them.
    ended: Mutex<BTreeMap<JobId, Vec<&'static str>>>,
    /// The job and lease of every claim.
    claims: Mutex<Vec<(JobId, i64)>>,
    /// What became of slots in prune passes.
    pruned: Mutex<BTreeMap<String, usize>>,
    over: AtomicBool,
    calls: AtomicU64,
    contended: AtomicU64,
    rescued: AtomicU64,
}

impl Book {
    fn goes_on(&self) -> bool {
        self.calls.fetch_add(1, Ordering::Relaxed);
        !self.over.load(Ordering::Relaxed)
    }

    /// An answer, unless somebody was in the way; any other failure fails the test.
    fn answer<T>(&self, what: &str, result: Result<T, StoreError>) -> Option<T> {
        match result {
            Ok(answer) => Some(answer),
            Err(error) if error.kind() == StoreErrorKind::Contended => {
                self.contended.fetch_add(1, Ordering::Relaxed);
                None
            }
            Err(error) => panic!("{what}: {error:?}"),
        }
    }

    fn end(&self, job: JobId, how: &'static str) {
        self.ended.lock().unwrap().entry(job).or_default().push(how);
    }
}

fn queue(seed: &mut Seed) -> QueueName {
    QueueName::new(*seed.pick(&["hot", "cold"])).unwrap()
}

fn jobs(seed: &mut Seed) -> Vec<NewJob> {
    let count = *seed.pick(&[1, 1, 2, 7, 30]);
    let kind = JobKind::new("fire").unwrap();
    let make = |_| {
        let job = NewJob::new(queue(seed), kind.clone(), JsonText::new("args", "{\"n\":1}").unwrap())
            .with_priority(*seed.pick(&Priority::ALL))
            .with_max_attempts(MaxAttempts::new(1 + seed.below(4) as i64).unwrap());
        if seed.one_in(6) {
            job.with_run_at(RunAt::after(Duration::from_millis(seed.below(300))).unwrap())
        } else {
            job
        }
    };
    (0..count).map(make).collect()
}

/// Enqueues: in transactions that commit at once, late, or not at all, at any level.
async fn produce(store: SqlxStore, book: Arc<Book>, mut seed: Seed) {
    let mut late: Vec<(sqlx::Transaction<'static, sqlx::Postgres>, Vec<JobId>)> = Vec::new();
    while book.goes_on() {
        let committed = book.committed.lock().unwrap().len();
        if committed > book.claims.lock().unwrap().len() + BACKLOG {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        }
        if seed.one_in(3) {
            let answers = store.enqueue(&jobs(&mut seed)).await.unwrap();
            book.committed.lock().unwrap().extend(answers.iter().map(|answer| answer.id()));
        } else {
            let mut transaction = store.pool().begin().await.unwrap();
            if seed.one_in(4) {
                sqlx::raw_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                    .execute(&mut *transaction)
                    .await
                    .unwrap();
            }
            let mut ids = Vec::new();
            for _ in 0..=seed.below(2) {
                let answers = store.enqueue_in(&mut transaction, &jobs(&mut seed)).await.unwrap();
                ids.extend(answers.iter().map(|answer| answer.id()));
            }
            late.push((transaction, ids));
        }
        while late.len() > seed.below(4) as usize {
            let (transaction, ids) = late.swap_remove(seed.below(late.len() as u64) as usize);
            finish(transaction, ids, &book, seed.one_in(4)).await;
        }
    }
    for (transaction, ids) in late {
        finish(transaction, ids, &book, seed.one_in(4)).await;
    }
}

async fn finish(
    transaction: sqlx::Transaction<'static, sqlx::Postgres>,
    ids: Vec<JobId>,
    book: &Book,
    rolls_back: bool,
) {
    if rolls_back {
        transaction.rollback().await.unwrap();
        book.rolled_back.lock().unwrap().extend(ids);
    } else {
        transaction.commit().await.unwrap();
        book.committed.lock().unwrap().extend(ids);
    }
}

/// Claims, and ends what it claimed in every way, or forgets it.
async fn work(store: SqlxStore, book: Arc<Book>, mut seed: Seed) {
    let me = InstanceId(seed.number() as i64);
    let mut held = Vec::new();
    while book.goes_on() {
        let request = ClaimRequest {
            queue: queue(&mut seed),
            instance: me,
            nonce: Nonce(seed.number() as i64),
            max_jobs: BatchLimit::clamped(1 + seed.below(60) as usize),
            max_bytes: *seed.pick(&[1, 40, 1 << 20]),
            deadline: seed.one_in(4).then_some(Duration::from_millis(200)),
            aging: (!seed.one_in(4)).then_some(Duration::from_millis(50)),
            shape: if seed.one_in(3) { ClaimShape::RowLocal } else { ClaimShape::Compact },
        };
        if let Some(claimed) = book.answer("claim", store.claim(&request).await) {
            let mut claims = book.claims.lock().unwrap();
            claims.extend(claimed.jobs.iter().map(|job| (job.receipt.job, job.receipt.run_lease.0)));
            held.extend(claimed.jobs);
        }
        let flush: Vec<_> =
            held.drain(seed.below(held.len() as u64 + 1) as usize..).filter(|_| !seed.one_in(12)).collect();
        let closures: Vec<Closure> =
            flush.iter().map(|job| Closure { receipt: job.receipt, end: end(&mut seed) }).collect();
        let Some(answers) = book.answer("close", store.close(&closures).await) else { continue };
        for (closure, answer) in closures.iter().zip(answers) {
            if answer == ClosureAnswer::Closed {
                match closure.end {
                    AttemptEnd::Complete | AttemptEnd::CompleteWith { .. } => {
                        book.end(closure.receipt.job, "completed");
                    }
                    AttemptEnd::Cancel { .. } => book.end(closure.receipt.job, "cancelled"),
                    _ => {}
                }
            }
        }
    }
}

fn end(seed: &mut Seed) -> AttemptEnd {
    let delay = Duration::from_millis(seed.below(150));
    match seed.below(12) {
        0 => AttemptEnd::Retry { delay, error: ErrorText::new("boom") },
        1 => AttemptEnd::Snooze { delay },
        2 => AttemptEnd::Release { delay: if seed.one_in(2) { Duration::ZERO } else { delay } },
        3 => AttemptEnd::Fail { error: ErrorText::new("fatal") },
        4 => AttemptEnd::Cancel { reason: ErrorText::new("mine") },
        5 => AttemptEnd::CompleteWith { result: JsonText::new("result", "[1]").unwrap() },
        _ => AttemptEnd::Complete,
    }
}

/// Cancels and retries jobs that it has heard of, in whatever state they are.
async fn meddle(store: SqlxStore, book: Arc<Book>, mut seed: Seed) {
    while book.goes_on() {
        let some: Vec<JobId> = {
            let committed = book.committed.lock().unwrap();
            let newest = committed.last().copied().unwrap_or(JobId(1));
            (0..12).map(|_| JobId(1 + seed.below(newest.0 as u64) as i64)).filter(|id| committed.contains(id)).collect()
        };
        if seed.one_in(2) {
            let acted =
                book.answer("cancel", store.cancel(&some, &ErrorText::new("meddled")).await).unwrap_or_default();
            for (job, acted) in some.iter().zip(acted) {
                if matches!(acted, Acted::Done { .. }) {
                    book.end(*job, "cancelled");
                }
            }
        } else {
            book.answer("retry", store.retry(&some).await);
        }
        tokio::time::sleep(PACE).await;
    }
}

/// Promotes, rescues, rotates, drains, prunes and moves out what keeps slots, without a pause.
async fn maintain(store: SqlxStore, book: Arc<Book>, mut seed: Seed) {
    let retry = RetryPolicy::exponential(Duration::from_millis(20), Duration::from_millis(200)).unwrap();
    let policy = RotationPolicy { min_age: Duration::from_millis(30), max_bytes: 1 << 20 };
    let request = RescueRequest { rescuer: RESCUER, staleness: STALENESS, page: 1 + seed.below(500) as usize };
    let everything = UnpinPolicy { min_free: u8::MAX, max_rows: 2_000, max_attempts: 500 };
    let mut turn = seed.below(11);
    while book.goes_on() {
        turn += if seed.one_in(5) { seed.below(11) } else { 1 };
        match turn % 11 {
            0 => drop(book.answer("promote", store.promote(1 + seed.below(200) as usize).await)),
            1 => {
                let rescued = book.answer("rescue", store.rescue(&request, &retry).await).unwrap_or_default();
                book.rescued.fetch_add(rescued.attempts.len() as u64, Ordering::Relaxed);
            }
            2 => drop(book.answer("rotate queue", store.rotate(RingKind::Queue, &policy).await)),
            3 => drop(book.answer("rotate claim", store.rotate(RingKind::Claim, &policy).await)),
            4 => drop(book.answer("drain", store.drain().await)),
            5 => prune(&store, &book, RingKind::Queue).await,
            6 => prune(&store, &book, RingKind::Claim).await,
            7 => drop(book.answer("unpin", store.unpin(&everything).await)),
            8 => drop(book.answer("rotate lease", store.rotate(RingKind::Lease, &policy).await)),
            9 => prune(&store, &book, RingKind::Lease).await,
            _ => drop(book.answer("tidy", store.tidy().await)),
        }
        store.beat(RESCUER, PATIENCE).await.unwrap();
    }
}

async fn prune(store: &SqlxStore, book: &Book, ring: RingKind) {
    for report in book.answer("prune", store.prune(ring, &NOTHING).await).unwrap_or_default() {
        let why = report.kept.map_or("reclaimed", |reason| match reason {
            KeepReason::WrongState { .. } => "not drained",
            KeepReason::OpenClaims(_) => "open claims",
            KeepReason::InUse => "in use",
            _ => "other",
        });
        *book.pruned.lock().unwrap().entry(format!("{ring} {why}")).or_default() += 1;
    }
}

/// Looks at everything while it burns: no job is ever in two places.
async fn watch(store: SqlxStore, book: Arc<Book>) {
    let twice = "SELECT string_agg(j.job_id || ' is ' || j.places, '; ') FROM (
        SELECT job_id, string_agg(state, ' and ') AS places FROM awa.jobs GROUP BY job_id HAVING count(*) > 1) AS j";
    while book.goes_on() {
        let found: Option<String> = sqlx::query(twice).fetch_one(store.pool()).await.unwrap().get(0);
        assert_eq!(found, None);
        tokio::time::sleep(PACE).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_committed_job_is_in_exactly_one_place_after_a_fire() {
    let seed = Seed::announced();
    let rings = RingSizes { queue: 6, claim: 4, lease: 3 };
    let fresh = FreshStore::new(rings, Clock::Server).await;
    let store = fresh.another_pool(|options| options.max_connections(24)).await;
    for name in ["hot", "cold"] {
        store.open_queue(&QueueName::new(name).unwrap()).await.unwrap();
    }
    let book = Arc::new(Book::default());
    let mut tasks = Vec::new();
    for number in 0..2 {
        tasks.push(tokio::spawn(produce(store.clone(), Arc::clone(&book), seed.split(number))));
        tasks.push(tokio::spawn(work(store.clone(), Arc::clone(&book), seed.split(10 + number))));
        tasks.push(tokio::spawn(maintain(store.clone(), Arc::clone(&book), seed.split(30 + number))));
    }
    tasks.push(tokio::spawn(meddle(store.clone(), Arc::clone(&book), seed.split(20))));
    tasks.push(tokio::spawn(watch(store.clone(), Arc::clone(&book))));
    let started = Instant::now();
    while started.elapsed() < FIRE && tasks.iter().all(|task| !task.is_finished()) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    book.over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.expect("no task saw anything wrong");
    }
    take_stock(&store, &book).await;
    finish_everything(&store).await;
    rings_were_only_appended_to(&fresh, store).await;
}

/// Compares what is stored with what was acknowledged.
async fn take_stock(store: &SqlxStore, book: &Book) {
    let rows = sqlx::query("SELECT job_id, state FROM awa.jobs").fetch_all(store.pool()).await.unwrap();
    let mut places = BTreeMap::<JobId, Vec<String>>::new();
    for row in &rows {
        places.entry(JobId(row.get(0))).or_default().push(row.get(1));
    }
    let mut states = BTreeMap::<&str, usize>::new();
    for place in places.values().flatten() {
        *states.entry(place).or_default() += 1;
    }
    let generations = "SELECT (SELECT max(generation) FROM awa.queue_ring_slots) || ' and ' || (SELECT max(generation) FROM awa.claim_ring_slots)";
    let generations: String = sqlx::query(generations).fetch_one(store.pool()).await.unwrap().get(0);
    let committed = book.committed.lock().unwrap();
    let ended = book.ended.lock().unwrap();
    let mut claims = book.claims.lock().unwrap().clone();
    println!(
        "{} jobs committed, {} rolled back, {} claims, {} calls, {} contended, {} rescued; {generations} turns; now {states:?}",
        committed.len(),
        book.rolled_back.lock().unwrap().len(),
        claims.len(),
        book.calls.load(Ordering::Relaxed),
        book.contended.load(Ordering::Relaxed),
        book.rescued.load(Ordering::Relaxed),
    );
    println!("prune: {:?}", book.pruned.lock().unwrap());
    let stored: BTreeSet<JobId> = places.keys().copied().collect();
    // What is no longer stored must have come to an acknowledged end, and its history been reclaimed.
    let lost: Vec<_> = committed.difference(&stored).filter(|job| !ended.contains_key(job)).collect();
    let ghosts: Vec<_> = stored.difference(&committed).collect();
    assert!(lost.is_empty() && ghosts.is_empty(), "lost {lost:?}, never committed {ghosts:?}");
    for (job, places) in &places {
        assert_eq!(places.len(), 1, "job {job} is in {places:?}");
        let ends = ended.get(job).map_or(&[][..], Vec::as_slice);
        let finals: Vec<_> = ends.iter().filter(|end| **end != "dead").collect();
        assert!(finals.len() <= 1, "job {job} ended as {ends:?}");
        if let [end] = finals[..] {
            assert_eq!(places, &[(*end).to_owned()], "job {job} was acknowledged as {end}");
        } else {
            assert!(
                !matches!(places[0].as_str(), "completed" | "cancelled"),
                "nobody ended job {job}, which is {places:?}"
            );
        }
    }
    let count = claims.len();
    claims.sort_unstable();
    claims.dedup();
    assert_eq!(claims.len(), count, "each (job, lease) was handed out once");
}

/// With everybody else gone, maintenance and one worker bring every job to an end, and every slot is reclaimed.
async fn finish_everything(store: &SqlxStore) {
    let retry = RetryPolicy::exponential(Duration::from_millis(1), Duration::from_millis(1)).unwrap();
    let rotation = RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 };
    let left = "SELECT count(*) FROM awa.jobs WHERE state IN ('ready', 'running', 'deferred')";
    let busy = "SELECT (SELECT count(*) FROM awa.queue_ring_slots WHERE state IN ('sealed', 'drained'))
                     + (SELECT count(*) FROM awa.claim_ring_slots WHERE state = 'sealed')";
    let number = async |sql: &'static str| -> i64 { sqlx::query(sql).fetch_one(store.pool()).await.unwrap().get(0) };
    let deadline = Instant::now() + Duration::from_secs(30);
    while number(left).await > 0 {
        assert!(Instant::now() < deadline, "{} jobs do not come to an end", number(left).await);
        store.beat(RESCUER, PATIENCE).await.unwrap();
        let request = RescueRequest { rescuer: RESCUER, staleness: STALENESS, page: 10_000 };
        store.rescue(&request, &retry).await.unwrap();
        store.promote(10_000).await.unwrap();
        for name in ["hot", "cold"] {
            let request = ClaimRequest {
                queue: QueueName::new(name).unwrap(),
                instance: RESCUER,
                nonce: Nonce(1),
                max_jobs: BatchLimit::MAX,
                max_bytes: 1 << 24,
                deadline: None,
                aging: None,
                shape: ClaimShape::Compact,
            };
            let claimed = store.claim(&request).await.unwrap();
            let closures: Vec<_> =
                claimed.jobs.iter().map(|job| Closure { receipt: job.receipt, end: AttemptEnd::Complete }).collect();
            assert!(store.close(&closures).await.unwrap().iter().all(|answer| *answer == ClosureAnswer::Closed));
        }
    }
    for ring in RingKind::ALL {
        store.rotate(ring, &rotation).await.unwrap();
    }
    store.drain().await.unwrap();
    for ring in RingKind::ALL {
        let reports = store.prune(ring, &NOTHING).await.unwrap();
        assert!(reports.iter().all(|report| report.kept.is_none()), "{ring}: {reports:?}");
    }
    assert_eq!(number(busy).await, 0);
}

/// I6: the queue and the claim ring were never updated and never deleted from. Of two closers of one attempt at the same moment, PostgreSQL
/// takes the row of the loser back, which it counts as a deletion; there is no other.
async fn rings_were_only_appended_to(fresh: &FreshStore, store: SqlxStore) {
    store.pool().close().await;
    let changed = "SELECT relname, n_tup_upd, n_tup_del, n_tup_ins FROM pg_stat_user_tables 
                   WHERE relname ~ '_[0-9]+$' AND relname !~ '^leases_'";
    let rows = sqlx::query(changed).fetch_all(fresh.store.pool()).await.unwrap();
    let mut written = 0;
    for row in &rows {
        let (name, updated, deleted): (String, i64, i64) = (row.get(0), row.get(1), row.get(2));
        let is_closures = name.starts_with("lease_claim_closure_batches_");
        assert!(updated == 0 && (deleted == 0 || is_closures), "{name}: {updated} rows updated, {deleted} deleted");
        written += row.get::<i64, _>(3);
        if deleted > 0 {
            println!("{deleted} closures in {name} lost a race");
        }
    }
    assert!(written > 0, "the server has counted");
}
