//! Callbacks and notes that stand still between their look and their write while the attempt that they are for ends, is
//! moved, or is given to somebody else.

use awa_core::attempt::ErrorText;
use awa_core::ring::RingKind;
use awa_core::store::{Acted, AttemptNote, Attempts, Callback, Consumer, Maintainer, NoteAnswer, Operator};
use awa_core::{AttemptEnd, CallbackAnswer, CallbackToken, ClaimedJob, Closure, ClosureAnswer, JobId, JsonText};
use awa_tests::halt::{Halt, complaint, replace_in};
use awa_tests::shapes::{MINUTE, Shape, UNPIN, every_end, slots_kept};
use awa_tests::stage::{Stage, steady_retry};
use tokio::task::JoinHandle;

const CLOSED: ClosureAnswer = ClosureAnswer::Closed;
/// The first statement of each call that writes down ends or notes.
const ENTRY: &str = "IF current_setting('synchronous_commit')";

fn json(text: &str) -> JsonText {
    JsonText::new("progress", text).unwrap()
}

/// Something that wants to end the wait of an attempt, and whether it did.
fn wanted<F: Future<Output = bool> + Send + 'static>(call: F) -> JoinHandle<bool> {
    tokio::spawn(call)
}

fn call_back(stage: &Stage, token: CallbackToken) -> JoinHandle<bool> {
    let store = stage.store().clone();
    wanted(async move { store.resume(&[Callback { token, payload: json("{}") }]).await.unwrap()[0].is_accepted() })
}

fn time_out(stage: &Stage) -> JoinHandle<bool> {
    let store = stage.store().clone();
    wanted(async move {
        let rescued = store.rescue(&Stage::rescue_request(), &steady_retry()).await.unwrap();
        rescued.attempts.len() == 1
    })
}

fn cancel(stage: &Stage, job: JobId) -> JoinHandle<bool> {
    let store = stage.store().clone();
    wanted(async move {
        let acted = store.cancel(&[job], &ErrorText::new("no longer wanted")).await.unwrap()[0];
        matches!(acted, Acted::Done { .. })
    })
}

/// An attempt that waits for a callback, for a minute.
async fn parked(stage: &Stage, shape: Shape, token: CallbackToken) -> JobId {
    let mut attempts = shape.claim(stage, None).await;
    let attempt = attempts.remove(0);
    stage.end(&attempts, AttemptEnd::Complete).await;
    let note = AttemptNote::callback(attempt.receipt, token);
    assert_eq!(stage.store().note(&[note]).await.unwrap(), [NoteAnswer::Noted { callback: Some(token) }]);
    let park = AttemptEnd::Park { timeout: MINUTE };
    assert_eq!(stage.end(std::slice::from_ref(&attempt), park).await, [CLOSED]);
    attempt.receipt.job
}

/// What [`of_a_callback_its_time_out_and_a_cancel_that_stood_still_one_wins`] shows.
async fn three_stand_still(stage: &Stage, orders: &[[usize; 3]]) {
    const STATES: [&str; 3] = ["ready", "deferred", "cancelled"];
    let mut halts = [
        Halt::before(stage, "resume_attempts", "v_lease := \"awa\".hold_lease_of").await,
        Halt::before(stage, "end_attempts", ENTRY).await,
        Halt::before(stage, "cancel_lease", "PERFORM FROM \"awa\".end_attempts(").await,
    ];
    let mut number = 0;
    for shape in [Shape::Single, Shape::RowLocal] {
        for (order, is_moved) in orders.iter().flat_map(|order| [(order, false), (order, true)]) {
            number += 1;
            let token = CallbackToken(number);
            let job = parked(stage, shape, token).await;
            // The callback comes in time, and then stands still until the time is over.
            halts[0].arm(1).await;
            let callback = call_back(stage, token);
            halts[0].until_reached(1).await;
            stage.outlive().await;
            halts[1].arm(1).await;
            let time_out = time_out(stage);
            halts[1].until_reached(1).await;
            halts[2].arm(1).await;
            let cancel = cancel(stage, job);
            halts[2].until_reached(1).await;
            if is_moved {
                stage.rotate(RingKind::Lease).await;
                stage.store().unpin(&UNPIN).await.unwrap();
            }
            let mut calls = [Some(callback), Some(time_out), Some(cancel)];
            for (turn, who) in order.iter().enumerate() {
                halts[*who].release().await;
                let won = calls[*who].take().unwrap().await.unwrap();
                assert_eq!(won, turn == 0, "{shape:?}, order {order:?}, moved {is_moved}: {who} came as number {turn}");
            }
            assert_eq!(stage.place(job).await, STATES[order[0]], "{order:?}");
            let again = stage.store().resume(&[Callback { token, payload: json("1") }]).await.unwrap();
            assert!(!again[0].is_accepted() && again[0] != CallbackAnswer::Contended, "{order:?}: {again:?}");
            let left: Vec<JobId> = stage.places().await.into_keys().collect();
            stage.store().cancel(&left, &ErrorText::new("done with it")).await.unwrap();
            assert_eq!(stage.number("SELECT count(*) FROM awa.attempt_state").await, 0);
            stage.prune(RingKind::Lease).await;
        }
        assert_eq!(slots_kept(stage).await, 0, "{shape:?}");
    }
}

/// Bug class 97: a callback that came in time, the rescuer that found the time over, and a cancel have all looked at the
/// attempt and stand still; its lease may be moved meanwhile. Whoever goes on first wins, in every order, and the others
/// are told that they did nothing.
#[tokio::test]
async fn of_a_callback_its_time_out_and_a_cancel_that_stood_still_one_wins() {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    three_stand_still(&Stage::with_manual_clock().await, &orders).await;
}

/// The same with a callback that does not ask whether the attempt of its token is still there.
#[tokio::test]
async fn a_callback_that_does_not_look_at_the_attempt_is_noticed() {
    let stage = Stage::with_manual_clock().await;
    let check = "WHEN v_lease.run_lease IS DISTINCT FROM v_known.callback_lease THEN 'over'";
    replace_in(&stage, "resume_attempts", check, "").await;
    let mutant = tokio::spawn(async move { three_stand_still(&stage, &[[1, 0, 2]]).await });
    assert!(complaint(mutant.await).contains("0 came as number 1"));
}

/// The note of one attempt, beside the test.
fn note(stage: &Stage, attempt: &ClaimedJob) -> JoinHandle<NoteAnswer> {
    let (store, receipt) = (stage.store().clone(), attempt.receipt);
    let note = AttemptNote { progress: Some(json("1")), callback: None, ..AttemptNote::heartbeat(receipt) };
    tokio::spawn(async move { store.note(&[note]).await.unwrap()[0] })
}

/// How many rows of notes there are; none, once everything has ended.
async fn notes_left(stage: &Stage) -> i64 {
    let noted = stage.number("SELECT count(*) FROM awa.attempt_state").await;
    let left: Vec<JobId> = stage.places().await.into_keys().collect();
    stage.store().cancel(&left, &ErrorText::new("done with it")).await.unwrap();
    stage.store().delete(&left).await.unwrap();
    assert_eq!(stage.number("SELECT count(*) FROM awa.attempt_state").await, 0);
    noted
}

/// What [`a_note_that_stood_still_brings_nothing_back`] shows.
async fn a_note_stands_still(stage: &Stage, shapes: &[Shape]) {
    let mut halt = Halt::before(stage, "note_attempts", ENTRY).await;
    for shape in shapes {
        for (way, state) in every_end() {
            let attempt = shape.claim(stage, None).await.remove(0);
            halt.arm(1).await;
            let late = note(stage, &attempt);
            halt.until_reached(1).await;
            assert_eq!(stage.end(std::slice::from_ref(&attempt), way.clone()).await, [CLOSED]);
            halt.release().await;
            assert_eq!(late.await.unwrap(), NoteAnswer::Stale, "{shape:?} {way:?}: the note was taken");
            assert_eq!(stage.place(attempt.receipt.job).await, state, "{shape:?} {way:?}");
            assert_eq!(notes_left(stage).await, 0, "{shape:?} {way:?}");
        }
        assert_eq!(slots_kept(stage).await, 0, "{shape:?}");
    }
}

/// Bug class 32: a note stands still, its attempt ends in whatever way, and the note goes on: it is refused, and neither a
/// row of notes nor the attempt is there again.
#[tokio::test]
async fn a_note_that_stood_still_brings_nothing_back() {
    a_note_stands_still(&Stage::new().await, &Shape::ALL).await;
}

/// The same with a note that does not ask whether its claim is open.
#[tokio::test]
async fn a_note_that_does_not_look_at_the_claim_is_noticed() {
    let stage = Stage::new().await;
    replace_in(&stage, "note_attempts", "v_held := \"awa\".hold_attempts(", "v_held := p_receipts; PERFORM (").await;
    let from = "SELECT l.receipt_id, l.job_id, l.run_lease, w.progress, w.token";
    replace_in(
        &stage,
        "note_attempts",
        from,
        "SELECT w.receipt AS receipt_id, w.receipt AS job_id, 1::bigint AS run_lease, w.progress, w.token",
    )
    .await;
    replace_in(&stage, "note_attempts", "JOIN \"awa\".leases AS l ON l.receipt_id = w.receipt", "").await;
    let mutant = tokio::spawn(async move { a_note_stands_still(&stage, &[Shape::Single]).await });
    assert!(complaint(mutant.await).contains("the note was taken"));
}

/// The other way around: the end stands still and the note is taken, or the note stands still with the attempt in its
/// hands and the end has to come again. Either way the notes go with the job, or stay as long as it goes on.
#[tokio::test]
async fn an_end_and_a_note_of_which_one_stood_still_agree() {
    let stage = Stage::new().await;
    let mut ending = Halt::before(&stage, "end_attempts|complete_attempts|park_attempts", ENTRY).await;
    let mut held = Halt::before(&stage, "note_attempts", "RETURN QUERY").await;
    for shape in Shape::ALL {
        for (way, state) in every_end() {
            let goes_on = i64::from(!matches!(state, "completed" | "cancelled"));
            let attempt = shape.claim(&stage, None).await.remove(0);
            ending.arm(1).await;
            let (store, closure) = (stage.store().clone(), Closure { receipt: attempt.receipt, end: way.clone() });
            let end = tokio::spawn(async move { store.close(&[closure]).await.unwrap()[0] });
            ending.until_reached(1).await;
            let noted = NoteAnswer::Noted { callback: None };
            assert_eq!(note(&stage, &attempt).await.unwrap(), noted, "{shape:?} {way:?}");
            ending.release().await;
            assert_eq!(end.await.unwrap(), CLOSED, "{shape:?} {way:?}");
            assert_eq!(stage.place(attempt.receipt.job).await, state, "{shape:?} {way:?}");
            assert_eq!(notes_left(&stage).await, goes_on, "{shape:?} {way:?}");

            let attempt = shape.claim(&stage, None).await.remove(0);
            held.arm(1).await;
            let note = note(&stage, &attempt);
            held.until_reached(1).await;
            let attempt = [attempt];
            assert_eq!(stage.end(&attempt, way.clone()).await, [ClosureAnswer::Contended], "{shape:?} {way:?}");
            held.release().await;
            assert_eq!(note.await.unwrap(), noted, "{shape:?} {way:?}");
            assert_eq!(stage.end(&attempt, way.clone()).await, [CLOSED], "{shape:?} {way:?}");
            assert_eq!(notes_left(&stage).await, goes_on, "{shape:?} {way:?}");
        }
        assert_eq!(slots_kept(&stage).await, 0, "{shape:?}");
    }
}
