//! What the scenarios share: a store that plays by a script, and handlers that are told when to end.

#![allow(dead_code, unreachable_pub, missing_docs)] // each test binary uses its own part

pub mod fake_store;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use awa_runtime::{Job, QueueConfig, ShutdownReport, StatsHandle, Worker, WorkerBuilder};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub use fake_store::FakeStore;

/// A job with a number.
#[derive(Serialize, Deserialize, Job, Debug)]
#[job(kind = "numbered")]
pub struct Numbered {
    pub number: u32,
}

/// Counts how often it is dropped.
pub struct CountsDrops(pub Arc<AtomicU32>);

impl Drop for CountsDrops {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A worker on the fake store, on the caller's runtime, so that a paused clock governs all of it. No maintenance.
pub fn builder(store: &Arc<FakeStore>, queue: QueueConfig) -> WorkerBuilder {
    Worker::builder(store.clone()).queue("default", queue).maintenance(false).own_threads(0)
}

/// A worker that runs in the background until it is stopped.
pub struct Running {
    stop: oneshot::Sender<()>,
    end: JoinHandle<ShutdownReport>,
    pub stats: StatsHandle,
}

impl Running {
    pub fn start(builder: WorkerBuilder) -> Self {
        let worker = builder.build().unwrap();
        let stats = worker.stats();
        let (stop, stopped) = oneshot::channel();
        let end =
            tokio::spawn(
                async move { worker.run_until(async { drop(stopped.await) }).await.expect("the worker runs") },
            );
        Self { stop, end, stats }
    }

    pub async fn stop(self) -> ShutdownReport {
        let _ = self.stop.send(());
        self.end.await.unwrap()
    }

    /// Ends the worker at once, as a dropped future does.
    pub async fn kill(self) {
        self.end.abort();
        let _ = self.end.await;
    }
}

/// Lets the paused clock run until `condition` holds. Fails after an hour of it.
pub async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = tokio::time::Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_hours(1), "{what}: not within an hour");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
