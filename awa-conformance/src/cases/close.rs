//! An attempt ends once, and one item of a batch touches no other.

use std::time::Duration;

use awa_core::attempt::{ErrorText, Receipt};
use awa_core::id::Slot;
use awa_core::{AttemptEnd, BatchId, Closure, ClosureAnswer, JobState, Nonce, ReceiptId};

use crate::Subject;
use crate::scene::{Scene, job, labels, retry_after};

use ClosureAnswer::{Closed, Stale};

/// C4, C7: a closure that is repeated, as after an answer that was lost, is stale and changes nothing, whatever it asks
/// for the second time.
pub async fn an_attempt_closes_once(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let id = scene.enqueue(&[job("email", "a")]).await[0];
    let attempt = scene.claim_one("email").await;
    assert_eq!(scene.close_one(&attempt, AttemptEnd::Complete).await, Closed);
    let before = scene.view(id).await;
    for end in scene.every_end() {
        assert_eq!(scene.close_one(&attempt, end.clone()).await, Stale, "{end:?}");
    }
    assert_eq!(scene.view(id).await, before);
    scene.expect(&[(id, JobState::Completed)]).await;
}

/// C4, C8: of two closures of one attempt in one call, the first one wins.
pub async fn the_first_of_two_closures_in_one_call_wins(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let ids = scene.enqueue(&[job("email", "a"), job("email", "b")]).await;
    let jobs = scene.claim("email", 2).await;
    let answers = scene
        .close(&[
            (&jobs[0], retry_after(Duration::from_mins(1))),
            (&jobs[1], AttemptEnd::Complete),
            (&jobs[0], AttemptEnd::Complete),
            (&jobs[1], AttemptEnd::Complete),
        ])
        .await;
    assert_eq!(answers, [Closed, Closed, Stale, Stale]);
    scene.expect(&[(ids[0], JobState::Deferred), (ids[1], JobState::Completed)]).await;
}

/// C4: of closers that race, one wins, and the job is where the winner said (bug classes 13, 93).
pub async fn of_racing_closers_one_wins(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    for round in 0..8 {
        let id = scene.enqueue(&[job("email", &round.to_string())]).await[0];
        let attempt = scene.claim_one("email").await;
        let ends: Vec<_> = scene.every_end().into_iter().chain(scene.every_end()).collect();
        let closers = ends.iter().map(|end| scene.close_patiently(&attempt, end.clone()));
        let answers = futures::future::join_all(closers).await;
        let winners: Vec<_> = ends.iter().zip(&answers).filter(|(_, answer)| **answer == Closed).collect();
        assert_eq!(winners.len(), 1, "{answers:?}");
        assert_eq!(scene.state(id).await, Some(state_after(winners[0].0)), "{:?} won", winners[0].0);
        scene.cancel(&[id]).await;
    }
    scene.agree().await;
}

/// C3: a receipt of which a part is wrong closes nothing: another nonce (an attempt that was lost in a failover and
/// whose number was given out again), slot, or a batch or member that was never issued.
pub async fn a_receipt_that_is_wrong_anywhere_closes_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let id = scene.enqueue(&[job("email", "a")]).await[0];
    let other = scene.enqueue(&[job("email", "b")]).await[0];
    let attempt = scene.claim_one("email").await;
    let right = attempt.receipt;
    let batch = right.id.batch();
    let wrong = [
        Receipt { nonce: Nonce(right.nonce.get().wrapping_add(1)), ..right },
        Receipt { claim_slot: Slot(right.claim_slot.get() ^ 1), ..right },
        Receipt { claim_slot: Slot(63), ..right },
        Receipt { claim_slot: Slot(u8::MAX), ..right },
        Receipt { id: ReceiptId::new(batch, 2), ..right },
        Receipt { id: ReceiptId::new(batch, ReceiptId::MAX_INDEX), ..right },
        Receipt { id: ReceiptId::new(BatchId(batch.get() + 1_000_000), 1), ..right },
        Receipt { id: ReceiptId::new(BatchId(ReceiptId::MAX_BATCH), 1), ..right },
    ];
    for receipt in wrong {
        for end in scene.every_end() {
            assert_eq!(scene.close_receipt(receipt, end.clone()).await, Stale, "{receipt:?} {end:?}");
        }
    }
    assert_eq!(scene.store().are_open(&wrong).await.expect("are_open"), vec![false; wrong.len()]);
    scene.expect(&[(id, JobState::Running), (other, JobState::Ready)]).await;
    assert_eq!(scene.close_one(&attempt, AttemptEnd::Complete).await, Closed);
}

/// C8: stale and wrong closures among good ones touch no other, and the answers come in input order (bug classes 9, 11).
pub async fn a_bad_closure_touches_no_other(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let new: Vec<_> = (0..9).map(|n| job("email", &n.to_string())).collect();
    let ids = scene.enqueue(&new).await;
    let jobs = scene.claim("email", 9).await;
    scene.cancel(&[ids[2]]).await;
    scene.complete(&jobs[5..6]).await;
    let mut closures: Vec<_> =
        jobs.iter().map(|job| Closure { receipt: job.receipt, end: AttemptEnd::Complete }).collect();
    closures[7].receipt.nonce = Nonce(-1);
    closures[8].end = AttemptEnd::Fail { error: ErrorText::new("boom") };
    let answers = scene.store().close(&closures).await.expect("close");
    assert_eq!(answers, [Closed, Closed, Stale, Closed, Closed, Stale, Closed, Stale, Closed]);
    let states = scene.agree().await;
    let seen: Vec<_> = ids.iter().map(|id| states[id]).collect();
    let mut expected = vec![JobState::Completed; 9];
    (expected[2], expected[7], expected[8]) = (JobState::Cancelled, JobState::Running, JobState::Dead);
    assert_eq!(seen, expected);
}

/// C8: one call may end attempts of many batches, queues and workers, each in its own way.
pub async fn one_call_may_end_attempts_of_many_batches_in_many_ways(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email", "video"]).await;
    let ends = scene.every_end();
    let mut attempts = Vec::new();
    for name in ["email", "video"].into_iter().cycle().take(ends.len()) {
        scene.enqueue_each(name, &["x"]).await;
        attempts.push(scene.claim_one(name).await);
    }
    attempts.reverse();
    let closures: Vec<_> = attempts.iter().zip(&ends).map(|(job, end)| (job, end.clone())).collect();
    assert_eq!(scene.close(&closures).await, vec![Closed; ends.len()]);
    let states = scene.agree().await;
    for (attempt, end) in attempts.iter().zip(&ends) {
        assert_eq!(states[&attempt.receipt.job], state_after(end), "{end:?}");
    }
}

/// C8: a call without closures is answered with nothing.
pub async fn an_empty_call_is_answered_with_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    assert_eq!(scene.close(&[]).await, []);
    assert_eq!(scene.store().are_open(&[]).await.expect("are_open"), Vec::<bool>::new());
}

/// C4: members of one batch end independently, in any order and pieces.
pub async fn members_of_a_batch_end_independently(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let new: Vec<_> = (0..100).map(|n| job("email", &n.to_string())).collect();
    scene.enqueue(&new).await;
    let jobs = scene.claim("email", 100).await;
    assert_eq!(labels(&jobs).len(), 100);
    let (odd, even): (Vec<_>, Vec<_>) = jobs.into_iter().enumerate().partition(|(n, _)| n % 2 == 1);
    let strip = |part: Vec<(usize, _)>| part.into_iter().map(|(_, job)| job).collect::<Vec<_>>();
    let (odd, even) = (strip(odd), strip(even));
    scene.complete(&odd).await;
    scene.complete(&even[10..]).await;
    assert!(scene.agree().await.values().filter(|state| **state == JobState::Running).count() == 10);
    scene.complete(&even[..10]).await;
    assert!(scene.agree().await.values().all(|state| *state == JobState::Completed));
}

/// Where a job is whose attempt ended this way, with attempts left.
pub(crate) fn state_after(end: &AttemptEnd) -> JobState {
    match end {
        AttemptEnd::Complete | AttemptEnd::CompleteWith { .. } => JobState::Completed,
        AttemptEnd::Release { delay } if delay.is_zero() => JobState::Ready,
        AttemptEnd::Retry { .. } | AttemptEnd::Snooze { .. } | AttemptEnd::Release { .. } => JobState::Deferred,
        AttemptEnd::Fail { .. } => JobState::Dead,
        AttemptEnd::Park { .. } => JobState::Waiting,
        AttemptEnd::Cancel { .. } => JobState::Cancelled,
        other => panic!("the suite does not know where {other:?} leads"),
    }
}
