//! What one job costs, counted and not timed: rows, index entries, log bytes, locks, dead rows.
//!
//! Each test has a server of its own, because log bytes are counted for a whole server.

use std::sync::Arc;
use std::time::Duration;

use awa_core::attempt::Receipt;
use awa_core::id::Slot;
use awa_core::ring::{RingKind, RotationPolicy};
use awa_core::store::{BatchLimit, ClaimRequest, ClaimShape, Consumer, Maintainer, Producer, RetentionPolicy, Rotated};
use awa_core::{AttemptEnd, Closure, ClosureAnswer, InstanceId, JobKind, JsonText, NewJob, Nonce, QueueName};
use awa_pg::cluster::{Cluster, ClusterOptions, Durability};
use awa_store_sqlx::SqlxStore;
use sqlx::{AssertSqlSafe, PgConnection, Row};

const INSTANCE: InstanceId = InstanceId(7);

/// A server, a store on it, and a second connection that looks on.
struct Bench {
    store: SqlxStore,
    queue: QueueName,
    cluster: Arc<Cluster>,
}

impl Bench {
    async fn new() -> Self {
        let start = || {
            let settings = [("autovacuum", "off"), ("checkpoint_timeout", "1h"), ("max_wal_size", "4GB")];
            let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
            // Without full pages in the log, the number of bytes is the same in every run.
            Cluster::start(ClusterOptions { durability: Durability::Relaxed, settings })
        };
        let cluster = tokio::task::spawn_blocking(start).await.unwrap().expect("PostgreSQL can be started");
        let options = SqlxStore::options().max_connections(2).wakeups(false);
        let store = options.connect(&cluster.url("postgres")).await.unwrap();
        store.prepare_schema().await.unwrap();
        let queue = QueueName::new("email").unwrap();
        store.open_queue(&queue).await.unwrap();
        Self { store, queue, cluster: Arc::new(cluster) }
    }

    fn jobs(&self, count: usize) -> Vec<NewJob> {
        let args = JsonText::new("args", r#"{"to":"someone@example.org","template":"welcome-12345"}"#).unwrap();
        assert_eq!(args.as_str().len(), 55);
        vec![NewJob::new(self.queue.clone(), JobKind::new("send_email").unwrap(), args); count]
    }

    async fn claim(&self, max: usize, nonce: i64) -> Vec<awa_core::ClaimedJob> {
        self.claim_in(ClaimShape::Compact, max, nonce).await
    }

    async fn claim_in(&self, shape: ClaimShape, max: usize, nonce: i64) -> Vec<awa_core::ClaimedJob> {
        let request = ClaimRequest {
            queue: self.queue.clone(),
            instance: INSTANCE,
            nonce: Nonce(nonce),
            max_jobs: BatchLimit::new(max).unwrap(),
            max_bytes: 1 << 24,
            deadline: None,
            aging: None,
            shape,
        };
        self.store.claim(&request).await.unwrap().jobs
    }

    async fn life_of(&self, batch: usize) {
        self.life_in(ClaimShape::Compact, batch).await;
    }

    async fn life_in(&self, shape: ClaimShape, batch: usize) {
        self.store.enqueue(&self.jobs(batch)).await.unwrap();
        let jobs = self.claim_in(shape, batch, 1).await;
        assert_eq!(jobs.len(), batch);
        let closures: Vec<_> =
            jobs.iter().map(|job| Closure { receipt: job.receipt, end: AttemptEnd::Complete }).collect();
        let answers = self.store.close(&closures).await.unwrap();
        assert!(answers.iter().all(|answer| *answer == ClosureAnswer::Closed));
    }

    async fn number(&self, sql: &str) -> i64 {
        sqlx::query(AssertSqlSafe(sql)).fetch_one(self.store.pool()).await.unwrap().get(0)
    }

    async fn log_bytes(&self) -> i64 {
        self.number("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").await
    }
}

/// How far the log has been flushed.
const FLUSHED: &str = "SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint";
const QUEUE_RING: [&str; 4] =
    ["ready_entries", "ready_claim_attempt_batches", "receipt_completion_batches", "done_entries"];
const CLAIM_RING: [&str; 4] =
    ["lease_claim_batches", "lease_claim_closure_batches", "lease_claims", "lease_claim_closures"];

impl Bench {
    /// What the server counted for all children of these tables.
    async fn counted(&self, column: &str, tables: &[&str]) -> i64 {
        let names: Vec<String> = tables.iter().map(|table| format!("relname ~ '^{table}_[0-9]+$'")).collect();
        self.number(&format!(
            "SELECT coalesce(sum({column}), 0)::bigint FROM pg_stat_user_tables WHERE {}",
            names.join(" OR ")
        ))
        .await
    }

    /// Waits until the counters of everything that was done are there: a backend reports when it ends, which is a moment
    /// after its client has. Asked in another database, so that asking is not counted.
    async fn settle(&self) {
        self.store.pool().close().await;
        let mut moments = tokio::time::interval(Duration::from_millis(10));
        for _ in 0..1_000 {
            moments.tick().await;
            let cluster = Arc::clone(&self.cluster);
            let left = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'postgres';";
            let left = tokio::task::spawn_blocking(move || cluster.psql("template1", left)).await.unwrap().unwrap();
            if left.trim() == "0" {
                return;
            }
        }
        panic!("backends do not end");
    }

    /// Another look at the same server, after [`Self::settle`].
    async fn again(&self) -> Self {
        let store = SqlxStore::options().max_connections(1).wakeups(false);
        let store = store.connect(&self.cluster.url("postgres")).await.unwrap();
        Self { store, queue: self.queue.clone(), cluster: Arc::clone(&self.cluster) }
    }
}

#[tokio::test]
async fn a_success_writes_one_row_and_four_per_batch_and_changes_none() {
    let bench = Bench::new().await;
    let (batch, rounds) = (250, 4);
    for _ in 0..rounds {
        bench.life_of(batch).await;
    }
    bench.settle().await;
    let bench = bench.again().await;
    let (batches, jobs) = (rounds, i64::try_from(batch).unwrap() * rounds);
    assert_eq!(bench.counted("n_tup_ins", &["ready_entries"]).await, jobs);
    let per_batch = [
        "ready_claim_attempt_batches",
        "lease_claim_batches",
        "lease_claim_closure_batches",
        "receipt_completion_batches",
    ];
    assert_eq!(bench.counted("n_tup_ins", &per_batch).await, 4 * batches);
    assert_eq!(bench.counted("n_tup_ins", &["done_entries", "lease_claims", "lease_claim_closures"]).await, 0);
    let rings = [&QUEUE_RING[..], &CLAIM_RING[..]].concat();
    for column in ["n_tup_upd", "n_tup_del", "n_dead_tup"] {
        assert_eq!(bench.counted(column, &rings).await, 0, "{column} of the rings");
    }
}

/// An entry of three numbers takes 32 bytes and a line pointer of 4, and pages that are filled in order are left with a
/// tenth free: 40 bytes. A second index with an entry per job, however narrow, would add 20 at least.
#[tokio::test]
async fn a_job_writes_one_index_entry() {
    let bench = Bench::new().await;
    let (batches, batch) = (10, 2_000);
    for _ in 0..batches {
        bench.store.enqueue(&bench.jobs(batch)).await.unwrap();
    }
    let bytes = "SELECT pg_indexes_size('awa.ready_entries_0')::bigint";
    let per_job = bench.number(bytes).await / i64::try_from(batches * batch).unwrap();
    println!("{per_job} bytes of index per waiting job");
    assert!((36..50).contains(&per_job), "{per_job} bytes of index per waiting job");
}

/// I6 holds in both shapes: a row-local claim writes one row per job, and so does its end, and none is ever changed.
#[tokio::test]
async fn a_row_local_success_writes_three_rows_and_changes_none() {
    let bench = Bench::new().await;
    let (batch, rounds) = (100, 3);
    for _ in 0..rounds {
        bench.life_in(ClaimShape::RowLocal, batch).await;
    }
    bench.settle().await;
    let bench = bench.again().await;
    let jobs = i64::try_from(batch).unwrap() * rounds;
    for table in ["ready_entries", "lease_claims", "lease_claim_closures"] {
        assert_eq!(bench.counted("n_tup_ins", &[table]).await, jobs, "{table}");
    }
    let per_batch = ["ready_claim_attempt_batches", "receipt_completion_batches"];
    assert_eq!(bench.counted("n_tup_ins", &per_batch).await, 2 * rounds);
    let compact = ["lease_claim_batches", "lease_claim_closure_batches", "done_entries"];
    assert_eq!(bench.counted("n_tup_ins", &compact).await, 0);
    let rings = [&QUEUE_RING[..], &CLAIM_RING[..]].concat();
    for column in ["n_tup_upd", "n_tup_del", "n_dead_tup"] {
        assert_eq!(bench.counted(column, &rings).await, 0, "{column} of the rings");
    }
}

impl Bench {
    /// The relations that a claim holds locks on, in a transaction that is rolled back.
    async fn locks_of_claim(&self, shape: &str, batches: i64) -> (String, i64) {
        let mut tx = self.store.pool().begin().await.unwrap();
        let claim = format!("SELECT count(*) FROM awa.claim_jobs('email', 7, 1, 100, 1000000, p_row_local => {shape})");
        let rows: i64 = sqlx::query(AssertSqlSafe(claim)).fetch_one(&mut *tx).await.unwrap().get(0);
        assert_eq!(rows, batches + 1, "the batches and the status");
        let locks = "SELECT coalesce(string_agg(DISTINCT relation::regclass::text, ' '), ''), count(DISTINCT relation)
                     FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation' AND relation >= 16384";
        let row = sqlx::query(locks).fetch_one(&mut *tx).await.unwrap();
        tx.rollback().await.unwrap();
        (row.get(0), row.get(1))
    }
}

#[tokio::test]
async fn a_claim_holds_at_most_sixteen_relation_locks_in_one_slot_and_twenty_two_in_two() {
    let bench = Bench::new().await;
    let at_once = RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 };
    for (slots, budget) in [(1, 16), (2, 22)] {
        for shape in ["false", "true"] {
            for round in 0..3 {
                bench.store.enqueue(&bench.jobs(10)).await.unwrap();
                if slots == 2 {
                    // A new slot is opened, and the one before is not drained.
                    bench.store.rotate(RingKind::Queue, &at_once).await.unwrap();
                    bench.store.enqueue(&bench.jobs(10)).await.unwrap();
                }
                let (names, count) = bench.locks_of_claim(shape, slots).await;
                println!("{slots} slots, row-local {shape}, round {round}: {count} relations: {names}");
                // The first INSERT into a child in each backend also looks at its parent.
                let budget = if round == 0 { budget + 2 } else { budget };
                assert!(count <= budget, "a claim of {slots} slots holds {count} relation locks: {names}");
                // What was rolled back is claimed again, so that the next round starts from an empty queue.
                let mut left = bench.claim(1_000, 2).await;
                left.extend(bench.claim(1_000, 3).await);
                assert_eq!(left.len(), if slots == 2 { 20 } else { 10 });
                bench.store.drain().await.unwrap();
            }
        }
    }
}

/// The arguments of jobs that a limit of bytes cuts off are not read to learn how long they are.
#[tokio::test]
async fn a_claim_reads_no_more_of_large_arguments_than_it_hands_out() {
    let bench = Bench::new().await;
    // Text that does not compress: each takes about 50 pages.
    let large = "SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 12500)";
    let large: String = sqlx::query(large).fetch_one(bench.store.pool()).await.unwrap().get(0);
    let args = JsonText::new("args", format!("\"{large}\"")).unwrap();
    let job = NewJob::new(bench.queue.clone(), JobKind::new("large").unwrap(), args);
    for _ in 0..5 {
        bench.store.enqueue(&vec![job.clone(); 40]).await.unwrap();
    }
    let claim = "EXPLAIN (ANALYZE, BUFFERS) SELECT * FROM awa.claim_jobs('email', 7, 1, 1000, 3000000)";
    let plan = sqlx::query(claim).fetch_all(bench.store.pool()).await.unwrap();
    let lines: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
    let buffers = lines.iter().find_map(|line| line.split_once("shared hit=")).expect("buffers are counted").1;
    let hits: i64 = buffers.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap();
    let claimed = bench.number("SELECT sum(members)::bigint FROM awa.lease_claim_batches").await;
    println!("a claim of {claimed} large jobs of 200 touches {hits} buffers");
    assert_eq!(claimed, 8);
    // All 200 have 10,000 pages, and each page is found by the index of its table.
    assert!(hits < 5_000, "{hits} buffers");
}

#[tokio::test]
async fn an_empty_claim_writes_nothing_and_locks_no_row() {
    let bench = Bench::new().await;
    bench.life_of(10).await;
    // An asynchronous commit is flushed by somebody else, at a time of his own.
    let mut moments = tokio::time::interval(Duration::from_millis(10));
    for _ in 0..1_000 {
        if bench.number(FLUSHED).await >= bench.log_bytes().await {
            break;
        }
        moments.tick().await;
    }
    let (before, flushed) = (bench.log_bytes().await, bench.number(FLUSHED).await);
    let xid = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint";
    let next = bench.number(xid).await;
    for _ in 0..50 {
        assert_eq!(bench.claim(100, 3).await, []);
    }
    assert_eq!(bench.number(xid).await, next, "no transaction number was drawn");
    assert_eq!(bench.log_bytes().await, before, "nothing was logged");
    assert_eq!(bench.number(FLUSHED).await, flushed, "nothing was flushed");
    let mut tx = bench.store.pool().begin().await.unwrap();
    sqlx::query("SELECT count(*) FROM awa.claim_jobs('email', 7, 1, 10, 1000000)").fetch_one(&mut *tx).await.unwrap();
    let strong = "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()
                  AND (locktype = 'advisory' OR mode NOT IN ('AccessShareLock', 'ExclusiveLock'))";
    let strong: i64 = sqlx::query(strong).fetch_one(&mut *tx).await.unwrap().get(0);
    assert_eq!(strong, 0, "nothing stronger than a reader's lock");
}

#[tokio::test]
async fn a_batch_of_500_is_one_statement_each_to_enqueue_claim_and_complete() {
    let mut bench = Bench::new().await;
    bench.life_of(500).await;
    // Each statement of the driver is one transaction of the server. What connecting, preparing and looking cost is the
    // same each time.
    let commits = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()";
    let mut counted = Vec::new();
    for lives in [1, 2, 5] {
        bench.settle().await;
        bench = bench.again().await;
        let before = bench.number(commits).await;
        for _ in 0..lives {
            bench.life_of(500).await;
        }
        bench.settle().await;
        bench = bench.again().await;
        counted.push(bench.number(commits).await - before);
    }
    println!("transactions for 1, 2 and 5 times 500 jobs: {counted:?}");
    assert_eq!([counted[1] - counted[0], counted[2] - counted[1]], [3, 9]);
}

#[tokio::test]
async fn a_job_costs_no_more_log_than_budgeted() {
    let bench = Bench::new().await;
    for (batch, rounds, budget) in [(500, 20, 275), (8, 200, 400), (1, 500, 1_200)] {
        bench.life_of(batch).await;
        let before = bench.log_bytes().await;
        for _ in 0..rounds {
            bench.life_of(batch).await;
        }
        let each = (bench.log_bytes().await - before) / i64::try_from(batch * rounds).unwrap();
        println!("batches of {batch}: {each} bytes of log per job, budget {budget}");
        assert!(each <= budget, "batches of {batch}: {each} bytes of log per job are more than {budget}");
    }
}

#[tokio::test]
async fn ending_an_attempt_costs_the_same_beside_a_large_transaction() {
    let bench = Bench::new().await;
    let mut touched = Vec::new();
    for backlog in [1_000, 50_000] {
        // One transaction appends all of it, so that all rows share their transaction number.
        bench.store.enqueue(&bench.jobs(backlog)).await.unwrap();
        let jobs = bench.claim(200, 4).await;
        assert_eq!(jobs.len(), 200);
        let column = |of: &dyn Fn(&awa_core::attempt::Receipt) -> i64| {
            let values: Vec<_> = jobs[..100].iter().map(|job| of(&job.receipt).to_string()).collect();
            values.join(",")
        };
        let end = format!(
            "SELECT * FROM awa.end_attempts(
                 ARRAY[{}]::smallint[], ARRAY[{}]::bigint[], ARRAY[{}]::bigint[], array_fill(4::smallint, ARRAY[100]),
                 array_fill('dead'::text, ARRAY[100]), array_fill(NULL::bigint, ARRAY[100]),
                 array_fill('boom'::text, ARRAY[100]), array_fill(NULL::json, ARRAY[100]))",
            column(&|receipt| i64::from(receipt.claim_slot.0)),
            column(&|receipt| receipt.nonce.0),
            column(&|receipt| receipt.id.get()),
        );
        let mut session = bench.store.pool().acquire().await.unwrap();
        touched.push(buffers(&mut session, &end).await);
        let rest: Vec<_> =
            jobs[100..].iter().map(|job| Closure { receipt: job.receipt, end: AttemptEnd::Complete }).collect();
        bench.store.close(&rest).await.unwrap();
        while !bench.claim(1_000, 5).await.is_empty() {}
    }
    println!("buffers touched by 100 failures beside 1,000 and 50,000 jobs of one transaction: {touched:?}");
    assert!(touched[1] < touched[0] * 2, "{touched:?}");
}

/// A claim slot with the claims and closures of 100,000 batches of one, as workers that claim one by one leave them.
const MANY_CLAIMS: &str = "
    INSERT INTO awa.lease_claim_batches_0 (
        batch_id, lane_id, attempt_seq, claimed_at, instance_id, nonce, claim_slot, ready_slot, members)
    SELECT 1000000 + n, 1, n, now(), 7, 1, 0, 0, 1 FROM generate_series(1, 100000) AS n";
const MANY_CLOSURES: &str = "
    INSERT INTO awa.lease_claim_closure_batches_0 (claim_slot, outcome, receipt)
    SELECT 0, 1, ((1000000 + n) << 10) + 1 FROM generate_series(1, 100000) AS n";

/// What a statement touches, in buffers.
async fn buffers(session: &mut PgConnection, statement: &str) -> i64 {
    let explained = format!("EXPLAIN (ANALYZE, BUFFERS) {statement}");
    let plan = sqlx::query(AssertSqlSafe(explained)).fetch_all(session).await.unwrap();
    let lines = plan.iter().map(|row| row.get::<String, _>(0));
    let hits = lines.into_iter().find_map(|line| line.split_once("shared hit=").map(|(_, rest)| rest.to_owned()));
    hits.unwrap().chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

#[tokio::test]
async fn ending_an_attempt_costs_the_same_beside_many_claims() {
    let bench = Bench::new().await;
    bench.life_of(3).await;
    let mut session = bench.store.pool().acquire().await.unwrap();
    let mut touched = Vec::new();
    for claims in [10, 3_000] {
        for shape in [ClaimShape::Compact, ClaimShape::RowLocal] {
            bench.store.enqueue(&bench.jobs(claims + 4)).await.unwrap();
            let mut held = Vec::new();
            for _ in 0..claims + 4 {
                held.append(&mut bench.claim_in(shape, 1, 9).await);
            }
            let complete = |receipt: &Receipt| {
                let (slot, batch, id) = (receipt.claim_slot.0, receipt.id.batch().0, receipt.id.get());
                format!(
                    "SELECT * FROM awa.complete_attempts('{{{slot}}}', '{{{batch}}}', '{{9}}', '{{\"{{[{id},{})}}\"}}')",
                    id + 1
                )
            };
            let fail = |receipt: &Receipt| {
                let (slot, id) = (receipt.claim_slot.0, receipt.id.get());
                format!(
                    "SELECT * FROM awa.end_attempts('{{{slot}}}', '{{9}}', '{{{id}}}', '{{4}}', '{{dead}}', '{{NULL}}',
                                                    '{{boom}}', '{{NULL}}')"
                )
            };
            let ways: [&dyn Fn(&Receipt) -> String; 2] = [&complete, &fail];
            for (way, attempts) in ways.iter().zip(held[claims..].chunks(2)) {
                // The first call of a session also reads the catalog.
                buffers(&mut session, &way(&attempts[0].receipt)).await;
                touched.push((claims, shape, buffers(&mut session, &way(&attempts[1].receipt)).await));
            }
        }
    }
    println!("buffers touched beside 10 and 3,000 open claims, to complete and to fail: {touched:?}");
    for (few, many) in touched[..4].iter().zip(&touched[4..]) {
        assert!(many.2 <= few.2 + 40, "{few:?} became {many:?}");
    }
}

#[tokio::test]
async fn a_slot_is_proven_spent_under_its_lock_without_reading_closures_again() {
    let bench = Bench::new().await;
    bench.life_of(1).await;
    for fill in [MANY_CLAIMS, MANY_CLOSURES] {
        sqlx::query(fill).execute(bench.store.pool()).await.unwrap();
    }
    let at_once = RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 };
    for ring in [RingKind::Queue, RingKind::Claim] {
        bench.store.rotate(ring, &at_once).await.unwrap();
    }
    bench.store.drain().await.unwrap();
    let pages = bench.number("SELECT pg_relation_size('awa.lease_claim_batches_0') / 8192").await;
    let nothing = RetentionPolicy::NONE;
    for ring in [RingKind::Queue, RingKind::Claim] {
        let reports = bench.store.prune(ring, &nothing).await.unwrap();
        assert!(matches!(reports[..], [ref one] if one.kept.is_none()), "{ring}: {reports:?}");
    }
    bench.settle().await;
    let bench = bench.again().await;
    // Once to prove the slot of the queue ring, once for that of the claim ring, and never under a lock.
    let read = "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname =";
    let closures = bench.number(&format!("{read} 'lease_claim_closure_batches_0'")).await;
    let claims = bench.number(&format!("{read} 'lease_claim_batches_0'")).await;
    println!("rows read to empty both slots: {closures} closures, {claims} claims (in {pages} pages)");
    assert!((200_000..200_100).contains(&closures), "{closures} closures were read");
    assert!((300_000..400_100).contains(&claims), "{claims} claims were read, at most once under the lock");
}

impl Bench {
    /// Pages that a claim looks at which finds nothing, in its third run on a connection: the first marks dead index entries
    /// and fills the connection's caches.
    async fn pages_of_an_empty_claim(&self) -> i64 {
        let (mut connection, mut pages) = (self.store.pool().acquire().await.unwrap(), 0);
        for _ in 0..3 {
            let claim = "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF)
                         SELECT c.batch_id FROM awa.claim_jobs('email', 7, 1, 10, 1000000) AS c";
            let lines = sqlx::query(claim).fetch_all(&mut *connection).await.unwrap();
            let lines: Vec<String> = lines.iter().map(|line| line.get(0)).collect();
            let buffers = lines.iter().find(|line| line.contains("Buffers: shared")).expect("a claim looks at pages");
            let counts = buffers.split([' ', '=']).filter_map(|word| word.parse::<i64>().ok());
            pages = counts.sum();
        }
        pages
    }
}

/// Rows of a load that was rolled back are walked over by each claim that looks behind the cursor. They make the slot not
/// empty, so that it is sealed when it is old enough, and nobody waits in it, so that it is drained: claims look no more.
#[tokio::test]
async fn a_large_load_that_was_rolled_back_costs_claims_nothing_once_maintenance_has_run() {
    let bench = Bench::new().await;
    let before = bench.pages_of_an_empty_claim().await;
    let mut load = bench.store.pool().begin().await.unwrap();
    for _ in 0..20 {
        bench.store.enqueue_in(&mut load, &bench.jobs(5_000)).await.unwrap();
    }
    load.rollback().await.unwrap();
    let beside = bench.pages_of_an_empty_claim().await;
    let due = RotationPolicy { min_age: Duration::ZERO, max_bytes: u64::MAX };
    assert!(matches!(bench.store.rotate(RingKind::Queue, &due).await.unwrap(), Rotated::Opened(..)));
    assert_eq!(bench.store.drain().await.unwrap().slots, [Slot(0)]);
    let after = bench.pages_of_an_empty_claim().await;
    println!(
        "pages of an empty claim: {before} before a load of 100,000 that is rolled back, {beside} beside it, {after} after"
    );
    assert!(beside > 4 * before, "the load is in the way: {beside} pages");
    assert!(after <= before + 20, "{after} pages");
}
