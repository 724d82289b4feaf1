//! The ends of attempts reach the store, whatever it does meanwhile.

mod common;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use awa_runtime::core::{AttemptEnd, ClosureAnswer, StoreError, StoreErrorKind};
use awa_runtime::{JobContext, Outcome, QueueConfig};
use common::{FakeStore, Numbered, Running, builder, until};
use tokio::time::Instant;

fn error(kind: StoreErrorKind) -> StoreError {
    StoreError::new(kind, "close", "fails by the script")
}

#[tokio::test(start_paused = true)]
async fn ends_outlast_an_outage_of_thirty_seconds_without_running_a_handler_twice() {
    for kind in [StoreErrorKind::Unavailable, StoreErrorKind::Denied, StoreErrorKind::NotReady] {
        let store = FakeStore::new();
        store.put_numbered(500);
        store.fail("close", Some(kind));
        let runs = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&runs);
        let config = QueueConfig::default().concurrency(10).prefetch(0);
        let worker =
            Running::start(builder(&store, config).max_unconfirmed(50).flush_at(20).handler(move |_: Numbered, _| {
                counted.fetch_add(1, Ordering::SeqCst);
                async { Ok(Outcome::Done) }
            }));
        tokio::time::sleep(Duration::from_secs(30)).await;
        let ran = runs.load(Ordering::SeqCst);
        assert!((50..=70).contains(&ran), "claims stop above the bound; {ran} handlers ran");
        assert_eq!(store.completed(), 0);
        let calls = store.calls("close").len();
        assert!(calls < 50, "{calls} calls in thirty seconds of outage");
        store.fail("close", None);
        until("all jobs complete", || store.completed() == 500).await;
        assert_eq!(runs.load(Ordering::SeqCst), 500, "no handler ran twice");
        let report = worker.stop().await;
        assert_eq!((report.stats.completed, report.stats.stale, report.unconfirmed), (500, 0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_runs_no_handler_twice() {
    let store = FakeStore::new();
    store.put_numbered(100);
    let runs = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&runs);
    let (seen, again) = (Arc::downgrade(&store), Mutex::new(0));
    store.on_close(Box::new(move |_| {
        let _ = &seen;
        let mut calls = again.lock().unwrap();
        *calls += 1;
        // Every second answer is lost, before anything was written.
        (*calls % 2 == 1).then(|| Err(error(StoreErrorKind::Unavailable)))
    }));
    let worker = Running::start(builder(&store, QueueConfig::default()).flush_at(10).handler(move |_: Numbered, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok(Outcome::Done) }
    }));
    until("all jobs complete", || store.completed() == 100).await;
    assert_eq!(runs.load(Ordering::SeqCst), 100);
    worker.stop().await;
}

#[tokio::test(start_paused = true)]
async fn one_end_that_is_refused_keeps_no_other_back() {
    for kind in [StoreErrorKind::Refused, StoreErrorKind::Contended, StoreErrorKind::Internal, StoreErrorKind::Corrupt]
    {
        let store = FakeStore::new();
        store.put_numbered(100);
        store.on_close(Box::new(move |closures| {
            closures.iter().any(|closure| closure.receipt.job.get() == 37).then(|| Err(error(kind)))
        }));
        let config = QueueConfig::default().concurrency(100);
        let worker = Running::start(
            builder(&store, config)
                .shutdown_grace(Duration::ZERO)
                .handler(|_: Numbered, _| async { Ok(Outcome::Done) }),
        );
        until("the others complete", || store.completed() == 99).await;
        assert_eq!((store.open(), store.claims_of(37)), (1, 1));
        tokio::time::sleep(Duration::from_mins(1)).await;
        let calls = store.calls("close");
        let lonely = calls.iter().filter(|call| call.1 == 1).count();
        assert!((10..200).contains(&lonely), "it is sent again, and not in a hot loop: {lonely} times a minute");
        assert!(calls.len() < 250, "{} calls", calls.len());
        let report = worker.stop().await;
        assert_eq!(report.unconfirmed, 1, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_that_meets_an_open_transaction_is_sent_again_when_that_ends() {
    let store = FakeStore::new();
    store.put_numbered(10);
    let until_free = Instant::now() + Duration::from_secs(20);
    store.on_close(Box::new(move |closures| {
        let blocked = closures.len() == 1 && closures[0].receipt.job.get() == 5 && Instant::now() < until_free;
        let blocked = blocked || (closures.len() > 1 && Instant::now() < until_free);
        // The whole call waits for one lock; alone, the answer says so.
        blocked.then(|| match closures.len() {
            1 => Ok(vec![ClosureAnswer::Contended]),
            _ => Err(error(StoreErrorKind::Contended)),
        })
    }));
    let worker =
        Running::start(builder(&store, QueueConfig::default()).handler(|_: Numbered, _| async { Ok(Outcome::Done) }));
    until("nine complete", || store.completed() == 9).await;
    assert!(Instant::now() < until_free);
    until("the tenth completes", || store.completed() == 10).await;
    assert!(Instant::now() >= until_free);
    let report = worker.stop().await;
    assert_eq!((report.stats.completed, report.stats.in_flight, report.stats.stale), (10, 0, 0));
    assert_eq!(store.claims_of(5), 1, "its end was kept meanwhile");
}

#[tokio::test(start_paused = true)]
async fn a_result_that_the_store_refuses_fails_its_job_without_running_it_again() {
    let store = FakeStore::new();
    store.put_numbered(3);
    store.on_close(Box::new(|closures| {
        let too_wide = closures.iter().any(|closure| matches!(closure.end, AttemptEnd::CompleteWith { .. }));
        too_wide.then(|| Err(error(StoreErrorKind::Refused)))
    }));
    let worker = Running::start(builder(&store, QueueConfig::default()).handler(|job: Numbered, _| async move {
        Ok(if job.number == 1 { Outcome::done_with("wide") } else { Outcome::Done })
    }));
    until("all have ended", || store.ends().len() == 3).await;
    let ends = store.ends_of(2);
    assert!(matches!(&ends[..], [AttemptEnd::Fail { error }] if error.as_str().contains("refused")), "{ends:?}");
    assert_eq!(store.claims_of(2), 1);
    worker.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_or_miscounts_loses_no_end() {
    let store = FakeStore::new();
    store.put_numbered(20);
    store.panic_once("close");
    let mut first = true;
    store.on_close(Box::new(move |_| std::mem::take(&mut first).then(|| Ok(Vec::new()))));
    let worker =
        Running::start(builder(&store, QueueConfig::default()).handler(|_: Numbered, _| async { Ok(Outcome::Done) }));
    until("all complete", || store.completed() == 20).await;
    assert_eq!(worker.stop().await.stats.completed, 20);
}

#[tokio::test(start_paused = true)]
async fn an_end_is_sent_at_once_when_nothing_else_runs_and_in_company_otherwise() {
    let store = FakeStore::new();
    store.put_numbered(64);
    let config = QueueConfig::default().concurrency(64);
    let worker = Running::start(builder(&store, config).handler(|_: Numbered, _: JobContext| async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(Outcome::Done)
    }));
    until("all complete", || store.completed() == 64).await;
    let sizes: Vec<usize> = store.calls("close").into_iter().map(|call| call.1).collect();
    assert_eq!(sizes, [64], "one call for all that end together");
    worker.stop().await;
}
