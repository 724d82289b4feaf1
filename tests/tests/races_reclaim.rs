//! A pruner that stands still before its lock, and what begins meanwhile in the slot that it has found spent.

use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::id::Slot;
use awa_core::prune::KeepReason;
use awa_core::queue::QueueSettings;
use awa_core::ring::RingKind;
use awa_core::store::{Acted, Maintainer, Operator, PruneReport, RetentionPolicy, Rotated};
use awa_core::{AttemptEnd, ClosureAnswer, JobState};
use awa_pg::{SchemaName, Sql};
use awa_tests::halt::{Halt, complaint};
use awa_tests::postgres::SMALL_RINGS;
use awa_tests::shapes::Shape;
use awa_tests::stage::{Stage, run, texts};
use sqlx::AssertSqlSafe;
use tokio::task::JoinHandle;

/// The first statement of a pruner's lock.
const LOCK: &str = "CASE p_slot";
const HOUR: Duration = Duration::from_hours(1);

/// One job from its enqueue to its completion, so that the open slots are not empty.
async fn one_life(stage: &Stage, shape: Shape) {
    let jobs = shape.claim(stage, None).await;
    stage.complete(&jobs).await;
}

/// A pass of prune, beside the test.
fn prune(stage: &Stage, ring: RingKind, retention: RetentionPolicy) -> JoinHandle<Vec<PruneReport>> {
    let store = stage.store().clone();
    tokio::spawn(async move { store.prune(ring, &retention).await.unwrap() })
}

/// A claim of one job by hand, in the shape that its queue asks for.
fn claim_sql(shape: Shape) -> String {
    let is_row_local = shape == Shape::RowLocal;
    format!(
        "SELECT unnest(c.job_ids)::text
         FROM awa.claim_jobs('races', 7, 7, 1, 1000000, p_row_local => {is_row_local}) AS c"
    )
}

/// What [`a_claim_that_commits_while_a_pruner_stands_before_its_lock_keeps_its_slot`] shows, of one shape.
async fn a_claim_commits_late(stage: &Stage, shape: Shape) {
    let (ring, function) = match shape {
        Shape::Lease => (RingKind::Lease, "try_lock_lease_slot"),
        _ => (RingKind::Claim, "try_lock_claim_slot"),
    };
    let mut halt = Halt::before(stage, function, LOCK).await;
    one_life(stage, shape).await;
    let job = stage.enqueue(1).await[0];
    if shape == Shape::Lease {
        stage.end(&stage.claim(1).await, AttemptEnd::Release { delay: Duration::ZERO }).await;
    }
    let mut claimer = stage.connect().await;
    run(&mut claimer, "BEGIN").await;
    assert_eq!(texts(&mut claimer, &claim_sql(shape)).await, [Some(job.to_string())]);
    assert!(matches!(stage.rotate(ring).await, Rotated::Opened(..)));
    halt.arm(1).await;
    let pruner = prune(stage, ring, RetentionPolicy::NONE);
    halt.until_reached(1).await;
    run(&mut claimer, "COMMIT").await;
    halt.release().await;
    let reports = pruner.await.unwrap();
    assert_eq!(
        stage.places().await.get(&job).map(Vec::as_slice),
        Some(&["running".to_owned()][..]),
        "truncated over it"
    );
    let kept: Vec<_> = reports.iter().map(|report| report.kept).collect();
    assert!(matches!(kept[..], [Some(KeepReason::OpenClaims(1) | KeepReason::Leases(1))]), "{shape:?}: {reports:?}");
    stage.store().cancel(&[job], &ErrorText::new("done with it")).await.unwrap();
    assert_eq!(stage.prune(ring).await.iter().filter(|report| report.kept.is_some()).count(), 0, "{shape:?}");
}

/// Bug classes 24 and 25: a claim that began in a slot before its ring turned commits while a pruner, which has proven the
/// slot spent, stands before its lock.
#[tokio::test]
async fn a_claim_that_commits_while_a_pruner_stands_before_its_lock_keeps_its_slot() {
    for shape in Shape::ALL {
        a_claim_commits_late(&Stage::new().await, shape).await;
    }
}

/// The same where the number that is compared under the lock does not change with claims.
#[tokio::test]
async fn a_pruner_that_believes_its_first_proof_is_noticed() {
    let stage = Stage::new().await;
    let still = "CREATE OR REPLACE FUNCTION awa.stored_claims(p_slot smallint) RETURNS bigint LANGUAGE sql STABLE
                 AS $$ SELECT 1::bigint $$";
    run(&mut stage.connect().await, still).await;
    let mutant = tokio::spawn(async move { a_claim_commits_late(&stage, Shape::Single).await });
    assert!(complaint(mutant.await).contains("truncated over it"));
}

/// Takes a ring around until `slot` is open for another time, with work that ends in each slot.
async fn around_to(stage: &Stage, ring: RingKind, slot: Slot) {
    for _ in 0..16 {
        one_life(stage, if ring == RingKind::Lease { Shape::Lease } else { Shape::Single }).await;
        stage.rotate(RingKind::Claim).await;
        let turned =
            if ring == RingKind::Claim { stage.rotate(RingKind::Queue).await } else { stage.rotate(ring).await };
        stage.drain().await;
        for ring in [RingKind::Claim, RingKind::Queue, RingKind::Lease] {
            stage.prune(ring).await;
        }
        let open = format!(
            "SELECT count(*) FROM awa.{ring}_ring_slots WHERE slot = {} AND state = 'open' AND generation > 1",
            slot.0
        );
        if stage.number(&open).await == 1 {
            return;
        }
        assert!(!matches!(turned, Rotated::Contended));
    }
    panic!("the {ring} ring did not come around");
}

/// Bug class 25: the slot is reclaimed by another pruner after this one has chosen it; the ring goes around, and the slot is
/// sealed again with a job that runs. The pruner does not get hold of it, because it is not the one that it chose.
#[tokio::test]
async fn a_slot_that_was_opened_again_is_not_the_one_that_a_pruner_chose() {
    let sql = Sql::new(&SchemaName::default(), SMALL_RINGS);
    for ring in RingKind::ALL {
        let stage = Stage::new().await;
        let shape = if ring == RingKind::Lease { Shape::Lease } else { Shape::Single };
        around_to(&stage, ring, Slot(0)).await;
        let running = shape.claim(&stage, None).await;
        stage.rotate(ring).await;
        let generation = format!("SELECT generation FROM awa.{ring}_ring_slots WHERE slot = 0");
        let generation = stage.number(&generation).await;
        assert!(generation > 1, "{ring}");
        let hold = sql.statement(match ring {
            RingKind::Queue => "rings/hold_queue_slot",
            RingKind::Claim => "rings/hold_claim_slot",
            RingKind::Lease => "rings/hold_lease_slot",
        });
        for (chosen, is_held) in [(1, false), (generation, true)] {
            let held = sqlx::query(AssertSqlSafe(hold.text.to_string())).bind(0_i16).bind(chosen).bind("sealed");
            let held = held.fetch_all(stage.store().pool()).await.unwrap();
            assert_eq!(held.len(), usize::from(is_held), "{ring}, generation {chosen}");
        }
        stage.complete(&running).await;
    }
}

/// Bug class 25, of history: a pruner that is to carry failed jobs forward stands before its lock; one of them is tried again
/// and one is deleted. Neither is carried, and the third is, each once.
#[tokio::test]
async fn failed_jobs_that_go_on_while_a_pruner_stands_before_its_lock_are_not_carried_with_it() {
    let stage = Stage::new().await;
    let mut settings = QueueSettings::default();
    settings.dead_letter = false;
    stage.store().configure_queue(&stage.queue, &settings).await.unwrap();
    let mut halt = Halt::before(&stage, "try_lock_queue_slot", LOCK).await;
    let jobs = Shape::Wide.claim(&stage, None).await;
    let fail = AttemptEnd::Fail { error: ErrorText::new("boom") };
    assert_eq!(stage.end(&jobs, fail).await, [ClosureAnswer::Closed; 3]);
    stage.rotate(RingKind::Queue).await;
    stage.drain().await;
    halt.arm(1).await;
    let retention = RetentionPolicy { failed: HOUR, max_failed_bytes: u64::MAX, ..RetentionPolicy::NONE };
    let pruner = prune(&stage, RingKind::Queue, retention);
    halt.until_reached(1).await;
    let [again, gone, kept] = [0, 1, 2].map(|index: usize| jobs[index].receipt.job);
    let done = [Acted::Done { from: JobState::Failed }];
    assert_eq!(stage.store().retry(&[again]).await.unwrap(), done);
    assert_eq!(stage.store().delete(&[gone]).await.unwrap(), done);
    halt.release().await;
    let reports = pruner.await.unwrap();
    assert!(reports.iter().any(|report| report.kept.is_none()), "the slot is emptied: {reports:?}");
    let places = stage.places().await;
    assert_eq!(places.get(&again), Some(&vec!["ready".to_owned()]));
    assert_eq!(places.get(&gone), None);
    assert_eq!(places.get(&kept), Some(&vec!["failed".to_owned()]));
}
