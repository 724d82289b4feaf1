//! A stage for races: a store, connections that are stepped by hand, and a look at who waits for whom.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use awa_core::retry::RetryPolicy;
use awa_core::ring::{RingKind, RotationPolicy};
use awa_core::store::{
    BatchLimit, ClaimRequest, ClaimShape, Claimed, Consumer, Drained, Maintainer, Producer, PruneReport, RescueRequest,
    RetentionPolicy, Rotated,
};
use awa_core::{
    AttemptEnd, ClaimedJob, Closure, ClosureAnswer, InstanceId, JobId, JobKind, JsonText, NewJob, Nonce, QueueName,
};
use awa_store_sqlx::{Clock, RingSizes, SqlxStore};
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

use crate::postgres::{FreshStore, SMALL_RINGS};

/// The worker that claims unless another is named.
pub const ME: InstanceId = InstanceId(0xA0);
/// The process that rescues.
pub const RESCUER: InstanceId = InstanceId(0xC0);
/// The silence after which an attempt may be rescued.
pub const STALENESS: Duration = Duration::from_mins(1);
/// How often a call is repeated that answers "contended" or "more".
const ROUNDS: usize = 256;
/// How often it is looked whether a session waits; each look is a round trip.
const LOOKS: usize = 20_000;

/// A store in a database of its own, with one queue that a worker has opened.
#[derive(Debug)]
pub struct Stage {
    /// The store and its database.
    pub fresh: FreshStore,
    /// The queue.
    pub queue: QueueName,
    nonces: AtomicI64,
}

impl Stage {
    /// A stage with small rings and a clock that the test moves.
    pub async fn with_manual_clock() -> Self {
        Self::on(FreshStore::with_manual_clock().await).await
    }

    /// A stage with small rings on the server's clock.
    pub async fn new() -> Self {
        Self::with_rings(SMALL_RINGS).await
    }

    /// A stage with rings of these sizes on the server's clock.
    pub async fn with_rings(rings: RingSizes) -> Self {
        Self::on(FreshStore::new(rings, Clock::Server).await).await
    }

    async fn on(fresh: FreshStore) -> Self {
        let queue = QueueName::new("races").expect("the name is good");
        fresh.store.open_queue(&queue).await.expect("open_queue");
        Self { fresh, queue, nonces: AtomicI64::new(1) }
    }

    /// The store.
    pub fn store(&self) -> &SqlxStore {
        &self.fresh.store
    }

    /// A connection of its own, to be stepped by hand.
    pub async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.fresh.database.url()).await.expect("the test's database can be reached")
    }

    /// `count` jobs for the queue of the stage.
    pub fn jobs(&self, count: usize) -> Vec<NewJob> {
        vec![self.job("{}"); count]
    }

    /// One job with these arguments.
    pub fn job(&self, args: &str) -> NewJob {
        let kind = JobKind::new("test").expect("the name is good");
        NewJob::new(self.queue.clone(), kind, JsonText::new("args", args).expect("a test uses good JSON"))
    }

    /// Enqueues `count` jobs in a transaction of its own.
    pub async fn enqueue(&self, count: usize) -> Vec<JobId> {
        let answers = self.store().enqueue(&self.jobs(count)).await.expect("enqueue");
        answers.iter().map(|answer| answer.id()).collect()
    }

    /// Enqueues `count` jobs on a connection, in whatever transaction it is in.
    pub async fn enqueue_in(&self, connection: &mut PgConnection, count: usize) -> Vec<JobId> {
        let answers = self.store().enqueue_in(connection, &self.jobs(count)).await.expect("enqueue in a transaction");
        answers.iter().map(|answer| answer.id()).collect()
    }

    /// What [`ME`] asks for.
    pub fn request(&self, max_jobs: usize) -> ClaimRequest {
        ClaimRequest {
            queue: self.queue.clone(),
            instance: ME,
            nonce: Nonce(self.nonces.fetch_add(1, Ordering::Relaxed)),
            max_jobs: BatchLimit::new(max_jobs).expect("a test asks for 1 to 1,023 jobs"),
            max_bytes: 1 << 24,
            deadline: None,
            aging: None,
            shape: ClaimShape::Compact,
        }
    }

    /// One call of `claim`.
    pub async fn claim_once(&self, max_jobs: usize) -> Claimed {
        self.store().claim(&self.request(max_jobs)).await.expect("claim")
    }

    /// Claims until there are `max_jobs` or nothing is eligible.
    pub async fn claim(&self, max_jobs: usize) -> Vec<ClaimedJob> {
        let mut jobs = Vec::new();
        for _ in 0..ROUNDS {
            let claimed = self.claim_once((max_jobs - jobs.len()).min(1_023)).await;
            let over = claimed.jobs.is_empty() && !claimed.more && !claimed.contended;
            jobs.extend(claimed.jobs);
            if over || jobs.len() >= max_jobs {
                return jobs;
            }
        }
        panic!("a claim of {max_jobs} jobs is not over after {ROUNDS} calls");
    }

    /// Ends attempts, each in the same way.
    pub async fn end(&self, jobs: &[ClaimedJob], end: AttemptEnd) -> Vec<ClosureAnswer> {
        let closures: Vec<_> = jobs.iter().map(|job| Closure { receipt: job.receipt, end: end.clone() }).collect();
        self.store().close(&closures).await.expect("close")
    }

    /// Completes attempts, which must all be open.
    pub async fn complete(&self, jobs: &[ClaimedJob]) {
        assert_eq!(self.end(jobs, AttemptEnd::Complete).await, vec![ClosureAnswer::Closed; jobs.len()]);
    }

    /// Moves a ring on to its next free slot.
    pub async fn rotate(&self, ring: RingKind) -> Rotated {
        let policy = RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 };
        self.store().rotate(ring, &policy).await.expect("rotate")
    }

    /// One draining pass.
    pub async fn drain(&self) -> Drained {
        self.store().drain().await.expect("drain")
    }

    /// One prune pass that keeps no history.
    pub async fn prune(&self, ring: RingKind) -> Vec<PruneReport> {
        let nothing = RetentionPolicy::NONE;
        self.store().prune(ring, &nothing).await.expect("prune")
    }

    /// What [`RESCUER`] asks for.
    pub fn rescue_request() -> RescueRequest {
        RescueRequest { rescuer: RESCUER, staleness: STALENESS, page: 1_000 }
    }

    /// Lets more than the staleness time pass, through which only [`RESCUER`] shows signs of life.
    pub async fn outlive(&self) {
        for _ in 0..6 {
            self.store().beat(RESCUER, STALENESS).await.expect("beat");
            self.fresh.clock.advance(STALENESS / 4);
        }
        self.store().beat(RESCUER, STALENESS).await.expect("beat");
    }

    /// The number that a query gives.
    pub async fn number(&self, sql: &str) -> i64 {
        sqlx::query(AssertSqlSafe(sql)).fetch_one(self.store().pool()).await.expect(sql).get(0)
    }

    /// Where every job is, by the view of all jobs: a job that is in two places has two entries.
    pub async fn places(&self) -> BTreeMap<JobId, Vec<String>> {
        // By the function, which forbids compiling the plan of the view.
        let all = format!("SELECT j.job_id, j.state FROM awa.list_jobs(NULL, NULL, NULL, NULL, {}) AS j", i64::MAX);
        let rows = sqlx::query(AssertSqlSafe(all));
        let mut places = BTreeMap::<JobId, Vec<String>>::new();
        for row in rows.fetch_all(self.store().pool()).await.expect("the jobs can be read") {
            places.entry(JobId(row.get(0))).or_default().push(row.get(1));
        }
        for states in places.values_mut() {
            states.sort_unstable();
        }
        places
    }

    /// The only place of one job.
    pub async fn place(&self, job: JobId) -> String {
        let places = self.places().await.remove(&job).unwrap_or_default();
        assert_eq!(places.len(), 1, "job {job} is in {places:?}");
        places[0].clone()
    }

    /// Returns when the session waits for a lock.
    pub async fn until_blocked(&self, pid: i32) {
        let sql = "SELECT cardinality(pg_blocking_pids($1)) > 0";
        for _ in 0..LOOKS {
            if sqlx::query(sql).bind(pid).fetch_one(self.store().pool()).await.expect(sql).get(0) {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("session {pid} does not wait for a lock");
    }
}

/// A policy that waits one second, whatever the attempt.
pub fn steady_retry() -> RetryPolicy {
    let second = Duration::from_secs(1);
    RetryPolicy::exponential(second, second).and_then(|policy| policy.with_jitter(0.0)).expect("the policy makes sense")
}

/// Runs a script on a connection.
pub async fn run(connection: &mut PgConnection, sql: &str) {
    if let Err(error) = try_run(connection, sql).await {
        panic!("{sql}: {error}");
    }
}

/// Runs a script on a connection, which may fail.
pub async fn try_run(connection: &mut PgConnection, sql: &str) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await.map(drop)
}

/// The rows of a query as text, as `psql` prints them.
pub async fn texts(connection: &mut PgConnection, sql: &str) -> Vec<Option<String>> {
    let rows = sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(connection).await.expect(sql);
    rows.iter().map(|row| row.get(0)).collect()
}

/// The five characters by which the server names an error.
pub fn sqlstate(error: &sqlx::Error) -> String {
    let database = error.as_database_error().unwrap_or_else(|| panic!("not an error of the server: {error}"));
    database.code().expect("the server names each error").into_owned()
}

/// The process of the server behind a connection.
pub async fn pid(connection: &mut PgConnection) -> i32 {
    sqlx::query("SELECT pg_backend_pid()").fetch_one(connection).await.expect("the session answers").get(0)
}

/// A statement that completes attempts of one batch, for connections that are stepped by hand.
pub fn complete_sql(jobs: &[ClaimedJob]) -> String {
    let first = jobs[0].receipt;
    assert!(jobs.iter().all(|job| job.receipt.id.batch() == first.id.batch()), "they are of one batch");
    let ranges: Vec<String> =
        jobs.iter().map(|job| format!("[{},{})", job.receipt.id.get(), job.receipt.id.get() + 1)).collect();
    format!(
        "SELECT c.closed FROM awa.complete_attempts('{{{}}}', '{{{}}}', '{{{}}}', ARRAY['{{{}}}']) AS c",
        first.claim_slot,
        first.id.batch(),
        first.nonce,
        ranges.join(",")
    )
}
