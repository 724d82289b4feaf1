//! Notes of attempts and callbacks on real PostgreSQL: what a race or an open transaction could break, and what is left in
//! the tables.

use std::time::Duration;

use awa_core::attempt::{ErrorText, Receipt};
use awa_core::job::MaxAttempts;
use awa_core::ring::RingKind;
use awa_core::store::{Acted, AttemptNote, Attempts, Callback, Maintainer, NoteAnswer, Operator, Producer};
use awa_core::unique::{OnConflict, Unique, UniqueBy};
use awa_core::unpin::UnpinPolicy;
use awa_core::{AttemptEnd, CallbackAnswer, CallbackToken, ClaimedJob, ClosureAnswer, JobState, JsonText};
use awa_tests::stage::{Stage, complete_sql, run, steady_retry, texts};
use sqlx::{AssertSqlSafe, Row};

const CLOSED: ClosureAnswer = ClosureAnswer::Closed;
const PARK: AttemptEnd = AttemptEnd::Park { timeout: Duration::from_hours(1) };
const NOTED: NoteAnswer = NoteAnswer::Noted { callback: None };

fn json(text: &str) -> JsonText {
    JsonText::new("progress", text).unwrap()
}

fn checkpoint(attempt: &ClaimedJob) -> AttemptNote {
    AttemptNote::checkpoint(attempt.receipt, json("1"))
}

async fn note(stage: &Stage, note: AttemptNote) -> NoteAnswer {
    stage.store().note(&[note]).await.unwrap()[0]
}

async fn call_back(stage: &Stage, token: CallbackToken) -> CallbackAnswer {
    stage.store().resume(&[Callback { token, payload: json("{}") }]).await.unwrap()[0]
}

/// A new attempt that has the token `number`.
async fn with_token(stage: &Stage, number: u128) -> (ClaimedJob, CallbackToken) {
    stage.enqueue(1).await;
    let attempt = stage.claim(1).await.remove(0);
    let token = CallbackToken(number);
    let answer = note(stage, AttemptNote::callback(attempt.receipt, token)).await;
    assert_eq!(answer, NoteAnswer::Noted { callback: Some(token) });
    (attempt, token)
}

async fn kept(stage: &Stage) -> i64 {
    stage.number("SELECT count(*) FROM awa.attempt_state").await
}

/// The call of `note_attempts` for one attempt, as text.
fn note_sql(Receipt { claim_slot, nonce, id, .. }: Receipt) -> String {
    format!(
        "SELECT n.receipt::text FROM awa.note_attempts(ARRAY[{}]::smallint[], ARRAY[{}]::bigint[], ARRAY[{}]::bigint[],
             ARRAY['7']::json[], ARRAY[NULL]::uuid[]) AS n",
        claim_slot.0,
        nonce.0,
        id.get()
    )
}

/// I11: no row of attempt_state outlives its job, whichever way that ended: the attempt that noted, a later compact one that
/// noted nothing, an operator, or a callback that never came.
#[tokio::test]
async fn nothing_that_was_noted_outlives_its_job() {
    let stage = Stage::with_manual_clock().await;
    let again = AttemptEnd::Retry { delay: Duration::ZERO, error: ErrorText::new("boom") };
    let ends = [
        AttemptEnd::Complete,
        AttemptEnd::CompleteWith { result: json("1") },
        AttemptEnd::Cancel { reason: ErrorText::new("no") },
    ];
    for end in &ends {
        for goes_on in [None, Some(again.clone()), Some(AttemptEnd::Release { delay: Duration::ZERO })] {
            stage.enqueue(2).await;
            let mut attempts = stage.claim(2).await;
            assert_eq!(note(&stage, checkpoint(&attempts[1])).await, NOTED);
            if let Some(goes_on) = goes_on {
                assert_eq!(stage.end(&attempts, goes_on).await, [CLOSED; 2]);
                stage.store().promote(10).await.unwrap();
                assert_eq!(kept(&stage).await, 1, "progress outlives the attempt");
                attempts = stage.claim(2).await;
            }
            assert_eq!(stage.end(&attempts, end.clone()).await, [CLOSED; 2]);
            assert_eq!(kept(&stage).await, 0, "{end:?}");
        }
    }
    for state in [JobState::Running, JobState::Deferred, JobState::Ready, JobState::Waiting] {
        stage.enqueue(1).await;
        let attempts = stage.claim(1).await;
        note(&stage, checkpoint(&attempts[0])).await;
        match state {
            JobState::Deferred | JobState::Ready => drop(stage.end(&attempts, again.clone()).await),
            JobState::Waiting => drop(stage.end(&attempts, PARK).await),
            _ => {}
        }
        if state == JobState::Ready {
            stage.store().promote(10).await.unwrap();
        }
        let acted = stage.store().cancel(&[attempts[0].receipt.job], &ErrorText::new("no")).await.unwrap();
        assert_eq!(acted, [Acted::Done { from: state }]);
        assert_eq!(kept(&stage).await, 0, "cancelled when {state}");
    }
}

/// A job that is replaced before it runs again leaves its notes to the next tidy ticks, which leave those of all others.
#[tokio::test]
async fn notes_of_a_replaced_job_are_tidied_away() {
    let stage = Stage::with_manual_clock().await;
    let plain = stage.job("{}");
    let key = UniqueBy::text("one").key_of(&plain).unwrap();
    let unique = plain.with_unique(Unique::new(key).on_conflict(OnConflict::Replace));
    stage.store().enqueue(std::slice::from_ref(&unique)).await.unwrap();
    stage.enqueue(1).await;
    let attempts = stage.claim(2).await;
    for attempt in &attempts {
        note(&stage, checkpoint(attempt)).await;
    }
    let again = AttemptEnd::Retry { delay: Duration::ZERO, error: ErrorText::new("boom") };
    assert_eq!(stage.end(&attempts, again).await, [CLOSED; 2]);
    stage.store().promote(10).await.unwrap();
    stage.store().enqueue(&[unique]).await.unwrap();
    assert_eq!(stage.store().get(attempts[0].receipt.job).await.unwrap().unwrap().state, JobState::Cancelled);
    assert_eq!(kept(&stage).await, 2);
    stage.store().tidy().await.unwrap();
    assert_eq!(kept(&stage).await, 2, "what is fresh is not looked at");
    stage.fresh.clock.advance(Duration::from_hours(2));
    stage.store().tidy().await.unwrap();
    let left = stage.number("SELECT max(job_id) FROM awa.attempt_state").await;
    assert_eq!((kept(&stage).await, left), (1, attempts[1].receipt.job.get()));
}

/// C3, C10: somebody's open transaction is about to end an attempt: its notes and its park are answered as contended and
/// change nothing, and neighbours are not delayed; when it rolls back they are taken.
#[tokio::test]
async fn an_open_closer_delays_its_own_attempt_only() {
    let stage = Stage::new().await;
    stage.enqueue(3).await;
    let attempts = stage.claim(3).await;
    let mut user = stage.connect().await;
    run(&mut user, "BEGIN").await;
    assert_eq!(texts(&mut user, &complete_sql(&attempts[..1])).await.len(), 1);
    let notes: Vec<_> = attempts.iter().map(checkpoint).collect();
    assert_eq!(stage.store().note(&notes).await.unwrap(), [NoteAnswer::Contended, NOTED, NOTED]);
    assert_eq!(stage.end(&attempts[..2], PARK).await, [ClosureAnswer::Contended, CLOSED]);
    assert_eq!(kept(&stage).await, 2);
    run(&mut user, "ROLLBACK").await;
    assert_eq!(note(&stage, checkpoint(&attempts[0])).await, NOTED);

    // Now a note is the one that is open.
    run(&mut user, "BEGIN").await;
    assert_eq!(texts(&mut user, &note_sql(attempts[2].receipt)).await.len(), 1);
    assert_eq!(stage.end(&attempts[2..], AttemptEnd::Complete).await, [ClosureAnswer::Contended]);
    assert_eq!(stage.end(&attempts[..1], AttemptEnd::Complete).await, [CLOSED]);
    run(&mut user, "COMMIT").await;
    assert_eq!(stage.end(&attempts[2..], AttemptEnd::Complete).await, [CLOSED]);
    assert_eq!(kept(&stage).await, 1, "only the parked attempt has something noted");
}

/// C4: a callback in somebody's open transaction is the only one while it is open, and gone when it rolls back.
#[tokio::test]
async fn a_callback_that_rolls_back_frees_its_token() {
    let stage = Stage::new().await;
    let (attempt, token) = with_token(&stage, 1).await;
    assert_eq!(stage.end(&[attempt], PARK).await, [CLOSED]);
    let mut user = stage.connect().await;
    run(&mut user, "BEGIN").await;
    let sql = format!("SELECT r.answer FROM awa.resume_attempts(ARRAY['{token}']::uuid[], ARRAY['5']::json[]) AS r");
    assert_eq!(texts(&mut user, &sql).await, [Some("resumed".to_owned())]);
    assert_eq!(call_back(&stage, token).await, CallbackAnswer::Contended);
    run(&mut user, "ROLLBACK").await;
    assert_eq!(call_back(&stage, token).await, CallbackAnswer::Resumed);
    assert_eq!(call_back(&stage, token).await, CallbackAnswer::AlreadyUsed);
}

/// C3, C4: notes, the end of their attempts and the moving of their leases at once: every attempt ends once, none is taken
/// for stale while it runs, and nothing is left.
#[tokio::test]
async fn notes_ends_and_moves_at_once_lose_nothing() {
    let stage = Stage::new().await;
    let policy = UnpinPolicy { min_free: u8::MAX, ..UnpinPolicy::default() };
    for _ in 0..20 {
        stage.enqueue(4).await;
        let attempts = stage.claim(4).await;
        assert_eq!(stage.store().note(&[checkpoint(&attempts[0])]).await.unwrap(), [NOTED]);
        stage.rotate(RingKind::Lease).await;
        let notes: Vec<_> = attempts.iter().map(checkpoint).collect();
        let closes = async {
            let mut left = attempts[2..].to_vec();
            while !left.is_empty() {
                let answers = stage.end(&left, AttemptEnd::Complete).await;
                assert!(answers.iter().all(|answer| *answer != ClosureAnswer::Stale), "{answers:?}");
                left = left.into_iter().zip(answers).filter(|(_, one)| *one != CLOSED).map(|(one, _)| one).collect();
            }
        };
        let (noted, moved, ()) = tokio::join!(stage.store().note(&notes), stage.store().unpin(&policy), closes);
        moved.unwrap();
        let noted = noted.unwrap();
        assert!(noted[..2].iter().all(|answer| *answer != NoteAnswer::Stale), "{noted:?}");
        assert_eq!(stage.store().note(&notes).await.unwrap()[2..], [NoteAnswer::Stale; 2]);
        stage.complete(&attempts[..2]).await;
        assert_eq!(kept(&stage).await, 0);
        stage.prune(RingKind::Lease).await;
    }
}

/// Bug class 50: a callback, its time-out, a cancel and the worker's repeated park at once: the attempt goes on or ends in
/// exactly one way, and is charged at most once.
#[tokio::test]
async fn a_parked_attempt_ends_in_one_way_however_many_want_it() {
    let stage = Stage::with_manual_clock().await;
    for round in 0..30 {
        let (attempt, token) = with_token(&stage, round + 1).await;
        let id = attempt.receipt.job;
        let park = AttemptEnd::Park { timeout: Duration::from_secs(1) };
        assert_eq!(stage.end(std::slice::from_ref(&attempt), park).await, [CLOSED]);
        // On every other round the time has run out, and the callback cannot win.
        if round % 2 == 0 {
            stage.outlive().await;
        }
        let request = Stage::rescue_request();
        let (ids, reason, policy) = ([id], ErrorText::new("no"), steady_retry());
        let (answer, rescued, again, acted) = tokio::join!(
            call_back(&stage, token),
            stage.store().rescue(&request, &policy),
            stage.store().rescue(&request, &policy),
            stage.store().cancel(&ids, &reason),
        );
        let rescued = rescued.unwrap().attempts.len() + again.unwrap().attempts.len();
        let resumed = answer == CallbackAnswer::Resumed;
        assert!(rescued <= 1 && !(resumed && rescued == 1), "{answer:?} and rescued {rescued} times");
        let from = match acted.unwrap()[0] {
            Acted::Done { from } => Some(from),
            _ => None,
        };
        let view = stage.store().get(id).await.unwrap().unwrap();
        let expected = match (from, rescued, resumed) {
            (Some(_), ..) => JobState::Cancelled,
            (None, 1, _) => JobState::Deferred,
            (None, _, true) => JobState::Ready,
            (None, _, false) => JobState::Waiting,
        };
        assert_eq!(view.state, expected, "{answer:?}, {from:?}, rescued {rescued}");
        assert!(view.attempt <= 1);
        stage.store().cancel(&ids, &reason).await.unwrap();
        assert_eq!(kept(&stage).await, 0);
    }
}

/// A job whose callback never came is dead for that reason, by a number that the table of outcomes names.
#[tokio::test]
async fn the_reason_of_a_callback_that_never_came_is_kept() {
    let stage = Stage::with_manual_clock().await;
    let once = stage.job("{}").with_max_attempts(MaxAttempts::new(1).unwrap());
    stage.store().enqueue(&[once]).await.unwrap();
    let attempts = stage.claim(1).await;
    note(&stage, checkpoint(&attempts[0])).await;
    assert_eq!(stage.end(&attempts, AttemptEnd::Park { timeout: Duration::from_secs(1) }).await, [CLOSED]);
    stage.outlive().await;
    assert_eq!(stage.store().rescue(&Stage::rescue_request(), &steady_retry()).await.unwrap().attempts.len(), 1);
    let sql = "SELECT a.name FROM awa.dlq_entries AS d JOIN awa.attempt_outcomes AS a ON a.outcome = d.outcome";
    let name: String = sqlx::query(AssertSqlSafe(sql)).fetch_one(stage.store().pool()).await.unwrap().get(0);
    assert_eq!(name, "callback_timed_out");
    assert_eq!(kept(&stage).await, 1, "a dead job keeps its progress");
}
