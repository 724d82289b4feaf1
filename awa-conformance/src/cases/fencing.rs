//! A worker whose attempt was ended by somebody else changes nothing.

use std::time::Duration;

use awa_core::store::{AttemptNote, NoteAnswer};
use awa_core::{AttemptEnd, CallbackToken, ClaimedJob, ClosureAnswer, JobState};

use crate::scene::{OTHER, Scene, done, job, json, retry_after};
use crate::{Capability, Subject};

impl Scene<'_> {
    /// Presents an ended attempt in every way; nothing may change.
    async fn expect_powerless(&self, attempt: &ClaimedJob) {
        let before = self.view(attempt.receipt.job).await;
        for end in self.every_end() {
            assert_eq!(self.close_one(attempt, end.clone()).await, ClosureAnswer::Stale, "{end:?}");
        }
        if self.has(Capability::Notes) {
            let progress = Some(json("\"late\""));
            let note =
                AttemptNote { progress, callback: Some(CallbackToken(7)), ..AttemptNote::heartbeat(attempt.receipt) };
            assert_eq!(self.store().note(&[note]).await.expect("note"), [NoteAnswer::Stale]);
            assert_eq!(self.store().recall(&[attempt.receipt]).await.expect("recall"), [None]);
        }
        assert_eq!(self.store().are_open(&[attempt.receipt]).await.expect("are_open"), [false]);
        assert_eq!(self.view(attempt.receipt.job).await, before);
        self.agree().await;
    }
}

/// C3: a worker that was rescued is refused, before and after another one has the job (bug classes 1, 2).
pub async fn a_rescued_worker_is_refused(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let id = scene.enqueue(&[job("email", "a")]).await[0];
    let stale = scene.claim_one("email").await;
    assert_eq!(scene.rescue_after_silence(&[OTHER]).await.attempts.len(), 1);
    scene.expect_powerless(&stale).await;
    scene.pass(Duration::from_secs(2)).await;
    scene.promote().await;
    scene.expect_powerless(&stale).await;
    let fresh = scene.claim_as(OTHER, "email", 1).await.remove(0);
    scene.expect_powerless(&stale).await;
    assert_eq!((fresh.receipt.job, fresh.receipt.run_lease.get(), fresh.attempt), (id, 2, 2));
    scene.complete(&[fresh]).await;
    scene.expect_powerless(&stale).await;
    scene.expect(&[(id, JobState::Completed)]).await;
}

/// C3: a worker whose job was cancelled is refused, and the job stays cancelled (bug class 93).
pub async fn the_worker_of_a_cancelled_job_is_refused(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let id = scene.enqueue(&[job("email", "a")]).await[0];
    let stale = scene.claim_one("email").await;
    assert_eq!(scene.cancel(&[id]).await, [done(JobState::Running)]);
    scene.expect_powerless(&stale).await;
    scene.expect(&[(id, JobState::Cancelled)]).await;
}

/// C3, C5: after a retry, the receipt of the first attempt is refused while the second one runs; each claim raises the
/// lease by one (bug class 2).
pub async fn an_old_attempt_is_refused_while_a_new_one_runs(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let id = scene.enqueue(&[job("email", "a")]).await[0];
    let mut old = scene.claim_one("email").await;
    let ways = [
        retry_after(Duration::ZERO),
        AttemptEnd::Snooze { delay: Duration::ZERO },
        AttemptEnd::Release { delay: Duration::ZERO },
        retry_after(Duration::ZERO),
    ];
    for (round, way) in (2..).zip(ways) {
        assert_eq!(scene.close_one(&old, way).await, ClosureAnswer::Closed);
        scene.expect_powerless(&old).await;
        scene.pass(Duration::from_secs(1)).await;
        scene.promote().await;
        let new = scene.claim_one("email").await;
        assert_eq!((new.receipt.job, new.receipt.run_lease.get()), (id, round));
        scene.expect_powerless(&old).await;
        assert_eq!(scene.store().are_open(&[new.receipt]).await.expect("are_open"), [true]);
        old = new;
    }
    scene.complete(&[old]).await;
    scene.expect(&[(id, JobState::Completed)]).await;
}

/// C3: a worker whose job is dead is refused, also after an operator has brought the job back.
pub async fn the_worker_of_a_dead_job_is_refused(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let id = scene.enqueue(&[job("email", "a")]).await[0];
    let stale = scene.claim_one("email").await;
    let fatal = AttemptEnd::Fail { error: awa_core::attempt::ErrorText::new("boom") };
    scene.close_one(&stale, fatal).await;
    scene.expect_powerless(&stale).await;
    assert_eq!(scene.retry(&[id]).await, [done(JobState::Dead)]);
    scene.expect_powerless(&stale).await;
    let fresh = scene.claim_one("email").await;
    scene.expect_powerless(&stale).await;
    scene.complete(&[fresh]).await;
}
