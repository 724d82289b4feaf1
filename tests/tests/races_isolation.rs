//! Ends of attempts inside transactions of other isolation levels, and races between closers of row-local claims: whoever
//! can know that an attempt is over is told so, whoever cannot is told to run his transaction again.

use awa_core::attempt::ErrorText;
use awa_core::ring::RingKind;
use awa_core::store::{ClaimRequest, ClaimShape, Consumer};
use awa_core::{AttemptEnd, ClaimedJob, ClosureAnswer};
use awa_tests::stage::{Stage, complete_sql, run, sqlstate, texts, try_run};
use sqlx::PgConnection;
use std::time::Duration;

const SHAPES: [ClaimShape; 2] = [ClaimShape::Compact, ClaimShape::RowLocal];
const LEVELS: [&str; 2] = ["REPEATABLE READ", "SERIALIZABLE"];
const NONE: &[Option<String>] = &[];

async fn claim(stage: &Stage, shape: ClaimShape, count: usize) -> Vec<ClaimedJob> {
    stage.enqueue(count).await;
    let jobs = stage.store().claim(&ClaimRequest { shape, ..stage.request(count) }).await.unwrap().jobs;
    assert_eq!(jobs.len(), count);
    jobs
}

/// A transaction with a snapshot of its own.
async fn begin(stage: &Stage, level: &str) -> PgConnection {
    let mut user = stage.connect().await;
    run(&mut user, &format!("BEGIN ISOLATION LEVEL {level}; SELECT count(*) FROM awa.queue_lanes")).await;
    user
}

async fn expect_again(user: &mut PgConnection, jobs: &[ClaimedJob], why: &str) {
    let error = try_run(user, &complete_sql(jobs)).await.expect_err(why);
    assert_eq!(sqlstate(&error), "40001", "{why}");
    run(user, "ROLLBACK").await;
}

/// An attempt that ended before the snapshot is stale, in whatever way it was claimed and ended; one that ended after it
/// cannot be known to be.
#[tokio::test]
async fn a_closer_with_a_snapshot_is_told_at_once_that_an_attempt_had_ended_before() {
    let stage = Stage::new().await;
    for (shape, level) in SHAPES.into_iter().flat_map(|shape| LEVELS.map(|level| (shape, level))) {
        for members in [1, 3] {
            let jobs = claim(&stage, shape, members).await;
            let mut early = begin(&stage, level).await;
            stage.complete(&jobs[..1]).await;
            let mut late = begin(&stage, level).await;
            assert_eq!(texts(&mut late, &complete_sql(&jobs[..1])).await, NONE, "{shape:?} {level} {members}");
            run(&mut late, "COMMIT").await;
            expect_again(&mut early, &jobs[..1], &format!("{shape:?} {level} {members}: the end is not visible")).await;
            stage.complete(&jobs[1..]).await;
        }
    }
}

/// An attempt whose claim was reclaimed before the snapshot is stale; one that was claimed after the snapshot, or reclaimed
/// after it, cannot be known to be.
#[tokio::test]
async fn a_closer_with_a_snapshot_tells_an_old_claim_from_one_that_it_cannot_see() {
    let stage = Stage::new().await;
    for shape in SHAPES {
        let gone = claim(&stage, shape, 2).await;
        let mut early = begin(&stage, "REPEATABLE READ").await;
        stage.complete(&gone).await;
        stage.rotate(RingKind::Claim).await;
        assert!(stage.prune(RingKind::Claim).await.iter().all(|report| report.kept.is_none()));
        expect_again(&mut early, &gone, "it was reclaimed after the snapshot").await;
        let mut user = begin(&stage, "REPEATABLE READ").await;
        assert_eq!(
            texts(&mut user, &complete_sql(&gone)).await,
            NONE,
            "{shape:?}: it was reclaimed before the snapshot"
        );
        let unseen = claim(&stage, shape, 2).await;
        expect_again(&mut user, &unseen, "it was claimed after the snapshot").await;
        stage.complete(&unseen).await;
        // In its next generation the slot holds claims that are newer than the one that is gone.
        for _ in 0..3 {
            let more = claim(&stage, shape, 1).await;
            stage.complete(&more).await;
            stage.rotate(RingKind::Claim).await;
            stage.prune(RingKind::Claim).await;
        }
        let mut user = begin(&stage, "REPEATABLE READ").await;
        assert_eq!(texts(&mut user, &complete_sql(&gone)).await, NONE, "{shape:?}: its slot was opened again");
        run(&mut user, "COMMIT").await;
    }
}

/// An attempt that went on as a lease: ended before the snapshot it is stale, ended or moved after it it cannot be known to
/// be, and while it is open it is closed.
#[tokio::test]
async fn a_closer_with_a_snapshot_finds_leases_or_their_end() {
    let stage = Stage::new().await;
    for shape in SHAPES {
        let jobs = claim(&stage, shape, 2).await;
        let column =
            |of: &dyn Fn(&ClaimedJob) -> i64| jobs.iter().map(|job| of(job).to_string()).collect::<Vec<_>>().join(",");
        let materialise = format!(
            "SELECT awa.materialize_attempts('{{{}}}', '{{{}}}', '{{{}}}')",
            column(&|job| i64::from(job.receipt.claim_slot.0)),
            column(&|job| job.receipt.nonce.0),
            column(&|job| job.receipt.id.get()),
        );
        assert_eq!(stage.number(&materialise).await, 2, "{shape:?}");
        let slot = stage.number("SELECT max(lease_slot)::bigint FROM awa.leases").await;
        let mut user = begin(&stage, "REPEATABLE READ").await;
        assert_eq!(texts(&mut user, &complete_sql(&jobs[..1])).await.len(), 1, "{shape:?}: an open lease");
        run(&mut user, "COMMIT").await;
        let mut user = begin(&stage, "REPEATABLE READ").await;
        assert_eq!(texts(&mut user, &complete_sql(&jobs[..1])).await, NONE, "{shape:?}: a lease that had ended");
        run(&mut user, "COMMIT").await;
        let mut user = begin(&stage, "REPEATABLE READ").await;
        // The other one is moved to another slot of the lease ring, and its old slot is reclaimed.
        stage.rotate(RingKind::Lease).await;
        let forward = format!("SELECT f.moved FROM awa.forward_leases({slot}::smallint, 10) AS f");
        assert_eq!(stage.number(&forward).await, 1, "{shape:?}");
        assert!(stage.prune(RingKind::Lease).await.iter().all(|report| report.kept.is_none()));
        expect_again(&mut user, &jobs[1..], "its lease was moved after the snapshot").await;
        stage.complete(&jobs[1..]).await;
    }
}

/// The closer of one row-local claim sits in an open transaction: neighbours do not wait, the same claim is answered
/// `Contended`, and when the winner rolls back the next closer wins, once.
#[tokio::test]
async fn an_open_closer_of_a_row_local_claim_delays_no_neighbour() {
    let stage = Stage::new().await;
    let jobs = claim(&stage, ClaimShape::RowLocal, 8).await;
    let mut user = stage.connect().await;
    run(&mut user, "BEGIN").await;
    assert_eq!(texts(&mut user, &complete_sql(&jobs[..1])).await.len(), 1);
    assert_eq!(stage.end(&jobs[1..3], AttemptEnd::Complete).await, [ClosureAnswer::Closed; 2]);
    let retry = AttemptEnd::Retry { delay: Duration::from_mins(1), error: ErrorText::new("boom") };
    assert_eq!(stage.end(&jobs[3..5], retry.clone()).await, [ClosureAnswer::Closed; 2]);
    for end in [AttemptEnd::Complete, retry] {
        assert_eq!(stage.end(&jobs[..1], end).await, [ClosureAnswer::Contended]);
    }
    assert_eq!(stage.end(&jobs[..6], AttemptEnd::Complete).await[5..], [ClosureAnswer::Closed]);
    run(&mut user, "ROLLBACK").await;
    assert_eq!(stage.end(&jobs[..1], AttemptEnd::Complete).await, [ClosureAnswer::Closed]);
    assert_eq!(stage.end(&jobs[..1], AttemptEnd::Complete).await, [ClosureAnswer::Stale]);
    assert_eq!(stage.number("SELECT count(*) - count(DISTINCT job_id) FROM awa.terminal_jobs").await, 0);
}

/// The claimer chooses the shape, the closer follows it on every path: no claim is closed in the other one's table.
#[tokio::test]
async fn each_claim_is_closed_in_the_table_of_its_shape() {
    let stage = Stage::new().await;
    for end in [
        AttemptEnd::Complete,
        AttemptEnd::Retry { delay: Duration::from_mins(1), error: ErrorText::new("boom") },
        AttemptEnd::Fail { error: ErrorText::new("boom") },
        AttemptEnd::Cancel { reason: ErrorText::new("unwanted") },
        AttemptEnd::Release { delay: Duration::from_mins(1) },
    ] {
        for shape in SHAPES {
            let jobs = claim(&stage, shape, 3).await;
            stage.end(&jobs, end.clone()).await;
        }
    }
    let strays = "SELECT (SELECT count(*) FROM awa.lease_claim_closures AS c WHERE NOT EXISTS (
                      SELECT FROM awa.lease_claims AS l WHERE l.claim_slot = c.claim_slot AND l.receipt_id = c.receipt_id))
                  + (SELECT count(*) FROM awa.closed_receipts AS c WHERE NOT EXISTS (
                      SELECT FROM awa.lease_claim_batches AS b
                      WHERE b.claim_slot = c.claim_slot AND b.batch_id = lower(c.receipts) >> 10))";
    assert_eq!(stage.number(strays).await, 0);
    assert_eq!(stage.number("SELECT count(*) FROM awa.lease_claim_closures").await, 15);
    assert_eq!(stage.number("SELECT count(*) FROM awa.lease_claims WHERE closed_at IS NOT NULL").await, 0);
    assert_eq!(stage.number("SELECT count(*) FROM awa.open_claims WHERE NOT isempty(open)").await, 0);
}
