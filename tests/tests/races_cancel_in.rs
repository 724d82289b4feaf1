//! Cancels in transactions of applications, stepped by hand on real PostgreSQL.

use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::ring::RingKind;
use awa_core::store::{Acted, Consumer, Maintainer, MoveTo, Operator, PurgeScope, Refusal};
use awa_core::{AttemptEnd, ClaimedJob, Closure, ClosureAnswer, JobId, JobState, Priority};
use awa_tests::stage::{Stage, pid, run, texts};
use sqlx::PgConnection;

const ASKED: Acted = Acted::Asked { from: JobState::Ready };
/// Any wait for a lock fails the statement at once.
const NEVER_WAIT: &str = "SET lock_timeout = '1ms'";

async fn cancel_in(stage: &Stage, user: &mut PgConnection, jobs: &[JobId]) -> Vec<Acted> {
    stage.store().cancel_in(user, jobs, &ErrorText::new("withdrawn")).await.unwrap()
}

async fn begun(stage: &Stage) -> PgConnection {
    let mut user = stage.connect().await;
    run(&mut user, "BEGIN").await;
    user
}

fn ids(jobs: &[ClaimedJob]) -> Vec<JobId> {
    jobs.iter().map(|job| job.receipt.job).collect()
}

async fn requests(stage: &Stage) -> i64 {
    stage.number("SELECT count(*) FROM awa.cancel_requests").await
}

/// A claim that was under way before the commit hands the job out: the tombstone is void, and the request finds the attempt.
#[tokio::test]
async fn a_claim_that_was_under_way_makes_the_tombstone_void() {
    let stage = Stage::new().await;
    let jobs = stage.enqueue(2).await;
    let mut claimer = begun(&stage).await;
    let claim = "SELECT unnest(c.job_ids)::text FROM awa.claim_jobs('races', 7, 7, 1, 1000000) AS c";
    assert_eq!(texts(&mut claimer, claim).await, [Some(jobs[0].to_string())]);
    let mut user = begun(&stage).await;
    run(&mut user, NEVER_WAIT).await;
    assert_eq!(cancel_in(&stage, &mut user, &jobs).await, [ASKED; 2]);
    run(&mut user, "COMMIT").await;
    assert_eq!(stage.place(jobs[0]).await, "cancelled", "so far nobody has handed it out");
    stage.store().tidy().await.unwrap();
    assert_eq!(requests(&stage).await, 2, "the lane is held, nothing is final");
    run(&mut claimer, "COMMIT").await;
    assert_eq!((stage.place(jobs[0]).await, stage.place(jobs[1]).await), ("running".into(), "cancelled".into()));
    stage.store().tidy().await.unwrap();
    assert_eq!(stage.place(jobs[0]).await, "cancelled");
    assert_eq!(requests(&stage).await, 0);
    assert_eq!(stage.claim(5).await, []);
}

/// Neither a slot of the rings nor a lane nor an attempt is kept by an open transaction that has only looked for the job, and
/// none but the one in which the job waits by one that found it there.
#[tokio::test]
async fn an_open_cancel_keeps_no_other_slot() {
    let stage = Stage::new().await;
    let done = stage.enqueue(2).await;
    stage.complete(&stage.claim(2).await).await;
    stage.rotate(RingKind::Queue).await;
    stage.rotate(RingKind::Claim).await;
    let jobs = stage.enqueue(2).await;
    let mut user = begun(&stage).await;
    let answers = cancel_in(&stage, &mut user, &[done[0], jobs[0], JobId(i64::MAX)]).await;
    let completed = Acted::Refused(Refusal::WrongState(JobState::Completed));
    assert_eq!(answers, [completed, ASKED, Acted::Refused(Refusal::NotFound)]);
    stage.drain().await;
    for ring in [RingKind::Queue, RingKind::Claim] {
        let reports = stage.prune(ring).await;
        assert!(reports.len() == 1 && reports[0].kept.is_none(), "{ring}: {reports:?}");
    }
    // Who runs the job meanwhile ends it as usual.
    let taken = stage.claim_once(5).await.jobs;
    assert_eq!(ids(&taken), jobs);
    stage.complete(&taken).await;
    run(&mut user, "COMMIT").await;
    stage.store().tidy().await.unwrap();
    assert_eq!((stage.place(jobs[0]).await, requests(&stage).await), ("completed".into(), 0));
}

/// What an operator wants of a job that an open transaction cancels is answered "ask again" within the tenth of a second, and
/// does not keep the lane from claims.
#[tokio::test]
async fn operators_do_not_wait_for_an_open_cancel() {
    let stage = Stage::new().await;
    let jobs = stage.enqueue(3).await;
    let mut user = begun(&stage).await;
    assert_eq!(cancel_in(&stage, &mut user, &jobs[..1]).await, [ASKED]);
    let contended = Acted::Refused(Refusal::Contended);
    let to = MoveTo::priority(Priority::BULK);
    let reason = ErrorText::new("no");
    assert_eq!(stage.store().move_jobs(&jobs[..1], &to).await.unwrap(), [contended]);
    let answers = stage.store().cancel(&jobs[..2], &reason).await.unwrap();
    assert_eq!(answers, [contended, Acted::Done { from: JobState::Ready }]);
    let purged = stage.store().purge_queue(&stage.queue, PurgeScope::Ready).await.unwrap();
    assert!(purged.contended && purged.jobs == 0, "{purged:?}");
    run(&mut user, "ROLLBACK").await;
    assert_eq!(requests(&stage).await, 0);
    assert_eq!(stage.store().cancel(&jobs[..1], &reason).await.unwrap(), [Acted::Done { from: JobState::Ready }]);
    assert_eq!(ids(&stage.claim(5).await), jobs[2..]);
}

/// Two transactions that cancel one job: the second waits for the first, as for a row, and both agree in the end.
#[tokio::test]
async fn two_transactions_that_cancel_one_job_agree() {
    for commit in [false, true] {
        let stage = Stage::new().await;
        let jobs = stage.enqueue(1).await;
        let (mut first, mut second) = (begun(&stage).await, begun(&stage).await);
        assert_eq!(cancel_in(&stage, &mut first, &jobs).await, [ASKED]);
        let waiting = pid(&mut second).await;
        let both = async {
            stage.until_blocked(waiting).await;
            run(&mut first, if commit { "COMMIT" } else { "ROLLBACK" }).await;
        };
        let (answers, ()) = futures::join!(cancel_in(&stage, &mut second, &jobs), both);
        assert_eq!(answers, [ASKED]);
        run(&mut second, "COMMIT").await;
        stage.store().tidy().await.unwrap();
        assert_eq!((stage.place(jobs[0]).await, requests(&stage).await), ("cancelled".into(), 0));
        assert_eq!(stage.claim(5).await, []);
    }
}

/// An attempt whose job's cancel was asked for, and that hands the job back, or fails and may be tried again, ends it: the
/// closer sees to it, before any tick.
#[tokio::test]
async fn who_ends_an_attempt_carries_the_request_out() {
    let stage = Stage::new().await;
    let jobs = stage.enqueue(4).await;
    let taken = stage.claim(4).await;
    let mut user = begun(&stage).await;
    let answers = cancel_in(&stage, &mut user, &jobs[..3]).await;
    assert_eq!(answers, [Acted::Asked { from: JobState::Running }; 3]);
    run(&mut user, "COMMIT").await;
    let error = || ErrorText::new("boom");
    let ends = [
        AttemptEnd::Retry { delay: Duration::ZERO, error: error() },
        AttemptEnd::Release { delay: Duration::ZERO },
        AttemptEnd::Fail { error: error() },
        AttemptEnd::Retry { delay: Duration::ZERO, error: error() },
    ];
    let closures: Vec<Closure> =
        taken.iter().zip(ends).map(|(job, end)| Closure { receipt: job.receipt, end }).collect();
    assert_eq!(stage.store().close(&closures).await.unwrap(), [ClosureAnswer::Closed; 4]);
    let mut places = Vec::new();
    for job in &jobs {
        places.push(stage.place(*job).await);
    }
    assert_eq!(places, ["cancelled", "cancelled", "dead", "deferred"]);
    let view = stage.store().get(jobs[0]).await.unwrap().unwrap();
    assert_eq!(view.error, Some(ErrorText::new("withdrawn")));
    stage.store().tidy().await.unwrap();
    assert_eq!(requests(&stage).await, 0);
    assert_eq!(stage.place(jobs[2]).await, "dead", "an end for good stays");
}

/// In a paused queue nothing passes the row; the cancel is final all the same, and the slot is reclaimed.
#[tokio::test]
async fn a_cancel_in_a_paused_queue_becomes_final() {
    let stage = Stage::new().await;
    stage.store().set_paused(&stage.queue, true).await.unwrap();
    let jobs = stage.enqueue(1).await;
    let mut user = begun(&stage).await;
    assert_eq!(cancel_in(&stage, &mut user, &jobs).await, [ASKED]);
    run(&mut user, "COMMIT").await;
    stage.store().tidy().await.unwrap();
    assert_eq!(requests(&stage).await, 0);
    stage.rotate(RingKind::Queue).await;
    assert_eq!(stage.drain().await.slots.len(), 1);
    let reports = stage.prune(RingKind::Queue).await;
    assert!(reports.len() == 1 && reports[0].kept.is_none(), "{reports:?}");
}

/// Under the stricter isolation levels the answers are those of the transaction's snapshot, and the cancel is no less carried out.
#[tokio::test]
async fn a_cancel_works_at_every_isolation_level() {
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        let stage = Stage::new().await;
        let jobs = stage.enqueue(2).await;
        let mut user = stage.connect().await;
        run(&mut user, &format!("BEGIN ISOLATION LEVEL {level}; SELECT count(*) FROM awa.queue_lanes")).await;
        let taken = stage.claim(1).await;
        assert_eq!(ids(&taken), jobs[..1]);
        let answers = cancel_in(&stage, &mut user, &jobs).await;
        assert!(matches!(answers[..], [Acted::Asked { .. }, ASKED]), "{level}: {answers:?}");
        run(&mut user, "COMMIT").await;
        stage.store().tidy().await.unwrap();
        for job in &jobs {
            assert_eq!(stage.place(*job).await, "cancelled", "{level}");
        }
        assert_eq!(stage.end(&taken, AttemptEnd::Complete).await, [ClosureAnswer::Stale]);
    }
}
