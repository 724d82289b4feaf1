//! Races of rescue with what it judges, on real PostgreSQL.

use awa_core::store::{Consumer, Maintainer};
use awa_core::{AttemptEnd, JobState};
use awa_tests::stage::{ME, RESCUER, STALENESS, Stage, run, steady_retry};

/// How many sessions wait behind the outage.
const HELD_UP: &str = "SELECT count(*) FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database \
    WHERE NOT l.granted AND d.datname = current_database() AND l.relation = 'awa.claim_ring_slots'::regclass";

/// A rescuer that is healthy, and then held up together with everybody else for longer than the staleness time: whoever
/// it looks at afterwards has given no sign of life, and neither has it. Found by model checking.
#[tokio::test]
async fn a_rescuer_that_was_held_up_behind_its_own_check_takes_nothing_from_the_living() {
    let stage = Stage::with_manual_clock().await;
    stage.outlive().await;
    stage.store().beat(ME, STALENESS).await.unwrap();
    // A claim of what was handed back is a lease, and leases are looked at last.
    let job = stage.enqueue(1).await[0];
    let first = stage.claim(1).await;
    stage.end(&first, AttemptEnd::Release { delay: std::time::Duration::ZERO }).await;
    let held = stage.claim(1).await;
    let mut outage = stage.connect().await;
    run(&mut outage, "BEGIN; LOCK TABLE awa.claim_ring_slots IN ACCESS EXCLUSIVE MODE").await;
    let store = stage.store().clone();
    let rescue = tokio::spawn(async move { store.rescue(&Stage::rescue_request(), &steady_retry()).await });
    while stage.number(HELD_UP).await == 0 {
        tokio::task::yield_now().await;
    }
    stage.fresh.clock.advance(STALENESS * 2);
    run(&mut outage, "COMMIT").await;
    let rescued = rescue.await.unwrap().unwrap();
    assert!(!rescued.rescuer_too_young, "it was judged before the outage");
    assert_eq!(rescued.attempts, [], "nobody has had a chance to beat");
    assert_eq!(stage.place(job).await, JobState::Running.as_str());
    stage.store().beat(RESCUER, STALENESS).await.unwrap();
    assert!(stage.store().rescue(&Stage::rescue_request(), &steady_retry()).await.unwrap().rescuer_too_young);
    stage.complete(&held).await;
}
