//! What looking one job up by its id costs in a ring full of history, in pages touched and not in time.

use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::ring::{RingKind, RotationPolicy};
use awa_core::store::{BatchLimit, ClaimRequest, ClaimShape, Consumer, Maintainer, Operator, Producer};
use awa_core::{
    AttemptEnd, ClaimedJob, Closure, ClosureAnswer, InstanceId, JobId, JobKind, JobState, JsonText, NewJob, Nonce,
    QueueName,
};
use awa_store_sqlx::SqlxStore;
use awa_tests::postgres::FreshStore;
use sqlx::{AssertSqlSafe, Row};

/// The most pages that one look-up may touch; a scan of the history of these tests touches 7,500.
const BUDGET: i64 = 600;

struct Bench {
    /// One connection, whose caches of the catalog and of plans are warm after the first job.
    store: SqlxStore,
    _fresh: FreshStore,
    queue: QueueName,
}

impl Bench {
    async fn new() -> Self {
        let fresh = FreshStore::with_server_clock().await;
        let store = fresh.another_pool(|options| options.max_connections(1)).await;
        let queue = QueueName::new("email").unwrap();
        store.open_queue(&queue).await.unwrap();
        Self { store, _fresh: fresh, queue }
    }

    async fn enqueue(&self, count: usize) -> Vec<JobId> {
        let args = JsonText::new("args", r#"{"to":"someone@example.org","template":"welcome-12345"}"#).unwrap();
        let job = NewJob::new(self.queue.clone(), JobKind::new("send_email").unwrap(), args);
        let answers = self.store.enqueue(&vec![job; count]).await.unwrap();
        answers.iter().map(|answer| answer.id()).collect()
    }

    async fn claim(&self, max: usize) -> Vec<ClaimedJob> {
        let request = ClaimRequest {
            queue: self.queue.clone(),
            instance: InstanceId(7),
            nonce: Nonce(1),
            max_jobs: BatchLimit::new(max).unwrap(),
            max_bytes: 1 << 24,
            deadline: None,
            aging: None,
            shape: ClaimShape::Compact,
        };
        self.store.claim(&request).await.unwrap().jobs
    }

    async fn end(&self, jobs: &[ClaimedJob], end: AttemptEnd) {
        let closures: Vec<_> = jobs.iter().map(|job| Closure { receipt: job.receipt, end: end.clone() }).collect();
        let answers = self.store.close(&closures).await.unwrap();
        assert!(answers.iter().all(|answer| *answer == ClosureAnswer::Closed));
    }

    /// Finishes `rounds` batches, and gives the first job of each tenth.
    async fn finish(&self, batch: usize, rounds: usize) -> Vec<JobId> {
        let mut some = Vec::new();
        for round in 0..rounds {
            let jobs = self.enqueue(batch).await;
            self.end(&self.claim(batch).await, AttemptEnd::Complete).await;
            some.extend(jobs.first().filter(|_| round % (rounds / 10) == 0));
        }
        some
    }

    /// Seals the open slot and lets maintenance look at the ring.
    async fn turn(&self) {
        let at_once = RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 };
        self.store.rotate(RingKind::Queue, &at_once).await.unwrap();
        self.store.rotate(RingKind::Claim, &at_once).await.unwrap();
        self.store.drain().await.unwrap();
    }

    /// How many pages a statement touches.
    async fn touched(&self, sql: &str) -> i64 {
        let explained = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}");
        let row = sqlx::query(AssertSqlSafe(explained.as_str())).fetch_one(self.store.pool()).await.unwrap();
        let plan: serde_json::Value = serde_json::from_str(&row.get_unchecked::<String, _>(0)).unwrap();
        let of = |name: &str| plan[0]["Plan"][name].as_i64().unwrap();
        of("Shared Hit Blocks") + of("Shared Read Blocks")
    }

    async fn check(&self, job: JobId, state: JobState, cancelled: &str) {
        let view = self.store.get(job).await.unwrap().expect("the job is there");
        assert_eq!((view.id, view.state), (job, state));
        let mut statements = vec![
            format!("SELECT * FROM awa.find_job({job})"),
            format!("SELECT * FROM awa.cancel_jobs(ARRAY[{job}]::bigint[], 'x')"),
        ];
        if !matches!(state, JobState::Dead | JobState::Deferred) {
            statements.insert(1, format!("SELECT * FROM awa.retry_jobs(ARRAY[{job}]::bigint[])"));
        }
        // Once more than is counted, because the first look of a connection also reads the catalog.
        self.touched(&statements[0]).await;
        for sql in statements {
            let touched = self.touched(&sql).await;
            println!("{touched} pages for {sql} of a {state} job");
            assert!(touched <= BUDGET, "{touched} pages for {sql} of a {state} job");
        }
        let view = self.store.get(job).await.unwrap().expect("the job is there");
        assert_eq!(view.state.as_str(), cancelled, "of a {state} job");
    }
}

#[tokio::test]
async fn a_look_up_by_id_touches_few_pages_beside_100_000_finished_jobs() {
    let bench = Bench::new().await;
    let mut finished = bench.finish(800, 60).await;
    bench.turn().await;
    finished.extend(bench.finish(1, 4_000).await);
    bench.turn().await;
    finished.extend(bench.finish(800, 60).await);
    bench.store.drain().await.unwrap();
    let boom = || ErrorText::new("boom");
    let (dead, later, running, ready) =
        (bench.enqueue(1).await[0], bench.enqueue(1).await[0], bench.enqueue(1).await[0], bench.enqueue(1).await[0]);
    let jobs = bench.claim(3).await;
    bench.end(&jobs[..1], AttemptEnd::Fail { error: boom() }).await;
    bench.end(&jobs[1..2], AttemptEnd::Retry { delay: Duration::from_hours(1), error: boom() }).await;
    for job in &finished {
        bench.check(*job, JobState::Completed, "completed").await;
    }
    bench.check(dead, JobState::Dead, "dead").await;
    bench.check(later, JobState::Deferred, "cancelled").await;
    bench.check(running, JobState::Running, "cancelled").await;
    bench.check(ready, JobState::Ready, "cancelled").await;
    bench.check(later, JobState::Cancelled, "cancelled").await;
    bench.check(running, JobState::Cancelled, "cancelled").await;
    bench.check(ready, JobState::Cancelled, "cancelled").await;
}
