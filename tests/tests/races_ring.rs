//! Races of rotation, draining and pruning with everybody else, stepped by hand on real PostgreSQL: no slot is reclaimed over
//! work, no job is put where nobody looks, and maintenance never stands in the way.

use awa_core::attempt::ErrorText;
use awa_core::id::{Generation, Slot};
use awa_core::prune::{ClaimProof, KeepReason};
use awa_core::ring::{RingKind, RotationPolicy};
use awa_core::store::{Consumer, Maintainer, Producer, RetentionPolicy, Rotated};
use awa_core::unpin::UnpinPolicy;
use awa_core::{AttemptEnd, Closure, ClosureAnswer, JobId};
use awa_pg::{SchemaName, Sql};
use awa_tests::postgres::SMALL_RINGS;
use awa_tests::stage::{Stage, complete_sql, pid, run, texts, try_run};
use sqlx::{AssertSqlSafe, Connection, Row};
use std::time::Duration;

const CLAIM: &str = "SELECT unnest(c.job_ids)::text FROM awa.claim_jobs('races', 7, 7, 100, 1000000) AS c";

/// One job from its enqueue to its completion, so that the open slot is not empty.
async fn one_life(stage: &Stage) {
    stage.enqueue(1).await;
    let jobs = stage.claim(1).await;
    stage.complete(&jobs).await;
}

async fn slot_of(stage: &Stage, job: JobId) -> i64 {
    stage.number(&format!("SELECT ready_slot::bigint FROM awa.ready_entries WHERE job_id = {job}")).await
}

/// M4: a producer reads the pointer and waits for the child's lock; the ring turns twice meanwhile, with a stop in between.
/// It must end in the slot that is open now, not in the one that was open when it read again.
#[tokio::test]
async fn a_producer_that_two_rotations_overtake_writes_into_the_open_slot() {
    let stage = Stage::new().await;
    one_life(&stage).await;
    let (mut first, mut second) = (stage.connect().await, stage.connect().await);
    run(&mut first, "BEGIN; LOCK TABLE awa.ready_entries_0 IN SHARE MODE").await;
    let mut producer = stage.connect().await;
    let waiting = pid(&mut producer).await;
    let (store, jobs) = (stage.store().clone(), stage.jobs(1));
    let enqueue = tokio::spawn(async move { store.enqueue_in(&mut producer, &jobs).await.unwrap()[0].id() });
    stage.until_blocked(waiting).await;

    assert!(matches!(stage.rotate(RingKind::Queue).await, Rotated::Opened(Slot(1), _)));
    // By the function: the store's own statement would look for the ring behind the lock that is held here.
    stage.enqueue_in(&mut second, 1).await;
    let jobs = stage.claim(1).await;
    stage.complete(&jobs).await;
    run(&mut second, "BEGIN; LOCK TABLE awa.ready_entries_1 IN SHARE MODE").await;
    run(&mut first, "COMMIT").await;
    // It has slot 0, sees that the pointer moved on, and waits for slot 1.
    let waits_for_1 = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'awa.ready_entries_1'::regclass \
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    while stage.number(waits_for_1).await == 0 {
        tokio::task::yield_now().await;
    }
    assert!(matches!(stage.rotate(RingKind::Queue).await, Rotated::Opened(Slot(2), _)));
    run(&mut second, "COMMIT").await;
    let job = enqueue.await.unwrap();
    assert_eq!(slot_of(&stage, job).await, 2);
    assert_eq!(stage.claim_once(5).await.jobs.len(), 1);
    assert_eq!(stage.drain().await.slots, [Slot(0), Slot(1)]);
}

/// M5: a rotation has moved the pointer and is killed, or stands still, before it commits. What is written meanwhile is
/// claimed at once, nothing is drained or reclaimed over it, and the next tick adds exactly the ledger row that is missing.
#[tokio::test]
async fn a_rotation_that_dies_after_moving_the_pointer_hides_no_job_and_is_repaired() {
    let stage = Stage::new().await;
    one_life(&stage).await;
    let mut rotator = stage.connect().await;
    run(&mut rotator, "BEGIN; SELECT awa.open_queue_slot(1::smallint, 2, now())").await;
    let before = stage.enqueue(1).await;
    assert_eq!(slot_of(&stage, before[0]).await, 1, "writers follow the pointer at once");
    assert_eq!(stage.claim_once(5).await.jobs.len(), 1, "beside a rotation that stands still");
    let victim = pid(&mut rotator).await;
    stage.number(&format!("SELECT pg_terminate_backend({victim}, 10000)::int::bigint")).await;
    let after = stage.enqueue(2).await;
    assert_eq!(slot_of(&stage, after[0]).await, 1);
    assert_eq!(stage.claim_once(5).await.jobs.len(), 2, "after the rotator died");
    let waiting = stage.enqueue(1).await;
    stage.drain().await;
    stage.prune(RingKind::Queue).await;
    assert!(matches!(stage.rotate(RingKind::Queue).await, Rotated::Repaired(Slot(1), _)));
    let ledger = "SELECT string_agg(generation || ':' || slot, ' ' ORDER BY generation) FROM awa.queue_ring_rotations";
    assert_eq!(texts(&mut stage.connect().await, ledger).await, [Some("1:0 2:1".to_owned())]);
    assert_eq!(stage.claim_once(5).await.jobs[0].receipt.job, waiting[0]);
    assert!(matches!(stage.rotate(RingKind::Queue).await, Rotated::Opened(Slot(2), _)));
}

/// M5 in the claim ring: claims go on while a rotation that died has only moved the pointer.
#[tokio::test]
async fn a_claim_ring_rotation_that_dies_is_repaired_and_loses_no_claim() {
    let stage = Stage::with_manual_clock().await;
    one_life(&stage).await;
    let mut rotator = stage.connect().await;
    run(&mut rotator, "BEGIN; SELECT awa.open_claim_slot(1::smallint, 2, now()); ROLLBACK").await;
    stage.enqueue(2).await;
    let jobs = stage.claim(2).await;
    assert_eq!(jobs[0].receipt.claim_slot, Slot(1));
    stage.complete(&jobs[..1]).await;
    // A slot that the ledger calls free, and that holds an open claim, is swept like any other.
    stage.outlive().await;
    let retry = awa_tests::stage::steady_retry();
    let rescued = stage.store().rescue(&Stage::rescue_request(), &retry).await.unwrap();
    assert_eq!(rescued.attempts.len(), 1);
    assert!(matches!(stage.rotate(RingKind::Claim).await, Rotated::Repaired(Slot(1), _)));
}

/// Two rotators at once: the ledger's key lets one of them open each generation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rotators_at_once_open_each_generation_once() {
    let stage = Stage::new().await;
    for _ in 0..12 {
        one_life(&stage).await;
        let before = stage.number("SELECT max(generation) FROM awa.queue_ring_rotations").await;
        let turns =
            tokio::join!(stage.rotate(RingKind::Queue), stage.rotate(RingKind::Queue), stage.rotate(RingKind::Queue),);
        let opened = [turns.0, turns.1, turns.2].iter().filter(|turn| matches!(turn, Rotated::Opened(..))).count();
        let after = stage.number("SELECT max(generation) FROM awa.queue_ring_rotations").await;
        assert_eq!(after - before, i64::try_from(opened).unwrap(), "{turns:?}");
        let open = "SELECT count(*) FROM awa.queue_ring_slots WHERE state = 'open' AND slot = (SELECT last_value & 63 FROM awa.queue_ring_pointer)";
        assert_eq!(stage.number(open).await, 1);
        stage.drain().await;
        stage.prune(RingKind::Queue).await;
    }
}

/// F4, M1: a claim has listed a slot and stands still before it looks into it; the slot is reclaimed and opened again.
/// The claim takes nothing of the new generation twice, and an open claim on the slot is proof enough to keep it.
#[tokio::test]
async fn a_claim_that_stands_still_over_a_whole_turn_takes_nothing_twice() {
    let stage = Stage::new().await;
    one_life(&stage).await;
    stage.rotate(RingKind::Queue).await;
    assert_eq!(stage.number("SELECT count(*) FROM awa.queue_ring_slots WHERE state = 'sealed'").await, 1);
    // Two exclusive locks, one behind the other, hold the claim up while the first one reclaims the slot.
    let (mut reclaimer, mut holder, mut claimer) =
        (stage.connect().await, stage.connect().await, stage.connect().await);
    run(&mut reclaimer, "BEGIN; SELECT awa.try_lock_queue_slot(0::smallint, true)").await;
    let (hold_pid, claim_pid) = (pid(&mut holder).await, pid(&mut claimer).await);
    let holding = tokio::spawn(async move {
        run(&mut holder, "BEGIN; LOCK TABLE awa.ready_entries_0 IN ACCESS EXCLUSIVE MODE").await;
        holder
    });
    stage.until_blocked(hold_pid).await;
    let claiming = tokio::spawn(async move { texts(&mut claimer, CLAIM).await });
    stage.until_blocked(claim_pid).await;
    run(&mut reclaimer, "SELECT awa.truncate_queue_slot(0::smallint); COMMIT").await;
    let mut holder = holding.await.unwrap();
    run(&mut reclaimer, "SELECT awa.open_queue_slot(0::smallint, 3, now())").await;
    run(&mut holder, "COMMIT").await;
    let job = stage.enqueue(1).await;
    let taken = claiming.await.unwrap();
    let jobs = stage.claim(5).await;
    assert_eq!(taken.iter().filter(|id| id.is_some()).count() + jobs.len(), 1, "{taken:?} {jobs:?}");
    // Whatever generation the claim was written for, it keeps the slot.
    stage.enqueue(1).await;
    stage.claim(5).await;
    stage.rotate(RingKind::Queue).await;
    stage.drain().await;
    let reports = stage.prune(RingKind::Queue).await;
    let kept = reports.iter().find(|report| report.slot == Slot(0)).and_then(|report| report.kept);
    assert!(matches!(kept, Some(KeepReason::OpenClaims(_))), "{reports:?}");
    assert_eq!(slot_of(&stage, job[0]).await, 0);
}

/// F17: a REPEATABLE READ producer whose snapshot is older than a rotation writes into the slot that is open now.
#[tokio::test]
async fn an_old_snapshot_does_not_lead_a_producer_into_a_sealed_slot() {
    let stage = Stage::new().await;
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        one_life(&stage).await;
        let mut producer = stage.connect().await;
        run(&mut producer, &format!("BEGIN ISOLATION LEVEL {level}; SELECT count(*) FROM awa.queue_ring_slots")).await;
        let Rotated::Opened(open, _) = stage.rotate(RingKind::Queue).await else { panic!("the ring turns") };
        stage.drain().await;
        let job = stage.enqueue_in(&mut producer, 1).await;
        run(&mut producer, "COMMIT").await;
        assert_eq!(slot_of(&stage, job[0]).await, i64::from(open.0), "{level}");
        assert_eq!(stage.claim_once(5).await.jobs.len(), 1, "{level}");
    }
}

/// F38: one transaction enqueues before and after a rotation. It stays in its slot, also across a savepoint that is rolled
/// back, so that its jobs keep their order; when its first enqueue itself is rolled back, it may begin elsewhere.
#[tokio::test]
async fn a_transaction_stays_in_the_slot_it_began_in() {
    let stage = Stage::new().await;
    one_life(&stage).await;
    let mut user = stage.connect().await;
    run(&mut user, "BEGIN").await;
    let mut jobs = stage.enqueue_in(&mut user, 2).await;
    stage.rotate(RingKind::Queue).await;
    one_life(&stage).await;
    run(&mut user, "SAVEPOINT s").await;
    stage.enqueue_in(&mut user, 1).await;
    run(&mut user, "ROLLBACK TO s").await;
    jobs.extend(stage.enqueue_in(&mut user, 2).await);
    assert!(stage.drain().await.kept.contains(&Slot(0)), "a writer is in flight in slot 0");
    run(&mut user, "COMMIT").await;
    for job in &jobs {
        assert_eq!(slot_of(&stage, *job).await, 0);
    }
    let claimed: Vec<_> = stage.claim(10).await.iter().map(|job| job.receipt.job).collect();
    assert_eq!(claimed, jobs);

    // The next transaction on the same connection is not bound by the last one.
    run(&mut user, "BEGIN; SAVEPOINT s").await;
    stage.enqueue_in(&mut user, 1).await;
    run(&mut user, "ROLLBACK TO s").await;
    stage.rotate(RingKind::Queue).await;
    let moved = stage.enqueue_in(&mut user, 1).await;
    run(&mut user, "COMMIT").await;
    assert_eq!(slot_of(&stage, moved[0]).await, 2);
    assert_eq!(stage.claim_once(5).await.jobs.len(), 1);
}

/// F20, bug class 26: a reader holds every child of both rings for the whole test. Nothing waits for anything; prune says
/// that the slots are in use, and catches up afterwards.
#[tokio::test]
async fn a_long_reader_stops_prune_and_nobody_else() {
    let stage = Stage::new().await;
    one_life(&stage).await;
    let mut reader = stage.connect().await;
    run(
        &mut reader,
        "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM awa.jobs; SELECT count(*) FROM awa.lease_claims",
    )
    .await;
    for ring in [RingKind::Queue, RingKind::Claim] {
        assert!(matches!(stage.rotate(ring).await, Rotated::Opened(..)));
    }
    let watching =
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    for _ in 0..3 {
        one_life(&stage).await;
        stage.drain().await;
        for ring in [RingKind::Queue, RingKind::Claim] {
            let reports = stage.prune(ring).await;
            assert!(!reports.is_empty(), "{ring} has a sealed slot");
            assert!(reports.iter().all(|report| report.kept == Some(KeepReason::InUse)), "{ring}: {reports:?}");
        }
        assert_eq!(stage.number(watching).await, 0);
    }
    run(&mut reader, "COMMIT").await;
    for ring in [RingKind::Queue, RingKind::Claim] {
        assert!(stage.prune(ring).await.iter().all(|report| report.kept.is_none()), "{ring}");
    }
    assert_eq!(stage.number("SELECT count(*) FROM awa.queue_ring_slots WHERE state IN ('sealed', 'drained')").await, 0);
}

/// Bug class 25: writers that are in flight in a slot, of every kind, each keep it while they are open.
#[tokio::test]
async fn a_writer_in_flight_keeps_its_slot() {
    let stage = Stage::new().await;
    one_life(&stage).await;
    stage.enqueue(2).await;
    let jobs = stage.claim(2).await;
    let (mut closer, mut producer) = (stage.connect().await, stage.connect().await);
    run(&mut closer, "BEGIN").await;
    run(&mut producer, "BEGIN").await;
    texts(&mut closer, &complete_sql(&jobs[..1])).await;
    stage.enqueue_in(&mut producer, 1).await;
    for ring in [RingKind::Queue, RingKind::Claim] {
        stage.rotate(ring).await;
    }
    assert_eq!(stage.drain().await.slots, [], "a producer is in flight");
    assert!(stage.prune(RingKind::Claim).await.iter().all(|report| report.kept.is_some()));
    run(&mut producer, "ROLLBACK").await;
    assert_eq!(stage.drain().await.slots, [Slot(0)]);
    stage.complete(&jobs[1..]).await;
    for ring in [RingKind::Queue, RingKind::Claim] {
        assert!(stage.prune(ring).await.iter().all(|report| report.kept.is_some()), "{ring}: a closer is in flight");
    }
    run(&mut closer, "COMMIT").await;
    for ring in [RingKind::Queue, RingKind::Claim] {
        assert!(stage.prune(ring).await.iter().all(|report| report.kept.is_none()), "{ring}");
    }
}

/// Bug class 37: a prepared transaction is a producer without a session. It keeps its slot, delays nobody, and its jobs are
/// claimed when it is committed.
#[tokio::test]
async fn a_prepared_transaction_keeps_its_slot_and_delays_nobody() {
    let stage = Stage::new().await;
    one_life(&stage).await;
    let mut user = stage.connect().await;
    let name = format!("awa races {}", pid(&mut user).await);
    run(&mut user, "BEGIN").await;
    let enqueue = "SELECT awa.enqueue_jobs('{races}', '{2}', '{0}', NULL, '{test}', ARRAY['{}'::json], '{25}', NULL, NULL, NULL, p_wake => false)";
    run(&mut user, enqueue).await;
    run(&mut user, &format!("PREPARE TRANSACTION '{name}'")).await;
    user.close().await.unwrap();
    stage.rotate(RingKind::Queue).await;
    one_life(&stage).await;
    assert!(stage.drain().await.kept.contains(&Slot(0)));
    let mut other = stage.connect().await;
    run(&mut other, &format!("COMMIT PREPARED '{name}'")).await;
    assert_eq!(stage.claim_once(5).await.jobs.len(), 1);
    assert_eq!(stage.drain().await.slots, [Slot(0)]);
}

/// F25: a job that is claimed, retried and promoted back into the same slot, twice, is shown once. Others are claimed with
/// it, so that the stretch of transactions of its last batch holds its older rows too.
#[tokio::test]
async fn a_job_retried_into_its_own_slot_is_shown_once() {
    let stage = Stage::new().await;
    let (mut late, mut first) = (stage.connect().await, stage.connect().await);
    run(&mut late, "BEGIN").await;
    let slow = stage.enqueue_in(&mut late, 1).await;
    run(&mut first, "BEGIN").await;
    let job = stage.enqueue_in(&mut first, 1).await[0];
    run(&mut first, "COMMIT").await;
    for attempt in 1..=2 {
        let jobs = stage.claim(1).await;
        assert_eq!((jobs[0].receipt.job, jobs[0].attempt), (job, attempt));
        let retry = AttemptEnd::Retry { delay: Duration::ZERO, error: ErrorText::new("boom") };
        assert_eq!(stage.end(&jobs, retry).await, [ClosureAnswer::Closed]);
        assert_eq!(stage.store().promote(10).await.unwrap().jobs, 1);
    }
    run(&mut late, "COMMIT").await;
    let last = stage.claim(5).await;
    let claimed: Vec<_> = last.iter().map(|claimed| (claimed.receipt.job, claimed.receipt.run_lease.0)).collect();
    assert_eq!(claimed, [(slow[0], 1), (job, 3)], "one batch, from before the first attempt to the last");
    let in_slot = format!("SELECT count(*) FROM awa.ready_entries WHERE job_id = {job} AND ready_slot = 0");
    assert_eq!(stage.number(&in_slot).await, 3);
    assert_eq!(stage.place(job).await, "running");
    stage.complete(&last).await;
    for view in ["terminal_jobs", "jobs"] {
        assert_eq!(stage.number(&format!("SELECT count(*) FROM awa.{view} WHERE job_id = {job}")).await, 1, "{view}");
    }
}

/// F31: TRUNCATE is not subject to snapshots. A transaction with an older snapshot sees the history vanish, the census of
/// the store, which reads in a statement of its own, never loses a job that lives.
#[tokio::test]
async fn a_census_beside_truncation_counts_every_living_job() {
    let stage = Stage::new().await;
    one_life(&stage).await;
    let mut old = stage.connect().await;
    run(&mut old, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await;
    let waiting = stage.enqueue(3).await;
    let jobs = stage.claim(1).await;
    stage.rotate(RingKind::Queue).await;
    stage.rotate(RingKind::Claim).await;
    stage.prune(RingKind::Claim).await;
    let census: u64 =
        awa_core::store::Operator::census(stage.store()).await.unwrap().iter().map(|count| count.jobs).sum();
    assert_eq!(census, 4);
    stage.complete(&jobs).await;
    let rest = stage.claim(3).await;
    stage.complete(&rest).await;
    stage.drain().await;
    assert!(stage.prune(RingKind::Queue).await.iter().all(|report| report.kept.is_none()));
    let seen: i64 = sqlx::query("SELECT count(*) FROM awa.jobs").fetch_one(&mut old).await.unwrap().get(0);
    assert_eq!(seen, 0, "this is why a census must not be taken under an old snapshot");
    assert_eq!(waiting.len(), 3);
}

/// Bug class 49: of many due jobs, one is held by somebody else. The others are promoted, and the one follows.
#[tokio::test]
async fn a_deferred_job_that_somebody_holds_keeps_no_other_back() {
    let stage = Stage::new().await;
    let ids = stage.enqueue(20).await;
    let jobs = stage.claim(20).await;
    stage.end(&jobs, AttemptEnd::Retry { delay: Duration::ZERO, error: ErrorText::new("boom") }).await;
    let mut holder = stage.connect().await;
    run(&mut holder, &format!("BEGIN; SELECT 1 FROM awa.deferred_jobs WHERE job_id = {} FOR UPDATE", ids[7])).await;
    assert_eq!(stage.store().promote(100).await.unwrap().jobs, 19);
    run(&mut holder, "ROLLBACK").await;
    assert_eq!(stage.store().promote(100).await.unwrap().jobs, 1);
    assert_eq!(stage.claim(100).await.len(), 20);
}

/// Promotions at once share the work: each job becomes ready once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promotions_at_once_make_each_job_ready_once() {
    let stage = Stage::new().await;
    stage.enqueue(300).await;
    let jobs = stage.claim(300).await;
    stage.end(&jobs, AttemptEnd::Retry { delay: Duration::ZERO, error: ErrorText::new("boom") }).await;
    let store = stage.store();
    let (one, two, three) = tokio::join!(store.promote(200), store.promote(200), store.promote(200));
    let total: usize = [one, two, three].into_iter().map(|promoted| promoted.unwrap().jobs).sum();
    assert_eq!(total, 300);
    let again = stage.claim(1_000).await;
    assert_eq!(again.len(), 300);
    assert!(again.iter().all(|job| job.receipt.run_lease.0 == 2 && job.attempt == 2));
}

/// F22: a maintenance transaction whose client froze is ended by the server, and the next tick goes on.
#[tokio::test]
async fn the_scripts_of_maintenance_limit_how_long_a_frozen_client_is_in_the_way() {
    let stage = Stage::new().await;
    one_life(&stage).await;
    let mut frozen = stage.connect().await;
    run(&mut frozen, &awa_pg::session::TransactionLimits::default().begin_script()).await;
    let limits =
        "SELECT current_setting('idle_in_transaction_session_timeout') || ' ' || current_setting('statement_timeout')";
    assert_eq!(texts(&mut frozen, limits).await, [Some("5s 30s".to_owned())]);
    // With a shorter limit, so that the test need not wait: the session is gone, and with it what it held.
    let held =
        "SET LOCAL idle_in_transaction_session_timeout = '20ms'; SELECT awa.try_lock_queue_slot(0::smallint, true)";
    let gone = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {}", pid(&mut frozen).await);
    run(&mut frozen, held).await;
    while stage.number(&gone).await > 0 {
        tokio::task::yield_now().await;
    }
    stage.enqueue(1).await;
    assert_eq!(stage.claim(1).await.len(), 1);
    assert!(try_run(&mut frozen, "SELECT 1").await.is_err());
}

/// The same in a claimer: the open attempts that it leaves behind name its instance.
#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_found_by_its_instance() {
    let stage = Stage::new().await;
    stage.enqueue(3).await;
    let mut lost = stage.connect().await;
    texts(&mut lost, CLAIM).await;
    drop(lost);
    let held = stage.store().open_attempts(awa_core::InstanceId(7), 10).await.unwrap();
    assert_eq!(held.len(), 3);
    let release = AttemptEnd::Release { delay: Duration::ZERO };
    let closures: Vec<_> =
        held.iter().map(|receipt| awa_core::Closure { receipt: *receipt, end: release.clone() }).collect();
    assert_eq!(stage.store().close(&closures).await.unwrap(), [ClosureAnswer::Closed; 3]);
    stage.store().promote(10).await.unwrap();
    assert!(stage.claim(3).await.iter().all(|job| job.attempt == 1), "a release is not charged");
}

/// A claim that began in a slot before its ring turned commits between the two proofs of a prune: the number that is
/// compared under the lock has changed, so that what was proven before is not believed.
#[tokio::test]
async fn a_claim_that_commits_between_the_proofs_of_a_prune_is_seen_under_the_lock() {
    let stage = Stage::new().await;
    one_life(&stage).await;
    let late = stage.enqueue(1).await[0];
    let mut claimer = stage.connect().await;
    run(&mut claimer, "BEGIN").await;
    assert_eq!(texts(&mut claimer, CLAIM).await, [Some(late.to_string())]);
    for ring in [RingKind::Queue, RingKind::Claim] {
        assert!(matches!(stage.rotate(ring).await, Rotated::Opened(..)));
    }
    let sql = Sql::new(&SchemaName::default(), SMALL_RINGS);
    let ask = async |statement: &str, column: usize| -> u64 {
        let text = sql.statement(statement).text.to_string();
        let row = sqlx::query(AssertSqlSafe(text)).bind(0_i16).fetch_one(stage.store().pool()).await.unwrap();
        u64::try_from(row.get::<i64, _>(column)).unwrap()
    };
    let (first, rings) = (Generation(1), [("queue", "claims_on_queue_slot"), ("claim", "claims_in_claim_slot")]);
    let mut proofs = Vec::new();
    for (ring, again) in rings {
        let statement = format!("rings/open_claims_of_{ring}_slot");
        let proof = ClaimProof { generation: first, open: ask(&statement, 0).await, claims: ask(&statement, 1).await };
        assert_eq!(proof.open, 0, "{ring}: the claim is not committed yet");
        assert!(proof.still_holds(first, ask(&format!("rings/{again}"), 0).await), "{ring}: nothing has changed");
        proofs.push(proof);
    }
    run(&mut claimer, "COMMIT").await;
    for ((ring, again), proof) in rings.into_iter().zip(proofs) {
        assert!(!proof.still_holds(first, ask(&format!("rings/{again}"), 0).await), "{ring}: the claim is noticed");
    }
    assert_eq!(stage.drain().await.slots, [Slot(0)]);
    for ring in [RingKind::Queue, RingKind::Claim] {
        let reports = stage.prune(ring).await;
        assert!(matches!(reports[..], [ref one] if one.kept == Some(KeepReason::OpenClaims(1))), "{ring}: {reports:?}");
    }
    assert_eq!(stage.place(late).await, "running");
}

/// A report or a dump reads sealed slots for a long time, under the settings that let nobody wait for a lock for longer
/// than a millisecond: enqueue, claim, completion and every step of maintenance go through, and the slots that are not
/// read are emptied and used again.
#[tokio::test]
async fn a_reader_of_sealed_slots_makes_nobody_wait() {
    let stage = Stage::new().await;
    one_life(&stage).await;
    for ring in RingKind::ALL {
        stage.rotate(ring).await;
    }
    let mut reader = stage.connect().await;
    run(
        &mut reader,
        "BEGIN; SELECT FROM awa.ready_entries_0; SELECT FROM awa.done_entries_0;
         SELECT FROM awa.lease_claim_batches_0; SELECT FROM awa.lease_claim_closure_batches_0",
    )
    .await;
    run(
        &mut stage.connect().await,
        "DO $$ BEGIN
         EXECUTE format('ALTER DATABASE %I SET lock_timeout = 1', current_database()); END $$",
    )
    .await;
    let impatient = stage.fresh.another_pool(|options| options).await;
    let nothing = RetentionPolicy::NONE;
    let at_once = RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 };
    let mut emptied = 0;
    for _ in 0..6 {
        impatient.enqueue(&stage.jobs(3)).await.unwrap();
        let jobs = impatient.claim(&stage.request(3)).await.unwrap().jobs;
        assert_eq!(jobs.len(), 3);
        let closures: Vec<_> =
            jobs.iter().map(|job| Closure { receipt: job.receipt, end: AttemptEnd::Complete }).collect();
        assert_eq!(impatient.close(&closures).await.unwrap(), [ClosureAnswer::Closed; 3]);
        for ring in RingKind::ALL {
            impatient.rotate(ring, &at_once).await.unwrap();
        }
        impatient.unpin(&UnpinPolicy::default()).await.unwrap();
        impatient.drain().await.unwrap();
        for ring in [RingKind::Queue, RingKind::Claim] {
            for report in impatient.prune(ring, &nothing).await.unwrap() {
                assert_eq!(report.kept.is_some(), report.slot == Slot(0), "{ring}: {report:?}");
                assert!(report.kept.is_none_or(|reason| reason == KeepReason::InUse), "{ring}: {report:?}");
                emptied += usize::from(report.kept.is_none());
            }
        }
    }
    assert!(emptied >= 10, "only {emptied} slots were emptied");
    run(&mut reader, "COMMIT").await;
    for ring in [RingKind::Queue, RingKind::Claim] {
        assert!(stage.prune(ring).await.iter().all(|report| report.kept.is_none()), "{ring}");
    }
}
