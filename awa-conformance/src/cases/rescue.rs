//! Attempts whose worker is gone, or whose deadline is over, are ended and only they.

use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::job::MaxAttempts;
use awa_core::store::{ClaimRequest, DeferredReason, RescueRequest, RescuedAttempt};
use awa_core::sweep::RescueCause;
use awa_core::{AttemptEnd, ClaimedJob, ClosureAnswer, InstanceId, JobState};

use crate::Subject;
use crate::scene::{ME, OTHER, RESCUER, STALENESS, Scene, ids, job, steady_retry};

fn report(attempt: &ClaimedJob, exhausted: bool, cause: RescueCause) -> RescuedAttempt {
    RescuedAttempt {
        job: attempt.receipt.job,
        queue: attempt.queue.clone(),
        run_lease: attempt.receipt.run_lease,
        exhausted,
        cause,
    }
}

/// C3, C12: the attempt of a silent worker is ended, charged, and tried again after the policy's delay; its error says
/// what happened (bug classes 4, 6, 21).
pub async fn the_attempt_of_a_silent_worker_is_rescued(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let id = scene.enqueue(&[job("email", "a")]).await[0];
    let attempt = scene.claim_one("email").await;
    let rescued = scene.rescue_after_silence(&[]).await;
    assert_eq!(rescued.attempts, [report(&attempt, false, RescueCause::Gone)]);
    assert!(!rescued.rescuer_too_young);
    scene.expect(&[(id, JobState::Deferred)]).await;
    let view = scene.view(id).await;
    assert_eq!((view.deferred, view.attempt), (Some(DeferredReason::Retry), 1));
    assert_ne!(view.error.unwrap_or_default(), ErrorText::default(), "the job shows why it was rescued");
    scene.pass(Duration::from_secs(2)).await;
    assert_eq!(scene.promote().await, 1, "the policy says one second");
    let second = scene.claim_as(OTHER, "email", 1).await.remove(0);
    assert_eq!((second.attempt, second.receipt.run_lease.get()), (2, 2));
}

/// C3: as long as its process beats, an attempt may last as long as it likes (bug class 6).
pub async fn a_living_worker_is_never_rescued(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let id = scene.enqueue(&[job("email", "a")]).await[0];
    let attempt = scene.claim_one("email").await;
    for _ in 0..5 {
        let rescued = scene.rescue_after_silence(&[ME]).await;
        assert_eq!((rescued.attempts, rescued.rescuer_too_young), (vec![], false));
    }
    scene.expect(&[(id, JobState::Running)]).await;
    assert_eq!(scene.view(id).await.attempt, 1);
    scene.complete(&[attempt]).await;
}

/// A rescuer that has not beaten without a break for the staleness time may not judge others: after an outage of the
/// database everybody looks dead, itself included.
pub async fn a_rescuer_must_have_been_healthy_itself(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let id = scene.enqueue(&[job("email", "a")]).await[0];
    let attempt = scene.claim_one("email").await;
    scene.pass(STALENESS * 3).await;
    assert!(scene.rescue().await.rescuer_too_young, "it never beat");
    scene.beat(RESCUER).await;
    assert!(scene.rescue().await.rescuer_too_young, "it began to beat only now");
    scene.outlive(&[RESCUER, ME]).await;
    assert!(!scene.rescue().await.rescuer_too_young);
    // An outage: nobody beats.
    scene.pass(STALENESS * 3).await;
    assert!(scene.rescue().await.rescuer_too_young, "it is silent itself");
    scene.beat(RESCUER).await;
    let rescued = scene.rescue().await;
    assert_eq!((rescued.rescuer_too_young, rescued.attempts), (true, vec![]), "its beats were interrupted");
    scene.expect(&[(id, JobState::Running)]).await;
    assert_eq!(scene.close_one(&attempt, AttemptEnd::Complete).await, ClosureAnswer::Closed);
}

/// C12: an attempt with a deadline is ended after it, although its worker lives; one without is not (bug class 7).
pub async fn a_deadline_ends_an_attempt_whose_worker_lives(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email", "video"]).await;
    let limited = scene.enqueue(&[job("email", "limited")]).await[0];
    let free = scene.enqueue(&[job("video", "free")]).await[0];
    let deadline = Some(Duration::from_mins(10));
    let attempt = scene.claim_like(&ClaimRequest { deadline, ..scene.request("email", 1) }).await.remove(0);
    let endless = scene.claim_one("video").await;
    assert_eq!(attempt.deadline_at, Some(attempt.claimed_at.saturating_add(Duration::from_mins(10))));
    assert_eq!(endless.deadline_at, None);
    assert_eq!(scene.rescue_after_silence(&[ME]).await.attempts, []);
    for _ in 0..7 {
        scene.outlive(&[RESCUER, ME]).await;
    }
    assert_eq!(scene.rescue().await.attempts, [report(&attempt, false, RescueCause::DeadlineOver)]);
    scene.expect(&[(limited, JobState::Deferred), (free, JobState::Running)]).await;
    assert_eq!(scene.close_one(&attempt, AttemptEnd::Complete).await, ClosureAnswer::Stale);
    scene.complete(&[endless]).await;
}

/// C2: being rescued uses up the budget, so that a job that kills its worker ends (bug classes 18, 19, 89).
pub async fn a_job_that_kills_its_worker_ends_dead(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let twice = MaxAttempts::new(2).expect("two attempts");
    let id = scene.enqueue(&[job("email", "a").with_max_attempts(twice)]).await[0];
    for number in 1..=2 {
        let attempt = scene.claim_one("email").await;
        assert_eq!(attempt.attempt, number);
        let rescued = scene.rescue_after_silence(&[]).await;
        assert_eq!(rescued.attempts, [report(&attempt, number == 2, RescueCause::Gone)]);
        scene.pass(Duration::from_secs(2)).await;
        scene.promote().await;
    }
    scene.expect(&[(id, JobState::Dead)]).await;
    let view = scene.view(id).await;
    assert_eq!(view.attempt, 2);
    assert_ne!(view.error.unwrap_or_default(), ErrorText::default());
    assert_eq!(scene.claim("email", 1).await, []);
}

/// A process of which nothing is known is dead once its claim is old: rescue does not depend on a registry row (bug
/// classes 3, 4).
pub async fn a_process_that_never_beat_is_rescued(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let ids = scene.enqueue(&[job("email", "a"), job("email", "b")]).await;
    let ghost = InstanceId(0x0DD);
    assert_eq!(scene.claim_as(ghost, "email", 1).await.len(), 1);
    scene.outlive(&[RESCUER, ME]).await;
    assert_eq!(scene.claim_as(ghost, "email", 1).await.len(), 1);
    let rescued = scene.rescue().await;
    assert_eq!(rescued.attempts.iter().map(|attempt| attempt.job).collect::<Vec<_>>(), [ids[0]]);
    assert_eq!(scene.state(ids[1]).await, Some(JobState::Running), "a fresh claim is left alone");
}

/// What a process that said goodbye still holds is rescued at once, and a claim of it that lands late is rescued in the
/// end (bug class 5).
pub async fn a_retired_process_is_rescued_at_once(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let jobs = scene.enqueue(&[job("email", "a"), job("email", "b")]).await;
    scene.outlive(&[RESCUER, ME, OTHER]).await;
    let held = scene.claim_as(OTHER, "email", 1).await;
    assert_eq!(scene.rescue().await.attempts, []);
    scene.store().retire(OTHER).await.expect("retire");
    assert_eq!(scene.rescue().await.attempts, [report(&held[0], false, RescueCause::Gone)]);
    let late = scene.claim_as(OTHER, "email", 1).await;
    assert_eq!(ids(&late), [jobs[1]]);
    scene.rescue_after_silence(&[ME]).await;
    scene.expect(&[(jobs[0], JobState::Deferred), (jobs[1], JobState::Deferred)]).await;
    scene.store().retire(OTHER).await.expect("a second goodbye is harmless");
}

/// C8: claims that may not be rescued are paged past, however many there are and however small the page (bug classes 8,
/// 40).
pub async fn claims_that_are_exempt_hide_no_other(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    scene.enqueue(&(0..60).map(|n| job("email", &n.to_string())).collect::<Vec<_>>()).await;
    for _ in 0..40 {
        scene.claim_one("email").await;
    }
    let done = scene.claim("email", 10).await;
    scene.complete(&done).await;
    let lost = scene.claim_as(OTHER, "email", 1).await.remove(0);
    scene.outlive(&[RESCUER, ME]).await;
    let request = RescueRequest { rescuer: RESCUER, staleness: STALENESS, page: 3 };
    for _ in 0..40 {
        let rescued = scene.store().rescue(&request, &steady_retry()).await.expect("rescue");
        if !rescued.attempts.is_empty() {
            assert_eq!(rescued.attempts, [report(&lost, false, RescueCause::Gone)]);
            return;
        }
    }
    panic!("a dead claim behind forty living ones is not found in forty passes");
}

/// C4: of a batch that was closed in part, only the open members are rescued, each once (bug classes 13, 14).
pub async fn only_open_members_of_a_batch_are_rescued(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let new: Vec<_> = (0..10).map(|n| job("email", &n.to_string())).collect();
    let jobs = scene.enqueue(&new).await;
    let attempts = scene.claim("email", 10).await;
    scene.complete(&attempts[2..5]).await;
    scene.cancel(&jobs[8..9]).await;
    let rescued = scene.rescue_after_silence(&[]).await;
    let mut found: Vec<_> = rescued.attempts.iter().map(|attempt| attempt.job).collect();
    found.sort_unstable();
    let open = [0, 1, 5, 6, 7, 9].map(|n| jobs[n]);
    assert_eq!(found, open);
    assert_eq!(scene.rescue().await.attempts, [], "a second pass finds nothing");
    let states = scene.agree().await;
    assert!(open.iter().all(|job| states[job] == JobState::Deferred));
    assert!(jobs[2..5].iter().all(|job| states[job] == JobState::Completed));
    assert_eq!(states[&jobs[8]], JobState::Cancelled);
}

/// C4: of two rescuers at once, one ends each attempt (bug class 13).
pub async fn two_rescuers_at_once_charge_an_attempt_once(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let new: Vec<_> = (0..20).map(|n| job("email", &n.to_string())).collect();
    let jobs = scene.enqueue(&new).await;
    for _ in 0..4 {
        scene.claim("email", 5).await;
    }
    scene.outlive(&[RESCUER]).await;
    let (one, two, three) = futures::join!(scene.rescue(), scene.rescue(), scene.rescue());
    let mut found: Vec<_> = [one, two, three].iter().flat_map(|pass| &pass.attempts).map(|a| a.job).collect();
    // What one pass was in the way of is left to the next.
    found.extend(scene.rescue().await.attempts.iter().map(|attempt| attempt.job));
    found.sort_unstable();
    assert_eq!(found, jobs);
    for job in jobs {
        assert_eq!(scene.view(job).await.attempt, 1);
    }
}

/// A process that says that its beats come rarely is not taken for dead before its own time is over, whoever rescues,
/// neither for its claims nor for its leases.
pub async fn a_process_may_ask_for_more_patience(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let patience = STALENESS * 8;
    scene.store().beat(OTHER, patience).await.expect("beat");
    let ids = scene.enqueue(&[job("email", "claim"), job("email", "lease")]).await;
    let attempts = scene.claim_as(OTHER, "email", 2).await;
    // What is handed back is carried over, and claimed as a lease.
    scene.close_one(&attempts[1], AttemptEnd::Release { delay: Duration::ZERO }).await;
    scene.claim_as(OTHER, "email", 1).await;
    assert_eq!(scene.rescue_after_silence(&[]).await.attempts, [], "its own time is not over");
    scene.expect(&[(ids[0], JobState::Running), (ids[1], JobState::Running)]).await;
    for _ in 0..6 {
        scene.outlive(&[RESCUER]).await;
    }
    assert_eq!(scene.rescue().await.attempts.len(), 2);
    scene.expect(&[(ids[0], JobState::Deferred), (ids[1], JobState::Deferred)]).await;
}
