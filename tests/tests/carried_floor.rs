//! Where claims begin to look for jobs that were carried over: behind what is gone, never behind what lives or is about to.

use std::time::Duration;

use awa_core::{AttemptEnd, ClaimedJob};
use awa_tests::stage::{Stage, run};

/// Hands a job back at once, on a connection in whatever transaction it is in.
fn hand_back_sql(job: &ClaimedJob) -> String {
    let receipt = job.receipt;
    format!(
        "SELECT awa.end_attempts('{{{}}}', '{{{}}}', '{{{}}}', '{{6}}', '{{carried}}', '{{NULL}}', '{{NULL}}', NULL)",
        receipt.claim_slot,
        receipt.nonce.0,
        receipt.id.get()
    )
}

/// Hands a job back and takes it again, which leaves a row that is gone.
async fn come_and_go(stage: &Stage) {
    let jobs = stage.claim(1).await;
    stage.end(&jobs, AttemptEnd::Release { delay: Duration::ZERO }).await;
    stage.complete(&stage.claim(1).await).await;
}

async fn floor(stage: &Stage) -> i64 {
    stage.number("SELECT awa.carried_floor()::text::bigint").await
}

async fn carried_since(stage: &Stage) -> i64 {
    stage.number("SELECT min(c.moved_xid::text::bigint) FROM awa.carried_entries AS c").await
}

#[tokio::test]
async fn a_hand_back_that_commits_late_is_found() {
    let stage = Stage::new().await;
    stage.enqueue(3).await;
    come_and_go(&stage).await;
    let late = stage.claim(1).await;
    let mut user = stage.connect().await;
    run(&mut user, &format!("BEGIN; {}", hand_back_sql(&late[0]))).await;
    // Others go on meanwhile, so that its number is far from the newest.
    come_and_go(&stage).await;
    stage.drain().await;
    let before = floor(&stage).await;
    assert!(before > 1, "it has moved past what is gone");
    run(&mut user, "COMMIT").await;
    assert!(before <= carried_since(&stage).await, "and not past what an open transaction was about to bring");
    stage.drain().await;
    assert_eq!(stage.claim(5).await.iter().map(|job| job.receipt.job).collect::<Vec<_>>(), [late[0].receipt.job]);
    stage.drain().await;
    assert!(floor(&stage).await > before);
}

#[tokio::test]
async fn a_job_that_waits_holds_it_and_one_that_rolled_back_does_not() {
    let stage = Stage::new().await;
    stage.enqueue(4).await;
    let waiting = stage.claim(1).await;
    stage.end(&waiting, AttemptEnd::Release { delay: Duration::ZERO }).await;
    let since = carried_since(&stage).await;
    let jobs = stage.claim(2).await;
    assert_eq!(jobs[0].receipt.job, waiting[0].receipt.job, "it runs next");
    stage.end(&jobs[..1], AttemptEnd::Release { delay: Duration::ZERO }).await;
    let mut user = stage.connect().await;
    run(&mut user, &format!("BEGIN; {}; ROLLBACK", hand_back_sql(&jobs[1]))).await;
    stage.enqueue(1).await;
    stage.drain().await;
    assert_eq!(floor(&stage).await, carried_since(&stage).await);
    assert!(floor(&stage).await > since, "it was carried over twice");
}

/// A dump reads sequences later than rows: it may carry a number along that is past rows which it holds.
#[tokio::test]
async fn a_restored_number_hides_nothing() {
    let stage = Stage::new().await;
    stage.enqueue(2).await;
    let jobs = stage.claim(2).await;
    stage.end(&jobs, AttemptEnd::Release { delay: Duration::ZERO }).await;
    stage.drain().await;
    let as_restored = "CREATE TABLE dumped AS SELECT * FROM awa.carried_entries;
        TRUNCATE awa.carried_entries;
        INSERT INTO awa.carried_entries SELECT * FROM dumped;
        SELECT setval('awa.carried_floor_xid', 4611686018427387904)";
    run(&mut stage.connect().await, as_restored).await;
    assert_eq!(floor(&stage).await, 0, "it was found out for another file");
    assert_eq!(stage.claim(1).await[0].receipt.job, jobs[0].receipt.job);
    stage.drain().await;
    assert!((1..=carried_since(&stage).await).contains(&floor(&stage).await));
    assert_eq!(stage.claim(1).await[0].receipt.job, jobs[1].receipt.job);
}
