//! Jobs that are read before those in the ring: handed back, or moved out of an old slot that only they keep.

use std::collections::BTreeSet;
use std::time::Duration;

use awa_core::job::MaxAttempts;
use awa_core::ring::RingKind;
use awa_core::unpin::{PinReason, UnpinPolicy};
use awa_core::{AttemptEnd, ClosureAnswer, JobState, Priority};

use crate::Subject;
use crate::rings::NO_HISTORY;
use crate::scene::{ME, OTHER, Scene, done, ids, job, labels, queue};

const HAND_BACK: AttemptEnd = AttemptEnd::Release { delay: Duration::ZERO };

impl Scene<'_> {
    /// Holds back `name`, puts one job into each of several slots of the ring, and turns until none of them keeps its slot.
    async fn carried_over(&self, name: &str, held: &[&str]) -> Vec<awa_core::JobId> {
        self.store().set_paused(&queue(name), true).await.expect("set_paused");
        let mut jobs = Vec::new();
        for label in held {
            jobs.extend(self.enqueue_each(name, &[label]).await);
            self.turn(&NO_HISTORY).await;
            self.unpin().await;
        }
        let slots = self.slots(RingKind::Queue);
        let mut carried = 0;
        for _ in 0..2 * slots {
            self.turn(&NO_HISTORY).await;
            carried += self.unpin().await.carried;
        }
        assert!(carried > 0, "nothing was carried over");
        self.reclaim(&NO_HISTORY).await;
        assert_eq!(self.kept(RingKind::Queue).await, [], "waiting jobs keep slots");
        jobs
    }

    async fn resume(&self, name: &str) {
        self.store().set_paused(&queue(name), false).await.expect("set_paused");
    }
}

/// C6, C15: a job that is handed back is ready at once, uncharged, before everything that waits; several come back in
/// their own order, and each claim of one raises the lease.
pub async fn jobs_that_are_handed_back_run_next_in_their_order(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let once = MaxAttempts::new(1).expect("one attempt");
    let new: Vec<_> = ["a", "b", "c", "d"].map(|label| job("email", label).with_max_attempts(once)).into();
    let ids = scene.enqueue(&new).await;
    let mut first = scene.claim("email", 3).await;
    first.reverse();
    for attempt in &first {
        assert_eq!(scene.close_one(attempt, HAND_BACK).await, ClosureAnswer::Closed);
    }
    scene.expect(&ids.iter().map(|id| (*id, JobState::Ready)).collect::<Vec<_>>()).await;
    let view = scene.view(ids[0]).await;
    assert_eq!((view.attempt, view.run_lease.get(), view.run_at), (0, 1, None));
    let two = scene.claim_next("email", 2).await;
    assert_eq!(labels(&two), ["a", "b"], "a batch takes no more than it was asked for");
    let rest = scene.claim("email", 10).await;
    assert_eq!(labels(&rest), ["c", "d"]);
    for attempt in two.iter().chain(&rest[..1]) {
        assert_eq!((attempt.attempt, attempt.receipt.run_lease.get()), (1, 2), "not charged");
    }
    scene.complete(&two).await;
    scene.complete(&rest).await;
    scene.expect(&ids.iter().map(|id| (*id, JobState::Completed)).collect::<Vec<_>>()).await;
    scene.expect_all_reclaimed().await;
}

/// C6: jobs that were handed back go before others of their own lane only, and a claim of them stops at its bytes.
pub async fn what_is_handed_back_keeps_its_lane_and_the_limit_of_bytes(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let low = Priority::new(4).expect("allowed");
    scene.enqueue(&[job("email", "low0").with_priority(low), job("email", "low1").with_priority(low)]).await;
    for attempt in &scene.claim("email", 2).await {
        scene.close_one(attempt, HAND_BACK).await;
    }
    scene.enqueue_each("email", &["urgent"]).await;
    let request = awa_core::store::ClaimRequest { max_bytes: 6, ..scene.request("email", 10) };
    let mut taken = Vec::new();
    for _ in 0..16 {
        let claimed = scene.claim_once(&request).await;
        assert!(claimed.jobs.len() <= 1, "each job reaches the limit: {:?}", labels(&claimed.jobs));
        taken.extend(claimed.jobs);
    }
    assert_eq!(labels(&taken), ["urgent", "low0", "low1"]);
    scene.complete(&taken).await;
}

/// C2, C6, C15: the jobs of a paused queue, one in each of many slots, are carried over and keep only themselves; in every
/// view they are ready, and they come out in order, before younger ones (bug class 24).
pub async fn waiting_jobs_keep_no_slot_and_their_order(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email", "video"]).await;
    let held = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let jobs = scene.carried_over("video", &held).await;
    scene.expect(&jobs.iter().map(|job| (*job, JobState::Ready)).collect::<Vec<_>>()).await;
    assert_eq!(scene.claim("video", 10).await, [], "the queue is paused");
    scene.enqueue_each("video", &["k"]).await;
    scene.resume("video").await;
    let mut taken = scene.claim_next("video", 3).await;
    assert_eq!(labels(&taken), ["a", "b", "c"]);
    taken.extend(scene.claim("video", 100).await);
    assert_eq!(labels(&taken), ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"]);
    assert!(taken.iter().all(|job| (job.attempt, job.receipt.run_lease.get()) == (1, 1)));
    scene.complete(&taken).await;
    scene.expect(&jobs.iter().map(|job| (*job, JobState::Completed)).collect::<Vec<_>>()).await;
    scene.expect_all_reclaimed().await;
}

/// C15: a slot in which much waits, or from which much runs, is left alone, and the report says why.
pub async fn a_backlog_stays_in_the_ring(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email", "video"]).await;
    let jobs = scene.enqueue_each("email", &["a", "b", "c", "d"]).await;
    scene.claim("email", 2).await;
    for _ in 0..2 * usize::from(scene.slots(RingKind::Queue)) {
        scene.turn(&NO_HISTORY).await;
    }
    let few = |max_rows, max_attempts| UnpinPolicy { max_rows, max_attempts, ..UnpinPolicy::default() };
    for (policy, reason) in [(few(1, 1), PinReason::Backlog), (few(100, 1), PinReason::Busy)] {
        let unpinned = scene.store().unpin(&policy).await.expect("unpin");
        assert_eq!((unpinned.carried, unpinned.evicted), (0, 0), "{policy:?}");
        let in_queue_ring = unpinned.kept.iter().filter(|kept| kept.ring == RingKind::Queue);
        assert_eq!(in_queue_ring.map(|kept| kept.reason).collect::<Vec<_>>(), [reason]);
    }
    let unpinned = scene.store().unpin(&few(2, 2)).await.expect("unpin");
    assert_eq!((unpinned.carried, unpinned.evicted, unpinned.kept), (2, 2, vec![]));
    let states = [JobState::Running, JobState::Running, JobState::Ready, JobState::Ready];
    scene.expect(&jobs.into_iter().zip(states).collect::<Vec<_>>()).await;
}

/// C6, C9: while a transaction that wrote to an old slot is open, jobs of younger slots are not moved before its own.
pub async fn a_late_commit_is_not_overtaken_by_what_is_carried_over(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["video"]).await;
    let (transaction, late) = scene.begin_with("video", &["late"]).await;
    scene.seal_queue_slot_with("x").await;
    for label in ["b", "c"] {
        scene.enqueue_each("video", &[label]).await;
        scene.turn(&NO_HISTORY).await;
    }
    for _ in 0..2 * usize::from(scene.slots(RingKind::Queue)) {
        scene.turn(&NO_HISTORY).await;
        assert_eq!(scene.unpin().await.carried, 0);
    }
    scene.commit(transaction, &late).await;
    assert_eq!(labels(&scene.claim_next("video", 1).await), ["late"]);
    assert_eq!(labels(&scene.claim("video", 10).await), ["b", "c"]);
}

/// C2, C8: a job that was carried over can be cancelled for good, and an operator's retry of it is refused.
pub async fn a_job_that_was_carried_over_can_be_cancelled(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["video"]).await;
    let jobs = scene.carried_over("video", &["a", "b", "c"]).await;
    assert_eq!(scene.cancel(&jobs[..1]).await, [done(JobState::Ready)]);
    let ready = awa_core::store::Acted::Refused(awa_core::store::Refusal::WrongState(JobState::Ready));
    assert_eq!(scene.retry(&jobs[1..2]).await, [ready]);
    let cancelled = awa_core::store::Acted::Refused(awa_core::store::Refusal::WrongState(JobState::Cancelled));
    assert_eq!(scene.cancel(&jobs[..1]).await, [cancelled]);
    scene.expect(&[(jobs[0], JobState::Cancelled), (jobs[1], JobState::Ready)]).await;
    scene.resume("video").await;
    let taken = scene.claim("video", 10).await;
    assert_eq!(ids(&taken), jobs[1..]);
    scene.complete(&taken).await;
    scene.expect_all_reclaimed().await;
}

/// C5: claims, hand-backs and unpinning at the same time never hand out a job twice at once and lose none.
pub async fn claims_and_moves_at_once_share_no_job(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["video"]).await;
    let jobs = scene.carried_over("video", &["a", "b", "c", "d", "e", "f"]).await;
    scene.resume("video").await;
    let mut taken = Vec::new();
    for _ in 0..16 {
        let unpin = async {
            scene.unpin().await;
            Vec::new()
        };
        let pair = futures::join!(scene.claim_as(ME, "video", 2), scene.claim_as(OTHER, "video", 2), unpin);
        for job in [pair.0, pair.1, pair.2].concat() {
            if job.receipt.run_lease.get() < 3 {
                assert_eq!(scene.close_patiently(&job, HAND_BACK).await, ClosureAnswer::Closed);
            } else {
                taken.push(job);
            }
        }
    }
    taken.extend(scene.claim("video", 100).await);
    let distinct: BTreeSet<_> = ids(&taken).into_iter().collect();
    assert_eq!((taken.len(), distinct), (jobs.len(), jobs.iter().copied().collect()));
    scene.complete(&taken).await;
}
