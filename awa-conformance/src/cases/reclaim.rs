//! Partitions are reused when everything in them is spent, and never before.

use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::prune::KeepReason;
use awa_core::ring::{RingKind, RotationPolicy, SlotState, StayReason};
use awa_core::store::Rotated;
use awa_core::{AttemptEnd, ClosureAnswer, JobState, RunAt};

use crate::Subject;
use crate::rings::{NO_HISTORY, QUARTER_HOUR};
use crate::scene::{ME, RESCUER, Scene, done, job, labels, queue};

/// C11: a job that runs through many turns of the rings keeps its claim and its row (bug class 24).
pub async fn an_open_attempt_outlives_the_rings(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let jobs = scene.enqueue(&[job("email", "long"), job("email", "longer")]).await;
    let attempts = scene.claim("email", 2).await;
    scene.complete(&attempts[1..]).await;
    scene.wrap_twice(&NO_HISTORY).await;
    scene.expect(&[(jobs[0], JobState::Running)]).await;
    let kept = scene.kept(RingKind::Claim).await;
    assert!(kept.iter().any(|(_, reason)| *reason == KeepReason::OpenClaims(1)), "{kept:?}");
    let view = scene.view(jobs[0]).await;
    assert_eq!((view.args, view.claimed_at), (attempts[0].args.clone(), Some(attempts[0].claimed_at)));
    assert_eq!(scene.close_one(&attempts[0], AttemptEnd::Complete).await, ClosureAnswer::Closed);
    scene.expect(&[(jobs[0], JobState::Completed)]).await;
    scene.expect_all_reclaimed().await;
}

/// C11, C6: a job that waits through many turns is neither lost nor moved behind younger ones (bug class 24).
pub async fn a_waiting_job_outlives_the_ring(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let waiting = scene.enqueue_each("email", &["a", "b"]).await;
    let later = RunAt::after(Duration::from_hours(1)).expect("allowed");
    let scheduled = scene.enqueue(&[job("email", "later").with_run_at(later)]).await[0];
    scene.wrap_twice(&NO_HISTORY).await;
    scene.expect(&[(waiting[0], JobState::Ready), (scheduled, JobState::Deferred)]).await;
    scene.enqueue_each("email", &["c"]).await;
    let jobs = scene.claim("email", 10).await;
    assert_eq!(labels(&jobs), ["a", "b", "c"]);
    scene.complete(&jobs).await;
    scene.expect(&[(scheduled, JobState::Deferred)]).await;
    scene.expect_all_reclaimed().await;
}

/// C11, C9: a transaction that stays open through many turns loses nothing; its jobs are claimable with its commit
/// (bug class 28).
pub async fn an_open_transaction_outlives_the_ring(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let (mut transaction, mut ids) = scene.begin_with("email", &["a"]).await;
    scene.wrap_twice(&NO_HISTORY).await;
    let more = transaction.enqueue(&[job("email", "b")]).await.expect("enqueue");
    ids.push(more[0].id());
    scene.wrap_twice(&NO_HISTORY).await;
    scene.commit(transaction, &ids).await;
    let jobs = scene.claim_next("email", 10).await;
    assert_eq!(labels(&jobs), ["a", "b"]);
    scene.complete(&jobs).await;
    scene.expect_all_reclaimed().await;
}

/// C11: a transaction that rolled back leaves nothing that keeps its slot.
pub async fn a_rolled_back_transaction_keeps_no_slot(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let (transaction, _) = scene.begin_with("email", &["never"]).await;
    scene.enqueue_each("email", &["a"]).await;
    scene.seal_queue_slot().await;
    transaction.rollback().await.expect("rollback");
    let jobs = scene.claim("email", 10).await;
    scene.complete(&jobs).await;
    scene.expect_all_reclaimed().await;
}

/// C11: every way to end an attempt leaves its slots reclaimable (bug class 30).
pub async fn every_end_of_an_attempt_leaves_its_slots_reclaimable(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    for end in scene.every_end() {
        scene.enqueue_each("email", &["x"]).await;
        let attempt = scene.claim_one("email").await;
        assert_eq!(scene.close_one(&attempt, end.clone()).await, ClosureAnswer::Closed);
        scene.expect_all_reclaimed().await;
    }
}

/// C11: being rescued, by silence or by deadline, leaves an attempt's slots reclaimable (bug class 30).
pub async fn rescued_attempts_leave_their_slots_reclaimable(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    scene.enqueue_each("email", &["silent", "late"]).await;
    scene.claim("email", 1).await;
    let deadline = Some(Duration::from_secs(1));
    let request = awa_core::store::ClaimRequest { deadline, ..scene.request("email", 1) };
    scene.claim_like(&request).await;
    assert_eq!(scene.rescue_after_silence(&[]).await.attempts.len(), 2);
    scene.expect_all_reclaimed().await;
}

/// C11: every wish of an operator leaves the slots of its job reclaimable: cancelled before it ran, while it ran, while
/// it waited, and retried (bug class 30).
pub async fn every_wish_of_an_operator_leaves_the_slots_reclaimable(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    for state in [JobState::Ready, JobState::Running, JobState::Deferred, JobState::Waiting] {
        let id = scene.job_in(state).await;
        assert_eq!(scene.cancel(&[id]).await, [done(state)]);
        scene.expect_all_reclaimed().await;
    }
    for state in [JobState::Deferred, JobState::Dead, JobState::Failed] {
        let id = scene.job_in(state).await;
        assert_eq!(scene.retry(&[id]).await, [done(state)]);
        let name = scene.view(id).await.queue;
        let jobs = scene.claim(name.as_str(), 1).await;
        scene.complete(&jobs).await;
        scene.expect_all_reclaimed().await;
    }
}

/// C11: history is kept for its time, then it goes; dead jobs stay (bug classes 39, 152).
pub async fn history_is_kept_for_its_time(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let states = [JobState::Completed, JobState::Cancelled, JobState::Dead];
    let mut ids = Vec::new();
    for state in states {
        ids.push((scene.job_in(state).await, state));
    }
    let plain = scene.enqueue_each("email", &["plain"]).await[0];
    let attempt = scene.claim_one("email").await;
    scene.complete(&[attempt]).await;
    ids.push((plain, JobState::Completed));
    scene.seal_queue_slot().await;
    scene.rotate(RingKind::Claim).await;
    scene.outlive(&[ME, RESCUER]).await;
    scene.reclaim(&QUARTER_HOUR).await;
    let reports = scene.prune(RingKind::Queue, &QUARTER_HOUR).await;
    assert!(matches!(reports[..], [ref one] if matches!(one.kept, Some(KeepReason::Retained(_)))), "{reports:?}");
    scene.expect(&ids).await;
    scene.pass(Duration::from_secs(15 * 60 + 1)).await;
    let reports = scene.prune(RingKind::Queue, &QUARTER_HOUR).await;
    assert!(matches!(reports[..], [ref one] if one.kept.is_none()), "{reports:?}");
    let left = scene.agree().await;
    assert_eq!(left.into_iter().collect::<Vec<_>>(), [(ids[2].0, JobState::Dead)]);
}

/// C11: each kind of history alone keeps its slot for its time: a completion, one with a result, a cancelled attempt,
/// and jobs that were cancelled while they waited (bug classes 39, 152).
pub async fn every_kind_of_history_keeps_its_slot(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let reason = || ErrorText::new("no longer wanted");
    let ends = [
        Some(AttemptEnd::Complete),
        Some(AttemptEnd::CompleteWith { result: crate::scene::json("1") }),
        Some(AttemptEnd::Cancel { reason: reason() }),
        None,
    ];
    for end in ends {
        let id = scene.enqueue_each("email", &["a"]).await[0];
        match &end {
            Some(end) => {
                let attempt = scene.claim_one("email").await;
                scene.close_one(&attempt, end.clone()).await;
            }
            None => drop(scene.cancel(&[id]).await),
        }
        scene.seal_queue_slot().await;
        scene.store().drain().await.expect("drain");
        let kept = scene.prune(RingKind::Queue, &QUARTER_HOUR).await;
        assert!(matches!(kept[..], [ref one] if matches!(one.kept, Some(KeepReason::Retained(_)))), "{end:?} {kept:?}");
        assert!(scene.state(id).await.is_some_and(JobState::is_terminal), "{end:?}");
        scene.pass(Duration::from_mins(15) + Duration::from_secs(1)).await;
        scene.reclaim(&QUARTER_HOUR).await;
        assert_eq!(scene.state(id).await, None, "{end:?}");
    }
}

/// C11: when history takes more room than it may, the oldest goes before its time.
pub async fn history_beyond_its_room_goes_early(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let id = scene.enqueue_each("email", &["a"]).await[0];
    let attempt = scene.claim_one("email").await;
    scene.complete(&[attempt]).await;
    scene.seal_queue_slot().await;
    scene.reclaim(&QUARTER_HOUR).await;
    scene.expect(&[(id, JobState::Completed)]).await;
    let cramped = awa_core::store::RetentionPolicy { max_bytes: 0, ..QUARTER_HOUR };
    scene.reclaim(&cramped).await;
    assert_eq!(scene.state(id).await, None);
}

/// C11: dead and deferred jobs depend on no slot.
pub async fn dead_and_deferred_jobs_outlive_the_rings(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let dead = scene.job_in(JobState::Dead).await;
    let deferred = scene.job_in(JobState::Deferred).await;
    scene.wrap_twice(&NO_HISTORY).await;
    scene.expect_all_reclaimed().await;
    scene.expect(&[(dead, JobState::Dead), (deferred, JobState::Deferred)]).await;
    assert_eq!(scene.retry(&[dead, deferred]).await, [done(JobState::Dead), done(JobState::Deferred)]);
    scene.expect(&[(dead, JobState::Ready), (deferred, JobState::Ready)]).await;
}

/// C2, C11: when no slot is free, the open one takes everything: producers are not refused, and nothing is lost or out
/// of order.
pub async fn a_full_ring_absorbs_what_comes(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let mut expected = Vec::new();
    for round in 0..3 * usize::from(scene.slots(RingKind::Queue)) {
        let label = round.to_string();
        scene.enqueue_each("email", &[&label]).await;
        expected.push(label);
        scene.rotate(RingKind::Queue).await;
        scene.reclaim(&NO_HISTORY).await;
    }
    let jobs = scene.claim("email", 1_000).await;
    assert_eq!(labels(&jobs), expected);
    scene.complete(&jobs).await;
    scene.expect_all_reclaimed().await;
}

/// C11: a slot in which jobs wait is not drained, and one that is spent is; claims go on during all of it.
pub async fn a_slot_is_drained_when_its_jobs_are_taken(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let jobs = scene.enqueue_each("email", &["a", "b"]).await;
    assert_eq!(scene.store().drain().await.expect("drain"), awa_core::store::Drained::default());
    scene.seal_queue_slot().await;
    let drained = scene.store().drain().await.expect("drain");
    assert_eq!((drained.slots, drained.kept.len()), (vec![], 1));
    let kept = scene.kept(RingKind::Queue).await;
    let undrained = KeepReason::WrongState { is: SlotState::Sealed, needs: SlotState::Drained };
    assert_eq!(kept.iter().map(|(_, reason)| *reason).collect::<Vec<_>>(), [undrained]);
    let attempt = scene.claim_one("email").await;
    scene.cancel(&jobs[1..]).await;
    let drained = scene.store().drain().await.expect("drain");
    assert_eq!((drained.slots.len(), drained.kept), (1, vec![]), "a cancelled job does not wait");
    let kept = scene.kept(RingKind::Queue).await;
    assert_eq!(kept.iter().map(|(_, reason)| *reason).collect::<Vec<_>>(), [KeepReason::OpenClaims(1)]);
    scene.complete(&[attempt]).await;
    assert_eq!(scene.kept(RingKind::Queue).await, []);
}

/// An idle ring does not turn, and one that is neither old nor large enough neither; age alone is enough (bug class 44).
pub async fn a_ring_turns_only_when_it_is_due(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    for ring in [RingKind::Queue, RingKind::Claim] {
        assert_eq!(scene.rotate(ring).await, Rotated::Stayed(StayReason::OpenSlotEmpty), "{ring}");
    }
    scene.enqueue_each("email", &["a"]).await;
    scene.claim_one("email").await;
    let hourly = RotationPolicy { min_age: Duration::from_hours(1), max_bytes: u64::MAX };
    for ring in [RingKind::Queue, RingKind::Claim] {
        let rotated = scene.store().rotate(ring, &hourly).await.expect("rotate");
        assert_eq!(rotated, Rotated::Stayed(StayReason::NotDue), "{ring}");
    }
    scene.pass(Duration::from_secs(3601)).await;
    for ring in [RingKind::Queue, RingKind::Claim] {
        let rotated = scene.store().rotate(ring, &hourly).await.expect("rotate");
        assert!(matches!(rotated, Rotated::Opened(..)), "{ring}: {rotated:?}");
    }
}

/// C3, C11: the closure of an attempt whose claim was reclaimed long ago is stale.
pub async fn a_receipt_from_a_reclaimed_slot_is_stale(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    scene.enqueue_each("email", &["a"]).await;
    let old = scene.claim_one("email").await;
    scene.complete(std::slice::from_ref(&old)).await;
    scene.wrap_twice(&NO_HISTORY).await;
    for end in scene.every_end() {
        assert_eq!(scene.close_one(&old, end).await, ClosureAnswer::Stale);
    }
    assert_eq!(scene.state(old.receipt.job).await, None);
    let error = ErrorText::new("no longer wanted");
    let answers = scene.store().cancel(&[old.receipt.job], &error).await.expect("cancel");
    assert_eq!(answers, [awa_core::store::Acted::Refused(awa_core::store::Refusal::NotFound)]);
}

/// C11: a paused queue with waiting jobs in old slots keeps the others turning and loses nothing.
pub async fn a_paused_queue_does_not_stop_the_others(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email", "video"]).await;
    scene.store().set_paused(&queue("video"), true).await.expect("set_paused");
    let held = scene.enqueue_each("video", &["held"]).await;
    for round in 0..2 * usize::from(scene.slots(RingKind::Queue)) {
        let label = round.to_string();
        scene.enqueue_each("email", &[&label]).await;
        let jobs = scene.claim("email", 10).await;
        assert_eq!(labels(&jobs), [label]);
        scene.complete(&jobs).await;
        scene.turn(&NO_HISTORY).await;
    }
    scene.expect(&[(held[0], JobState::Ready)]).await;
    scene.store().set_paused(&queue("video"), false).await.expect("set_paused");
    let jobs = scene.claim("video", 10).await;
    assert_eq!(labels(&jobs), ["held"]);
    scene.complete(&jobs).await;
    scene.expect_all_reclaimed().await;
}
