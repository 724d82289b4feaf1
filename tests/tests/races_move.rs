//! Moving jobs against claims, replacements and cancels, stepped by hand on real PostgreSQL.

use awa_core::attempt::ErrorText;
use awa_core::ring::RingKind;
use awa_core::store::{Acted, Consumer, MoveTo, Operator, Producer, Refusal};
use awa_core::unique::OnConflict;
use awa_core::{JobId, JobState, NewJob, Priority, QueueName, Unique, UniqueBy};
use awa_tests::stage::{Stage, run, sqlstate, texts, try_run};

const MOVE: &str = "SELECT m.answer FROM awa.move_jobs";

fn elsewhere() -> MoveTo {
    MoveTo::queue(QueueName::new("elsewhere").unwrap())
}

async fn claim_from(stage: &Stage, name: &str) -> Vec<JobId> {
    let mut request = stage.request(100);
    request.queue = QueueName::new(name).unwrap();
    stage.store().claim(&request).await.unwrap().jobs.iter().map(|job| job.receipt.job).collect()
}

/// A claim that has not committed yet holds the lane: the move is told to ask again, and does not wait.
#[tokio::test]
async fn a_move_meets_a_claim_that_is_under_way() {
    let stage = Stage::new().await;
    let jobs = stage.enqueue(2).await;
    for commit in [false, true] {
        let mut claimer = stage.connect().await;
        run(&mut claimer, "BEGIN").await;
        let claim = "SELECT unnest(c.job_ids)::text FROM awa.claim_jobs('races', 7, 7, 1, 1000000) AS c";
        assert_eq!(texts(&mut claimer, claim).await, [Some(jobs[0].to_string())]);
        let answers = stage.store().move_jobs(&jobs[..1], &elsewhere()).await.unwrap();
        assert_eq!(answers, [Acted::Refused(Refusal::Contended)]);
        run(&mut claimer, if commit { "COMMIT" } else { "ROLLBACK" }).await;
    }
    let answers = stage.store().move_jobs(&jobs, &elsewhere()).await.unwrap();
    let running = Acted::Refused(Refusal::WrongState(JobState::Running));
    assert_eq!(answers, [running, Acted::Done { from: JobState::Ready }]);
    assert_eq!(claim_from(&stage, "races").await, []);
    assert_eq!(claim_from(&stage, "elsewhere").await, jobs[1..]);
}

/// A move that has not committed yet holds the lane against claims, and leaves the other lanes; when it rolls back, the job is
/// where it was.
#[tokio::test]
async fn a_claim_meets_a_move_that_is_under_way() {
    let stage = Stage::new().await;
    let jobs = stage.enqueue(1).await;
    let urgent = stage.store().enqueue(&[stage.job("1").with_priority(Priority::URGENT)]).await.unwrap()[0].id();
    for commit in [false, true] {
        let mut mover = stage.connect().await;
        run(&mut mover, "BEGIN").await;
        let to_elsewhere = format!("{MOVE}('{{{}}}', 'elsewhere', NULL) AS m", jobs[0]);
        assert_eq!(texts(&mut mover, &to_elsewhere).await, [Some("ready".to_owned())]);
        let claimed = stage.claim_once(10).await;
        let taken: Vec<JobId> = claimed.jobs.iter().map(|job| job.receipt.job).collect();
        assert_eq!(taken, if commit { vec![] } else { vec![urgent] });
        assert!(claimed.contended);
        assert_eq!(claim_from(&stage, "elsewhere").await, []);
        run(&mut mover, if commit { "COMMIT" } else { "ROLLBACK" }).await;
        assert_eq!(stage.place(jobs[0]).await, "ready");
    }
    assert_eq!(claim_from(&stage, "races").await, []);
    assert_eq!(claim_from(&stage, "elsewhere").await, jobs);
}

/// An open transaction of an application that has replaced a job keeps it: a move is told to ask again within the tenth of a
/// second, and holds no lane while it waits any longer.
#[tokio::test]
async fn a_move_does_not_wait_for_a_transaction_that_has_replaced_the_job() {
    let stage = Stage::new().await;
    let newest = |label: &str| -> NewJob {
        let job = stage.job(label);
        let key = UniqueBy::text("k").key_of(&job).unwrap();
        job.with_unique(Unique::new(key).on_conflict(OnConflict::Replace))
    };
    let old = stage.store().enqueue(&[newest("1")]).await.unwrap()[0].id();
    let others = stage.enqueue(3).await;
    for commit in [false, true] {
        let mut user = stage.connect().await;
        run(&mut user, "BEGIN").await;
        let answer = stage.store().enqueue_in(&mut user, &[newest("2")]).await.unwrap()[0];
        assert!(answer.is_inserted() && answer.id() != old);
        let wishes = [others[0], old, others[1]];
        let answers = stage.store().move_jobs(&wishes, &MoveTo::priority(Priority::BULK)).await.unwrap();
        let moved = Acted::Done { from: JobState::Ready };
        assert_eq!(answers, [moved, Acted::Refused(Refusal::Contended), moved]);
        run(&mut user, if commit { "COMMIT" } else { "ROLLBACK" }).await;
    }
    assert_eq!(stage.place(old).await, "cancelled");
    let answers = stage.store().move_jobs(&[old], &MoveTo::priority(Priority::BULK)).await.unwrap();
    assert_eq!(answers, [Acted::Refused(Refusal::WrongState(JobState::Cancelled))]);
}

/// A replacement that comes after a move cancels the job where it is now.
#[tokio::test]
async fn a_moved_job_can_be_replaced() {
    let stage = Stage::new().await;
    let newest = |label: &str| {
        let job = stage.job(label);
        let key = UniqueBy::text("k").key_of(&job).unwrap();
        job.with_unique(Unique::new(key).on_conflict(OnConflict::Replace))
    };
    let old = stage.store().enqueue(&[newest("1")]).await.unwrap()[0].id();
    for to in [elsewhere(), MoveTo::queue(stage.queue.clone()), elsewhere()] {
        assert_eq!(stage.store().move_jobs(&[old], &to).await.unwrap(), [Acted::Done { from: JobState::Ready }]);
    }
    let new = stage.store().enqueue(&[newest("2")]).await.unwrap()[0];
    assert_eq!(new, awa_core::Enqueued::Replaced { new: new.id(), old });
    assert_eq!((stage.place(old).await, stage.place(new.id()).await), ("cancelled".to_owned(), "ready".to_owned()));
    assert_eq!(claim_from(&stage, "elsewhere").await, []);
    assert_eq!(claim_from(&stage, "races").await, [new.id()]);
}

/// I9, I11: a job that is moved on before the slot of its old row is emptied keeps neither slot: the old one is drained and
/// reclaimed as if it had been cancelled, and history does not show it.
#[tokio::test]
async fn what_a_moved_job_leaves_behind_is_reclaimed() {
    let stage = Stage::new().await;
    let jobs = stage.enqueue(3).await;
    stage.rotate(RingKind::Queue).await;
    let answers = stage.store().move_jobs(&jobs, &elsewhere()).await.unwrap();
    assert_eq!(answers, [Acted::Done { from: JobState::Ready }; 3]);
    assert_eq!(stage.number("SELECT count(*) FROM awa.terminal_jobs").await, 0);
    assert_eq!(stage.drain().await.slots.len(), 1);
    let reports = stage.prune(RingKind::Queue).await;
    assert!(reports.iter().all(|report| report.kept.is_none()) && reports.len() == 1, "{reports:?}");
    assert_eq!(claim_from(&stage, "elsewhere").await, jobs);
}

/// C2: the row that a moved job left behind may outlive all that became of it elsewhere. Nothing comes back then.
#[tokio::test]
async fn what_a_moved_job_left_behind_does_not_come_back() {
    let stage = Stage::new().await;
    let jobs = stage.enqueue(2).await;
    let keeps_the_slot = stage.claim(1).await;
    stage.rotate(RingKind::Queue).await;
    let answers = stage.store().move_jobs(&jobs[1..], &elsewhere()).await.unwrap();
    assert_eq!(answers, [Acted::Done { from: JobState::Ready }]);
    let mut request = stage.request(1);
    request.queue = QueueName::new("elsewhere").unwrap();
    let moved = stage.store().claim(&request).await.unwrap().jobs;
    stage.complete(&moved).await;
    stage.rotate(RingKind::Queue).await;
    stage.rotate(RingKind::Claim).await;
    assert_eq!(stage.drain().await.slots.len(), 2);
    stage.prune(RingKind::Claim).await;
    let reports = stage.prune(RingKind::Queue).await;
    assert_eq!(reports.iter().filter(|report| report.kept.is_none()).count(), 1, "{reports:?}");
    assert_eq!(stage.number("SELECT count(*) FROM awa.ready_tombstones").await, 1, "the older slot is still there");
    assert_eq!(stage.store().get(jobs[1]).await.unwrap(), None);
    let not_found = [Acted::Refused(Refusal::NotFound)];
    assert_eq!(stage.store().cancel(&jobs[1..], &ErrorText::new("no")).await.unwrap(), not_found);
    assert_eq!(stage.store().move_jobs(&jobs[1..], &elsewhere()).await.unwrap(), not_found);
    assert_eq!(stage.number("SELECT count(*) FROM awa.jobs").await, 1);
    stage.complete(&keeps_the_slot).await;
}

/// Like a claim, a move must be alone, and what other languages ask for by mistake is refused.
#[tokio::test]
async fn a_move_must_be_alone_and_make_sense() {
    let stage = Stage::new().await;
    let jobs = stage.enqueue(1).await;
    let mut user = stage.connect().await;
    for (begin, to) in [
        ("BEGIN ISOLATION LEVEL REPEATABLE READ", "'elsewhere', NULL"),
        ("BEGIN; SELECT pg_current_xact_id()", "'elsewhere', NULL"),
        ("BEGIN", "'', NULL"),
        ("BEGIN", "NULL, 0::smallint"),
        ("BEGIN", "NULL, 5::smallint"),
    ] {
        run(&mut user, begin).await;
        let to = format!("{MOVE}('{{{}}}', {to}) AS m", jobs[0]);
        assert_eq!(sqlstate(&try_run(&mut user, &to).await.expect_err(&to)), "AW003", "{begin}: {to}");
        run(&mut user, "ROLLBACK").await;
    }
    assert_eq!(stage.store().cancel(&jobs, &ErrorText::new("no")).await.unwrap().len(), 1);
}
