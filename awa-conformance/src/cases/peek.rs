//! One look at many queues.

use std::time::Duration;

use awa_core::ring::RingKind;
use awa_core::store::{Horizon, Peeked};
use awa_core::unpin::UnpinPolicy;
use awa_core::{AttemptEnd, ClosureAnswer, Priority, QueueName};

use crate::Subject;
use crate::rings::NO_HISTORY;
use crate::scene::{Scene, job, labels, queue, retry_after};

impl Scene<'_> {
    async fn peek(&self, names: &[&str]) -> Peeked {
        let queues: Vec<_> = names.iter().map(|name| queue(name)).collect();
        let peeked = self.store().peek(&queues).await.expect("peek");
        assert_eq!(peeked.waiting.len(), names.len(), "one answer per queue");
        peeked
    }

    async fn waiting<'n>(&self, names: &[&'n str]) -> Vec<&'n str> {
        let peeked = self.peek(names).await;
        names.iter().zip(peeked.waiting).filter(|(_, waiting)| *waiting).map(|(name, _)| *name).collect()
    }

    async fn is_waiting(&self, name: &str) -> bool {
        self.peek(&[name]).await.waiting[0]
    }
}

/// C6, C9: a look at many queues names each that has something to claim, whatever its priority, and none in which an empty
/// claim has found nothing. Answers come in input order, also for a queue that is asked for twice or that nobody knows.
pub async fn a_look_names_every_queue_with_work(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["a", "b", "c", "d"]).await;
    assert_eq!(scene.peek(&[]).await.waiting, Vec::<bool>::new());
    let all = ["d", "nobody-knows-it", "c", "b", "a", "c"];
    assert_eq!(scene.waiting(&all).await, Vec::<&str>::new());
    let bulk = job("c", "bulk").with_priority(Priority::BULK);
    scene.enqueue(&[job("a", "1"), job("a", "2"), bulk]).await;
    assert_eq!(scene.waiting(&all).await, ["c", "a", "c"]);
    assert_eq!(scene.claim("a", 10).await.len(), 2);
    assert_eq!(scene.claim("a", 10).await, []);
    assert_eq!(scene.waiting(&all).await, ["c", "c"]);
    assert_eq!(scene.claim("c", 10).await.len(), 1);
    assert_eq!(scene.claim("c", 10).await, []);
    assert_eq!(scene.waiting(&all).await, Vec::<&str>::new());
    scene.enqueue_each("a", &["3"]).await;
    assert_eq!(scene.waiting(&all).await, ["a"], "after a claim as before the first one");
}

/// C6: a look takes nothing, moves no cursor and can be repeated; its horizons grow with what is committed.
pub async fn a_look_takes_nothing_and_repeats_itself(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    scene.enqueue_each("email", &["a", "b"]).await;
    let mut last = Horizon(0);
    for _ in 0..3 {
        let peeked = scene.peek(&["email"]).await;
        assert_eq!(peeked.waiting, [true]);
        assert!(peeked.horizon >= last);
        last = peeked.horizon;
    }
    let claimed = scene.claim_once(&scene.request("email", 10)).await;
    assert_eq!(labels(&claimed.jobs), ["a", "b"]);
    assert!(claimed.horizon >= last, "a claim sees no less than an earlier look");
}

/// A queue that is paused hands out nothing, whatever a look says; when it goes on it is named.
pub async fn a_paused_queue_need_not_be_named(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email", "video"]).await;
    scene.enqueue_each("email", &["a"]).await;
    scene.store().set_paused(&queue("email"), true).await.expect("set_paused");
    scene.enqueue_each("video", &["b"]).await;
    assert!(scene.is_waiting("video").await);
    assert_eq!(scene.claim("email", 1).await, []);
    scene.store().set_paused(&queue("email"), false).await.expect("set_paused");
    assert!(scene.is_waiting("email").await);
}

/// C9: what commits late, behind jobs that were claimed meanwhile, is seen by the very next look, and nothing of it before;
/// the horizon of a look stays behind a writer that is open.
pub async fn a_late_commit_is_seen_by_the_very_next_look(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email", "video"]).await;
    let (early, first) = scene.begin_with("email", &["first", "second"]).await;
    let (other, fourth) = scene.begin_with("email", &["fourth"]).await;
    scene.enqueue_each("email", &["third"]).await;
    assert_eq!(labels(&scene.claim("email", 10).await), ["third"]);
    let before = scene.peek(&["email", "video"]).await;
    assert_eq!(before.waiting, [false, false]);
    scene.commit(other, &fourth).await;
    assert_eq!(scene.peek(&["email"]).await.horizon, before.horizon, "the older of the writers is still open");
    assert!(scene.is_waiting("email").await);
    assert_eq!(labels(&scene.claim("email", 10).await), ["fourth"]);
    assert!(!scene.is_waiting("email").await);
    scene.commit(early, &first).await;
    assert!(scene.is_waiting("email").await);
    assert_eq!(labels(&scene.claim("email", 1).await), ["first"]);
    assert!(scene.is_waiting("email").await, "one job of a late transaction is left");
    assert_eq!(labels(&scene.claim("email", 10).await), ["second"]);
    assert!(!scene.is_waiting("email").await);
}

/// C6: what a claim left because it had reached its limit is there for the next look.
pub async fn a_look_sees_behind_a_claim_that_stopped_at_its_limit(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    scene.enqueue(&[job("email", "a"), job("email", "b"), job("email", "c")]).await;
    for label in ["a", "b", "c"] {
        assert!(scene.is_waiting("email").await);
        assert_eq!(labels(&scene.claim("email", 1).await), [label]);
    }
    assert!(!scene.is_waiting("email").await);
}

/// C6: what is handed back, and what becomes due, is seen as soon as it is ready.
pub async fn a_look_sees_what_is_handed_back(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let attempt = scene.job_in_queue("email", "a").await;
    assert!(!scene.is_waiting("email").await);
    let release = AttemptEnd::Release { delay: Duration::ZERO };
    assert_eq!(scene.close_one(&attempt, release).await, ClosureAnswer::Closed);
    assert!(scene.is_waiting("email").await);
    let attempt = scene.claim_one("email").await;
    assert!(!scene.is_waiting("email").await);
    assert_eq!(scene.close_one(&attempt, retry_after(Duration::from_mins(1))).await, ClosureAnswer::Closed);
    assert!(!scene.is_waiting("email").await, "it is not due yet");
    scene.pass(Duration::from_mins(2)).await;
    assert_eq!(scene.promote().await, 1);
    assert!(scene.is_waiting("email").await);
    assert_eq!(scene.claim("email", 10).await.len(), 1);
}

/// C6, C15: jobs that wait in slots which were sealed long ago, or were moved out of them, are seen as those in the open one.
pub async fn a_look_sees_what_waits_in_older_slots(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email", "video"]).await;
    scene.enqueue_each("email", &["old"]).await;
    scene.seal_queue_slot().await;
    assert_eq!(scene.waiting(&["video", "email"]).await, ["email"]);
    scene.seal_queue_slot_with("filler").await;
    assert_eq!(scene.waiting(&["video", "email"]).await, ["email"]);
    for _ in 0..2 * scene.slots(RingKind::Queue) {
        scene.turn(&NO_HISTORY).await;
        scene.store().unpin(&UnpinPolicy::default()).await.expect("unpin");
    }
    assert_eq!(scene.waiting(&["video", "email"]).await, ["email"], "it was carried over");
    assert_eq!(labels(&scene.claim("email", 10).await), ["old"]);
    assert_eq!(scene.claim("email", 10).await, []);
    assert_eq!(scene.waiting(&["video", "email"]).await, Vec::<&str>::new());
}

/// Many queues are opened in one step, also those that are open, and by several at once in any order; each finds its first
/// job at once.
pub async fn many_queues_are_opened_at_once(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["q7"]).await;
    let queues: Vec<QueueName> = (0..40).map(|number| queue(&format!("q{number}"))).collect();
    let reversed: Vec<QueueName> = queues.iter().rev().cloned().collect();
    scene.store().open_queues(&[]).await.expect("open_queues");
    let (there, back) = futures::join!(scene.store().open_queues(&queues), scene.store().open_queues(&reversed));
    there.expect("open_queues");
    back.expect("open_queues");
    scene.store().open_queues(&queues).await.expect("opening is idempotent");
    for name in ["q0", "q7", "q39"] {
        scene.enqueue_each(name, &["a"]).await;
        assert!(scene.is_waiting(name).await);
        assert_eq!(labels(&scene.claim_next(name, 10).await), ["a"]);
    }
}
