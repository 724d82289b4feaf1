//! More than PostgreSQL can carry in one value or one message (1 GB): what is stored in pieces must be handed out in pieces,
//! else the lane, or the promotion of everybody's jobs, is stuck for ever.

use awa_core::store::{ClaimRequest, Consumer, Maintainer, Producer};
use awa_core::{JobId, NewJob};
use awa_tests::stage::{Stage, run};
use std::collections::BTreeSet;

/// Jobs of 1 MiB each: more than goes into one answer. With 1,030 of them, the calls below failed for ever.
const TOO_MANY: usize = 90;
/// What goes into one answer.
const FITS: usize = 64;

fn large_job(stage: &Stage) -> NewJob {
    stage.job(&format!("\"{}\"", "x".repeat((1 << 20) - 2)))
}

#[tokio::test]
async fn large_jobs_are_claimed_in_pieces() {
    let stage = Stage::new().await;
    let jobs = vec![large_job(&stage); TOO_MANY];
    let ids: Vec<JobId> = stage.store().enqueue(&jobs).await.unwrap().iter().map(|answer| answer.id()).collect();
    assert!(ids.len() == TOO_MANY && ids.is_sorted());
    let greedy = ClaimRequest { max_bytes: u64::MAX, ..stage.request(1_023) };
    let claimed = stage.store().claim(&greedy).await.unwrap();
    let count = claimed.jobs.len();
    assert!((1..=FITS).contains(&count) && claimed.more, "{count} jobs of 1 MiB in one claim");
    let taken: BTreeSet<JobId> = claimed.jobs.iter().map(|job| job.receipt.job).collect();
    assert_eq!(taken, ids[..count].iter().copied().collect(), "an exact prefix");
    // A small worker gets what it asks for: at least one, and no more than reaches its limit.
    let modest = ClaimRequest { max_bytes: (3 << 20) - 1, ..stage.request(1_023) };
    let next = stage.store().claim(&modest).await.unwrap();
    assert_eq!(next.jobs.iter().map(|job| job.receipt.job).collect::<Vec<_>>(), ids[count..count + 3]);
}

#[tokio::test]
async fn large_metadata_does_not_burst_a_claim() {
    let stage = Stage::new().await;
    let metadata = awa_core::JsonText::new("metadata", format!("\"{}\"", "y".repeat((1 << 20) - 2))).unwrap();
    let jobs = vec![stage.job("1").with_metadata(metadata); TOO_MANY];
    let mut user = stage.connect().await;
    run(&mut user, "BEGIN").await;
    let ids = stage.store().enqueue_in(&mut user, &jobs).await.unwrap();
    run(&mut user, "COMMIT").await;
    let claimed = stage.claim_once(1_023).await;
    assert!((1..=FITS).contains(&claimed.jobs.len()) && claimed.more, "{}", claimed.jobs.len());
    assert!(claimed.jobs.iter().zip(&ids).all(|(job, id)| job.receipt.job == id.id() && job.metadata.is_some()));
    let next = stage.claim_once(1).await;
    assert_eq!(next.jobs[0].receipt.job, ids[claimed.jobs.len()].id(), "nothing was passed over");
}

#[tokio::test]
async fn large_jobs_are_promoted_in_pieces() {
    let stage = Stage::new().await;
    let deferred = format!(
        "INSERT INTO awa.deferred_jobs (job_id, run_lease, run_at, created_at, priority, shard, attempt, max_attempts,
             reason, queue, kind, args)
         SELECT nextval('awa.job_id_seq'), 0, now() - interval '1 minute', now(), 2, 0, 0, 25, 'scheduled', 'races', 'test', v.args
         FROM (SELECT ('\"' || repeat('x', 1048574) || '\"')::json AS args OFFSET 0) AS v, generate_series(1, {TOO_MANY})"
    );
    run(&mut stage.connect().await, &deferred).await;
    let (mut total, mut calls) = (0, 0);
    loop {
        let promoted = stage.store().promote(10_000).await.unwrap();
        total += promoted.jobs;
        calls += 1;
        assert!(promoted.jobs <= FITS);
        if !promoted.more {
            break;
        }
        assert!(promoted.jobs > 0 && calls < 100);
    }
    assert_eq!(total, TOO_MANY);
    assert_eq!(stage.number("SELECT count(*) FROM awa.deferred_jobs").await, 0);
}

/// Thousands of cancelled jobs before the first living one: each row is looked up once.
#[tokio::test]
async fn a_claim_finds_the_living_job_behind_thousands_of_cancelled_ones() {
    let stage = Stage::new().await;
    let jobs = stage.enqueue(5_000).await;
    let dead = format!(
        "INSERT INTO awa.ready_tombstones (lane_id, job_id, run_lease, cancelled_at, ready_slot, reason)
         SELECT lane_id, job_id, 0, now(), ready_slot, 'no' FROM awa.ready_entries WHERE job_id <= {}",
        jobs[4_989]
    );
    run(&mut stage.connect().await, &dead).await;
    let claimed: Vec<JobId> = stage.claim(4).await.iter().map(|job| job.receipt.job).collect();
    assert_eq!(claimed, jobs[4_990..4_994]);
    let rest: Vec<JobId> = stage.claim(100).await.iter().map(|job| job.receipt.job).collect();
    assert_eq!(rest, jobs[4_994..]);
}
