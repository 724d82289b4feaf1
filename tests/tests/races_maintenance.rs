//! Maintenance never stands in the way: no step of it waits for a lock that a reader or a writer of jobs holds, and while
//! one stands still with all that it has locked, jobs go through.

use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::ring::{RingKind, RotationPolicy};
use awa_core::store::{Consumer, Maintainer, Operator, Producer, RetentionPolicy};
use awa_core::{AttemptEnd, ClaimedJob, Closure, ClosureAnswer, JobId, Priority};
use awa_store_sqlx::SqlxStore;
use awa_tests::halt::{Halt, complaint, replace_in};
use awa_tests::shapes::{Shape, UNPIN, pinned, slots_kept};
use awa_tests::stage::{RESCUER, STALENESS, Stage, run, steady_retry, texts};

/// From here on whoever connects waits for a lock for at most a millisecond.
async fn impatient(stage: &Stage) -> SqlxStore {
    let patience = "DO $$ BEGIN
         EXECUTE format('ALTER DATABASE %I SET lock_timeout = 1', current_database()); END $$";
    run(&mut stage.connect().await, patience).await;
    stage.fresh.another_pool(|options| options).await
}

/// Every step of maintenance, once.
async fn maintain(store: &SqlxStore) {
    let at_once = RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 };
    store.beat(RESCUER, STALENESS).await.unwrap();
    for ring in RingKind::ALL {
        store.rotate(ring, &at_once).await.unwrap();
    }
    store.unpin(&UNPIN).await.unwrap();
    store.drain().await.unwrap();
    for ring in RingKind::ALL {
        store.prune(ring, &RetentionPolicy::NONE).await.unwrap();
    }
    store.promote(100).await.unwrap();
    store.rescue(&Stage::rescue_request(), &steady_retry()).await.unwrap();
    store.tidy().await.unwrap();
    store.forget_dead(Duration::ZERO, 100).await.unwrap();
}

/// Work of every kind: done, put off, dead, waiting, running in each shape.
async fn mixed_work(stage: &Stage) {
    let jobs = Shape::Wide.claim(stage, None).await;
    stage.complete(&jobs[..1]).await;
    stage.end(&jobs[1..2], AttemptEnd::Snooze { delay: Duration::ZERO }).await;
    stage.end(&jobs[2..], AttemptEnd::Fail { error: ErrorText::new("boom") }).await;
    for shape in Shape::ALL {
        shape.claim(stage, None).await;
    }
    stage.enqueue(2).await;
}

/// Bug class 26: somebody holds every table of the schema, as a reader, and then as a writer. Every step of maintenance comes
/// to its end without a wait, three times over, and catches up afterwards.
#[tokio::test]
async fn no_step_of_maintenance_waits_for_readers_or_writers() {
    let stage = Stage::new().await;
    let impatient = impatient(&stage).await;
    let mut holder = stage.connect().await;
    let tables = "SELECT string_agg(c.oid::regclass::text, ', ') FROM pg_class AS c
                  WHERE c.relnamespace = 'awa'::regnamespace AND c.relkind IN ('r', 'p')";
    let tables = texts(&mut holder, tables).await.remove(0).unwrap();
    for mode in ["ACCESS SHARE", "ROW EXCLUSIVE"] {
        mixed_work(&stage).await;
        run(&mut holder, &format!("BEGIN; LOCK TABLE {tables} IN {mode} MODE")).await;
        for _ in 0..3 {
            maintain(&impatient).await;
        }
        run(&mut holder, "COMMIT").await;
        let left: Vec<JobId> = stage.places().await.into_keys().collect();
        stage.store().cancel(&left, &ErrorText::new("done with it")).await.unwrap();
        for _ in 0..2 {
            maintain(&impatient).await;
        }
        assert_eq!(slots_kept(&stage).await, 0, "{mode}");
    }
}

/// A slot of each ring that may go, and one that is kept by a job that waits and by the attempt that is returned, with no slot
/// free.
async fn with_spent_and_pinned_slots(stage: &Stage) -> Vec<ClaimedJob> {
    stage.store().enqueue(&[stage.job("{}").with_priority(Priority::BULK)]).await.unwrap();
    pinned(stage, Shape::Single).await
}

/// What [`whoever_stands_still_in_maintenance_is_in_nobodys_way`] shows, of one place.
async fn maintenance_stands_still(stage: &Stage, impatient: &SqlxStore, halt: &mut Halt) {
    let running = with_spent_and_pinned_slots(stage).await;
    mixed_work(stage).await;
    let (store, policy) = (stage.store().clone(), UNPIN);
    halt.arm(1).await;
    let maintenance = tokio::spawn(async move {
        store.unpin(&policy).await.unwrap();
        store.drain().await.unwrap();
        for ring in RingKind::ALL {
            store.prune(ring, &RetentionPolicy::NONE).await.unwrap();
            store.rotate(ring, &RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 }).await.unwrap();
        }
    });
    halt.until_reached(1).await;
    impatient.enqueue(&stage.jobs(3)).await.expect("a producer waits");
    let claimed = impatient.claim(&stage.request(3)).await.expect("a claim waits");
    assert!(claimed.contended || claimed.jobs.len() == 3, "{claimed:?}");
    let jobs = claimed.jobs.iter().chain(&running);
    let closures: Vec<_> = jobs.map(|job| Closure { receipt: job.receipt, end: AttemptEnd::Complete }).collect();
    let closed = impatient.close(&closures).await.expect("an end waits");
    let is_fine = |answer: &ClosureAnswer| matches!(answer, ClosureAnswer::Closed | ClosureAnswer::Contended);
    assert!(closed.iter().all(is_fine), "{closed:?}");
    assert!(closed[..claimed.jobs.len()].iter().all(|answer| *answer == ClosureAnswer::Closed), "{closed:?}");
    halt.release().await;
    maintenance.await.unwrap();
    let left: Vec<JobId> = stage.places().await.into_keys().collect();
    stage.store().cancel(&left, &ErrorText::new("done with it")).await.unwrap();
    for _ in 0..3 {
        maintain(impatient).await;
    }
}

/// Bug class 26, F20, F22: each step of maintenance stands still at the place where it holds most. New jobs are stored,
/// claimed (or their lane is held, which is an answer) and completed without a wait.
#[tokio::test]
async fn whoever_stands_still_in_maintenance_is_in_nobodys_way() {
    for (functions, place) in [
        ("try_lock_queue_slot", "RETURN true"),
        ("try_lock_claim_slot", "RETURN true"),
        ("truncate_queue_slot", "UPDATE"),
        ("open_queue_slot", "RETURN true"),
        ("open_claim_slot", "RETURN true"),
        ("open_lease_slot", "RETURN true"),
        ("carry_slot", "RETURN CASE"),
        ("materialize_attempts", "GET DIAGNOSTICS"),
    ] {
        let stage = Stage::new().await;
        let impatient = impatient(&stage).await;
        let mut halt = Halt::before(&stage, functions, place).await;
        maintenance_stands_still(&stage, &impatient, &mut halt).await;
    }
}

/// The same with a pruner that takes the lock of the slot that is open.
#[tokio::test]
async fn a_pruner_that_locks_the_open_slot_is_noticed() {
    let stage = Stage::new().await;
    let lock = "LOCK TABLE \"awa\".ready_entries IN ACCESS EXCLUSIVE MODE; RETURN true";
    replace_in(&stage, "try_lock_claim_slot", "RETURN true", lock).await;
    let impatient = impatient(&stage).await;
    let mut halt = Halt::before(&stage, "try_lock_claim_slot", "RETURN true").await;
    let mutant = tokio::spawn(async move { maintenance_stands_still(&stage, &impatient, &mut halt).await });
    assert!(complaint(mutant.await).contains("a producer waits"));
}
