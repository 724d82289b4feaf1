//! How long history is kept, by how a job ended.

use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::store::{Accuracy, RetentionPolicy};
use awa_core::{AttemptEnd, JobId, JobState, NewJob, Unique, UniqueBy};

use crate::Subject;
use crate::rings::NO_HISTORY;
use crate::scene::{Scene, done, job, queue};

const DAY: Duration = Duration::from_hours(24);
/// Only failed jobs are kept.
const FAILED_FOR_A_DAY: RetentionPolicy =
    RetentionPolicy { failed: DAY, max_failed_bytes: u64::MAX, ..RetentionPolicy::NONE };

impl Scene<'_> {
    /// A job that fails for good in `email`, which has no dead-letter queue, with so long an error.
    async fn fail(&self, new: NewJob, error: usize) -> JobId {
        let id = self.enqueue(&[new]).await[0];
        let attempt = self.claim_one("email").await;
        assert_eq!(attempt.receipt.job, id);
        self.close_one(&attempt, AttemptEnd::Fail { error: ErrorText::new("x".repeat(error)) }).await;
        id
    }

    /// How many jobs of `email` have failed, as each count tells it.
    async fn failed_ever(&self) -> Vec<u64> {
        let mut counts = Vec::new();
        for accuracy in [Accuracy::Exact, Accuracy::Estimate] {
            let all = self.store().counts(accuracy).await.expect("counts");
            let email = all.queues.iter().find(|line| line.queue == queue("email")).expect("the queue is known");
            counts.push(email.ever_in(&[JobState::Failed]));
        }
        counts
    }
}

/// C2, C11: a failed job of a queue without a dead-letter queue outlives its slot for its own time, unchanged in every view and
/// counted once; then it goes.
pub async fn a_failed_job_is_carried_forward_for_its_time(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    scene.set_dead_letter("email", false).await;
    let failed = scene.fail(job("email", "a"), 9).await;
    let view = scene.view(failed).await;
    for _ in 0..2 {
        scene.pass(DAY / 3).await;
        scene.wrap_twice(&FAILED_FOR_A_DAY).await;
        assert_eq!(scene.view(failed).await, view);
        scene.expect(&[(failed, JobState::Failed)]).await;
        scene.store().tidy().await.expect("tidy");
        assert_eq!(scene.failed_ever().await, [1, 1]);
    }
    scene.pass(DAY / 3).await;
    scene.wrap_twice(&FAILED_FOR_A_DAY).await;
    assert_eq!(scene.state(failed).await, None);
    scene.expect_all_reclaimed().await;
    assert_eq!(scene.failed_ever().await, [1, 1]);
    scene.agree().await;
}

/// C2, C14: a failed job that was carried forward is tried again once, with its key; one that was deleted stays deleted.
pub async fn a_failed_job_that_was_carried_forward_is_as_before(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    scene.set_dead_letter("email", false).await;
    let unique = |label: &str| {
        let job = job("email", label);
        let key = UniqueBy::text("k").key_of(&job).expect("the text is good");
        job.with_unique(Unique::new(key))
    };
    let deleted = scene.fail(job("email", "deleted"), 9).await;
    let retried = scene.fail(unique("retried"), 9).await;
    scene.wrap_twice(&FAILED_FOR_A_DAY).await;
    assert_eq!(scene.delete(&[deleted]).await, [done(JobState::Failed)]);
    assert_eq!(scene.retry(&[retried]).await, [done(JobState::Failed)]);
    let again = scene.store().enqueue(&[unique("again")]).await.expect("enqueue")[0];
    assert_eq!((again.is_inserted(), again.id()), (false, retried), "the retry holds the key");
    scene.wrap_twice(&FAILED_FOR_A_DAY).await;
    assert_eq!(scene.state(deleted).await, None);
    scene.expect(&[(retried, JobState::Ready)]).await;
    let attempt = scene.claim_one("email").await;
    assert_eq!((attempt.receipt.job, attempt.attempt), (retried, 1));
    scene.close_one(&attempt, AttemptEnd::Fail { error: ErrorText::new("again") }).await;
    scene.wrap_twice(&FAILED_FOR_A_DAY).await;
    scene.expect(&[(retried, JobState::Failed)]).await;
    assert_eq!(scene.view(retried).await.error, Some(ErrorText::new("again")));
}

/// C11: of the failed jobs of a slot the youngest are carried forward, as many as fit into the room for them.
pub async fn failed_jobs_beyond_their_room_go_oldest_first(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    scene.set_dead_letter("email", false).await;
    let mut failed = Vec::new();
    for label in ["a", "b", "c"] {
        failed.push(scene.fail(job("email", label), 1_000).await);
        scene.pass(Duration::from_secs(1)).await;
    }
    let roomy = RetentionPolicy { max_failed_bytes: 2_900, ..FAILED_FOR_A_DAY };
    scene.wrap_twice(&roomy).await;
    assert_eq!(scene.state(failed[0]).await, None);
    scene.expect(&[(failed[1], JobState::Failed), (failed[2], JobState::Failed)]).await;
    scene.wrap_twice(&RetentionPolicy { max_failed_bytes: 999, ..roomy }).await;
    assert_eq!((scene.state(failed[1]).await, scene.state(failed[2]).await), (None, None));
    assert_eq!(scene.failed_ever().await, [3, 3]);
}

/// C11: completed and cancelled jobs keep their slots for times of their own.
pub async fn each_way_to_end_has_its_own_time(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let minutes = Duration::from_mins;
    for (completed, cancelled) in [(10, 2), (2, 10)] {
        let policy = RetentionPolicy {
            completed: minutes(completed),
            cancelled: minutes(cancelled),
            max_bytes: u64::MAX,
            ..NO_HISTORY
        };
        let mut jobs = Vec::new();
        for end in [AttemptEnd::Complete, AttemptEnd::Cancel { reason: ErrorText::new("no longer wanted") }] {
            let attempt = scene.job_in_queue("email", "a").await;
            jobs.push(attempt.receipt.job);
            scene.close_one(&attempt, end).await;
            scene.seal_queue_slot().await;
        }
        scene.reclaim(&policy).await;
        scene.expect(&[(jobs[0], JobState::Completed), (jobs[1], JobState::Cancelled)]).await;
        scene.pass(minutes(5)).await;
        scene.reclaim(&policy).await;
        let (kept, gone) = if completed > cancelled { (jobs[0], jobs[1]) } else { (jobs[1], jobs[0]) };
        assert_eq!(scene.state(gone).await, None);
        assert!(scene.state(kept).await.is_some());
        scene.pass(minutes(5)).await;
        scene.reclaim(&policy).await;
        assert_eq!(scene.state(kept).await, None);
    }
}
