//! Transactions of an application: atomic, invisible until they commit, and in nobody's way.

use std::time::Duration;

use awa_core::ring::RingKind;
use awa_core::{JobState, RunAt};

use crate::Subject;
use crate::rings::NO_HISTORY;
use crate::scene::{Scene, done, job, labels};

/// C9: before its transaction commits a job does not exist for anybody; after that it is there at once.
pub async fn a_job_exists_from_its_commit_on(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let hour = RunAt::after(Duration::from_hours(1)).expect("allowed");
    let mut transaction = scene.begin().await;
    let answers = transaction.enqueue(&[job("email", "now"), job("email", "later").with_run_at(hour)]).await;
    let ids: Vec<_> = answers.expect("enqueue").iter().map(|answer| answer.id()).collect();
    assert!(scene.agree().await.is_empty());
    assert_eq!((scene.state(ids[0]).await, scene.state(ids[1]).await), (None, None));
    assert_eq!((scene.claim("email", 10).await, scene.promote().await), (vec![], 0));
    scene.commit(transaction, &ids).await;
    scene.expect(&[(ids[0], JobState::Ready), (ids[1], JobState::Deferred)]).await;
    assert_eq!(labels(&scene.claim_next("email", 10).await), ["now"]);
}

/// C9: a rollback leaves nothing, and does not disturb what was committed around it (bug class 28).
pub async fn a_rollback_leaves_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    scene.enqueue_each("email", &["a"]).await;
    let hour = RunAt::after(Duration::from_hours(1)).expect("allowed");
    let (mut transaction, _) = scene.begin_with("email", &["never", "never"]).await;
    let answers = transaction.enqueue(&[job("email", "never").with_run_at(hour)]).await.expect("enqueue");
    scene.enqueue_each("email", &["b"]).await;
    assert_eq!(labels(&scene.claim("email", 1).await), ["a"]);
    transaction.rollback().await.expect("rollback");
    scene.enqueue_each("email", &["c"]).await;
    assert_eq!(scene.state(answers[0].id()).await, None);
    assert_eq!(scene.agree().await.len(), 3);
    assert_eq!(labels(&scene.claim("email", 10).await), ["b", "c"]);
}

/// C9: a transaction that is dropped is rolled back.
pub async fn a_dropped_transaction_is_rolled_back(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let (transaction, ids) = scene.begin_with("email", &["never"]).await;
    drop(transaction);
    scene.enqueue_each("email", &["a"]).await;
    assert_eq!(labels(&scene.claim("email", 10).await), ["a"]);
    assert_eq!(scene.state(ids[0]).await, None);
}

/// C10: while a transaction that enqueued stays open, everything else goes on: producers, claims, closures, operators
/// and maintenance (bug classes 22, 26). A call that waits for the transaction never returns here.
pub async fn an_open_transaction_delays_nobody(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let soon = RunAt::after(Duration::from_secs(1)).expect("allowed");
    let mut transaction = scene.begin().await;
    let hung = transaction.enqueue(&[job("email", "hung"), job("new.queue", "hung").with_run_at(soon)]).await;
    let hung: Vec<_> = hung.expect("enqueue").iter().map(|answer| answer.id()).collect();
    let more = scene.enqueue(&[job("email", "a"), job("email", "b"), job("email", "c"), job("new.queue", "d")]).await;
    let scheduled = scene.enqueue(&[job("email", "e").with_run_at(soon)]).await[0];
    let first = scene.claim("email", 1).await;
    assert_eq!(labels(&first), ["a"]);
    scene.complete(&first).await;
    assert_eq!(scene.cancel(&[more[1]]).await, [done(JobState::Ready)]);
    scene.pass(Duration::from_secs(2)).await;
    assert_eq!(scene.promote().await, 1);
    scene.rescue_after_silence(&[]).await;
    scene.seal_queue_slot().await;
    scene.rotate(RingKind::Claim).await;
    scene.reclaim(&NO_HISTORY).await;
    scene.store().tidy().await.expect("tidy");
    scene.expect(&[(more[2], JobState::Ready), (scheduled, JobState::Ready)]).await;
    let rest = scene.claim("email", 10).await;
    assert_eq!(labels(&rest), ["c", "e"]);
    scene.complete(&rest).await;
    scene.store().set_paused(&crate::scene::queue("email"), true).await.expect("set_paused");
    scene.store().set_paused(&crate::scene::queue("email"), false).await.expect("set_paused");
    scene.commit(transaction, &hung).await;
    assert_eq!(labels(&scene.claim_next("email", 10).await), ["hung"]);
    scene.expect(&[(hung[1], JobState::Deferred), (more[3], JobState::Ready)]).await;
}

/// C9: an own transaction of the store is atomic in the same way: the ids of a call are there when it returns.
pub async fn an_enqueue_of_its_own_is_there_when_it_returns(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    for round in 0..20 {
        let id = scene.enqueue(&[job("email", &round.to_string())]).await[0];
        assert_eq!(scene.state(id).await, Some(JobState::Ready));
        assert_eq!(scene.claim_next("email", 1).await[0].receipt.job, id);
    }
}
