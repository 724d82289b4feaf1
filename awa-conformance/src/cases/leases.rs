//! Attempts that depend on no slot: claimed from what was carried over, or moved out of an old slot.

use std::time::Duration;

use awa_core::id::{Nonce, Slot};
use awa_core::job::MaxAttempts;
use awa_core::prune::KeepReason;
use awa_core::ring::RingKind;
use awa_core::sweep::RescueCause;
use awa_core::unpin::UnpinPolicy;
use awa_core::{AttemptEnd, ClaimedJob, ClosureAnswer, JobState, ReceiptId};

use super::close::state_after;
use crate::Subject;
use crate::rings::NO_HISTORY;
use crate::scene::{ME, OTHER, RESCUER, Scene, done, job, retry_after};

impl Scene<'_> {
    /// An attempt at a new job that was handed back and claimed again.
    async fn claimed_again(&self, name: &str, label: &str) -> ClaimedJob {
        self.enqueue_each(name, &[label]).await;
        let first = self.claim_one(name).await;
        self.close_one(&first, AttemptEnd::Release { delay: Duration::ZERO }).await;
        let again = self.claim_one(name).await;
        assert_eq!(again.receipt.job, first.receipt.job);
        again
    }

    /// Turns until attempts that run keep no slot of either ring.
    pub(crate) async fn evict_all(&self) -> usize {
        let mut evicted = 0;
        for _ in 0..4 * self.slots(RingKind::Queue) {
            self.turn(&NO_HISTORY).await;
            evicted += self.unpin().await.evicted;
        }
        self.reclaim(&NO_HISTORY).await;
        for ring in [RingKind::Queue, RingKind::Claim] {
            assert_eq!(self.kept(ring).await, [], "the {ring} ring is kept by attempts");
        }
        evicted
    }
}

/// C2, C3, C11: an attempt at a job that was carried over ends in every way like any other, once, and keeps no slot
/// (bug class 30).
pub async fn an_attempt_without_a_slot_ends_in_every_way(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    for end in scene.every_end() {
        let attempt = scene.claimed_again("email", "a").await;
        let id = attempt.receipt.job;
        scene.expect(&[(id, JobState::Running)]).await;
        assert_eq!(scene.view(id).await.claimed_at, Some(attempt.claimed_at), "{end:?}");
        assert_eq!(scene.close_one(&attempt, end.clone()).await, ClosureAnswer::Closed, "{end:?}");
        assert_eq!(scene.close_one(&attempt, end.clone()).await, ClosureAnswer::Stale, "{end:?}");
        scene.expect(&[(id, state_after(&end))]).await;
        scene.expect_all_reclaimed().await;
    }
}

/// C3, C11, C15: an attempt that is moved out of its slots goes on: every view shows it as before, its receipt stays good
/// while all else is reclaimed, and it ends in every way, once (bug classes 24, 30).
pub async fn an_attempt_that_is_moved_keeps_its_receipt(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    for end in scene.every_end() {
        let id = scene.enqueue_each("email", &["a"]).await[0];
        let attempt = scene.claim_one("email").await;
        let before = scene.view(id).await;
        assert_eq!(scene.evict_all().await, 1, "{end:?}");
        assert_eq!(scene.view(id).await, before);
        assert_eq!(scene.store().open_attempts(ME, 10).await.expect("open_attempts"), [attempt.receipt]);
        assert_eq!(scene.store().are_open(&[attempt.receipt]).await.expect("are_open"), [true]);
        assert_eq!(scene.close_one(&attempt, end.clone()).await, ClosureAnswer::Closed, "{end:?}");
        assert_eq!(scene.close_one(&attempt, end.clone()).await, ClosureAnswer::Stale, "{end:?}");
        assert_eq!(scene.store().are_open(&[attempt.receipt]).await.expect("are_open"), [false]);
        scene.expect(&[(id, state_after(&end))]).await;
        scene.expect_all_reclaimed().await;
    }
}

/// C3: a receipt of a lease that is wrong in its number, its nonce or its slot closes nothing.
pub async fn a_receipt_of_a_lease_that_is_wrong_anywhere_closes_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let attempt = scene.claimed_again("email", "a").await;
    let good = attempt.receipt;
    let other = ReceiptId::from_raw(good.id.get() + 1).expect("the next member");
    let wrong = [
        awa_core::attempt::Receipt { id: other, ..good },
        awa_core::attempt::Receipt { nonce: Nonce(good.nonce.0 + 1), ..good },
        awa_core::attempt::Receipt { claim_slot: Slot(0), ..good },
    ];
    for receipt in wrong {
        for end in scene.every_end() {
            assert_eq!(scene.close_receipt(receipt, end).await, ClosureAnswer::Stale, "{receipt:?}");
        }
    }
    assert_eq!(scene.store().are_open(&wrong).await.expect("are_open"), [false, false, false]);
    scene.complete(&[attempt]).await;
}

/// C8: one call ends attempts with and without a slot side by side, and one stale closure touches no other.
pub async fn one_call_ends_attempts_with_and_without_a_slot(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let stale = scene.claimed_again("email", "stale").await;
    scene.complete(std::slice::from_ref(&stale)).await;
    let leased = [scene.claimed_again("email", "a").await, scene.claimed_again("email", "b").await];
    scene.enqueue_each("email", &["c", "d"]).await;
    let in_ring = scene.claim("email", 2).await;
    let minute = Duration::from_mins(1);
    let answers = scene
        .close(&[
            (&leased[0], AttemptEnd::Complete),
            (&in_ring[0], AttemptEnd::Complete),
            (&stale, AttemptEnd::Complete),
            (&leased[1], retry_after(minute)),
            (&in_ring[1], retry_after(minute)),
        ])
        .await;
    let (closed, gone) = (ClosureAnswer::Closed, ClosureAnswer::Stale);
    assert_eq!(answers, [closed, closed, gone, closed, closed]);
    let states =
        [JobState::Completed, JobState::Completed, JobState::Completed, JobState::Deferred, JobState::Deferred];
    let jobs = [&leased[0], &in_ring[0], &stale, &leased[1], &in_ring[1]].map(|attempt| attempt.receipt.job);
    scene.expect(&jobs.into_iter().zip(states).collect::<Vec<_>>()).await;
}

/// C3, C12: an attempt without a slot is rescued when its worker is gone, or when its deadline is over though its worker
/// lives; a living one without a deadline is not (bug classes 96, 97).
pub async fn attempts_without_a_slot_are_rescued(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    scene.beat(OTHER).await;
    let mut attempts = Vec::new();
    for (worker, deadline) in [(ME, None), (OTHER, None), (OTHER, Some(Duration::from_secs(1)))] {
        scene.enqueue_each("email", &["a"]).await;
        let first = scene.claim_one("email").await;
        scene.close_one(&first, AttemptEnd::Release { delay: Duration::ZERO }).await;
        let request = awa_core::store::ClaimRequest { instance: worker, deadline, ..scene.request("email", 1) };
        attempts.extend(scene.claim_like(&request).await);
    }
    assert_eq!(attempts.len(), 3);
    let rescued = scene.rescue_after_silence(&[OTHER]).await;
    let mut found: Vec<_> = rescued.attempts.iter().map(|one| (one.job, one.cause, one.exhausted)).collect();
    found.sort_unstable();
    let [gone, alive, late] = [0, 1, 2].map(|at| attempts[at].receipt.job);
    assert_eq!(found, [(gone, RescueCause::Gone, false), (late, RescueCause::DeadlineOver, false)]);
    scene.expect(&[(gone, JobState::Deferred), (alive, JobState::Running), (late, JobState::Deferred)]).await;
    for at in [0, 2] {
        assert_eq!(scene.close_one(&attempts[at], AttemptEnd::Complete).await, ClosureAnswer::Stale);
    }
    scene.complete(&attempts[1..2]).await;
    scene.expect_all_reclaimed().await;
}

/// C12: a rescue with a small page gets to all leases of a dead worker, one that has said goodbye at once, and a budget that
/// is used up ends dead.
pub async fn leases_of_a_dead_worker_are_rescued_page_by_page(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let once = MaxAttempts::new(1).expect("one attempt");
    let mut jobs = Vec::new();
    for label in ["a", "b", "c", "d", "e"] {
        jobs.extend(scene.enqueue(&[job("email", label).with_max_attempts(once)]).await);
    }
    for attempt in scene.claim("email", 5).await {
        scene.close_one(&attempt, AttemptEnd::Release { delay: Duration::ZERO }).await;
    }
    assert_eq!(scene.claim("email", 5).await.len(), 5);
    scene.outlive(&[ME, RESCUER]).await;
    assert_eq!(scene.rescue().await.attempts, []);
    scene.store().retire(ME).await.expect("retire");
    let request = awa_core::store::RescueRequest { rescuer: RESCUER, staleness: crate::scene::STALENESS, page: 2 };
    let mut rescued = Vec::new();
    for _ in 0..8 {
        let pass = scene.store().rescue(&request, &crate::scene::steady_retry()).await.expect("rescue");
        assert!(pass.attempts.len() <= 2, "a page is a page");
        rescued.extend(pass.attempts);
        if !pass.more {
            break;
        }
    }
    assert!(rescued.iter().all(|one| one.exhausted && one.cause == RescueCause::Gone));
    assert_eq!(rescued.len(), 5);
    scene.expect(&jobs.into_iter().map(|job| (job, JobState::Dead)).collect::<Vec<_>>()).await;
}

/// C3: an operator cancels a job that runs without a slot, whichever way it came there.
pub async fn a_job_that_runs_without_a_slot_can_be_cancelled(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let again = scene.claimed_again("email", "a").await;
    scene.enqueue_each("email", &["b"]).await;
    let moved = scene.claim_one("email").await;
    assert_eq!(scene.evict_all().await, 1);
    for attempt in [again, moved] {
        let id = attempt.receipt.job;
        assert_eq!(scene.cancel(&[id]).await, [done(JobState::Running)]);
        assert_eq!(scene.close_one(&attempt, AttemptEnd::Complete).await, ClosureAnswer::Stale);
        scene.expect(&[(id, JobState::Cancelled)]).await;
    }
}

/// C11, C15: an attempt that runs through twenty turns of the rings, a paused queue that gets a job in each, and an attempt
/// at a job that was handed back: everything else is reclaimed all the while, and none of them is lost or out of order
/// (bug class 24).
pub async fn nothing_pins_the_rings(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email", "video"]).await;
    scene.store().set_paused(&crate::scene::queue("video"), true).await.expect("set_paused");
    scene.enqueue_each("email", &["long"]).await;
    let long = scene.claim_one("email").await;
    let leased = scene.claimed_again("email", "again").await;
    let slots = usize::from(scene.slots(RingKind::Queue));
    let mut expected = Vec::new();
    for round in 0..20 * slots {
        let label = round.to_string();
        scene.enqueue_each("video", &[&label]).await;
        expected.push(label);
        scene.turn(&NO_HISTORY).await;
        scene.beat(ME).await;
        scene.unpin().await;
        scene.reclaim(&NO_HISTORY).await;
        // Once around, no slot is older than one turn.
        if round >= 2 * slots {
            for ring in RingKind::ALL {
                let kept = scene.kept(ring).await;
                assert!(
                    kept.len() < usize::from(scene.slots(ring)),
                    "round {round}: the {ring} ring is full: {kept:?}"
                );
            }
        }
    }
    scene.expect(&[(long.receipt.job, JobState::Running), (leased.receipt.job, JobState::Running)]).await;
    scene.complete(&[long, leased]).await;
    scene.store().set_paused(&crate::scene::queue("video"), false).await.expect("set_paused");
    let jobs = scene.claim("video", 1_000).await;
    assert_eq!(crate::scene::labels(&jobs), expected);
    scene.complete(&jobs).await;
    scene.expect_all_reclaimed().await;
}

/// C11, C15: leases outlive many turns of their own ring; left alone they keep their slot, and moved forward they do not.
pub async fn leases_outlive_their_ring(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let attempts = [scene.claimed_again("email", "a").await, scene.claimed_again("email", "b").await];
    let slots = usize::from(scene.slots(RingKind::Lease));
    for _ in 0..2 * slots {
        scene.turn(&NO_HISTORY).await;
    }
    let kept = scene.kept(RingKind::Lease).await;
    assert!(kept.iter().any(|(_, reason)| *reason == KeepReason::Leases(2)), "{kept:?}");
    let mut forwarded = 0;
    for _ in 0..4 * slots {
        // A lease that comes and goes makes the ring turn.
        let passing = scene.claimed_again("email", "passing").await;
        scene.complete(&[passing]).await;
        scene.turn(&NO_HISTORY).await;
        forwarded += scene.unpin().await.forwarded;
    }
    assert!(forwarded > 2, "they were moved around: {forwarded}");
    for attempt in &attempts {
        scene.expect(&[(attempt.receipt.job, JobState::Running)]).await;
    }
    scene.complete(&attempts).await;
    scene.expect_all_reclaimed().await;
}

/// C3, C4: leases that are moved forward while their workers end them are ended once, and none is taken for stale.
pub async fn leases_that_are_moved_are_not_taken_for_stale(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    for _ in 0..8 {
        let attempt = scene.claimed_again("email", "a").await;
        scene.rotate(RingKind::Lease).await;
        let policy = UnpinPolicy { min_free: u8::MAX, ..UnpinPolicy::default() };
        let unpin = async { scene.store().unpin(&policy).await.expect("unpin") };
        let (answer, _) = futures::join!(scene.close_patiently(&attempt, AttemptEnd::Complete), unpin);
        assert_eq!(answer, ClosureAnswer::Closed);
        assert_eq!(scene.state(attempt.receipt.job).await, Some(JobState::Completed));
        scene.prune(RingKind::Lease, &NO_HISTORY).await;
    }
}
