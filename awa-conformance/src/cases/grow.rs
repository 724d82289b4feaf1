//! A ring that turns out to be too small is given more slots, and nobody has to stop for it.

use std::time::Duration;

use awa_core::ring::{GrowRefusal, Pointer, RingKind, StayReason};
use awa_core::store::{Grown, Rotated};
use awa_core::{AttemptEnd, ClaimedJob, ClosureAnswer, JobState};

use crate::Subject;
use crate::rings::NO_HISTORY;
use crate::scene::{ME, OTHER, Scene, ids, job, labels};

/// The slots that a case adds.
const MORE: u8 = 2;

impl Scene<'_> {
    /// Gives a ring more slots and checks that it turns into each of them; `between` makes its open slot not empty.
    async fn grow_and_turn(&self, ring: RingKind, mut between: impl AsyncFnMut()) {
        let from = self.slots(ring);
        assert_eq!(self.rotate(ring).await, Rotated::Stayed(StayReason::NoFreeSlot), "the {ring} ring is full");
        let grown = self.store().grow_ring(ring, from + MORE).await.expect("grow_ring");
        assert_eq!(grown, Grown::Done { from, to: from + MORE });
        for slot in from..from + MORE {
            let rotated = self.rotate(ring).await;
            assert!(matches!(rotated, Rotated::Opened(opened, _) if opened.0 == slot), "{ring}: {rotated:?}");
            between().await;
        }
        assert_eq!(self.rotate(ring).await, Rotated::Stayed(StayReason::NoFreeSlot), "the {ring} ring is full again");
    }
}

/// C2, C6, C10, C11: a queue ring full of waiting jobs goes on when it is given slots; transactions that were open before,
/// during and after it lose nothing, and the order is that of one ring.
pub async fn a_grown_ring_absorbs_what_pinned_it(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let (mut early, mut early_jobs) = scene.begin_with("email", &["early"]).await;
    let mut expected = vec!["early".to_owned()];
    for round in 0..scene.slots(RingKind::Queue) {
        expected.push(round.to_string());
        scene.enqueue_each("email", &[&round.to_string()]).await;
        scene.rotate(RingKind::Queue).await;
    }
    let (late, late_jobs) = scene.begin_with("email", &["late"]).await;
    expected.push("late".to_owned());
    scene
        .grow_and_turn(RingKind::Queue, async || {
            expected.push(expected.len().to_string());
            scene.enqueue_each("email", &[expected.last().expect("it was just pushed")]).await;
        })
        .await;
    // A transaction stays in the slot in which it began.
    let again = early.enqueue(&[job("email", "early again")]).await.expect("enqueue");
    expected.insert(1, "early again".to_owned());
    early_jobs.extend(again.iter().map(|enqueued| enqueued.id()));
    scene.commit(early, &early_jobs).await;
    scene.commit(late, &late_jobs).await;

    let jobs = scene.claim("email", 1_000).await;
    assert_eq!(labels(&jobs), expected);
    scene.complete(&jobs).await;
    scene.expect_all_reclaimed().await;
}

/// C3, C4, C11: claims that are recorded in a slot that was added end in every way, are cancelled, and show who holds them;
/// those from before it go on.
pub async fn attempts_in_an_added_slot_are_like_any_other(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let mut before = Vec::new();
    for round in 0..scene.slots(RingKind::Claim) {
        scene.enqueue_each("email", &[&round.to_string()]).await;
        before.push(scene.claim_one("email").await);
        scene.rotate(RingKind::Claim).await;
    }
    let ends = scene.every_end();
    let mut after: Vec<ClaimedJob> = Vec::new();
    scene
        .grow_and_turn(RingKind::Claim, async || {
            for _ in 0..=ends.len() {
                scene.enqueue_each("email", &["new"]).await;
                after.push(scene.claim_one("email").await);
            }
        })
        .await;
    let from = scene.slots(RingKind::Claim);
    assert!(after.iter().all(|attempt| attempt.receipt.claim_slot.0 >= from), "{after:?}");
    let mine = scene.store().open_attempts(ME, 1_000).await.expect("open_attempts");
    assert_eq!(mine.len(), before.len() + after.len());
    let none = scene.store().open_attempts(OTHER, 1_000).await.expect("open_attempts");
    assert_eq!(none, []);
    for (attempt, end) in after.iter().zip(ends.iter().cycle()) {
        assert_eq!(scene.close_one(attempt, end.clone()).await, ClosureAnswer::Closed, "{end:?}");
        assert_eq!(scene.close_one(attempt, AttemptEnd::Complete).await, ClosureAnswer::Stale, "{end:?}");
    }
    scene.cancel(&ids(&before[..1])).await;
    assert_eq!(scene.state(before[0].receipt.job).await, Some(JobState::Cancelled));
    scene.complete(&before[1..]).await;
    let released = scene.claim("email", 1_000).await;
    scene.complete(&released).await;
    scene.agree().await;
    scene.expect_all_reclaimed().await;
}

/// C3, C11: the attempt of a silent worker in an added slot is rescued like any other, and so is one whose deadline is over.
pub async fn attempts_in_an_added_slot_are_rescued(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let grown = scene.store().grow_ring(RingKind::Claim, scene.slots(RingKind::Claim) + MORE).await.expect("grow_ring");
    assert!(matches!(grown, Grown::Done { .. }), "{grown:?}");
    let mut attempts = Vec::new();
    for _ in 0..scene.slots(RingKind::Claim) + MORE {
        let label = attempts.len().to_string();
        scene.enqueue(&[job("email", &label), job("email", &label)]).await;
        attempts.push(scene.claim_one("email").await);
        let request = scene.request("email", 1);
        let deadline = Some(Duration::from_secs(1));
        attempts.extend(scene.claim_like(&awa_core::store::ClaimRequest { deadline, ..request }).await);
        scene.rotate(RingKind::Claim).await;
    }
    let mut rescued = scene.rescue_after_silence(&[]).await;
    rescued.attempts.extend(scene.rescue().await.attempts);
    let mut jobs: Vec<_> = rescued.attempts.iter().map(|attempt| attempt.job).collect();
    jobs.sort();
    assert_eq!(jobs, ids(&attempts));
    let answer = scene.close_one(attempts.last().expect("there are some"), AttemptEnd::Complete).await;
    assert_eq!(answer, ClosureAnswer::Stale);
    scene.expect_all_reclaimed().await;
}

/// C3, C11: leases go on in a lease ring that was given slots, and are moved into them.
pub async fn leases_go_on_in_a_grown_ring(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let lease = async || {
        scene.enqueue_each("email", &["long"]).await;
        let handed_back = scene.claim_one("email").await;
        let release = AttemptEnd::Release { delay: Duration::ZERO };
        assert_eq!(scene.close_one(&handed_back, release).await, ClosureAnswer::Closed);
        scene.claim_one("email").await
    };
    let mut leases = Vec::new();
    for _ in 0..scene.slots(RingKind::Lease) {
        leases.push(lease().await);
        scene.rotate(RingKind::Lease).await;
    }
    scene.grow_and_turn(RingKind::Lease, async || leases.push(lease().await)).await;
    let forwarded = scene.unpin().await.forwarded;
    assert!(forwarded > 0, "leases of the oldest slots are moved into the open one");
    scene.reclaim(&NO_HISTORY).await;
    for attempt in &leases {
        assert_eq!(scene.close_one(attempt, AttemptEnd::Complete).await, ClosureAnswer::Closed);
    }
    scene.expect_all_reclaimed().await;
}

/// A ring is not made smaller and not larger than its pointer can say; asking for what it has changes nothing.
pub async fn a_ring_never_shrinks(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    for ring in RingKind::ALL {
        let has = scene.slots(ring);
        let grow = async |slots| scene.store().grow_ring(ring, slots).await.expect("grow_ring");
        assert_eq!(grow(has).await, Grown::Done { from: has, to: has });
        assert_eq!(grow(has + 1).await, Grown::Done { from: has, to: has + 1 });
        assert_eq!(grow(has + 1).await, Grown::Done { from: has + 1, to: has + 1 });
        assert_eq!(grow(has).await, Grown::Refused(GrowRefusal::Shrinks { has: has + 1, wanted: has }));
        let wanted = Pointer::SLOTS + 1;
        assert_eq!(grow(wanted).await, Grown::Refused(GrowRefusal::TooMany { wanted }));
    }
}
