//! A claim is recorded in one of two shapes, and whoever holds it cannot tell which.

use std::time::Duration;

use awa_core::attempt::Receipt;
use awa_core::id::Nonce;
use awa_core::prune::KeepReason;
use awa_core::ring::RingKind;
use awa_core::store::{ClaimRequest, ClaimShape, RescueRequest};
use awa_core::sweep::RescueCause;
use awa_core::{AttemptEnd, ClaimedJob, ClosureAnswer, InstanceId, JobState, ReceiptId};

use super::close::state_after;
use crate::Subject;
use crate::rings::NO_HISTORY;
use crate::scene::{ME, OTHER, RESCUER, STALENESS, Scene, done, retry_after, steady_retry};

const SHAPES: [ClaimShape; 2] = [ClaimShape::Compact, ClaimShape::RowLocal];

impl Scene<'_> {
    /// Enqueues jobs with these labels, and claims them in this shape.
    async fn claim_in(&self, shape: ClaimShape, worker: InstanceId, labels: &[&str]) -> Vec<ClaimedJob> {
        self.enqueue_each("email", labels).await;
        let request = ClaimRequest { shape, instance: worker, ..self.request("email", labels.len()) };
        let attempts = self.claim_like(&request).await;
        assert_eq!(attempts.len(), labels.len());
        attempts
    }

    async fn are_open(&self, attempts: &[ClaimedJob]) -> Vec<bool> {
        let receipts: Vec<_> = attempts.iter().map(|attempt| attempt.receipt).collect();
        self.store().are_open(&receipts).await.expect("are_open")
    }
}

/// C2, C3, C4, C11: in either shape an attempt is shown while it is open, ends in every way, once, and keeps no slot
/// (bug class 30).
pub async fn an_attempt_of_either_shape_ends_in_every_way(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    for shape in SHAPES {
        for end in scene.every_end() {
            let [ended, left] = &scene.claim_in(shape, ME, &["ended", "left"]).await[..] else { panic!("two jobs") };
            let id = ended.receipt.job;
            scene.expect(&[(id, JobState::Running)]).await;
            assert_eq!(scene.view(id).await.claimed_at, Some(ended.claimed_at), "{shape:?} {end:?}");
            let both = [ended.receipt, left.receipt];
            assert_eq!(scene.store().open_attempts(ME, 10).await.expect("open_attempts"), both, "{shape:?} {end:?}");
            assert_eq!(scene.are_open(&[ended.clone(), left.clone()]).await, [true, true]);
            assert_eq!(scene.close_one(ended, end.clone()).await, ClosureAnswer::Closed, "{shape:?} {end:?}");
            assert_eq!(scene.close_one(ended, end.clone()).await, ClosureAnswer::Stale, "{shape:?} {end:?}");
            assert_eq!(scene.are_open(&[ended.clone(), left.clone()]).await, [false, true], "{shape:?} {end:?}");
            scene.expect(&[(id, state_after(&end)), (left.receipt.job, JobState::Running)]).await;
            assert_eq!(scene.cancel(&[left.receipt.job]).await, [done(JobState::Running)], "{shape:?} {end:?}");
            assert_eq!(scene.close_one(left, end.clone()).await, ClosureAnswer::Stale, "{shape:?} {end:?}");
            if state_after(&end) == JobState::Ready {
                let again = scene.claim_one("email").await;
                scene.complete(&[again]).await;
            }
        }
        scene.expect_all_reclaimed().await;
    }
}

/// C3: a row-local receipt that is wrong in its number, its nonce or its slot closes nothing.
pub async fn a_wrong_receipt_of_a_row_local_claim_closes_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let attempts = scene.claim_in(ClaimShape::RowLocal, ME, &["a", "b"]).await;
    let good = attempts[1].receipt;
    let other = ReceiptId::from_raw(good.id.get() + 1).expect("the next member");
    let wrong = [
        Receipt { id: other, ..good },
        Receipt { nonce: Nonce(good.nonce.0 + 1), ..good },
        Receipt { claim_slot: awa_core::id::Slot(good.claim_slot.0 ^ 1), ..good },
    ];
    for receipt in wrong {
        for end in scene.every_end() {
            assert_eq!(scene.close_receipt(receipt, end).await, ClosureAnswer::Stale, "{receipt:?}");
        }
    }
    assert_eq!(scene.store().are_open(&wrong).await.expect("are_open"), [false, false, false]);
    scene.complete(&attempts).await;
}

/// C8: one call ends attempts of both shapes side by side, and one stale closure touches no other.
pub async fn one_call_ends_attempts_of_both_shapes(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let rows = scene.claim_in(ClaimShape::RowLocal, ME, &["a", "b", "c", "d"]).await;
    let compact = scene.claim_in(ClaimShape::Compact, ME, &["e", "f", "g"]).await;
    scene.complete(&rows[3..]).await;
    let minute = Duration::from_mins(1);
    let answers = scene
        .close(&[
            (&rows[0], AttemptEnd::Complete),
            (&compact[0], AttemptEnd::Complete),
            (&rows[3], AttemptEnd::Complete),
            (&rows[1], retry_after(minute)),
            (&compact[1], retry_after(minute)),
        ])
        .await;
    let (closed, gone) = (ClosureAnswer::Closed, ClosureAnswer::Stale);
    assert_eq!(answers, [closed, closed, gone, closed, closed]);
    let (completed, deferred) = (JobState::Completed, JobState::Deferred);
    let expected = [
        (&rows[0], completed),
        (&compact[0], completed),
        (&rows[3], completed),
        (&rows[1], deferred),
        (&compact[1], deferred),
        (&rows[2], JobState::Running),
        (&compact[2], JobState::Running),
    ];
    scene.expect(&expected.map(|(attempt, state)| (attempt.receipt.job, state))).await;
    assert_eq!(scene.are_open(&[rows[2].clone(), compact[2].clone()]).await, [true, true]);
    scene.complete(&[rows[2].clone(), compact[2].clone()]).await;
    scene.expect_all_reclaimed().await;
}

/// C3, C12: one pass rescues claims of both shapes, when the worker is gone and when a deadline is over though its worker
/// lives; a living one without a deadline is left alone (bug classes 6, 7).
pub async fn one_pass_rescues_claims_of_both_shapes(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    scene.beat(OTHER).await;
    let mut expected = Vec::new();
    let mut alive = Vec::new();
    let mut refused = Vec::new();
    for shape in SHAPES {
        let gone = scene.claim_in(shape, ME, &["gone", "gone too"]).await;
        alive.extend(scene.claim_in(shape, OTHER, &["alive"]).await);
        scene.enqueue_each("email", &["late"]).await;
        let deadline = Some(Duration::from_secs(1));
        let request = ClaimRequest { shape, instance: OTHER, deadline, ..scene.request("email", 1) };
        let late = scene.claim_like(&request).await;
        assert_eq!(late[0].deadline_at, Some(late[0].claimed_at.saturating_add(Duration::from_secs(1))));
        expected.extend(gone.iter().map(|attempt| (attempt.receipt.job, RescueCause::Gone)));
        expected.extend(late.iter().map(|attempt| (attempt.receipt.job, RescueCause::DeadlineOver)));
        refused.extend([gone, late].concat());
    }
    let rescued = scene.rescue_after_silence(&[OTHER]).await;
    let mut found: Vec<_> = rescued.attempts.iter().map(|attempt| (attempt.job, attempt.cause)).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    for attempt in &refused {
        assert_eq!(scene.close_one(attempt, AttemptEnd::Complete).await, ClosureAnswer::Stale);
        scene.expect(&[(attempt.receipt.job, JobState::Deferred)]).await;
    }
    assert_eq!(scene.rescue().await.attempts, [], "a second pass finds nothing");
    scene.complete(&alive).await;
    scene.expect_all_reclaimed().await;
}

/// C8: row-local claims that are closed or alive are paged past, however many there are and however small the page, and
/// what a deadline has ended is found behind them too (bug classes 8, 40).
pub async fn row_local_claims_that_are_exempt_hide_no_other(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let labels: Vec<String> = (0..30).map(|number| number.to_string()).collect();
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    let living = scene.claim_in(ClaimShape::RowLocal, ME, &labels).await;
    scene.complete(&living[10..20]).await;
    let lost = scene.claim_in(ClaimShape::RowLocal, OTHER, &["lost"]).await.remove(0);
    scene.enqueue_each("email", &["late"]).await;
    let deadline = Some(Duration::from_secs(1));
    let limited = ClaimRequest { shape: ClaimShape::RowLocal, deadline, ..scene.request("email", 1) };
    let late = scene.claim_like(&limited).await.remove(0);
    scene.outlive(&[RESCUER, ME]).await;
    let request = RescueRequest { rescuer: RESCUER, staleness: STALENESS, page: 3 };
    let mut found = Vec::new();
    for _ in 0..40 {
        let rescued = scene.store().rescue(&request, &steady_retry()).await.expect("rescue");
        found.extend(rescued.attempts.iter().map(|attempt| attempt.job));
    }
    found.sort_unstable();
    assert_eq!(found, [lost.receipt.job, late.receipt.job]);
}

/// C11: an open claim of either shape keeps the slot that it was claimed in and the one that it was claimed from, until it
/// ends (bug class 24).
pub async fn an_open_claim_of_either_shape_keeps_its_slots(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    for shape in SHAPES {
        let attempts = scene.claim_in(shape, ME, &["long", "short"]).await;
        scene.complete(&attempts[1..]).await;
        for _ in 0..2 {
            scene.turn(&NO_HISTORY).await;
        }
        for ring in [RingKind::Claim, RingKind::Queue] {
            let kept = scene.kept(ring).await;
            assert!(kept.iter().any(|(_, reason)| *reason == KeepReason::OpenClaims(1)), "{shape:?} {ring}: {kept:?}");
        }
        assert_eq!(scene.view(attempts[0].receipt.job).await.args, attempts[0].args);
        scene.complete(&attempts[..1]).await;
        scene.expect_all_reclaimed().await;
    }
}

/// C3, C11, C15: an attempt of either shape that is moved out of its slots goes on under its receipt.
pub async fn an_attempt_of_either_shape_is_moved_out_of_its_slots(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    for shape in SHAPES {
        let attempts = scene.claim_in(shape, ME, &["a", "b"]).await;
        scene.complete(&attempts[1..]).await;
        assert_eq!(scene.evict_all().await, 1, "{shape:?}");
        assert_eq!(scene.are_open(&attempts).await, [true, false], "{shape:?}");
        scene.complete(&attempts[..1]).await;
        assert_eq!(scene.close_one(&attempts[0], AttemptEnd::Complete).await, ClosureAnswer::Stale, "{shape:?}");
        scene.expect_all_reclaimed().await;
    }
}
