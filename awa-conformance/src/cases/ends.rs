//! Where a job goes when its attempt ends.

use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::job::MaxAttempts;
use awa_core::store::DeferredReason;
use awa_core::{AttemptEnd, ClosureAnswer, JobState};

use crate::Subject;
use crate::scene::{Scene, job, json, retry_after};

/// C2: a job that completed is completed, and without an error when none of its attempts failed.
pub async fn complete_leads_to_completed(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let id = scene.enqueue(&[job("email", "a")]).await[0];
    let attempt = scene.claim_one("email").await;
    scene.complete(std::slice::from_ref(&attempt)).await;
    scene.expect(&[(id, JobState::Completed)]).await;
    let view = scene.view(id).await;
    assert_eq!((view.result, view.error, view.attempt), (None, None, 1));
    assert!(view.finalized_at >= Some(attempt.claimed_at));
}

/// C2: a result is kept to the byte (bug classes 135, 138).
pub async fn a_result_is_kept_to_the_byte(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let id = scene.enqueue(&[job("email", "a")]).await[0];
    let attempt = scene.claim_one("email").await;
    let result = json(" {\"z\":1.50, \"a\":[9223372036854775808,\"\\u00fc\\\\\"] , \"z\" : null} ");
    let answer = scene.close_one(&attempt, AttemptEnd::CompleteWith { result: result.clone() }).await;
    assert_eq!(answer, ClosureAnswer::Closed);
    scene.expect(&[(id, JobState::Completed)]).await;
    assert_eq!(scene.view(id).await.result, Some(result));
}

/// C12: a retry waits for its delay, shows the error, and counts the attempt.
pub async fn a_retry_waits_for_its_delay_and_counts(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let id = scene.enqueue(&[job("email", "a")]).await[0];
    let attempt = scene.claim_one("email").await;
    assert_eq!(scene.close_one(&attempt, retry_after(Duration::from_secs(90))).await, ClosureAnswer::Closed);
    scene.expect(&[(id, JobState::Deferred)]).await;
    let view = scene.view(id).await;
    assert_eq!((view.deferred, view.attempt), (Some(DeferredReason::Retry), 1));
    assert_eq!(view.error, Some(ErrorText::new("boom")));
    let due = view.run_at.expect("a deferred job has a time").since(attempt.claimed_at);
    assert!((90..100).contains(&due.as_secs()), "{due:?}");
    scene.pass(Duration::from_mins(1)).await;
    assert_eq!(scene.promote().await, 0);
    scene.pass(Duration::from_secs(40)).await;
    assert_eq!(scene.promote().await, 1);
    assert_eq!(scene.view(id).await.error, Some(ErrorText::new("boom")), "the error stays while the job waits");
    let second = scene.claim_one("email").await;
    assert_eq!((second.attempt, second.receipt.run_lease.get()), (2, 2));
    assert_eq!((&second.args, second.created_at), (&attempt.args, attempt.created_at));
    scene.complete(std::slice::from_ref(&second)).await;
    let view = scene.view(id).await;
    let latest = Some(ErrorText::new("boom"));
    assert_eq!(
        (view.state, view.error),
        (JobState::Completed, latest),
        "the error of the latest failed attempt is kept"
    );
}

/// C2: snoozes and releases wait for their delay and are not charged, however many there are; the next failure is the
/// first (bug classes 90, 121).
pub async fn snoozes_and_releases_are_not_charged(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let once = MaxAttempts::new(1).expect("one attempt");
    let id = scene.enqueue(&[job("email", "a").with_max_attempts(once)]).await[0];
    let minute = Duration::from_mins(1);
    for round in 1..=10 {
        let attempt = scene.claim_one("email").await;
        assert_eq!((attempt.attempt, attempt.receipt.run_lease.get()), (1, round));
        let (end, reason) = if round % 2 == 0 {
            (AttemptEnd::Snooze { delay: minute }, DeferredReason::Snooze)
        } else {
            (AttemptEnd::Release { delay: minute }, DeferredReason::Release)
        };
        scene.close_one(&attempt, end).await;
        let view = scene.view(id).await;
        assert_eq!((view.state, view.deferred, view.attempt), (JobState::Deferred, Some(reason), 0));
        assert_eq!(scene.promote().await, 0, "it waits for its time");
        scene.pass(minute + Duration::from_secs(1)).await;
        assert_eq!(scene.promote().await, 1);
    }
    let last = scene.claim_one("email").await;
    scene.close_one(&last, retry_after(minute)).await;
    scene.expect(&[(id, JobState::Dead)]).await;
}

/// C2: a fatal error ends the job at once, whatever is left of its budget.
pub async fn a_fatal_error_leads_to_dead(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let id = scene.enqueue(&[job("email", "a")]).await[0];
    let attempt = scene.claim_one("email").await;
    let error = ErrorText::new("no such address");
    scene.close_one(&attempt, AttemptEnd::Fail { error: error.clone() }).await;
    scene.expect(&[(id, JobState::Dead)]).await;
    let view = scene.view(id).await;
    assert_eq!((view.error, view.attempt), (Some(error), 1));
    assert!(view.finalized_at.is_some());
}

/// C2: a worker may end its attempt because it was asked to; the job is cancelled and shows why.
pub async fn cancel_leads_to_cancelled(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let id = scene.enqueue(&[job("email", "a")]).await[0];
    let attempt = scene.claim_one("email").await;
    let reason = ErrorText::new("the customer left");
    scene.close_one(&attempt, AttemptEnd::Cancel { reason: reason.clone() }).await;
    scene.expect(&[(id, JobState::Cancelled)]).await;
    assert_eq!(scene.view(id).await.error, Some(reason));
    assert_eq!((scene.promote().await, scene.claim("email", 1).await), (0, vec![]));
}

/// C2: with its last attempt a job that failed is dead, also when the handler asked for a delay: exactly as many
/// attempts as its budget says (bug class 89).
pub async fn a_job_has_exactly_its_budget_of_attempts(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let thrice = MaxAttempts::new(3).expect("three attempts");
    let id = scene.enqueue(&[job("email", "a").with_max_attempts(thrice)]).await[0];
    for number in 1..=3 {
        let attempt = scene.claim_one("email").await;
        assert_eq!(attempt.attempt, number);
        assert_eq!(scene.close_one(&attempt, retry_after(Duration::from_secs(1))).await, ClosureAnswer::Closed);
        let expected = if number == 3 { JobState::Dead } else { JobState::Deferred };
        scene.expect(&[(id, expected)]).await;
        scene.pass(Duration::from_secs(2)).await;
        scene.promote().await;
    }
    let view = scene.view(id).await;
    assert_eq!((view.attempt, view.error), (3, Some(ErrorText::new("boom"))));
    assert_eq!(scene.claim("email", 1).await, []);
}

/// C8: whatever text a handler leaves, its attempt ends and the others of the call too (bug class 135).
pub async fn hostile_texts_do_not_stop_a_closure(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let texts = ["a\0b", "'); DROP TABLE jobs; --", "\u{feff}\\x00 $1 %s {}", "", &"ü".repeat(5_000)];
    let errors: Vec<_> = texts.iter().map(ErrorText::new).collect();
    let ids = scene.enqueue(&texts.map(|_| job("email", "a"))).await;
    let jobs = scene.claim("email", 10).await;
    let fatal = |error: &ErrorText| AttemptEnd::Fail { error: error.clone() };
    let closures: Vec<_> = jobs.iter().zip(&errors).map(|(job, error)| (job, fatal(error))).collect();
    assert_eq!(scene.close(&closures).await, vec![ClosureAnswer::Closed; texts.len()]);
    for (id, error) in ids.iter().zip(errors) {
        let view = scene.view(*id).await;
        assert_eq!((view.state, view.error), (JobState::Dead, Some(error)));
    }
}

/// C12: a delay of any length is kept or cut to the last possible moment, never turned around (bug classes 74, 85).
pub async fn extreme_delays_defer_for_good(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let ends = [
        retry_after(Duration::MAX),
        AttemptEnd::Snooze { delay: Duration::MAX },
        AttemptEnd::Release { delay: Duration::MAX },
    ];
    for end in ends {
        let id = scene.enqueue(&[job("email", "a")]).await[0];
        let attempt = scene.claim_one("email").await;
        assert_eq!(scene.close_one(&attempt, end.clone()).await, ClosureAnswer::Closed, "{end:?}");
        scene.expect(&[(id, JobState::Deferred)]).await;
        assert_eq!(scene.promote().await, 0, "{end:?}");
    }
}
