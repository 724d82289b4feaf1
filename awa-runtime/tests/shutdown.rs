//! A worker ends in order and in time, whatever its handlers and its store do.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use awa_runtime::core::{AttemptEnd, StoreErrorKind};
use awa_runtime::{CancelCause, Interrupted, JobContext, Outcome, QueueConfig, RuntimeError};
use common::fake_store::Reply;
use common::{CountsDrops, FakeStore, Numbered, Running, builder, until};
use tokio::sync::Notify;
use tokio::time::Instant;

const GRACE: Duration = Duration::from_secs(10);
const HANDED_BACK: AttemptEnd = AttemptEnd::Release { delay: Duration::ZERO };

#[tokio::test(start_paused = true)]
async fn what_ends_within_the_grace_period_is_recorded_and_what_does_not_is_handed_back_and_listed() {
    let store = FakeStore::new();
    store.put_numbered(8);
    let config = QueueConfig::default().concurrency(6).prefetch(2);
    let worker = Running::start(builder(&store, config).shutdown_grace(GRACE).handler(
        |job: Numbered, _: JobContext| async move {
            let seconds = if job.number < 3 { 5 } else { 3600 };
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok(Outcome::Done)
        },
    ));
    until("eight are claimed", || store.open() == 8).await;
    let report = worker.stop().await;
    assert_eq!(report.returned, 2, "two had not been started");
    let abandoned: Vec<i64> = report.abandoned.iter().map(|attempt| attempt.job.get()).collect();
    assert_eq!(abandoned, [4, 5, 6]);
    assert_eq!((store.completed(), store.open(), report.unconfirmed), (3, 0, 0));
    assert_eq!(store.ends().iter().filter(|end| **end == HANDED_BACK).count(), 5);
    assert!(report.took <= GRACE + Duration::from_secs(1), "{:?}", report.took);
    assert!(report.retired && store.calls("retire").len() == 1);
    assert_eq!(report.stats.in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn jobs_that_were_not_started_are_handed_back_at_once() {
    let store = FakeStore::new();
    store.put_numbered(3);
    let config = QueueConfig::default().concurrency(1).prefetch(2);
    let worker = Running::start(builder(&store, config).handler(|_: Numbered, _: JobContext| async {
        tokio::time::sleep(Duration::from_secs(20)).await;
        Ok(Outcome::Done)
    }));
    until("three are claimed", || store.open() == 3).await;
    let stopped = Instant::now();
    let end = tokio::spawn(worker.stop());
    until("two are back", || store.ends().len() == 2).await;
    assert!(stopped.elapsed() < Duration::from_millis(50));
    assert_eq!(end.await.unwrap().stats.completed, 1);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_stops_on_demand_is_not_charged() {
    let store = FakeStore::new();
    store.put_numbered(3);
    let worker =
        Running::start(builder(&store, QueueConfig::default()).handler(|job: Numbered, cx: JobContext| async move {
            match job.number {
                // Listens, and gives up with an error of its own.
                0 => cx.until_cancelled().await,
                // Says so itself.
                1 => {
                    tokio::time::sleep(Duration::from_secs(2)).await;
                    return Err(Interrupted.into());
                }
                // Never listened: its error is an error.
                _ => tokio::time::sleep(Duration::from_secs(2)).await,
            }
            Err("stopped".into())
        }));
    until("all run", || store.open() == 3).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let report = worker.stop().await;
    assert_eq!(store.ends_of(1), [HANDED_BACK]);
    assert_eq!(store.ends_of(2), [HANDED_BACK]);
    assert!(matches!(&store.ends_of(3)[..], [AttemptEnd::Retry { .. }]));
    assert!(report.took < Duration::from_secs(3), "nothing waits for the grace period: {:?}", report.took);
}

#[tokio::test(start_paused = true)]
async fn handlers_hear_of_the_shutdown_at_once() {
    let store = FakeStore::new();
    store.put_numbered(1);
    let cause = Arc::new(std::sync::Mutex::new(None));
    let heard = Arc::clone(&cause);
    let worker = Running::start(builder(&store, QueueConfig::default()).handler(move |_: Numbered, cx: JobContext| {
        let heard = Arc::clone(&heard);
        async move {
            cx.cancellation().cancelled().await;
            *heard.lock().unwrap() = cx.cancelled();
            Ok(Outcome::Done)
        }
    }));
    until("it runs", || store.open() == 1).await;
    worker.stop().await;
    assert_eq!(*cause.lock().unwrap(), Some(CancelCause::Shutdown));
    assert_eq!(store.completed(), 1, "a result within the grace period counts");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_delays_the_end_by_a_second_at_most() {
    let store = FakeStore::new();
    store.put_numbered(4);
    let worker = Running::start(
        builder(&store, QueueConfig::default())
            .shutdown_grace(GRACE)
            .handler(|_: Numbered, _: JobContext| async { Ok(Outcome::Done) }),
    );
    store.fail("close", Some(StoreErrorKind::Unavailable));
    until("a flush has failed", || !store.calls("close").is_empty()).await;
    for operation in ["claim", "beat", "retire", "are_open", "open_attempts"] {
        store.fail(operation, Some(StoreErrorKind::Unavailable));
    }
    let report = worker.stop().await;
    assert_eq!((report.unconfirmed, report.retired), (4, false));
    assert!(report.took <= GRACE + Duration::from_secs(1), "{:?}", report.took);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_comes_back_within_the_grace_period_gets_every_end() {
    let store = FakeStore::new();
    store.put_numbered(4);
    let worker = Running::start(
        builder(&store, QueueConfig::default())
            .shutdown_grace(GRACE)
            .handler(|_: Numbered, _: JobContext| async { Ok(Outcome::Done) }),
    );
    store.fail("close", Some(StoreErrorKind::Unavailable));
    until("a flush has failed", || !store.calls("close").is_empty()).await;
    let end = tokio::spawn(worker.stop());
    tokio::time::sleep(GRACE / 2).await;
    assert!(!end.is_finished());
    store.fail("close", None);
    let report = end.await.unwrap();
    assert_eq!((report.unconfirmed, report.stats.completed, report.retired), (0, 4, true));
    assert!(report.took < GRACE, "{:?}", report.took);
}

#[tokio::test(start_paused = true)]
async fn jobs_of_a_claim_under_way_at_the_signal_are_handed_back() {
    let store = FakeStore::new();
    let answer = Arc::new(Notify::new());
    let (sent, mut first) = (Arc::clone(&answer), true);
    store.put_numbered(5);
    store.on_claim(Box::new(
        move |_| {
            if std::mem::take(&mut first) { Reply::When(Arc::clone(&sent)) } else { Reply::AtOnce }
        },
    ));
    let ran = Arc::new(AtomicBool::new(false));
    let runs = Arc::clone(&ran);
    let worker = Running::start(builder(&store, QueueConfig::default()).handler(move |_: Numbered, _: JobContext| {
        runs.store(true, Ordering::SeqCst);
        async { Ok(Outcome::Done) }
    }));
    until("the claim is committed", || store.open() == 5).await;
    let end = tokio::spawn(worker.stop());
    tokio::time::sleep(Duration::from_secs(1)).await;
    answer.notify_one();
    let report = end.await.unwrap();
    assert_eq!((report.returned, store.open(), report.unconfirmed), (5, 0, 0));
    assert!(!ran.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_future_is_dropped_starts_nothing_more() {
    let store = FakeStore::new();
    store.put_numbered(40);
    let (dropped, started) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (drops, starts) = (Arc::clone(&dropped), Arc::clone(&started));
    let config = QueueConfig::default().concurrency(10).prefetch(10);
    let worker = Running::start(builder(&store, config).handler(move |_: Numbered, _: JobContext| {
        starts.fetch_add(1, Ordering::SeqCst);
        let guard = CountsDrops(Arc::clone(&drops));
        async move {
            let _guard = guard;
            std::future::pending::<()>().await;
            Ok(Outcome::Done)
        }
    }));
    until("ten run", || started.load(Ordering::SeqCst) == 10).await;
    worker.kill().await;
    until("ten are dropped", || dropped.load(Ordering::SeqCst) == 10).await;
    let calls = store.calls("beat").len() + store.calls("claim").len();
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(store.calls("beat").len() + store.calls("claim").len(), calls, "no sign of life after the end");
    assert_eq!((started.load(Ordering::SeqCst), store.ends().len()), (10, 0), "rescue finds them");
}

#[tokio::test(start_paused = true)]
async fn a_worker_can_be_stopped_before_its_store_appears() {
    let store = FakeStore::new();
    store.fail("beat", Some(StoreErrorKind::Unavailable));
    let worker = Running::start(
        builder(&store, QueueConfig::default()).handler(|_: Numbered, _: JobContext| async { Ok(Outcome::Done) }),
    );
    tokio::time::sleep(Duration::from_secs(5)).await;
    let report = worker.stop().await;
    assert!(report.took <= Duration::from_secs(1), "{:?}", report.took);
    assert!(store.calls("claim").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_store_that_appears_late_is_waited_for_and_one_that_is_not_set_up_is_an_error() {
    let store = FakeStore::new();
    store.put_numbered(1);
    store.fail("beat", Some(StoreErrorKind::Unavailable));
    store.fail("open_queue", Some(StoreErrorKind::Unavailable));
    let make =
        || builder(&store, QueueConfig::default()).handler(|_: Numbered, _: JobContext| async { Ok(Outcome::Done) });
    let worker = Running::start(make());
    tokio::time::sleep(Duration::from_mins(1)).await;
    let attempts = store.calls("beat").len();
    assert!((6..40).contains(&attempts), "{attempts} attempts in a minute");
    store.fail("beat", None);
    store.fail("open_queue", None);
    let back = Instant::now();
    until("the job is done", || store.completed() == 1).await;
    assert!(back.elapsed() < Duration::from_secs(21), "{:?}", back.elapsed());
    worker.stop().await;

    store.fail("beat", Some(StoreErrorKind::NotReady));
    let refused = make().build().unwrap().run_until(std::future::pending()).await;
    assert!(matches!(refused, Err(RuntimeError::Store(error)) if error.kind() == StoreErrorKind::NotReady));
}
