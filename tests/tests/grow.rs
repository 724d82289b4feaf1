//! Rings that grow on real PostgreSQL: nobody who works waits for it, nothing that is under way is harmed, and what comes out
//! is what an installation of that size would have made.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use awa_core::id::Slot;
use awa_core::ring::RingKind;
use awa_core::store::{Grown, Maintainer, Operator, Producer, Rotated};
use awa_core::{AttemptEnd, ClosureAnswer, JobState, StoreErrorKind};
use awa_pg::cluster::{Cluster, ClusterOptions, Durability};
use awa_pg::{SchemaName, Sql};
use awa_store_sqlx::{RingSizes, SqlxStore};
use awa_tests::dump;
use awa_tests::postgres::SMALL_RINGS;
use awa_tests::stage::{Stage, complete_sql, pid, run, sqlstate, texts, try_run};
use sqlx::Row;

const CLAIM: &str = "SELECT unnest(c.job_ids)::text FROM awa.claim_jobs('races', 7, 7, 100, 1000000) AS c";

async fn grow(stage: &Stage, ring: RingKind, slots: u8) -> Grown {
    stage.store().grow_ring(ring, slots).await.expect("grow_ring")
}

/// The schema as `pg_dump` writes it, one entry per object.
fn dumped(cluster: &Cluster, database: &str) -> BTreeSet<String> {
    let mut dump = Command::new(cluster.bin("pg_dump").unwrap());
    let dump = dump.args(["--schema-only", "--dbname"]).arg(cluster.url(database)).output().unwrap();
    assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
    let text = String::from_utf8(dump.stdout).unwrap();
    text.split("\n\n\n").filter(|entry| !entry.contains("restrict ")).map(|entry| entry.trim().to_owned()).collect()
}

#[tokio::test]
async fn a_grown_schema_is_the_same_as_one_that_was_installed_with_that_size() {
    let start = || Cluster::start(ClusterOptions { durability: Durability::Relaxed, settings: Vec::new() });
    let cluster = Arc::new(tokio::task::spawn_blocking(start).await.unwrap().unwrap());
    if !dump::reads(&cluster) {
        return;
    }
    let large = RingSizes { queue: 6, claim: 5, lease: 4 };
    for (database, rings) in [("grown", SMALL_RINGS), ("large", large)] {
        cluster.create_database(database, None).unwrap();
        let options = SqlxStore::options().rings(rings).wakeups(false).max_connections(2);
        let store = options.connect(&cluster.url(database)).await.unwrap();
        store.prepare_schema().await.unwrap();
        // A role that was let in must not be locked out by a new slot.
        let grant = "DO $$ BEGIN IF to_regrole('app') IS NULL THEN CREATE ROLE app; END IF; END $$;
                     GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA awa TO app; GRANT DELETE ON ALL TABLES IN SCHEMA awa TO PUBLIC;
                     GRANT UPDATE ON awa.leases_0, awa.leases_1, awa.leases_2 TO app WITH GRANT OPTION;
                     REVOKE ALL ON ALL FUNCTIONS IN SCHEMA awa FROM PUBLIC; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA awa TO app";
        sqlx::raw_sql(grant).execute(store.pool()).await.unwrap();
        if database == "large" {
            let update = "GRANT UPDATE ON awa.leases_3 TO app WITH GRANT OPTION";
            sqlx::raw_sql(update).execute(store.pool()).await.unwrap();
        }
        for (ring, slots) in [(RingKind::Queue, 6), (RingKind::Claim, 5), (RingKind::Lease, 4)] {
            let grown = store.grow_ring(ring, slots).await.unwrap();
            assert!(matches!(grown, Grown::Done { to, .. } if to == slots), "{grown:?}");
        }
        // A program that starts now finds that it fits, and an upgrade has nothing to do.
        let again = SqlxStore::options().rings(rings).wakeups(false).connect(&cluster.url(database)).await.unwrap();
        again.check_ready().await.unwrap();
        assert_eq!(again.prepare_schema().await.unwrap().to_string(), "schema \"awa\" is up to date");
    }
    let (grown, large) = (dumped(&cluster, "grown"), dumped(&cluster, "large"));
    assert!(large.len() > 200 && grown.iter().any(|entry| entry.contains("ready_entries_order_5")));
    let differ: Vec<_> = grown.symmetric_difference(&large).collect();
    assert!(differ.is_empty(), "{differ:#?}");
}

/// C10: what growing locks, read from the server while it holds all of it: nothing that a reader or a writer meets.
#[tokio::test]
async fn growing_locks_nothing_that_anybody_who_works_needs() {
    let stage = Stage::new().await;
    let mut grower = stage.connect().await;
    run(&mut grower, "BEGIN").await;
    for (ring, slot) in [("queue", 4), ("claim", 3), ("lease", 3)] {
        run(&mut grower, &format!("SELECT awa.add_ring_slot('{ring}', {slot}::smallint)")).await;
    }
    let grown = Sql::new(&SchemaName::default(), RingSizes { queue: 5, claim: 4, lease: 4 });
    for object in grown.objects().iter().filter(|object| !object.is_view()) {
        run(&mut grower, &object.text).await;
    }
    let pid = pid(&mut grower).await;
    let locks = format!(
        "SELECT DISTINCT l.mode || CASE WHEN c.relkind = 'p' THEN ' on a parent' ELSE ' on ' || c.relname END
         FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation JOIN pg_namespace AS n ON n.oid = c.relnamespace
         WHERE l.pid = {pid} AND n.nspname = 'awa' AND l.mode NOT IN ('AccessShareLock') ORDER BY 1"
    );
    // Tables that were made in this transaction are not visible to others.
    let expected = [
        "RowExclusiveLock on claim_ring_slots",
        "RowExclusiveLock on lease_ring_slots",
        "RowExclusiveLock on queue_ring_slots",
        "ShareUpdateExclusiveLock on a parent",
    ];
    let seen = texts(&mut stage.connect().await, &locks).await;
    assert_eq!(seen.iter().flatten().collect::<Vec<_>>(), expected);
    run(&mut grower, "ROLLBACK").await;
    assert_eq!(grow(&stage, RingKind::Queue, 5).await, Grown::Done { from: 4, to: 5 }, "nothing was left behind");
}

/// C10, C2: producers, claims and completions go on while all rings grow, and so do transactions that were open before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_goes_on_while_rings_grow() {
    let stage = Arc::new(Stage::new().await);
    let (mut open, mut repeatable) = (stage.connect().await, stage.connect().await);
    run(&mut open, "BEGIN").await;
    run(&mut repeatable, "BEGIN ISOLATION LEVEL REPEATABLE READ").await;
    let mut jobs: BTreeSet<_> = stage.enqueue_in(&mut open, 2).await.into_iter().collect();
    jobs.extend(stage.enqueue_in(&mut repeatable, 2).await);
    let is_over = Arc::new(AtomicBool::new(false));
    let mut crew = Vec::new();
    for _ in 0..2 {
        let (stage, is_over) = (Arc::clone(&stage), Arc::clone(&is_over));
        crew.push(tokio::spawn(async move {
            let (mut enqueued, mut turns) = (Vec::new(), 0);
            while !is_over.load(Ordering::Relaxed) || turns < 20 {
                enqueued.extend(stage.enqueue(3).await);
                let attempts = stage.claim_once(4).await.jobs;
                stage.complete(&attempts).await;
                stage.rotate(RingKind::Queue).await;
                stage.rotate(RingKind::Claim).await;
                stage.drain().await;
                stage.prune(RingKind::Claim).await;
                turns += 1;
            }
            enqueued
        }));
    }
    for (ring, slots) in [(RingKind::Queue, 12), (RingKind::Claim, 9), (RingKind::Lease, 6)] {
        assert!(matches!(grow(&stage, ring, slots).await, Grown::Done { to, .. } if to == slots));
    }
    is_over.store(true, Ordering::Relaxed);
    for member in crew {
        jobs.extend(member.await.expect("nobody was refused anything"));
    }
    for connection in [&mut open, &mut repeatable] {
        jobs.extend(stage.enqueue_in(connection, 1).await);
        run(connection, "COMMIT").await;
    }
    let rest = stage.claim(10_000).await;
    stage.complete(&rest).await;
    let places = stage.places().await;
    assert!(jobs.iter().all(|job| places[job] == ["completed"]), "{places:?}");
    let slots = "SELECT count(DISTINCT s.slot) FROM awa.queue_ring_slots AS s WHERE s.generation > 0";
    assert_eq!(stage.number(slots).await, 12, "the ring turned into every slot that was added");
}

/// A lock that is in the way is waited for in short turns, and growing goes on when it is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_in_the_way_is_waited_for_without_holding_anybody_up() {
    let stage = Arc::new(Stage::new().await);
    let mut vacuum = stage.connect().await;
    run(&mut vacuum, "BEGIN; LOCK TABLE awa.ready_tombstones IN SHARE UPDATE EXCLUSIVE MODE").await;
    let growing = tokio::spawn({
        let stage = Arc::clone(&stage);
        async move { grow(&stage, RingKind::Queue, 5).await }
    });
    let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'awa.ready_tombstones'::regclass";
    while stage.number(waits).await == 0 {
        tokio::task::yield_now().await;
    }
    let jobs = stage.enqueue(2).await;
    let attempts = stage.claim(2).await;
    stage.complete(&attempts).await;
    assert_eq!(stage.place(jobs[0]).await, "completed");
    // It gives up once before it is let in.
    while stage.number(waits).await > 0 {
        tokio::task::yield_now().await;
    }
    run(&mut vacuum, "ROLLBACK").await;
    assert_eq!(growing.await.unwrap(), Grown::Done { from: 4, to: 5 });
}

/// A program that has run since before the growth, and a transaction that has cached the old functions, meet a slot that is
/// newer: they work in it or are told to call again, and never take an attempt for stale that is open.
#[tokio::test]
async fn programs_and_transactions_of_before_meet_the_new_slots() {
    let stage = Stage::with_manual_clock().await;
    let other = stage.fresh.another_pool(|options| options.wakeups(false)).await;
    // The other program has read the sizes, and the transaction has compiled the functions.
    other
        .rotate(RingKind::Lease, &awa_core::ring::RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 })
        .await
        .unwrap();
    stage.enqueue(3).await;
    let first = stage.claim(1).await;
    let mut old = stage.connect().await;
    run(&mut old, "BEGIN").await;
    assert_eq!(texts(&mut old, &complete_sql(&first)).await.len(), 1);
    assert_eq!(grow(&stage, RingKind::Claim, 4).await, Grown::Done { from: 3, to: 4 });
    assert_eq!(grow(&stage, RingKind::Queue, 5).await, Grown::Done { from: 4, to: 5 });
    for ring in [RingKind::Claim, RingKind::Queue] {
        for _ in 0..5 {
            if let Rotated::Opened(slot, _) = stage.rotate(ring).await {
                stage.enqueue(1).await;
                let attempts = stage.claim(1).await;
                assert!(slot.0 < 5 && attempts.len() == 1);
            }
        }
    }
    let open = stage.number("SELECT last_value & 63 FROM awa.claim_ring_pointer").await;
    assert_eq!(open, 3, "claims go to the slot that was added");
    let attempts = stage.claim(1).await;
    assert_eq!(attempts[0].receipt.claim_slot, Slot(3));
    let wanted = complete_sql(&attempts);
    match sqlx::query(sqlx::AssertSqlSafe(wanted.clone())).fetch_all(&mut old).await {
        Ok(rows) => {
            assert_eq!(rows.len(), 1, "the transaction closed it");
            run(&mut old, "ROLLBACK").await;
        }
        Err(error) => {
            assert_eq!(sqlstate(&error), "40001");
            run(&mut old, "ROLLBACK").await;
        }
    }
    // The other program maintains, rescues and ends in slots that it did not know.
    other.drain().await.unwrap();
    for ring in RingKind::ALL {
        let kept = other.prune(ring, &awa_core::store::RetentionPolicy::default()).await.unwrap();
        assert!(kept.iter().all(|report| report.slot.0 < 5), "{kept:?}");
    }
    stage.outlive().await;
    let retry = awa_tests::stage::steady_retry();
    let rescued = other.rescue(&Stage::rescue_request(), &retry).await.unwrap();
    assert!(rescued.attempts.iter().any(|attempt| attempt.job == attempts[0].receipt.job), "{rescued:?}");
    assert_eq!(stage.end(&attempts, AttemptEnd::Complete).await, [ClosureAnswer::Stale]);
    assert!(other.check_ready().await.is_ok());
}

/// A function that is older than a slot says so in a way that is tried again, and takes a slot that never was for what it is.
#[tokio::test]
async fn a_function_that_is_older_than_a_slot_asks_to_be_called_again() {
    let stage = Stage::new().await;
    let mut admin = stage.connect().await;
    stage.enqueue(1).await;
    let old: Vec<_> = Sql::new(&SchemaName::default(), SMALL_RINGS).objects().to_vec();
    assert_eq!(grow(&stage, RingKind::Queue, 5).await, Grown::Done { from: 4, to: 5 });
    assert_eq!(grow(&stage, RingKind::Claim, 4).await, Grown::Done { from: 3, to: 4 });
    let attempts = stage.claim(1).await;
    for object in old.iter().filter(|object| object.slot.is_none() && !object.is_view()) {
        run(&mut admin, &object.text).await;
    }
    for (ring, slot) in [("queue", 4), ("claim", 3)] {
        run(&mut admin, &format!("SELECT awa.open_{ring}_slot({slot}::smallint, 2, now())")).await;
    }
    for call in [
        "SELECT awa.enter_ready_slot()",
        "SELECT awa.enter_claim_slot(false)",
        "SELECT awa.enter_claim_slot(true)",
        "SELECT awa.queue_slot_bytes(4::smallint)",
        "SELECT awa.truncate_claim_slot(3::smallint)",
        "SELECT awa.try_lock_queue_slot(4::smallint, true)",
        "SELECT awa.unpassed_lanes(4::smallint)",
        CLAIM,
        "SELECT awa.complete_attempts('{3}', '{7}', '{7}', '{\"{[7169,7170)}\"}')",
    ] {
        let error = try_run(&mut admin, call).await.expect_err(call);
        assert_eq!(sqlstate(&error), "40001", "{call}: {error}");
    }
    let error = stage.store().enqueue(&stage.jobs(1)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Contended, "{error}");
    // A receipt with a slot that no ring has was never issued.
    let mut forged = attempts[0].clone();
    forged.receipt.claim_slot = Slot(40);
    assert_eq!(stage.end(&[forged], AttemptEnd::Complete).await, [ClosureAnswer::Stale]);
    let damaged = try_run(&mut admin, "SELECT awa.queue_slot_bytes(40::smallint)").await.unwrap_err();
    assert_eq!(sqlstate(&damaged), "AW002");
}

/// A role that is not the owner is refused; a superuser leaves behind what the owner could have made.
#[tokio::test]
async fn what_is_added_belongs_to_the_owner() {
    let stage = Stage::new().await;
    let mut admin = stage.connect().await;
    let owner = format!("owner_{}", stage.fresh.database.name());
    let give = format!(
        "CREATE ROLE \"{owner}\" LOGIN; GRANT ALL ON SCHEMA awa TO \"{owner}\"; DO $$ DECLARE r record; BEGIN
         FOR r IN SELECT format('ALTER %s %s OWNER TO %I', CASE relkind WHEN 'S' THEN 'SEQUENCE' WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END,
                  c.oid::regclass, '{owner}') AS script FROM pg_class AS c
                  WHERE relnamespace = 'awa'::regnamespace AND relkind IN ('r', 'p', 'S', 'v') LOOP EXECUTE r.script; END LOOP;
         FOR r IN SELECT format('ALTER ROUTINE %s OWNER TO %I', oid::regprocedure, '{owner}') AS script FROM pg_proc
                  WHERE pronamespace = 'awa'::regnamespace LOOP EXECUTE r.script; END LOOP; END $$"
    );
    run(&mut admin, &give).await;
    assert_eq!(grow(&stage, RingKind::Queue, 6).await, Grown::Done { from: 4, to: 6 });
    let strangers = format!(
        "SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = 'awa'::regnamespace AND relkind <> 'c' AND relowner <> '\"{owner}\"'::regrole)
              + (SELECT count(*) FROM pg_proc WHERE pronamespace = 'awa'::regnamespace AND proowner <> '\"{owner}\"'::regrole)"
    );
    assert_eq!(stage.number(&strangers).await, 0);
    run(&mut admin, &format!("DROP OWNED BY \"{owner}\" CASCADE; DROP ROLE \"{owner}\"")).await;
}

/// A ring of 64 slots, the largest there is, is gone around once.
#[tokio::test]
async fn the_largest_ring_is_gone_around() {
    let stage = Stage::new().await;
    assert_eq!(grow(&stage, RingKind::Queue, 64).await, Grown::Done { from: 4, to: 64 });
    let waiting = stage.enqueue(1).await;
    let mut opened = BTreeSet::new();
    for _ in 0..70 {
        stage.enqueue(1).await;
        let rotated = stage.rotate(RingKind::Queue).await;
        if let Rotated::Opened(slot, _) = rotated {
            opened.insert(slot);
        }
    }
    assert_eq!(opened.len(), 63, "every slot but the first, in which it began");
    let jobs = stage.claim(1_000).await;
    assert_eq!((jobs.len(), jobs[0].receipt.job), (71, waiting[0]));
    stage.complete(&jobs).await;
    let census = stage.store().census().await.unwrap();
    assert!(census.iter().any(|count| count.state == JobState::Completed && count.jobs == 71), "{census:?}");
    let row = sqlx::query("SELECT queue_slots FROM awa.installation").fetch_one(stage.store().pool()).await.unwrap();
    assert_eq!(row.get::<i16, _>(0), 64);
}
