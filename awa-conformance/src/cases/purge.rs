//! An operator removes what waits in a queue.

use std::time::Duration;

use awa_core::store::{Acted, PurgeScope, Purged, Refusal};
use awa_core::unique::OnConflict;
use awa_core::{AttemptEnd, JobId, JobState, NewJob, Priority, QueueSettings, RunAt, ShardCount, Unique, UniqueBy};

use crate::Subject;
use crate::scene::{Scene, done, job, labels, queue};

/// How often a purge is repeated that finds somebody in the way.
const ROUNDS: usize = 64;

impl Scene<'_> {
    async fn purge_once(&self, name: &str, scope: PurgeScope) -> Purged {
        self.store().purge_queue(&queue(name), scope).await.expect("purge_queue")
    }

    /// Purges until nobody is in the way, and gives how many jobs were removed.
    async fn purge(&self, name: &str, scope: PurgeScope) -> u64 {
        let mut jobs = 0;
        for _ in 0..ROUNDS {
            let purged = self.purge_once(name, scope).await;
            jobs += purged.jobs;
            if !purged.contended {
                return jobs;
            }
        }
        panic!("a purge was contended {ROUNDS} times");
    }

    async fn expect_gone(&self, jobs: &[JobId]) {
        let states = self.agree().await;
        for job in jobs {
            assert_eq!(states.get(job), None, "job {job}");
        }
        let not_found = vec![Acted::Refused(Refusal::NotFound); jobs.len()];
        assert_eq!(self.cancel(jobs).await, not_found);
        assert_eq!(self.retry(jobs).await, not_found);
    }
}

fn unique(name: &str, key: &str) -> NewJob {
    let new = job(name, key);
    let key = UniqueBy::text(key).key_of(&new).expect("the text is good");
    new.with_unique(Unique::new(key).on_conflict(OnConflict::Replace))
}

/// C2: what waits in a queue, in every lane and partition of it, is removed and is nowhere any more; other queues, running jobs
/// and those that wait for their time stay, and what comes later is handed out.
pub async fn a_purge_removes_what_waits(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email", "video"]).await;
    let four = QueueSettings::default().with_enqueue_shards(ShardCount::new(4).expect("good"));
    scene.store().configure_queue(&queue("email"), &four).await.expect("configure_queue");
    let other = scene.enqueue_each("video", &["v"]).await[0];
    let running = scene.enqueue_each("email", &["running"]).await[0];
    let attempt = scene.claim_one("email").await;
    let later = job("email", "later").with_run_at(RunAt::after(Duration::from_hours(1)).expect("allowed"));
    let later = scene.enqueue(&[later]).await[0];
    let mut waiting = Vec::new();
    for priority in Priority::ALL {
        let new: Vec<_> = (0..7).map(|_| job("email", "x").with_priority(priority)).collect();
        waiting.extend(scene.enqueue(&new).await);
        if priority < Priority::default() {
            scene.seal_queue_slot().await;
        }
    }
    let cancelled = waiting.pop().expect("there are jobs");
    assert_eq!(scene.cancel(&[cancelled]).await, [done(JobState::Ready)]);
    assert_eq!(scene.purge("email", PurgeScope::Ready).await, waiting.len() as u64);
    scene.expect_gone(&waiting).await;
    scene.expect(&[(other, JobState::Ready), (running, JobState::Running), (later, JobState::Deferred)]).await;
    scene.expect(&[(cancelled, JobState::Cancelled)]).await;
    assert_eq!(scene.claim("email", 50).await, []);
    assert_eq!(scene.purge("email", PurgeScope::Ready).await, 0);
    scene.enqueue_each("email", &["new"]).await;
    assert_eq!(labels(&scene.claim("email", 50).await), ["new"]);
    scene.complete(&[attempt]).await;
    assert_eq!(scene.purge("unheard.of", PurgeScope::ReadyAndDeferred).await, 0);
}

/// C2: jobs that were handed back or carried over, and if asked for those that wait for their time, are removed as well.
pub async fn a_purge_finds_jobs_outside_the_ring(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let jobs = scene.enqueue_each("email", &["a", "b"]).await;
    for attempt in scene.claim("email", 2).await {
        scene.close_one(&attempt, AttemptEnd::Release { delay: Duration::ZERO }).await;
    }
    let later = job("email", "later").with_run_at(RunAt::after(Duration::from_mins(1)).expect("allowed"));
    let later = scene.enqueue(&[later]).await;
    assert_eq!(scene.purge("email", PurgeScope::Ready).await, 2);
    scene.expect_gone(&jobs).await;
    scene.expect(&[(later[0], JobState::Deferred)]).await;
    assert_eq!(scene.purge("email", PurgeScope::ReadyAndDeferred).await, 1);
    scene.expect_gone(&later).await;
    scene.pass(Duration::from_hours(1)).await;
    assert_eq!(scene.promote().await, 0);
}

/// C14: the keys of jobs that were removed are free, wherever they waited.
pub async fn a_purge_gives_keys_back(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let later = unique("email", "later").with_run_at(RunAt::after(Duration::from_hours(1)).expect("allowed"));
    scene.enqueue(&[unique("email", "handed back")]).await;
    let attempt = scene.claim_one("email").await;
    scene.close_one(&attempt, AttemptEnd::Release { delay: Duration::ZERO }).await;
    scene.enqueue(&[unique("email", "ready"), later]).await;
    assert_eq!(scene.purge("email", PurgeScope::ReadyAndDeferred).await, 3);
    for key in ["handed back", "ready", "later"] {
        let answer = scene.store().enqueue(&[unique("email", key)]).await.expect("enqueue")[0];
        assert!(matches!(answer, awa_core::Enqueued::Inserted(_)), "{key}: {answer:?}");
    }
}

/// C9: what is not committed when the purge begins is not touched, and comes when it is committed, in its order.
pub async fn a_purge_leaves_what_is_not_committed(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let (early, early_ids) = scene.begin_with("email", &["early"]).await;
    let gone = scene.enqueue_each("email", &["a", "b"]).await;
    let (late, late_ids) = scene.begin_with("email", &["late"]).await;
    assert_eq!(scene.purge_once("email", PurgeScope::ReadyAndDeferred).await, Purged { jobs: 2, contended: false });
    scene.commit(late, &late_ids).await;
    scene.enqueue_each("email", &["new"]).await;
    scene.commit(early, &early_ids).await;
    assert_eq!(labels(&scene.claim("email", 10).await), ["early", "late", "new"]);
    scene.expect_gone(&gone).await;
}

/// C10, C14: a job that an open transaction is about to cancel, because it has replaced it, is left, and the purge says so and
/// does not wait; when that transaction is over, it goes.
pub async fn a_purge_leaves_what_is_being_replaced(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let old = scene.enqueue(&[unique("email", "k")]).await;
    let mut transaction = scene.begin().await;
    transaction.enqueue(&[unique("email", "k")]).await.expect("enqueue");
    assert_eq!(scene.purge_once("email", PurgeScope::Ready).await, Purged { jobs: 0, contended: true });
    transaction.rollback().await.expect("rollback");
    scene.expect(&[(old[0], JobState::Ready)]).await;
    assert_eq!(scene.purge("email", PurgeScope::Ready).await, 1);
    scene.expect_gone(&old).await;
}

/// C11: what a purge jumped over keeps no partition.
pub async fn what_was_purged_is_reclaimed(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    scene.enqueue_each("email", &["a", "b", "c"]).await;
    scene.seal_queue_slot().await;
    scene.enqueue_each("email", &["d"]).await;
    assert_eq!(scene.purge("email", PurgeScope::Ready).await, 4);
    scene.expect_all_reclaimed().await;
}
