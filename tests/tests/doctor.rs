//! What the doctor says about real stores in real trouble.

use std::time::Duration;

use awa_core::doctor::{Finding, Report, Severity};
use awa_core::ring::{RingKind, RotationPolicy};
use awa_core::store::{
    BatchLimit, ClaimRequest, ClaimShape, Consumer, Maintainer, Operator, Producer, RetentionPolicy,
};
use awa_core::{AttemptEnd, ClaimedJob, Closure, InstanceId, JobKind, JsonText, NewJob, Nonce, QueueName, RunAt};
use awa_store_sqlx::{DoctorOptions, SqlxStore};
use awa_tests::postgres::FreshStore;
use sqlx::AssertSqlSafe;

const AT_ONCE: RotationPolicy = RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 };

fn options() -> DoctorOptions {
    DoctorOptions {
        queue_rotation: AT_ONCE,
        claim_rotation: AT_ONCE,
        lease_rotation: AT_ONCE,
        retention: RetentionPolicy::default(),
        wakeup_patience: Duration::from_secs(20),
    }
}

async fn doctor(store: &SqlxStore) -> Report {
    store.doctor(&options()).await.expect("the doctor can look")
}

#[track_caller]
fn finding<'r>(report: &'r Report, object: &str) -> &'r Finding {
    let found = report.findings.iter().find(|finding| finding.object == object);
    found.unwrap_or_else(|| panic!("nothing about {object} in\n{report}"))
}

fn queue() -> QueueName {
    QueueName::new("email").unwrap()
}

fn job() -> NewJob {
    NewJob::new(queue(), JobKind::new("send").unwrap(), JsonText::new("args", "{}").unwrap())
}

async fn claim(store: &SqlxStore, max: usize) -> Vec<ClaimedJob> {
    let request = ClaimRequest {
        queue: queue(),
        instance: InstanceId(1),
        nonce: Nonce(1),
        max_jobs: BatchLimit::new(max).unwrap(),
        max_bytes: 1 << 20,
        deadline: None,
        aging: None,
        shape: ClaimShape::Compact,
    };
    store.claim(&request).await.unwrap().jobs
}

async fn run(store: &SqlxStore, sql: &str) {
    sqlx::query(AssertSqlSafe(sql.to_owned())).execute(store.pool()).await.unwrap();
}

#[tokio::test]
async fn a_fresh_store_is_in_order_and_its_wake_up_comes_back() {
    let fresh = FreshStore::with_server_clock().await;
    let report = doctor(&fresh.store).await;
    assert!(report.severity <= Severity::Notice, "{report}");
    let wakeups = finding(&report, "wake-ups");
    assert!(wakeups.severity == Severity::Ok && wakeups.what.contains("heard after"), "{wakeups}");
    assert_eq!(finding(&report, "maintenance").what, "no worker has ever run it");
    let schema = finding(&report, "schema");
    assert!(schema.what.starts_with("version ") && schema.what.contains("on PostgreSQL 1"), "{schema}");
    // The announcement of the doctor goes with its connection.
    let left = "SELECT 1 / (count(*) = 0)::integer FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
                WHERE l.locktype = 'advisory' AND d.datname = current_database()";
    for _ in 0..1_000 {
        if sqlx::query(left).execute(fresh.store.pool()).await.is_ok() {
            return;
        }
    }
    panic!("the doctor left an advisory lock behind");
}

#[tokio::test]
async fn a_schema_that_is_missing_or_does_not_fit_is_a_finding_and_no_failure() {
    let fresh = FreshStore::with_server_clock().await;
    run(&fresh.store, "UPDATE awa.installation SET fingerprint = 'other'").await;
    let report = doctor(&fresh.store).await;
    assert!(finding(&report, "schema").what.contains("run `awa migrate`"), "{report}");
    assert_eq!(report.severity, Severity::Critical);
    run(&fresh.store, "DROP SCHEMA awa CASCADE").await;
    let report = doctor(&fresh.store).await;
    assert_eq!(finding(&report, "schema").action, "run `awa migrate`");
    assert_eq!(report.severity, Severity::Critical);
}

#[tokio::test]
async fn each_slot_in_use_tells_why_it_is_kept() {
    let fresh = FreshStore::with_manual_clock().await;
    let store = &fresh.store;
    store.open_queue(&queue()).await.unwrap();
    // Slot 0: a job that runs. Slot 1: history. Slot 2: a job that waits. Slot 3 is open.
    store.enqueue(&[job()]).await.unwrap();
    let running = claim(store, 1).await;
    store.rotate(RingKind::Queue, &AT_ONCE).await.unwrap();
    store.enqueue(&[job()]).await.unwrap();
    let done = claim(store, 1).await;
    let closure = Closure { receipt: done[0].receipt, end: AttemptEnd::Complete };
    store.close(&[closure]).await.unwrap();
    store.rotate(RingKind::Queue, &AT_ONCE).await.unwrap();
    store.drain().await.unwrap();
    store.enqueue(&[job()]).await.unwrap();
    store.rotate(RingKind::Queue, &AT_ONCE).await.unwrap();
    store.enqueue(&[job()]).await.unwrap();
    let report = doctor(store).await;
    let kept = |slot: usize| finding(&report, &format!("queue ring slot {slot}")).what.clone();
    assert!(kept(0).contains("1 claimed jobs in it have not ended"), "{report}");
    assert!(kept(1).contains("its history is kept for 900 s more"), "{report}");
    assert!(kept(2).contains("jobs in it are waiting to be claimed"), "{report}");
    assert!(finding(&report, "queue ring").what.contains("no slot is free"), "{report}");
    assert_eq!(report.severity, Severity::Warning, "{report}");
    // It has changed nothing.
    let slots = "SELECT 1 / (string_agg(state, ' ' ORDER BY slot) = 'drained drained sealed open')::integer
                 FROM awa.queue_ring_slots";
    run(store, slots).await;
    assert_eq!(store.are_open(&[running[0].receipt]).await.unwrap(), [true]);
}

#[tokio::test]
async fn looking_for_waiting_rows_behind_cancelled_ones_leaves_no_trace() {
    let fresh = FreshStore::with_server_clock().await;
    let store = &fresh.store;
    store.open_queue(&queue()).await.unwrap();
    let ids = store.enqueue(&[job()]).await.unwrap();
    store.cancel(&[ids[0].id()], &awa_core::attempt::ErrorText::new("no")).await.unwrap();
    store.rotate(RingKind::Queue, &AT_ONCE).await.unwrap();
    let report = doctor(store).await;
    assert!(report.findings.iter().all(|finding| !finding.what.contains("waiting to be claimed")), "{report}");
    run(store, "SELECT 1 / (count(*) = 0)::integer FROM awa.ready_claim_attempt_batches").await;
    assert_eq!(store.drain().await.unwrap().slots.len(), 1, "the tick does it");
}

#[tokio::test]
async fn a_writer_in_a_sealed_slot_is_told_with_the_transaction_that_is_open() {
    let fresh = FreshStore::with_server_clock().await;
    let store = &fresh.store;
    store.open_queue(&queue()).await.unwrap();
    store.enqueue(&[job()]).await.unwrap();
    let mut tx = store.pool().begin().await.unwrap();
    store.enqueue_in(&mut tx, &[job()]).await.unwrap();
    store.rotate(RingKind::Queue, &AT_ONCE).await.unwrap();
    assert_eq!(claim(store, 10).await.len(), 1);
    let report = doctor(store).await;
    assert!(finding(&report, "queue ring slot 0").what.contains("still open"), "{report}");
    let facts = store.doctor_facts(&options()).await.unwrap();
    assert!(facts.snapshots.iter().any(|snapshot| snapshot.state.contains("in transaction")), "{facts:?}");
    tx.rollback().await.unwrap();
}

#[tokio::test]
async fn a_pointer_on_a_busy_slot_is_critical() {
    let fresh = FreshStore::with_manual_clock().await;
    let store = &fresh.store;
    store.enqueue(&[job()]).await.unwrap();
    store.rotate(RingKind::Queue, &AT_ONCE).await.unwrap();
    run(store, "SELECT setval('awa.queue_ring_pointer', 9 * 64)").await;
    let report = doctor(store).await;
    let ring = finding(&report, "queue ring");
    assert_eq!((ring.severity, ring.action.as_str()), (Severity::Critical, "run `awa repair`"), "{ring}");
}

#[tokio::test]
async fn work_that_waits_for_nobody_is_counted() {
    let fresh = FreshStore::with_manual_clock().await;
    let store = &fresh.store;
    let later = job().with_run_at(RunAt::After(Duration::from_secs(1)));
    store.enqueue(&[later.clone(), later, job()]).await.unwrap();
    fresh.clock.advance(Duration::from_mins(2));
    let report = doctor(store).await;
    let deferred = finding(&report, "deferred jobs");
    assert!(
        deferred.severity == Severity::Warning && deferred.what.contains("2 are due, the first for 119 s"),
        "{deferred}"
    );
    assert!(finding(&report, "lanes").what.contains("1 hints"), "{report}");
    store.promote(10).await.unwrap();
    store.tidy().await.unwrap();
    let jobs = claim(store, 1).await;
    let dead = AttemptEnd::Fail { error: awa_core::attempt::ErrorText::new("no") };
    store.close(&[Closure { receipt: jobs[0].receipt, end: dead }]).await.unwrap();
    store.beat(InstanceId(1), Duration::from_secs(30)).await.unwrap();
    let report = doctor(store).await;
    assert_eq!(finding(&report, "deferred jobs").severity, Severity::Ok, "{report}");
    assert!(finding(&report, "dead-letter queue").what.starts_with("1 jobs"), "{report}");
    assert!(finding(&report, "worker processes").what.starts_with("1 at work"), "{report}");
    assert!(store.census().await.is_ok());
}

#[tokio::test]
async fn dead_rows_replication_slots_and_prepared_transactions_are_read() {
    let fresh = FreshStore::with_server_clock().await;
    let store = &fresh.store;
    let mut tx = store.pool().begin().await.unwrap();
    store.enqueue_in(&mut tx, &[job()]).await.unwrap();
    tx.rollback().await.unwrap();
    let gid = fresh.database.name().to_owned();
    run(store, "CREATE TABLE beside (n integer)").await;
    let script = format!("BEGIN; INSERT INTO beside VALUES (1); PREPARE TRANSACTION '{gid}'");
    sqlx::raw_sql(AssertSqlSafe(script)).execute(store.pool()).await.unwrap();
    store.pool().close().await;
    let store = fresh.another_pool(|options| options).await;
    let facts = store.doctor_facts(&options()).await.unwrap();
    assert!(facts.prepared.iter().any(|prepared| prepared.gid == gid), "{facts:?}");
    let dead =
        facts.dead_rows.iter().find(|table| table.table == "ready_entries_0").expect("a rolled-back row is dead");
    assert!(dead.is_ring && dead.dead == 1, "{dead:?}");
    assert!(facts.sequences.iter().any(|sequence| sequence.name == "job_id_seq" && sequence.max == i64::MAX));
    run(&store, &format!("ROLLBACK PREPARED '{gid}'")).await;
}

#[tokio::test]
async fn what_is_outside_the_rings_and_the_ring_of_leases_is_told() {
    let fresh = FreshStore::with_manual_clock().await;
    let store = &fresh.store;
    store.open_queue(&queue()).await.unwrap();
    store.enqueue(&[job(), job()]).await.unwrap();
    let release =
        |job: &ClaimedJob| Closure { receipt: job.receipt, end: AttemptEnd::Release { delay: Duration::ZERO } };
    let jobs = claim(store, 2).await;
    store.close(&jobs.iter().map(release).collect::<Vec<_>>()).await.unwrap();
    assert_eq!(claim(store, 1).await.len(), 1);
    store.rotate(RingKind::Lease, &AT_ONCE).await.unwrap();
    let report = doctor(store).await;
    assert_eq!(finding(&report, "carried jobs").what, "1 wait outside the queue ring");
    assert_eq!(finding(&report, "leases").what, "1 attempts run outside the claim ring");
    let slot = finding(&report, "lease ring slot 0");
    assert!(slot.what.starts_with("not emptied, because 1 running jobs keep their state in it"), "{slot}");
    let ring = finding(&report, "lease ring");
    assert!(ring.what.contains("1 open, 1 sealed, 1 free") && ring.what.contains("the open slot is empty"), "{ring}");
    // A pointer that left its ledger is critical in this ring as well.
    run(store, "SELECT setval('awa.lease_ring_pointer', 9 * 64)").await;
    let report = doctor(store).await;
    let ring = finding(&report, "lease ring");
    assert!(ring.severity == Severity::Critical && ring.action == "run `awa repair`", "{ring}");
}
