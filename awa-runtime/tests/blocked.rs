//! Handlers that block every thread of their runtime delay nothing but themselves. On the real clock, because a blocked
//! thread knows no other.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use awa_runtime::{JobContext, Outcome, QueueConfig, ShutdownReport, Worker};
use common::{FakeStore, Numbered};
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

const BEAT: Duration = Duration::from_millis(50);
const BLOCKED: Duration = Duration::from_millis(1_500);

/// Runs a worker on `runtime` whose handlers block their thread, more of them than there are threads, until `enough`
/// have begun; the store with all calls, and the report.
fn run_blocked(runtime: &Runtime, enough: usize, grace: Duration) -> (Arc<FakeStore>, ShutdownReport) {
    let store = FakeStore::new();
    store.put_numbered(8);
    let begun = Arc::new(AtomicUsize::new(0));
    let begins = Arc::clone(&begun);
    let (signal, stopped) = tokio::sync::oneshot::channel();
    let signal = std::sync::Mutex::new(Some(signal));
    let worker = Worker::builder(store.clone())
        .queue("default", QueueConfig::default().concurrency(8))
        .maintenance(false)
        .heartbeat_interval(BEAT)
        .staleness(Duration::from_secs(1))
        .shutdown_grace(grace)
        .handler(move |_: Numbered, _: JobContext| {
            let nth = begins.fetch_add(1, Ordering::SeqCst) + 1;
            if let Some(signal) = (nth == enough).then(|| signal.lock().unwrap().take()).flatten() {
                let _ = signal.send(());
            }
            async {
                std::thread::sleep(BLOCKED);
                Ok(Outcome::Done)
            }
        })
        .build()
        .unwrap();
    let report = runtime.block_on(worker.run_until(async { drop(stopped.await) })).unwrap();
    assert!(begun.load(Ordering::SeqCst) >= enough);
    (store, report)
}

/// The longest time between two beats.
fn longest_gap(store: &FakeStore) -> Duration {
    let beats: Vec<Instant> = store.calls("beat").into_iter().map(|call| call.0).collect();
    assert!(beats.len() > 20, "{} beats", beats.len());
    beats.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap()
}

#[test]
fn heartbeats_are_on_time_while_handlers_block_every_thread() {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (store, report) = run_blocked(&runtime, 8, Duration::from_secs(30));
    assert!(longest_gap(&store) < Duration::from_millis(700), "{:?}", longest_gap(&store));
    assert_eq!((store.completed(), report.abandoned.len()), (8, 0));
}

#[test]
fn heartbeats_are_on_time_on_a_runtime_of_one_thread() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let (store, _) = run_blocked(&runtime, 2, Duration::from_secs(30));
    assert!(longest_gap(&store) < Duration::from_millis(700), "{:?}", longest_gap(&store));
}

#[test]
fn a_worker_whose_handlers_block_every_thread_ends_in_time_and_hands_their_jobs_back() {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let grace = Duration::from_millis(100);
    let (store, report) = run_blocked(&runtime, 2, grace);
    assert!(report.took < grace + Duration::from_secs(1), "{:?}", report.took);
    assert_eq!((report.abandoned.len(), store.open(), report.unconfirmed), (2, 0, 0), "{report:?}");
    runtime.shutdown_background();
}
