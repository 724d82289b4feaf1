//! Purging a queue against claims and producers, stepped by hand on real PostgreSQL.

use awa_core::store::{Operator, PurgeScope, Purged};
use awa_core::{JobId, Priority};
use awa_tests::stage::{Stage, run, sqlstate, texts, try_run};

const CLAIM: &str = "SELECT unnest(c.job_ids)::text FROM awa.claim_jobs('races', 7, 7, 1, 1000000) AS c";

async fn purge(stage: &Stage) -> Purged {
    stage.store().purge_queue(&stage.queue, PurgeScope::Ready).await.unwrap()
}

fn claimed(claimed: &awa_core::store::Claimed) -> Vec<JobId> {
    claimed.jobs.iter().map(|job| job.receipt.job).collect()
}

/// A claim that has not committed yet keeps its lane, and only that: the purge takes the others and says that something is left.
/// What the claim took is never purged; what it left is, by the next purge.
#[tokio::test]
async fn a_purge_meets_a_claim_that_is_under_way() {
    let stage = Stage::new().await;
    let jobs = stage.enqueue(3).await;
    let bulk = stage.job("1").with_priority(Priority::BULK);
    awa_core::store::Producer::enqueue(stage.store(), &[bulk]).await.unwrap();
    let mut claimer = stage.connect().await;
    run(&mut claimer, "BEGIN").await;
    assert_eq!(texts(&mut claimer, CLAIM).await, [Some(jobs[0].to_string())]);
    assert_eq!(purge(&stage).await, Purged { jobs: 1, contended: true });
    run(&mut claimer, "COMMIT").await;
    assert_eq!(purge(&stage).await, Purged { jobs: 2, contended: false });
    assert_eq!(stage.place(jobs[0]).await, "running");
    assert_eq!(stage.number("SELECT count(*) FROM awa.jobs").await, 1);
}

/// A purge that has not committed yet keeps the lanes from claims; rolled back, it has removed nothing.
#[tokio::test]
async fn a_claim_meets_a_purge_that_is_under_way() {
    let stage = Stage::new().await;
    let jobs = stage.enqueue(2).await;
    for commit in [false, true] {
        let mut operator = stage.connect().await;
        run(&mut operator, "BEGIN").await;
        assert_eq!(texts(&mut operator, "SELECT jobs::text FROM awa.purge_queue('races')").await, [Some("2".into())]);
        let during = stage.claim_once(1).await;
        assert!(during.contended && during.jobs.is_empty());
        let more = stage.enqueue(1).await;
        run(&mut operator, if commit { "COMMIT" } else { "ROLLBACK" }).await;
        let after = claimed(&stage.claim_once(1).await);
        assert_eq!(after, if commit { more } else { jobs[..1].to_vec() });
    }
}

/// I7: a producer in an open transaction is neither waited for nor touched, however it goes on.
#[tokio::test]
async fn a_purge_does_not_wait_for_producers() {
    let stage = Stage::new().await;
    let mut user = stage.connect().await;
    run(&mut user, "BEGIN").await;
    let mut open = stage.enqueue_in(&mut user, 2).await;
    stage.enqueue(5).await;
    assert_eq!(purge(&stage).await, Purged { jobs: 5, contended: false });
    open.extend(stage.enqueue_in(&mut user, 1).await);
    run(&mut user, "COMMIT").await;
    assert_eq!(claimed(&stage.claim_once(10).await), open);
}

/// However many jobs wait: one cursor row per lane and slot.
#[tokio::test]
async fn a_purge_writes_one_row_per_lane_and_slot() {
    let stage = Stage::new().await;
    for _ in 0..2 {
        stage.enqueue(3_000).await;
        stage.rotate(awa_core::ring::RingKind::Queue).await;
    }
    let rows = "SELECT count(*) FROM awa.ready_claim_attempt_batches";
    assert_eq!(purge(&stage).await, Purged { jobs: 6_000, contended: false });
    assert_eq!(stage.number(rows).await, 2);
    assert_eq!(purge(&stage).await, Purged { jobs: 0, contended: false });
    assert_eq!(stage.number(rows).await, 2);
    assert_eq!(stage.drain().await.slots.len(), 2);
}

/// A queue that nobody has opened yet is purged as well.
#[tokio::test]
async fn a_queue_that_only_an_enqueue_has_named_is_purged() {
    let stage = Stage::new().await;
    let other = awa_core::QueueName::new("other").unwrap();
    let job = stage.job("1").with_queue(other.clone());
    awa_core::store::Producer::enqueue(stage.store(), &[job]).await.unwrap();
    let purged = stage.store().purge_queue(&other, PurgeScope::Ready).await.unwrap();
    assert_eq!(purged, Purged { jobs: 1, contended: false });
    assert_eq!(stage.number("SELECT count(*) FROM awa.jobs").await, 0);
}

/// Like a claim, a purge must be alone.
#[tokio::test]
async fn a_purge_must_be_alone() {
    let stage = Stage::new().await;
    stage.enqueue(1).await;
    let mut user = stage.connect().await;
    for begin in ["BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN; SELECT pg_current_xact_id()"] {
        run(&mut user, begin).await;
        let error = try_run(&mut user, "SELECT awa.purge_queue('races')").await.expect_err(begin);
        assert_eq!(sqlstate(&error), "AW003", "{begin}");
        run(&mut user, "ROLLBACK").await;
    }
    assert_eq!(stage.claim(5).await.len(), 1);
}
