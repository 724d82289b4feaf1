//! Holding a queue back.

use std::time::Duration;

use awa_core::{JobState, RunAt};

use crate::Subject;
use crate::scene::{Scene, job, labels, queue};

impl Scene<'_> {
    async fn set_paused(&self, name: &str, paused: bool) {
        self.store().set_paused(&queue(name), paused).await.expect("set_paused");
    }

    async fn paused_queues(&self) -> Vec<String> {
        let queues = self.store().queues().await.expect("queues");
        queues.iter().filter(|queue| queue.paused).map(|queue| queue.queue.to_string()).collect()
    }
}

/// A paused queue hands out nothing and takes in everything; running jobs go on; when it goes on, its jobs come in
/// order. Pausing twice is fine (bug class 162).
pub async fn a_paused_queue_hands_out_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email", "video"]).await;
    let jobs = scene.enqueue_each("email", &["running", "a"]).await;
    scene.enqueue_each("video", &["other"]).await;
    let running = scene.claim_one("email").await;
    scene.set_paused("email", true).await;
    scene.set_paused("email", true).await;
    assert_eq!(scene.paused_queues().await, ["email"]);
    scene.enqueue_each("email", &["b"]).await;
    let claimed = scene.claim_once(&scene.request("email", 10)).await;
    assert_eq!((claimed.jobs, claimed.more), (vec![], false), "a dispatcher of a paused queue must not spin");
    assert_eq!(labels(&scene.claim("video", 10).await), ["other"]);
    scene.complete(&[running]).await;
    scene.expect(&[(jobs[0], JobState::Completed), (jobs[1], JobState::Ready)]).await;
    scene.set_paused("email", false).await;
    scene.set_paused("email", false).await;
    assert_eq!(scene.paused_queues().await, Vec::<String>::new());
    assert_eq!(labels(&scene.claim("email", 10).await), ["a", "b"]);
}

/// A queue that nobody has used yet can be paused; its first job then waits (bug class 162).
pub async fn an_unknown_queue_can_be_paused(subject: &dyn Subject) {
    let scene = Scene::open(subject, &[]).await;
    scene.set_paused("future", true).await;
    assert_eq!(scene.paused_queues().await, ["future"]);
    scene.enqueue_each("future", &["a"]).await;
    scene.store().open_queue(&queue("future")).await.expect("open_queue");
    assert_eq!(scene.claim("future", 1).await, []);
    scene.agree().await;
    scene.set_paused("future", false).await;
    assert_eq!(labels(&scene.claim("future", 1).await), ["a"]);
}

/// Scheduled jobs of a paused queue become ready in time, and wait with the others; operators go on.
pub async fn maintenance_goes_on_in_a_paused_queue(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let soon = RunAt::after(Duration::from_secs(5)).expect("allowed");
    let jobs = scene.enqueue(&[job("email", "now"), job("email", "later").with_run_at(soon)]).await;
    scene.set_paused("email", true).await;
    scene.pass(Duration::from_secs(6)).await;
    assert_eq!(scene.promote().await, 1);
    scene.expect(&[(jobs[1], JobState::Ready)]).await;
    scene.cancel(&jobs[..1]).await;
    scene.expect(&[(jobs[0], JobState::Cancelled)]).await;
    assert_eq!(scene.claim("email", 1).await, []);
    scene.set_paused("email", false).await;
    assert_eq!(labels(&scene.claim("email", 10).await), ["later"]);
}
