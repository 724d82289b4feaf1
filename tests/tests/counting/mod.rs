//! A server that counts, and how its counts are written down.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::time::Duration;

use awa_core::attempt::Receipt;
use awa_core::store::{BatchLimit, ClaimRequest, ClaimShape, Consumer, JobFilter, Maintainer, Operator};
use awa_core::{InstanceId, JobId, JobKind, JobState, JsonText, NewJob, Nonce, QueueName, StoreError, Timestamp};
use awa_pg::cluster::{Cluster, ClusterOptions, Durability};
use awa_store_sqlx::{Clock, SqlxStore};
use sqlx::{Connection, PgConnection, Row};

const INSTANCE: InstanceId = InstanceId(7);
const START: Timestamp = Timestamp::from_micros(1_790_000_000_000_000);

/// Whether the locks of a call can be seen: a call that is one statement is also made in a transaction that is rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Locks {
    /// They can.
    Seen,
    /// The call has transactions of its own.
    Own,
}

/// A store on one connection, and another connection that counts.
pub(crate) struct Counter {
    pub(crate) store: SqlxStore,
    clock: Clock,
    queue: QueueName,
    nonce: i64,
    watch: PgConnection,
    // Stopped last.
    cluster: Cluster,
}

#[derive(Clone, Copy, Default)]
struct Rows {
    inserted: i64,
    updated: i64,
    deleted: i64,
    dead: i64,
}

impl Counter {
    pub(crate) async fn new() -> Self {
        let settings = [
            ("autovacuum", "off"),
            ("checkpoint_timeout", "1h"),
            ("max_wal_size", "4GB"),
            ("jit", "off"),
            ("shared_preload_libraries", "pg_stat_statements"),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let start = || Cluster::start(ClusterOptions { durability: Durability::Relaxed, settings });
        let cluster = tokio::task::spawn_blocking(start).await.unwrap().expect("PostgreSQL can be started");
        cluster.psql("postgres", "CREATE EXTENSION pg_stat_statements;").expect("the extension is part of PostgreSQL");
        let clock = Clock::manual(START);
        let options = SqlxStore::options().max_connections(1).wakeups(false).clock(clock.clone());
        let store = options.connect(&cluster.url("postgres")).await.unwrap();
        store.prepare_schema().await.unwrap();
        let queue = QueueName::new("counted").unwrap();
        store.open_queue(&queue).await.unwrap();
        let mut watch = PgConnection::connect(&cluster.url("postgres")).await.unwrap();
        sqlx::query("SET stats_fetch_consistency = none").execute(&mut watch).await.unwrap();
        Self { store, clock, queue, nonce: 0, watch, cluster }
    }

    pub(crate) fn major(&self) -> u32 {
        self.cluster.version().major
    }

    pub(crate) fn jobs(&self, count: usize) -> Vec<NewJob> {
        let args = JsonText::new("args", r#"{"to":"someone@example.org","template":"welcome-12345"}"#).unwrap();
        vec![NewJob::new(self.queue.clone(), JobKind::new("send_email").unwrap(), args); count]
    }

    pub(crate) fn request(&mut self, max_jobs: usize) -> ClaimRequest {
        self.nonce += 1;
        ClaimRequest {
            queue: self.queue.clone(),
            instance: INSTANCE,
            nonce: Nonce(self.nonce),
            max_jobs: BatchLimit::new(max_jobs).unwrap(),
            max_bytes: 1 << 24,
            deadline: None,
            aging: None,
            shape: ClaimShape::Compact,
        }
    }

    pub(crate) async fn open(&self) -> Vec<Receipt> {
        self.store.open_attempts(INSTANCE, 10_000).await.unwrap()
    }

    pub(crate) async fn ready(&self) -> Vec<JobId> {
        let filter = JobFilter { state: Some(JobState::Ready), limit: JobFilter::MAX_LIMIT, ..JobFilter::default() };
        self.store.list(&filter).await.unwrap().iter().map(|job| job.id).collect()
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// Makes a call, and writes into `listing` what it cost, if there is one.
    pub(crate) async fn count<T: Debug, F: Future<Output = Result<T, StoreError>>>(
        &mut self,
        listing: &mut Option<String>,
        name: &str,
        locks: Locks,
        call: impl Fn() -> F,
    ) {
        let Some(listing) = listing else {
            call().await.expect(name);
            return;
        };
        let locks = if locks == Locks::Seen { Some(self.locks_of(&call).await) } else { None };
        let before = self.rows().await;
        sqlx::query("SELECT pg_stat_statements_reset()").execute(&mut self.watch).await.unwrap();
        call().await.expect(name);
        let after = self.rows().await;
        let statements = "SELECT coalesce(sum(s.calls), 0)::bigint, coalesce(sum(s.wal_bytes), 0)::bigint,
                coalesce(sum(s.shared_blks_hit + s.shared_blks_read), 0)::bigint
            FROM pg_stat_statements AS s WHERE s.query !~ 'pg_stat'";
        let row = sqlx::query(statements).fetch_one(&mut self.watch).await.unwrap();
        let (calls, wal, buffers): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
        let locks = locks.map_or_else(String::new, |locks| format!(", {locks} relations locked"));
        let (wal, buffers) = (rounded_up(wal), rounded_up(buffers));
        writeln!(listing, "\n{name}\n  {calls} statements, {wal} bytes of log, {buffers} buffers{locks}").unwrap();
        for (table, rows) in after {
            let was = before.get(&table).copied().unwrap_or_default();
            let counts = [
                ("inserted", rows.inserted - was.inserted),
                ("updated", rows.updated - was.updated),
                ("deleted", rows.deleted - was.deleted),
                ("more dead", (rows.dead - was.dead).max(0)),
            ];
            let counts: Vec<_> =
                counts.iter().filter(|(_, rows)| *rows != 0).map(|(what, rows)| format!("{rows} {what}")).collect();
            if !counts.is_empty() {
                writeln!(listing, "  {table}: {}", counts.join(", ")).unwrap();
            }
        }
    }

    /// How many tables and indexes a call locks.
    async fn locks_of<T, F: Future<Output = Result<T, StoreError>>>(&mut self, call: &impl Fn() -> F) -> i64 {
        let pool = self.store.pool().clone();
        let begun = "SELECT (extract(epoch FROM transaction_timestamp()) * 1000000)::bigint";
        sqlx::raw_sql("BEGIN").execute(&pool).await.unwrap();
        let before: i64 = sqlx::query(begun).fetch_one(&pool).await.unwrap().get(0);
        call().await.map(drop).expect("the call succeeds in a transaction");
        let locks = "SELECT count(DISTINCT l.relation) FROM pg_locks AS l
                     WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.relation >= 16384";
        let locks: i64 = sqlx::query(locks).fetch_one(&pool).await.unwrap().get(0);
        let after: i64 = sqlx::query(begun).fetch_one(&pool).await.unwrap().get(0);
        assert_eq!(before, after, "the call ended the transaction");
        sqlx::raw_sql("ROLLBACK").execute(&pool).await.unwrap();
        locks
    }

    /// What the server has counted for each table, the children of a ring together.
    async fn rows(&mut self) -> BTreeMap<String, Rows> {
        // A session tells its counts at the end of a statement, and not each time unless it is asked to.
        sqlx::query("SELECT pg_stat_force_next_flush()").execute(self.store.pool()).await.unwrap();
        let sql = "SELECT s.relname::text, s.n_tup_ins, s.n_tup_upd, s.n_tup_del, s.n_dead_tup
                   FROM pg_stat_user_tables AS s WHERE s.schemaname = 'awa'";
        let mut tables: BTreeMap<String, Rows> = BTreeMap::new();
        for row in sqlx::query(sql).fetch_all(&mut self.watch).await.unwrap() {
            let name: String = row.get(0);
            let name = name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_').to_owned();
            let rows = tables.entry(name).or_default();
            rows.inserted += row.get::<i64, _>(1);
            rows.updated += row.get::<i64, _>(2);
            rows.deleted += row.get::<i64, _>(3);
            rows.dead += row.get::<i64, _>(4);
        }
        tables
    }
}

/// Rounded up to two digits, so that a byte more or less is no change.
fn rounded_up(number: i64) -> i64 {
    let mut grain = 1;
    while number / grain >= 100 {
        grain *= 10;
    }
    (number + grain - 1) / grain * grain
}
