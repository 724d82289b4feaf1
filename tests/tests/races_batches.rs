//! Of a batch, one is held by somebody's open transaction or cannot be taken at all: the others go through in the same call,
//! and the one follows when it is free.

use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::ring::RingKind;
use awa_core::store::{Acted, AttemptNote, Attempts, Callback, Maintainer, MoveTo, NoteAnswer, Operator, Refusal};
use awa_core::{
    AttemptEnd, CallbackAnswer, CallbackToken, ClaimedJob, ClosureAnswer, JobId, JobState, JsonText, Priority,
};
use awa_tests::halt::{complaint, replace_in};
use awa_tests::shapes::{MINUTE, Shape, UNPIN, every_end};
use awa_tests::stage::{Stage, complete_sql, run, steady_retry, texts};
use sqlx::PgConnection;

const CLOSED: ClosureAnswer = ClosureAnswer::Closed;
/// How many are in a batch.
const MANY: usize = 12;
/// Which of them is held.
const HELD: usize = 7;

/// A connection in an open transaction that has run `sql`.
async fn open(stage: &Stage, sql: &str) -> PgConnection {
    let mut connection = stage.connect().await;
    run(&mut connection, "BEGIN").await;
    texts(&mut connection, sql).await;
    connection
}

/// Attempts at so many jobs in this shape.
async fn attempts(stage: &Stage, shape: Shape) -> Vec<ClaimedJob> {
    let mut attempts = Vec::new();
    while attempts.len() < MANY {
        attempts.extend(shape.claim(stage, None).await);
    }
    attempts
}

fn ids(attempts: &[ClaimedJob]) -> Vec<JobId> {
    attempts.iter().map(|attempt| attempt.receipt.job).collect()
}

/// All but the held one have the first answer, and that one has the second.
#[track_caller]
fn all_but_one<A: PartialEq + std::fmt::Debug>(answers: &[A], others: &A, held: &A) {
    for (index, answer) in answers.iter().enumerate() {
        assert_eq!(answer, if index == HELD { held } else { others }, "number {index} of {answers:?}");
    }
    assert_eq!(answers.len(), MANY);
}

/// What [`one_attempt_that_somebody_is_ending_keeps_no_rescue_back`] shows, of one shape.
async fn rescues_all_but_one(stage: &Stage, shape: Shape) {
    let running = attempts(stage, shape).await;
    let mut holder = open(stage, &complete_sql(&running[HELD..=HELD])).await;
    stage.outlive().await;
    let (asked, retry) = (Stage::rescue_request(), steady_retry());
    let rescued = stage.store().rescue(&asked, &retry).await.expect("one that is held fails the whole pass");
    assert_eq!(rescued.attempts.len(), MANY - 1, "{shape:?}: {rescued:?}");
    assert_eq!(rescued.contended, usize::from(shape != Shape::Lease), "{shape:?}: a lease that is held is passed over");
    run(&mut holder, "ROLLBACK").await;
    assert_eq!(stage.store().rescue(&asked, &retry).await.unwrap().attempts.len(), 1, "{shape:?}");
    stage.store().cancel(&ids(&running), &ErrorText::new("done with it")).await.unwrap();
}

/// Bug class 49: of many attempts that are to be rescued, one is being ended in an open transaction.
#[tokio::test]
async fn one_attempt_that_somebody_is_ending_keeps_no_rescue_back() {
    let stage = Stage::with_manual_clock().await;
    for shape in Shape::ALL {
        rescues_all_but_one(&stage, shape).await;
    }
}

/// Bug class 49: of a flush of ends, of notes, of parks, of callbacks and of cancels, one is held.
#[tokio::test]
async fn one_attempt_that_somebody_is_ending_keeps_no_batch_of_calls_back() {
    let stage = Stage::new().await;
    for shape in Shape::ALL {
        for (way, _) in every_end() {
            let running = attempts(&stage, shape).await;
            let mut holder = open(&stage, &complete_sql(&running[HELD..=HELD])).await;
            let answers = stage.end(&running, way.clone()).await;
            all_but_one(&answers, &CLOSED, &ClosureAnswer::Contended);
            run(&mut holder, "ROLLBACK").await;
            assert_eq!(stage.end(&running[HELD..=HELD], way.clone()).await, [CLOSED], "{shape:?} {way:?}");
            stage.store().cancel(&ids(&running), &ErrorText::new("done with it")).await.unwrap();
        }
        let running = attempts(&stage, shape).await;
        let mut holder = open(&stage, &complete_sql(&running[HELD..=HELD])).await;
        let notes: Vec<_> = running.iter().map(|attempt| AttemptNote::heartbeat(attempt.receipt)).collect();
        let noted = NoteAnswer::Noted { callback: None };
        all_but_one(&stage.store().note(&notes).await.unwrap(), &noted, &NoteAnswer::Contended);
        let state = JobState::Running;
        let cancelled = stage.store().cancel(&ids(&running), &ErrorText::new("no")).await.unwrap();
        all_but_one(&cancelled, &Acted::Done { from: state }, &Acted::Refused(Refusal::Contended));
        run(&mut holder, "ROLLBACK").await;
        assert_eq!(stage.end(&running[HELD..=HELD], AttemptEnd::Complete).await, [CLOSED], "{shape:?}");
    }
}

/// Bug class 49: of many callbacks, one is for an attempt that somebody is cancelling.
#[tokio::test]
async fn one_attempt_that_somebody_is_ending_keeps_no_callback_back() {
    let stage = Stage::new().await;
    let running = attempts(&stage, Shape::Single).await;
    let token = |index: usize| CallbackToken(index as u128 + 1);
    let notes: Vec<_> = (0..MANY).map(|index| AttemptNote::callback(running[index].receipt, token(index))).collect();
    stage.store().note(&notes).await.unwrap();
    stage.end(&running, AttemptEnd::Park { timeout: MINUTE }).await;
    let held = running[HELD].receipt.job;
    let mut holder = open(&stage, &format!("SELECT 'held' FROM awa.leases WHERE job_id = {held} FOR UPDATE")).await;
    let payload = JsonText::new("payload", "1").unwrap();
    let callbacks: Vec<_> = (0..MANY).map(|index| Callback { token: token(index), payload: payload.clone() }).collect();
    let answers = stage.store().resume(&callbacks).await.unwrap();
    all_but_one(&answers, &CallbackAnswer::Resumed, &CallbackAnswer::Contended);
    run(&mut holder, "ROLLBACK").await;
    assert_eq!(stage.store().resume(&callbacks[HELD..=HELD]).await.unwrap(), [CallbackAnswer::Resumed]);
}

/// Bug class 49: leases that are moved forward, of which somebody is ending one.
#[tokio::test]
async fn one_lease_that_somebody_is_ending_keeps_no_other_back() {
    let stage = Stage::new().await;
    let running = attempts(&stage, Shape::Lease).await;
    for _ in 0..2 {
        stage.rotate(RingKind::Lease).await;
        stage.complete(&Shape::Lease.claim(&stage, None).await).await;
    }
    let mut holder = open(&stage, &complete_sql(&running[HELD..=HELD])).await;
    assert_eq!(stage.store().unpin(&UNPIN).await.unwrap().forwarded, MANY - 1);
    run(&mut holder, "ROLLBACK").await;
    assert_eq!(stage.store().unpin(&UNPIN).await.unwrap().forwarded, 1);
    stage.complete(&running).await;
}

/// What [`one_job_that_somebody_holds_keeps_no_batch_of_wishes_back`] shows, of one wish and the end that leads to it.
async fn wishes_all_but_one(stage: &Stage, wish: &str, end: &AttemptEnd) {
    let running = attempts(stage, Shape::Wide).await;
    let all = ids(&running);
    assert_eq!(stage.end(&running, end.clone()).await, [CLOSED; MANY]);
    let (table, from) = match end {
        AttemptEnd::Fail { .. } => ("dlq_entries", JobState::Dead),
        _ => ("deferred_jobs", JobState::Deferred),
    };
    if wish == "asked cancels" {
        let ask = "INSERT INTO awa.cancel_requests (job_id, requested_at, reason)
                   SELECT d.job_id, now(), 'no' FROM awa.deferred_jobs AS d";
        run(&mut stage.connect().await, ask).await;
    }
    let lock = format!("SELECT 'held' FROM awa.{table} WHERE job_id = {} FOR UPDATE", all[HELD]);
    let mut holder = open(stage, &lock).await;
    let (store, reason) = (stage.store(), ErrorText::new("no"));
    let call = async |jobs: &[JobId]| match wish {
        "cancel" => store.cancel(jobs, &reason).await.unwrap(),
        "move" => store.move_jobs(jobs, &MoveTo::priority(Priority::BULK)).await.unwrap(),
        "retry" => store.retry(jobs).await.unwrap(),
        _ => store.delete(jobs).await.unwrap(),
    };
    // How many are left where they were.
    let tick = async || {
        match wish {
            "promote" => drop(store.promote(100).await.expect("one that is held fails the whole tick")),
            "forget" => drop(store.forget_dead(Duration::ZERO, 100).await.unwrap()),
            _ => store.tidy().await.unwrap(),
        }
        stage.number(&format!("SELECT count(*) FROM awa.{table}")).await
    };
    if matches!(wish, "cancel" | "move" | "retry" | "delete") {
        let done = Acted::Done { from };
        all_but_one(&call(&all).await, &done, &Acted::Refused(Refusal::Contended));
        run(&mut holder, "ROLLBACK").await;
        assert_eq!(call(&all[HELD..=HELD]).await, [done], "{wish}");
    } else {
        assert_eq!(tick().await, 1, "{wish}");
        run(&mut holder, "ROLLBACK").await;
        assert_eq!(tick().await, 0, "{wish}: the one does not follow");
    }
}

/// Bug class 49: what operators and ticks do to many jobs that wait for their time or are dead, of which somebody holds the row
/// of one.
#[tokio::test]
async fn one_job_that_somebody_holds_keeps_no_batch_of_wishes_back() {
    let snooze = AttemptEnd::Snooze { delay: Duration::from_hours(1) };
    let fail = AttemptEnd::Fail { error: ErrorText::new("boom") };
    for (wish, end) in [
        ("cancel", &snooze),
        ("move", &snooze),
        ("retry", &snooze),
        ("asked cancels", &snooze),
        ("promote", &AttemptEnd::Snooze { delay: Duration::ZERO }),
        ("retry", &fail),
        ("delete", &fail),
        ("forget", &fail),
    ] {
        wishes_all_but_one(&Stage::new().await, wish, end).await;
    }
}

/// The same with a tick that fails where it finds a row held.
#[tokio::test]
async fn a_tick_that_one_row_fails_is_noticed() {
    let stage = Stage::new().await;
    replace_in(&stage, "promote_due", "FOR UPDATE SKIP LOCKED", "FOR UPDATE NOWAIT").await;
    let due = AttemptEnd::Snooze { delay: Duration::ZERO };
    let mutant = tokio::spawn(async move { wishes_all_but_one(&stage, "promote", &due).await });
    assert!(complaint(mutant.await).contains("one that is held fails the whole tick"));
}
