//! Taking in jobs.

use std::time::Duration;

use awa_core::job::MaxAttempts;
use awa_core::store::DeferredReason;
use awa_core::{JobKind, JobState, NewJob, Priority, RunAt};

use crate::Subject;
use crate::scene::{Scene, ids, job, json, labels, queue};

/// C8: answers come in input order, and ids rise with it. Guards against ids assumed contiguous or handed out out of
/// order between paths (bug class 29).
pub async fn ids_rise_with_the_order_of_the_input(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let first = scene.enqueue(&[job("email", "a"), job("email", "b"), job("email", "c")]).await;
    let second = scene.enqueue(&[job("email", "d")]).await;
    let all = [first, second].concat();
    assert!(all.is_sorted_by(|a, b| a < b), "{all:?}");
    let jobs = scene.claim("email", 10).await;
    assert_eq!((ids(&jobs), labels(&jobs)), (all, ["a", "b", "c", "d"].map(str::to_owned).to_vec()));
}

/// C8: nothing in, nothing out.
pub async fn an_empty_batch_is_answered_with_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    assert_eq!(scene.enqueue(&[]).await, []);
    assert!(scene.agree().await.is_empty());
}

/// C8, C6: one call may mix queues, priorities and times; each job lands in its own lane. Guards against a lane or a
/// priority taken from the first job of a batch (bug classes 34, 54).
pub async fn one_batch_may_mix_queues_priorities_and_times(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email", "video"]).await;
    let later = RunAt::after(Duration::from_hours(1)).expect("an hour is allowed");
    let all = scene
        .enqueue(&[
            job("video", "bulk").with_priority(Priority::BULK),
            job("email", "plain"),
            job("video", "later").with_run_at(later),
            job("video", "urgent").with_priority(Priority::URGENT),
        ])
        .await;
    assert!(all.is_sorted_by(|a, b| a < b), "{all:?}");
    scene.expect(&[(all[0], JobState::Ready), (all[1], JobState::Ready), (all[2], JobState::Deferred)]).await;
    assert_eq!(labels(&scene.claim("video", 10).await), ["urgent", "bulk"]);
    assert_eq!(labels(&scene.claim("email", 10).await), ["plain"]);
}

/// C2: everything that was enqueued comes out as it went in, to the byte, in the claim and in the view. Guards against
/// JSON that is rewritten and fields that one path forgets (bug classes 87, 137, 138).
pub async fn a_job_comes_out_as_it_went_in(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["odd:queue/ü#1"]).await;
    let args = json("{\"b\": 1e400, \"a\":\t[9223372036854775808, -0.0, \"\\u00e9\\\\ \\t,}{'\\\"$1;\"], \"b\": null}");
    let metadata = json(" {\"trace\":\"00-ab-01\"}");
    let kind = JobKind::new("send.email:v2").expect("the name is good");
    let new = NewJob::new(queue("odd:queue/ü#1"), kind.clone(), args.clone())
        .with_metadata(metadata.clone())
        .with_priority(Priority::BULK)
        .with_max_attempts(MaxAttempts::new(32_767).expect("the largest budget"));
    let id = scene.enqueue(std::slice::from_ref(&new)).await[0];
    let claimed = scene.claim_one("odd:queue/ü#1").await;
    let view = scene.view(id).await;
    assert_eq!((claimed.receipt.job, view.id), (id, id));
    assert_eq!((&claimed.queue, &view.queue), (new.queue(), new.queue()));
    assert_eq!((&claimed.kind, &view.kind), (&kind, &kind));
    assert_eq!((&claimed.args, &view.args), (&args, &args));
    assert_eq!((&claimed.metadata, &view.metadata), (&Some(metadata.clone()), &Some(metadata)));
    assert_eq!((claimed.priority, view.priority), (Priority::BULK, Priority::BULK));
    assert_eq!((claimed.max_attempts, view.max_attempts), (new.max_attempts(), new.max_attempts()));
    assert_eq!((claimed.attempt, view.attempt), (1, 1));
    assert_eq!((claimed.receipt.run_lease.get(), view.run_lease.get()), (1, 1));
    assert_eq!(claimed.created_at, view.created_at);
    assert_eq!(view.claimed_at, Some(claimed.claimed_at));
    assert!(claimed.created_at <= claimed.claimed_at, "both times are of the store's clock");
}

/// C12: a job is not handed out before its time, and is with the first promotion after it. Guards against a delay that
/// one path ignores (bug class 72).
pub async fn a_scheduled_job_waits_for_its_time(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let hour = Duration::from_hours(1);
    let id = scene.enqueue(&[job("email", "later").with_run_at(RunAt::after(hour).expect("allowed"))]).await[0];
    let view = scene.view(id).await;
    assert_eq!(view.deferred, Some(DeferredReason::Scheduled));
    assert_eq!(view.run_at, Some(view.created_at.saturating_add(hour)));
    scene.pass(hour.checked_sub(Duration::from_mins(1)).unwrap()).await;
    assert_eq!((scene.promote().await, scene.claim("email", 1).await), (0, vec![]));
    scene.pass(Duration::from_secs(61)).await;
    assert_eq!(scene.promote().await, 1);
    scene.expect(&[(id, JobState::Ready)]).await;
    let claimed = scene.claim_one("email").await;
    assert_eq!((claimed.receipt.job, claimed.attempt, claimed.created_at), (id, 1, view.created_at));
}

/// C12: a moment that is past, and a delay of zero, mean now; a moment in the future waits for it by the store's clock.
pub async fn a_moment_that_is_past_means_now(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let first = scene.enqueue(&[job("email", "first")]).await[0];
    let now = scene.view(first).await.created_at;
    let at = |moment| RunAt::at(moment).expect("the moment is in range");
    let all = scene
        .enqueue(&[
            job("email", "epoch").with_run_at(at(awa_core::Timestamp::EPOCH)),
            job("email", "past").with_run_at(at(now.saturating_sub(Duration::from_hours(1)))),
            job("email", "zero").with_run_at(RunAt::after(Duration::ZERO).expect("allowed")),
            job("email", "future").with_run_at(at(now.saturating_add(Duration::from_hours(1)))),
        ])
        .await;
    assert_eq!(labels(&scene.claim("email", 10).await), ["first", "epoch", "past", "zero"]);
    assert_eq!(scene.view(all[3]).await.run_at, Some(now.saturating_add(Duration::from_hours(1))));
}

/// C12: the farthest moment a caller may name is kept, not overflowed (bug class 74).
pub async fn extreme_times_are_kept(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let last = awa_core::Timestamp::from_micros(awa_core::Timestamp::MAX.as_micros() - 1);
    let millennium = Duration::from_hours(1_000 * 365 * 24);
    let all = scene
        .enqueue(&[
            job("email", "last").with_run_at(RunAt::at(last).expect("in range")),
            job("email", "millennium").with_run_at(RunAt::after(millennium).expect("in range")),
        ])
        .await;
    assert_eq!(scene.view(all[0]).await.run_at, Some(last));
    let view = scene.view(all[1]).await;
    assert_eq!(view.run_at, Some(view.created_at.saturating_add(millennium)));
    assert_eq!(scene.promote().await, 0);
}
