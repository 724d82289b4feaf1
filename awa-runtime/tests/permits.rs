//! A permit is held exactly as long as a handler runs, whatever becomes of it.

mod common;

use std::panic::panic_any;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use awa_runtime::core::AttemptEnd;
use awa_runtime::{JobContext, Outcome, QueueConfig};
use common::{FakeStore, Numbered, Running, builder, until};

/// Counts handlers that run now, and the most at once.
#[derive(Default)]
struct Gauge {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Gauge {
    fn enter(&self) {
        self.most.fetch_max(self.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
    }

    fn leave(&self) {
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_handlers_run_than_the_queue_has_permits() {
    let (store, gauge) = (FakeStore::new(), Arc::new(Gauge::default()));
    store.put_numbered(200);
    let shared = Arc::clone(&gauge);
    let worker = Running::start(builder(&store, QueueConfig::default().concurrency(7)).state(gauge).handler(
        |_: Numbered, cx: JobContext| async move {
            let gauge = cx.state::<Gauge>()?;
            gauge.enter();
            tokio::time::sleep(Duration::from_millis(10)).await;
            gauge.leave();
            Ok(Outcome::Done)
        },
    ));
    until("all jobs complete", || store.completed() == 200).await;
    assert_eq!(shared.most.load(Ordering::SeqCst), 7);
    let report = worker.stop().await;
    assert_eq!((report.stats.completed, report.stats.in_flight, report.unconfirmed), (200, 0, 0));
}

struct PanicsInDrop;

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        panic!("in drop");
    }
}

/// Panics in one of six ways, by its number; every seventh job ends well.
async fn panic_somehow(job: Numbered, _: JobContext) -> awa_runtime::HandlerResult {
    match job.number % 7 {
        0 => panic!("a plain text"),
        1 => panic!("text number {}", job.number),
        2 => panic_any(42_u8),
        3 => {
            tokio::task::yield_now().await;
            panic!("in a later poll");
        }
        4 => {
            let _late = PanicsInDrop;
            Ok(Outcome::Done)
        }
        5 => Err(Box::<dyn std::error::Error + Send + Sync>::from(FailsToPrint).into()),
        _ => Ok(Outcome::Done),
    }
}

#[derive(Debug)]
struct FailsToPrint;

impl std::fmt::Display for FailsToPrint {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("in its text");
    }
}

impl std::error::Error for FailsToPrint {}

#[tokio::test(start_paused = true)]
async fn a_thousand_panics_leave_the_capacity_unchanged() {
    let (store, gauge) = (FakeStore::new(), Arc::new(Gauge::default()));
    store.put_numbered(1_167);
    let running = Arc::clone(&gauge);
    let config = QueueConfig::default().concurrency(4);
    let worker = Running::start(builder(&store, config).state(gauge).handler(panic_somehow).raw_handler(
        "gauge",
        |_, cx: JobContext| async move {
            let gauge = cx.state::<Gauge>()?;
            gauge.enter();
            cx.until_cancelled().await;
            Ok(Outcome::Done)
        },
    ));
    until("every job has ended once", || store.ends().len() >= 1_167).await;
    let stats = worker.stats.read();
    assert_eq!(stats.completed, 166, "every seventh job ends well");
    assert!(stats.panicked >= 1_000, "{stats:?}");
    for (job, message) in [
        (1, "the handler panicked: a plain text"),
        (2, "the handler panicked: text number 1"),
        (3, "the handler panicked: a panic without a text"),
        (4, "the handler panicked: in a later poll"),
        (5, "the handler panicked: in drop"),
        (6, "the handler panicked: in its text"),
    ] {
        let end = store.ends_of(job).remove(0);
        assert!(matches!(&end, AttemptEnd::Retry { error, .. } if error.as_str() == message), "{job}: {end:?}");
    }
    store.put("gauge", (0..9).map(|_| "null".to_owned()));
    until("all permits are in use", || running.now.load(Ordering::SeqCst) == 4).await;
    worker.kill().await;
}

/// Is ready at once, and panics when it is dropped.
struct PanicsWhenDropped;

impl Future for PanicsWhenDropped {
    type Output = awa_runtime::HandlerResult;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(Ok(Outcome::Done))
    }
}

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("too late");
    }
}

#[tokio::test(start_paused = true)]
async fn a_future_that_panics_after_its_result_has_failed() {
    let store = FakeStore::new();
    store.put("late", (0..20).map(|_| "null".to_owned()));
    store.put_numbered(1);
    let config = QueueConfig::default().concurrency(2);
    let worker = Running::start(
        builder(&store, config)
            .raw_handler("late", |_, _| PanicsWhenDropped)
            .handler(|_: Numbered, _| async { Ok(Outcome::Done) }),
    );
    until("the other job has its turn", || store.completed() == 1).await;
    let end = store.ends_of(1).remove(0);
    assert!(
        matches!(&end, AttemptEnd::Retry { error, .. } if error.as_str() == "the handler panicked: too late"),
        "{end:?}"
    );
    worker.kill().await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_takes_no_more_than_the_free_permits_and_the_prefetch() {
    let store = FakeStore::new();
    store.put_numbered(100);
    let config = QueueConfig::default().concurrency(8).prefetch(2);
    let worker = Running::start(builder(&store, config).handler(|_: Numbered, cx: JobContext| async move {
        cx.until_cancelled().await;
        Ok(Outcome::Done)
    }));
    until("the first claim", || store.open() > 0).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(store.open(), 10);
    let sizes: Vec<usize> = store.calls("claim").into_iter().map(|call| call.1).collect();
    assert_eq!(sizes, [10], "one claim, and none while there is no room");
    worker.kill().await;
}

#[tokio::test(start_paused = true)]
async fn arguments_that_do_not_decode_fail_their_attempt_and_no_other() {
    let store = FakeStore::new();
    store.put_numbered(99);
    store.put("numbered", ["{\"number\":\"seven\"}".to_owned()]);
    let worker =
        Running::start(builder(&store, QueueConfig::default()).handler(|_: Numbered, _| async { Ok(Outcome::Done) }));
    until("all have ended once", || store.ends().len() == 100).await;
    assert_eq!(store.completed(), 99);
    let end = store.ends_of(100).remove(0);
    assert!(
        matches!(&end, AttemptEnd::Retry { error, .. }
            if error.as_str().starts_with("the arguments do not fit kind numbered: invalid type")),
        "{end:?}"
    );
    worker.stop().await;
}
