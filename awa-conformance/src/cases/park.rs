//! Attempts that wait for a callback.

use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::id::RunLease;
use awa_core::job::MaxAttempts;
use awa_core::ring::RingKind;
use awa_core::store::{AttemptNote, Callback, DeferredReason, NoteAnswer};
use awa_core::sweep::RescueCause;
use awa_core::unique::{KeyStates, Unique, UniqueBy};
use awa_core::{AttemptEnd, CallbackAnswer, CallbackToken, ClaimedJob, ClosureAnswer, JobState, JsonText};

use crate::Subject;
use crate::rings::NO_HISTORY;
use crate::scene::{ME, OTHER, Scene, done, job, json, labels, retry_after};

use CallbackAnswer::{AlreadyUsed, AttemptOver, Expired, Kept, Resumed, Unknown};

const HOUR: Duration = Duration::from_hours(1);
const PARK: AttemptEnd = AttemptEnd::Park { timeout: HOUR };

impl Scene<'_> {
    /// Registers the token `number` for an attempt, which has none yet.
    async fn register(&self, attempt: &ClaimedJob, number: u128) -> CallbackToken {
        let token = CallbackToken(number);
        let answer = self.note(AttemptNote::callback(attempt.receipt, token)).await;
        assert_eq!(answer, NoteAnswer::Noted { callback: Some(token) });
        token
    }

    /// An attempt at a new job of `email` that has the token `number` and is parked.
    async fn parked(&self, number: u128) -> (ClaimedJob, CallbackToken) {
        let attempt = self.new_attempt("email").await;
        let token = self.register(&attempt, number).await;
        assert_eq!(self.close_one(&attempt, PARK).await, ClosureAnswer::Closed);
        self.expect(&[(attempt.receipt.job, JobState::Waiting)]).await;
        (attempt, token)
    }

    /// One callback, asked again while somebody is in the way.
    async fn call_back(&self, token: CallbackToken, payload: &str) -> CallbackAnswer {
        for _ in 0..64 {
            let callback = Callback { token, payload: json(payload) };
            let answers = self.store().resume(&[callback]).await.expect("resume");
            assert_eq!(answers.len(), 1, "one answer per callback");
            if answers[0] != CallbackAnswer::Contended {
                return answers[0];
            }
        }
        panic!("a callback was contended 64 times");
    }

    /// What an attempt recalls as the payload of its callback; it must be running.
    async fn payload(&self, attempt: &ClaimedJob) -> Option<JsonText> {
        let mut memories = self.store().recall(&[attempt.receipt]).await.expect("recall");
        memories.remove(0).expect("the attempt is running").payload
    }
}

/// C2, C4: a parked attempt waits until its callback comes; then its job is ready, is not charged for having waited, and the
/// next attempt reads what came and what was noted before.
pub async fn a_callback_resumes_a_parked_attempt(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let attempt = scene.new_attempt("email").await;
    scene.checkpoint(&attempt, "\"asked\"").await;
    let token = scene.register(&attempt, 1).await;
    let before = scene.view(attempt.receipt.job).await;
    assert_eq!(scene.close_one(&attempt, PARK).await, ClosureAnswer::Closed);
    let id = attempt.receipt.job;
    scene.expect(&[(id, JobState::Waiting)]).await;
    let view = scene.view(id).await;
    assert_eq!((view.attempt, view.run_lease, &view.args), (before.attempt, before.run_lease, &before.args));
    assert_eq!(scene.claim("email", 10).await, []);
    assert_eq!(scene.call_back(token, "{\"paid\": true}").await, Resumed);
    scene.expect(&[(id, JobState::Ready)]).await;
    let next = scene.claim_one("email").await;
    assert_eq!((next.receipt.job, next.attempt, next.receipt.run_lease), (id, 1, RunLease(2)));
    assert_eq!(scene.payload(&next).await, Some(json("{\"paid\": true}")));
    assert_eq!(scene.progress(&next).await, Some(json("\"asked\"")));
    scene.complete(&[next]).await;
    scene.expect_all_reclaimed().await;
}

/// C6: a resumed job runs before those of its lane that wait, and more urgent lanes still go first.
pub async fn a_resumed_job_goes_before_all_others(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let (_, token) = scene.parked(1).await;
    scene.enqueue_each("email", &["b", "c"]).await;
    scene.enqueue(&[job("email", "urgent").with_priority(awa_core::Priority::URGENT)]).await;
    assert_eq!(scene.call_back(token, "1").await, Resumed);
    let jobs = scene.claim("email", 10).await;
    assert_eq!(labels(&jobs), ["urgent", "a", "b", "c"]);
    scene.complete(&jobs).await;
}

/// C4: a callback that comes while the attempt still runs is kept, and the attempt goes on at once when it parks (bug class
/// 96).
pub async fn a_callback_before_the_park_is_kept(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let attempt = scene.new_attempt("email").await;
    let token = scene.register(&attempt, 1).await;
    assert_eq!(scene.call_back(token, "1").await, Kept);
    scene.expect(&[(attempt.receipt.job, JobState::Running)]).await;
    assert_eq!(scene.payload(&attempt).await, Some(json("1")), "the attempt itself may look for it");
    assert_eq!(scene.call_back(token, "2").await, AlreadyUsed);
    assert_eq!(scene.close_one(&attempt, PARK).await, ClosureAnswer::Closed);
    assert_eq!(scene.close_one(&attempt, PARK).await, ClosureAnswer::Stale);
    scene.expect(&[(attempt.receipt.job, JobState::Ready)]).await;
    let next = scene.claim_one("email").await;
    assert_eq!((next.attempt, next.receipt.run_lease), (1, RunLease(2)));
    assert_eq!(scene.payload(&next).await, Some(json("1")));
    scene.complete(&[next]).await;
    scene.expect_all_reclaimed().await;
}

/// C2: a payload survives the crash of the attempt that was to read it, until an attempt registers another token (bug class
/// 97).
pub async fn a_payload_is_read_until_the_next_token(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let (_, token) = scene.parked(1).await;
    scene.call_back(token, "7").await;
    let crashed = scene.claim_one("email").await;
    assert_eq!(scene.payload(&crashed).await, Some(json("7")));
    assert_eq!(scene.rescue_after_silence(&[OTHER]).await.attempts.len(), 1);
    scene.pass(Duration::from_secs(2)).await;
    scene.promote().await;
    let next = scene.claim_one("email").await;
    assert_eq!(scene.payload(&next).await, Some(json("7")));
    scene.checkpoint(&next, "1").await;
    assert_eq!(scene.payload(&next).await, Some(json("7")));
    let second = scene.register(&next, 2).await;
    assert_eq!(scene.payload(&next).await, None);
    assert_eq!(scene.close_one(&next, PARK).await, ClosureAnswer::Closed);
    assert_eq!(scene.call_back(token, "8").await, Unknown, "the first token is forgotten");
    assert_eq!(scene.call_back(second, "9").await, Resumed);
    let last = scene.claim_one("email").await;
    assert_eq!(scene.payload(&last).await, Some(json("9")));
    scene.complete(&[last]).await;
}

/// C7: an attempt that asks for a token again, because it does not know whether it has one, gets the same.
pub async fn an_attempt_has_one_token(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let attempt = scene.new_attempt("email").await;
    let token = scene.register(&attempt, 1).await;
    let first = NoteAnswer::Noted { callback: Some(token) };
    let again = scene.note(AttemptNote::callback(attempt.receipt, CallbackToken(2))).await;
    assert_eq!(again, first);
    assert_eq!(scene.note(AttemptNote::heartbeat(attempt.receipt)).await, first);
    assert_eq!(scene.call_back(CallbackToken(2), "1").await, Unknown);
    assert_eq!(scene.call_back(token, "1").await, Kept);
    assert_eq!(scene.note(AttemptNote::callback(attempt.receipt, CallbackToken(3))).await, first);
    assert_eq!(scene.payload(&attempt).await, Some(json("1")), "asking again loses no payload");
    scene.complete(&[attempt]).await;
}

/// C4: a token resumes once; what comes with a second callback is not kept.
pub async fn a_token_is_good_for_one_callback(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let (attempt, token) = scene.parked(1).await;
    assert_eq!(scene.call_back(token, "1").await, Resumed);
    assert_eq!(scene.call_back(token, "2").await, AlreadyUsed);
    let next = scene.claim_one("email").await;
    assert_eq!(scene.call_back(token, "3").await, AlreadyUsed);
    assert_eq!(scene.payload(&next).await, Some(json("1")));
    // The second attempt has a token of its own.
    let second = scene.register(&next, 2).await;
    assert_eq!(scene.close_one(&next, PARK).await, ClosureAnswer::Closed);
    assert_eq!(scene.call_back(second, "4").await, Resumed);
    scene.expect(&[(attempt.receipt.job, JobState::Ready)]).await;
}

/// C8: a token that nobody registered resumes nothing, and neither does one whose job has ended.
pub async fn an_unknown_token_resumes_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    assert_eq!(scene.call_back(CallbackToken(0), "1").await, Unknown);
    let (attempt, token) = scene.parked(1).await;
    assert_eq!(scene.call_back(CallbackToken(token.0 + 1), "1").await, Unknown);
    scene.expect(&[(attempt.receipt.job, JobState::Waiting)]).await;
    scene.call_back(token, "1").await;
    let next = scene.claim_one("email").await;
    scene.complete(&[next]).await;
    assert_eq!(scene.call_back(token, "1").await, Unknown);
    scene.expect(&[(attempt.receipt.job, JobState::Completed)]).await;
}

/// C3: a token that no callback came with is worth nothing once its attempt has ended, in whichever way but by parking, and
/// a later attempt is not resumed by it (bug class 98).
pub async fn a_token_ends_with_its_attempt(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let ends = scene.every_end().into_iter().filter(|end| !matches!(end, AttemptEnd::Park { .. })).map(Some);
    for (number, end) in ends.chain([None]).enumerate() {
        let attempt = scene.new_attempt("email").await;
        let token = scene.register(&attempt, number as u128 + 1).await;
        match &end {
            Some(end) => assert_eq!(scene.close_one(&attempt, end.clone()).await, ClosureAnswer::Closed),
            None => assert_eq!(scene.rescue_after_silence(&[OTHER]).await.attempts.len(), 1),
        }
        let before = scene.view(attempt.receipt.job).await;
        let gone = before.state.is_terminal() && before.state != JobState::Dead;
        let expected = if gone { Unknown } else { AttemptOver };
        assert_eq!(scene.call_back(token, "1").await, expected, "{end:?}");
        assert_eq!(scene.view(attempt.receipt.job).await, before, "{end:?}");
        if before.state == JobState::Ready {
            let next = scene.claim_one("email").await;
            assert_eq!(scene.call_back(token, "1").await, AttemptOver, "{end:?}");
            assert_eq!(scene.close_one(&next, PARK).await, ClosureAnswer::Closed);
            assert_eq!(scene.call_back(token, "1").await, AttemptOver, "{end:?}");
            assert_eq!(scene.payload_of_none(&next).await, None);
        }
        scene.cancel(&[attempt.receipt.job]).await;
    }
}

impl Scene<'_> {
    /// What an attempt that has ended recalls: nothing.
    async fn payload_of_none(&self, attempt: &ClaimedJob) -> Option<awa_core::store::Memory> {
        self.store().recall(&[attempt.receipt]).await.expect("recall").remove(0)
    }
}

/// C3, C12: the worker that parked an attempt does not hold it any more: nothing that it presents is taken, it is not told
/// that it holds it, and its death does not end it.
pub async fn a_parked_attempt_is_not_held_by_its_worker(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let request = awa_core::store::ClaimRequest { deadline: Some(Duration::from_secs(1)), ..scene.request("email", 1) };
    scene.enqueue(&[job("email", "a")]).await;
    let attempt = scene.claim_like(&request).await.remove(0);
    let token = scene.register(&attempt, 1).await;
    assert_eq!(scene.close_one(&attempt, PARK).await, ClosureAnswer::Closed);
    for end in scene.every_end() {
        assert_eq!(scene.close_one(&attempt, end.clone()).await, ClosureAnswer::Stale, "{end:?}");
    }
    assert_eq!(scene.checkpoint(&attempt, "1").await, NoteAnswer::Stale);
    assert_eq!(scene.payload_of_none(&attempt).await, None);
    assert_eq!(scene.store().are_open(&[attempt.receipt]).await.expect("are_open"), [false]);
    assert_eq!(scene.store().open_attempts(ME, 10).await.expect("open_attempts"), []);
    assert_eq!(scene.rescue_after_silence(&[OTHER]).await.attempts, [], "neither silence nor a deadline ends it");
    scene.store().retire(ME).await.expect("retire");
    assert_eq!(scene.rescue().await.attempts, []);
    scene.expect(&[(attempt.receipt.job, JobState::Waiting)]).await;
    assert_eq!(scene.call_back(token, "1").await, Resumed);
}

/// C12: when the time of a parked attempt runs out it has failed: it is charged, tried again by the retry policy, and its
/// progress is there.
pub async fn a_parked_attempt_whose_time_runs_out_has_failed(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let attempt = scene.new_attempt("email").await;
    scene.checkpoint(&attempt, "5").await;
    let token = scene.register(&attempt, 1).await;
    let id = attempt.receipt.job;
    let park = AttemptEnd::Park { timeout: Duration::from_secs(30) };
    assert_eq!(scene.close_one(&attempt, park).await, ClosureAnswer::Closed);
    let rescued = scene.rescue_after_silence(&[ME]).await;
    let [one] = &rescued.attempts[..] else { panic!("{rescued:?}") };
    assert_eq!((one.job, one.run_lease, &one.queue), (id, attempt.receipt.run_lease, &attempt.queue));
    assert!(one.cause == RescueCause::NotCalled && !one.exhausted);
    assert_eq!(scene.rescue().await.attempts, []);
    scene.expect(&[(id, JobState::Deferred)]).await;
    let view = scene.view(id).await;
    assert_eq!((view.attempt, view.deferred), (1, Some(DeferredReason::Retry)));
    assert!(view.error.is_some_and(|error| error.as_str().contains("callback")));
    assert_eq!(scene.call_back(token, "1").await, AttemptOver);
    scene.pass(Duration::from_secs(2)).await;
    scene.promote().await;
    let next = scene.claim_one("email").await;
    assert_eq!((next.attempt, next.receipt.run_lease), (2, RunLease(2)));
    assert_eq!(scene.progress(&next).await, Some(json("5")));
    assert_eq!(scene.payload(&next).await, None);
    scene.complete(&[next]).await;
    scene.expect_all_reclaimed().await;
}

/// C12: a job whose callbacks never come has exactly its budget of attempts, and ends dead; an operator's retry goes on from
/// its progress.
pub async fn a_job_whose_callback_never_comes_ends_dead(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let twice = MaxAttempts::new(2).expect("two attempts");
    let id = scene.enqueue(&[job("email", "a").with_max_attempts(twice)]).await[0];
    for number in 1..=2 {
        let attempt = scene.claim_one("email").await;
        assert_eq!(attempt.attempt, number);
        scene.checkpoint(&attempt, &number.to_string()).await;
        scene.close_one(&attempt, AttemptEnd::Park { timeout: Duration::from_secs(1) }).await;
        let rescued = scene.rescue_after_silence(&[ME]).await;
        assert_eq!(rescued.attempts.iter().map(|one| one.exhausted).collect::<Vec<_>>(), [number == 2]);
        scene.pass(Duration::from_secs(2)).await;
        scene.promote().await;
    }
    scene.expect(&[(id, JobState::Dead)]).await;
    assert_eq!(scene.claim("email", 1).await, []);
    assert_eq!(scene.retry(&[id]).await, [done(JobState::Dead)]);
    let attempt = scene.claim_one("email").await;
    assert_eq!((attempt.attempt, scene.progress(&attempt).await), (1, Some(json("2"))));
    scene.complete(&[attempt]).await;
    scene.expect_all_reclaimed().await;
}

/// C12: a callback after the time has run out is refused, also before anybody has ended the attempt.
pub async fn a_late_callback_is_refused(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let (attempt, token) = scene.parked(1).await;
    scene.pass(HOUR).await;
    assert_eq!(scene.call_back(token, "1").await, Expired);
    scene.expect(&[(attempt.receipt.job, JobState::Waiting)]).await;
    let rescued = scene.rescue_after_silence(&[ME]).await;
    assert!(rescued.attempts.iter().all(|one| one.cause == RescueCause::NotCalled) && rescued.attempts.len() == 1);
    assert_eq!(scene.call_back(token, "1").await, AttemptOver);
    scene.expect(&[(attempt.receipt.job, JobState::Deferred)]).await;
}

/// C2, C3: an operator cancels a waiting job, and its callback comes too late; a retry of it is refused.
pub async fn a_waiting_job_can_be_cancelled(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let (attempt, token) = scene.parked(1).await;
    let id = attempt.receipt.job;
    let refused = awa_core::store::Acted::Refused(awa_core::store::Refusal::WrongState(JobState::Waiting));
    assert_eq!(scene.retry(&[id]).await, [refused]);
    assert_eq!(scene.cancel(&[id]).await, [done(JobState::Waiting)]);
    scene.expect(&[(id, JobState::Cancelled)]).await;
    assert_eq!(scene.view(id).await.error, Some(ErrorText::new("no longer wanted")));
    assert_eq!(scene.call_back(token, "1").await, Unknown);
    assert_eq!(scene.claim("email", 1).await, []);
    scene.expect_all_reclaimed().await;
}

/// C11, C15: parked attempts outlive many turns of all rings and keep nothing but themselves, and resume all the same.
pub async fn a_parked_attempt_keeps_no_slot(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let (first, token) = scene.parked(1).await;
    let (second, other) = scene.parked(2).await;
    for _ in 0..4 * scene.slots(RingKind::Queue) {
        // A lease that comes and goes makes the lease ring turn.
        let passing = scene.new_attempt("email").await;
        scene.note(AttemptNote::heartbeat(passing.receipt)).await;
        scene.complete(&[passing]).await;
        scene.turn(&NO_HISTORY).await;
        scene.unpin().await;
        scene.reclaim(&NO_HISTORY).await;
        for ring in [RingKind::Queue, RingKind::Claim] {
            assert_eq!(scene.kept(ring).await, [], "the {ring} ring is kept by parked attempts");
        }
        let kept = scene.kept(RingKind::Lease).await;
        assert!(kept.len() + 1 < usize::from(scene.slots(RingKind::Lease)), "the lease ring is full: {kept:?}");
    }
    scene.expect(&[(first.receipt.job, JobState::Waiting), (second.receipt.job, JobState::Waiting)]).await;
    assert_eq!(scene.call_back(token, "1").await, Resumed);
    let next = scene.claim_one("email").await;
    assert_eq!(next.receipt.job, first.receipt.job);
    scene.complete(&[next]).await;
    scene.pass(HOUR).await;
    assert_eq!(scene.call_back(other, "1").await, Expired);
    assert_eq!(scene.rescue_after_silence(&[ME]).await.attempts.len(), 1);
    scene.expect_all_reclaimed().await;
}

/// C14: a job holds its key while it waits, and when it is resumed, if that is among the states of its key.
pub async fn a_key_is_held_while_its_job_waits(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    for (number, (states, is_held)) in
        [(KeyStates::UNFINISHED, true), (KeyStates::UNTIL_CLAIMED, false), (KeyStates::UNTIL_RESOLVED, true)]
            .into_iter()
            .enumerate()
    {
        let plain = job("email", "a");
        let key = UniqueBy::text(format!("key {number}")).key_of(&plain).expect("a good key");
        let unique = plain.with_unique(Unique::new(key).while_in(states));
        let id = scene.enqueue(std::slice::from_ref(&unique)).await[0];
        let attempt = scene.claim_one("email").await;
        let token = scene.register(&attempt, number as u128 + 1).await;
        assert_eq!(scene.close_one(&attempt, PARK).await, ClosureAnswer::Closed);
        let second = scene.store().enqueue(std::slice::from_ref(&unique)).await.expect("enqueue").remove(0);
        assert_eq!(second.is_inserted(), !is_held, "while it waits: {states:?}");
        assert_eq!(scene.call_back(token, "1").await, Resumed);
        if is_held {
            assert_eq!(second.id(), id);
            let third = scene.store().enqueue(std::slice::from_ref(&unique)).await.expect("enqueue").remove(0);
            assert_eq!(third.id(), id, "when it is resumed: {states:?}");
        }
        let jobs = scene.claim("email", 2).await;
        assert_eq!(jobs.len(), if is_held { 1 } else { 2 });
        scene.complete(&jobs).await;
    }
}

/// C4: of callbacks with one token that come at once, one is taken, and its payload is the one that is read.
pub async fn of_callbacks_at_once_one_is_taken(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    for round in 0..4 {
        let (_, token) = scene.parked(round + 1).await;
        let texts = ["0", "1", "2", "3"];
        let answers = futures::future::join_all(texts.map(|text| scene.call_back(token, text))).await;
        let winners: Vec<_> = texts.iter().zip(&answers).filter(|(_, answer)| **answer == Resumed).collect();
        assert_eq!(winners.len(), 1, "{answers:?}");
        assert!(answers.iter().all(|answer| matches!(answer, Resumed | AlreadyUsed)), "{answers:?}");
        let next = scene.claim_one("email").await;
        assert_eq!(scene.payload(&next).await, Some(json(winners[0].0)));
        scene.complete(&[next]).await;
    }
}

/// C2, C4: a callback that comes while its attempt parks is kept or resumes it, and in either case the job goes on with its
/// payload (bug class 96).
pub async fn a_callback_and_a_park_at_once_agree(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    for round in 0..12 {
        let attempt = scene.new_attempt("email").await;
        let token = scene.register(&attempt, round + 1).await;
        let (closed, answer) = futures::join!(scene.close_patiently(&attempt, PARK), scene.call_back(token, "1"));
        assert_eq!(closed, ClosureAnswer::Closed);
        assert!(answer.is_accepted(), "{answer:?}");
        scene.expect(&[(attempt.receipt.job, JobState::Ready)]).await;
        let next = scene.claim_one("email").await;
        assert_eq!((next.attempt, scene.payload(&next).await), (1, Some(json("1"))));
        scene.complete(&[next]).await;
    }
}

/// C8: of many callbacks in one call each is answered for itself.
pub async fn callbacks_are_answered_one_by_one(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let (_, resumed) = scene.parked(1).await;
    let running = scene.new_attempt("email").await;
    let kept = scene.register(&running, 2).await;
    let retried = scene.new_attempt("email").await;
    let over = scene.register(&retried, 3).await;
    scene.close_one(&retried, retry_after(HOUR)).await;
    let callbacks: Vec<_> = [resumed, CallbackToken(99), kept, resumed, over]
        .map(|token| Callback { token, payload: json("1") })
        .into_iter()
        .collect();
    let answers = scene.store().resume(&callbacks).await.expect("resume");
    assert_eq!(answers, [Resumed, Unknown, Kept, AlreadyUsed, AttemptOver]);
    assert_eq!(scene.store().resume(&[]).await.expect("resume"), []);
    scene.agree().await;
}
