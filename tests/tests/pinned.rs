//! Jobs with mixed ends beside a snapshot that is held from before the first to after the last: what is left over is
//! counted, and a claim costs at the end what it cost at the start.
//!
//! With `AWA_PINNED_JOBS=200000` the number that the storage design asks for; without it a quarter of that.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use awa_core::attempt::ErrorText;
use awa_core::ring::{RingKind, RotationPolicy};
use awa_core::store::{
    Acted, BatchLimit, ClaimRequest, ClaimShape, Consumer, Maintainer, Operator, Producer, RescueRequest,
    RetentionPolicy,
};
use awa_core::{
    AttemptEnd, ClaimedJob, Closure, ClosureAnswer, InstanceId, JobId, JobKind, JobState, JsonText, NewJob, Nonce,
    QueueName, RunAt, Timestamp,
};
use awa_pg::cluster::{Cluster, ClusterOptions, Durability};
use awa_store_sqlx::{Clock, SqlxStore};
use awa_tests::stage::steady_retry;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

/// From so many jobs on the budget of dead rows also has room for the turns of the rings, and times are gated.
const FULL: usize = 200_000;
const BATCH: usize = 500;
/// So often the rings turn while the jobs go through. A turn of both costs about 25 rows of the catalog and 6 of the tables of
/// slots, whatever happened in them, and in production comes with the slot's age or size: here once for 100,000 jobs.
const TURNS: usize = 1;
const ROWS_OF_A_TURN: i64 = 32;
/// Maintenance, which comes every second, moves on what claims need not look at in every so many rounds.
const ROUNDS_OF_A_TICK: usize = 10;
/// Rows of tables that live by being changed. What each of them costs is allowed for one by one.
const PLAIN: [&str; 3] = ["deferred_jobs", "carried_entries", "dlq_entries"];

struct Load {
    store: SqlxStore,
    clock: Clock,
    queue: QueueName,
    nonce: i64,
    rounds: usize,
    claim_times: Vec<Duration>,
    /// How many jobs went each way.
    ways: BTreeMap<&'static str, usize>,
}

/// So often a worker dies with open attempts, and is replaced by another process.
const DEATHS: usize = 2;
const RESCUER: InstanceId = InstanceId(2);
/// Who claims to count what a claim reads.
const PROBE: InstanceId = InstanceId(3);
const STALENESS: Duration = Duration::from_mins(1);

/// How many jobs go through.
fn scale() -> usize {
    std::env::var("AWA_PINNED_JOBS").map_or(FULL / 4, |jobs| jobs.parse().expect("AWA_PINNED_JOBS is a number"))
}

impl Load {
    async fn new(cluster: &Cluster) -> Self {
        let start = Timestamp::from_micros(1_900_000_000_000_000);
        let clock = Clock::manual(start);
        let options = SqlxStore::options().max_connections(3).wakeups(false).clock(clock.clone());
        let store = options.connect(&cluster.url("postgres")).await.unwrap();
        let queue = QueueName::new("mixed").unwrap();
        let rounds = scale() / BATCH;
        Self { store, clock, queue, nonce: 0, rounds, claim_times: Vec::new(), ways: BTreeMap::new() }
    }

    /// The process that works in a round.
    fn instance(&self, round: usize) -> InstanceId {
        InstanceId(1_000 + (round / (self.rounds / DEATHS)) as i64)
    }

    /// Whether the worker of a round dies in it.
    fn dies(&self, round: usize) -> bool {
        round + 1 < self.rounds && self.instance(round) != self.instance(round + 1)
    }

    /// Installs the schema, on connections of its own.
    async fn prepare(cluster: &Arc<Cluster>) {
        let Self { store, queue, .. } = Self::new(cluster).await;
        store.prepare_schema().await.unwrap();
        store.open_queue(&queue).await.unwrap();
        settled(cluster, store).await.close().await.unwrap();
    }

    fn job(&self) -> NewJob {
        let args = JsonText::new("args", r#"{"to":"someone@example.org","template":"welcome-12345"}"#).unwrap();
        NewJob::new(self.queue.clone(), JobKind::new("send_email").unwrap(), args)
    }

    /// One round: as many jobs come in as go out; a hundredth part is scheduled, and four are cancelled as they wait.
    async fn round(&mut self, round: usize) {
        let mut jobs = vec![self.job(); BATCH];
        for job in jobs.iter_mut().step_by(100) {
            *job = self.job().with_run_at(RunAt::after(Duration::from_millis(1)).unwrap());
        }
        let ids: Vec<JobId> = self.store.enqueue(&jobs).await.unwrap().iter().map(|answer| answer.id()).collect();
        if round.is_multiple_of(20) {
            let acted = self.store.cancel(&ids[1..5], &ErrorText::new("not wanted")).await.unwrap();
            assert_eq!(acted, vec![Acted::Done { from: JobState::Ready }; 4]);
            self.count("cancelled while it waited", 4);
        }
        self.store.promote(1_000).await.unwrap();
        let jobs = self.claim(self.instance(round)).await;
        self.close(round, &jobs).await;
        if round.is_multiple_of(ROUNDS_OF_A_TICK) {
            self.store.drain().await.unwrap();
        }
    }

    /// How many pages a claim of a full batch reads, on a session that has made its plans.
    async fn pages_of_a_claim(&self, session: &mut PgConnection) -> u64 {
        self.store.enqueue(&vec![self.job(); BATCH]).await.unwrap();
        let mut pages = 0;
        // The first takes jobs of either kind, those that were carried over and those of the ring.
        for jobs in [50, 1, BATCH - 51] {
            let sql = format!(
                "EXPLAIN (ANALYZE, BUFFERS) SELECT * FROM awa.claim_jobs('{}', {}, {jobs}, {jobs}, 16777216)",
                self.queue, PROBE.0
            );
            let plan = sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut *session).await.unwrap();
            let lines: Vec<String> = plan.iter().map(|line| line.get(0)).collect();
            // The first is that of the whole plan: "Buffers: shared hit=139 read=1 dirtied=1".
            let line = lines.iter().find(|line| line.contains("Buffers: shared")).expect("EXPLAIN counts pages");
            let words = line.split_whitespace().filter_map(|word| word.split_once('='));
            let read = words.filter(|(kind, _)| ["hit", "read"].contains(kind));
            pages = read.map(|(_, pages)| pages.parse::<u64>().expect(line)).sum();
        }
        let open = self.store.open_attempts(PROBE, 2 * BATCH).await.unwrap();
        assert_eq!(open.len(), BATCH);
        let closures: Vec<_> = open.into_iter().map(|receipt| Closure { receipt, end: AttemptEnd::Complete }).collect();
        let answers = self.store.close(&closures).await.unwrap();
        assert_eq!(answers, vec![ClosureAnswer::Closed; BATCH]);
        pages
    }

    async fn claim(&mut self, instance: InstanceId) -> Vec<ClaimedJob> {
        self.nonce += 1;
        let request = ClaimRequest {
            queue: self.queue.clone(),
            instance,
            nonce: Nonce(self.nonce),
            max_jobs: BatchLimit::new(BATCH).unwrap(),
            max_bytes: 1 << 24,
            deadline: Some(Duration::from_hours(1)),
            aging: None,
            shape: ClaimShape::Compact,
        };
        let begun = Instant::now();
        let claimed = self.store.claim(&request).await.unwrap();
        self.claim_times.push(begun.elapsed());
        claimed.jobs
    }

    async fn close(&mut self, round: usize, jobs: &[ClaimedJob]) {
        let error = || ErrorText::new("the other side did not answer");
        let mut closures = Vec::with_capacity(jobs.len());
        let mut by_operator = Vec::new();
        for (index, job) in jobs.iter().enumerate() {
            let (way, end) = match index % 50 {
                0 => ("retried", AttemptEnd::Retry { delay: Duration::from_millis(1), error: error() }),
                1 => ("snoozed", AttemptEnd::Snooze { delay: Duration::from_millis(1) }),
                2 => ("released later", AttemptEnd::Release { delay: Duration::from_millis(1) }),
                3 => ("failed", AttemptEnd::Fail { error: error() }),
                4 => ("cancelled by its handler", AttemptEnd::Cancel { reason: error() }),
                5 => ("kept a result", AttemptEnd::CompleteWith { result: JsonText::new("result", "[1]").unwrap() }),
                6 => ("released", AttemptEnd::Release { delay: Duration::ZERO }),
                7 if index < 100 && round.is_multiple_of(20) => {
                    by_operator.push(job.receipt.job);
                    continue;
                }
                // Left open: its worker dies.
                8 if self.dies(round) => continue,
                9 => ("retried to its end", AttemptEnd::Fail { error: error() }),
                _ => ("succeeded", AttemptEnd::Complete),
            };
            self.count(way, 1);
            closures.push(Closure { receipt: job.receipt, end });
        }
        let answers = self.store.close(&closures).await.unwrap();
        assert!(answers.iter().all(|answer| *answer == ClosureAnswer::Closed), "{answers:?}");
        let acted = self.store.cancel(&by_operator, &ErrorText::new("not wanted")).await.unwrap();
        assert!(acted.iter().all(|acted| *acted == Acted::Done { from: JobState::Running }), "{acted:?}");
        self.count("cancelled as it ran", acted.len());
        self.clock.advance(Duration::from_millis(2));
        if self.dies(round) {
            self.rescue().await;
        }
    }

    /// The worker of this round is gone: what it left open is ended by somebody else.
    async fn rescue(&mut self) {
        for _ in 0..4 {
            self.store.beat(RESCUER, STALENESS).await.unwrap();
            self.clock.advance(STALENESS / 3);
        }
        self.store.beat(RESCUER, STALENESS).await.unwrap();
        let request = RescueRequest { rescuer: RESCUER, staleness: STALENESS, page: 1_000 };
        let rescued = self.store.rescue(&request, &steady_retry()).await.unwrap();
        assert_eq!(rescued.attempts.len(), 10, "{rescued:?}");
        self.count("rescued", rescued.attempts.len());
    }

    async fn turn(&self) {
        let now = RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 };
        for ring in [RingKind::Queue, RingKind::Claim] {
            self.store.rotate(ring, &now).await.unwrap();
        }
        self.store.drain().await.unwrap();
        let nothing = RetentionPolicy::NONE;
        for ring in [RingKind::Claim, RingKind::Queue] {
            self.store.prune(ring, &nothing).await.unwrap();
        }
    }

    fn count(&mut self, way: &'static str, jobs: usize) {
        *self.ways.entry(way).or_default() += jobs;
    }
}

/// Rows that are dead, by table: those that were changed or removed while a snapshot is held, and those of transactions
/// that were rolled back.
async fn dead_rows(connection: &mut PgConnection) -> BTreeMap<String, i64> {
    let sql = "SELECT s.relname::text, sum(greatest(s.n_tup_upd + s.n_tup_del, s.n_dead_tup))::bigint
               FROM pg_stat_all_tables AS s
               WHERE s.schemaname IN ('awa', 'pg_catalog', 'pg_toast') GROUP BY s.relname";
    let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(connection).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// Waits until the backends of the load have ended, which is when their counters are complete.
async fn settled(cluster: &Arc<Cluster>, store: SqlxStore) -> PgConnection {
    store.pool().close().await;
    let mut look = PgConnection::connect(&cluster.url("template1")).await.unwrap();
    let mut moments = tokio::time::interval(Duration::from_millis(10));
    for _ in 0..1_000 {
        moments.tick().await;
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'postgres' AND application_name <> 'pinned'";
        if sqlx::query(sql).fetch_one(&mut look).await.unwrap().get::<i64, _>(0) == 0 {
            return PgConnection::connect(&cluster.url("postgres")).await.unwrap();
        }
    }
    panic!("backends do not end");
}

async fn start() -> Arc<Cluster> {
    let settings = [("autovacuum", "off"), ("checkpoint_timeout", "1h"), ("max_wal_size", "4GB")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let start = || Cluster::start(ClusterOptions { durability: Durability::Relaxed, settings });
    Arc::new(tokio::task::spawn_blocking(start).await.unwrap().expect("PostgreSQL can be started"))
}

#[tokio::test]
async fn mixed_jobs_beside_a_held_snapshot_leave_nothing_behind_in_the_rings() {
    let cluster = start().await;
    Load::prepare(&cluster).await;
    let mut load = Load::new(&cluster).await;
    let mut pinned =
        PgConnection::connect(&format!("{}?application_name=pinned", cluster.url("postgres"))).await.unwrap();
    sqlx::raw_sql("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_current_snapshot()")
        .execute(&mut pinned)
        .await
        .unwrap();
    let before = dead_rows(&mut pinned).await;
    let mut pages = Vec::new();
    for round in 0..load.rounds {
        load.round(round).await;
        if (round + 1).is_multiple_of(load.rounds / (TURNS + 1)) && round + 1 < load.rounds {
            load.turn().await;
        }
        if round + 1 == ROUNDS_OF_A_TICK || round + 1 == load.rounds {
            let mut probe = PgConnection::connect(&cluster.url("postgres")).await.unwrap();
            pages.push(load.pages_of_a_claim(&mut probe).await);
            probe.close().await.unwrap();
        }
    }
    let Load { store, claim_times, ways, .. } = load;
    let mut look = settled(&cluster, store).await;
    let after = dead_rows(&mut look).await;
    sqlx::raw_sql("COMMIT").execute(&mut pinned).await.unwrap();

    println!("ways: {ways:#?}");
    few_rows_are_dead(&before, &after, &ways);
    claims_cost_the_same(&pages, &claim_times);
}

fn few_rows_are_dead(
    before: &BTreeMap<String, i64>,
    after: &BTreeMap<String, i64>,
    ways: &BTreeMap<&'static str, usize>,
) {
    let dead: BTreeMap<_, _> = after
        .iter()
        .map(|(table, dead)| (table.as_str(), dead - before.get(table).unwrap_or(&0)))
        .filter(|(_, dead)| *dead > 0)
        .collect();
    println!("dead rows: {dead:#?}");
    let succeeded = *ways.get("succeeded").unwrap_or(&0);
    assert!(succeeded * 10 >= scale() * 8, "{succeeded} of {} jobs succeeded", scale());
    let ring =
        |table: &str| table.rsplit_once('_').is_some_and(|(name, slot)| slot.parse::<u8>().is_ok() && name != "leases");
    let changed: Vec<_> = dead.keys().filter(|table| ring(table)).collect();
    assert!(changed.is_empty(), "rows of ring tables are dead: {changed:?}");
    let exempt = |table: &str| PLAIN.contains(&table) || table.starts_with("leases_");
    let rest: i64 = dead.iter().filter(|(table, _)| !exempt(table)).map(|(_, dead)| dead).sum();
    let room = if scale() >= FULL { 0 } else { ROWS_OF_A_TURN };
    let budget = 300 * succeeded as i64 / 1_000_000 + room;
    println!("{rest} dead rows beside those of deferred and leased jobs, budget {budget}");
    assert!(rest <= budget, "{rest} dead rows are more than {budget}: {dead:?}");
}

/// The pages that a claim reads at the start and at the end, and the medians of a tenth of the times.
fn claims_cost_the_same(pages: &[u64], times: &[Duration]) {
    let median = |times: &[Duration]| {
        let mut times = times.to_vec();
        times.sort_unstable();
        times[times.len() / 2]
    };
    let tenth = times.len() / 10;
    let (first, last) = (median(&times[..tenth]), median(&times[times.len() - tenth..]));
    let ratio = last.as_secs_f64() / first.as_secs_f64();
    println!("a claim of {BATCH} took {first:?} at the start and {last:?} at the end: ratio {ratio:.2}");
    let [start, end] = pages else { panic!("pages were counted at the start and at the end: {pages:?}") };
    println!("it read {start} pages at the start and {end} at the end");
    assert!(end * 2 <= start * 3, "claims read {end} pages at the end, {start} at the start");
    if scale() >= FULL {
        assert!(ratio <= 1.5, "claims became {ratio:.2} times as slow");
    }
}
