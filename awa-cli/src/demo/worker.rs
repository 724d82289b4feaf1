//! A worker of the demo, the same in a process of its own and in memory.

use std::sync::Arc;
use std::time::Duration;

use awa_core::store::RetentionPolicy;
use awa_core::{QueueName, Store};
use awa_runtime::{MaintenanceConfig, QueueConfig, RetryPolicy, Worker};

use super::gate::Gate;
use super::hash_file;
use crate::failure::Failure;

/// After so long without a sign of life a worker is taken for dead: short, so that the demo is.
pub(super) const STALENESS: Duration = Duration::from_secs(2);
/// The pause between two signs of life.
const HEARTBEAT: Duration = Duration::from_millis(300);
/// Handlers at a time.
const CONCURRENCY: usize = 8;
/// Jobs that are claimed ahead: hashing a small file takes less time than a claim.
const PREFETCH: usize = 64;
/// How long the history is kept: until the results have been compared, however long the demo takes.
const RETENTION: RetentionPolicy = RetentionPolicy::uniform(Duration::from_hours(24), 1 << 40);

/// A worker on `queue` that has not begun to work.
pub(super) fn build(store: Arc<dyn Store>, queue: &QueueName, gate: Gate) -> Result<Worker, Failure> {
    let retry = RetryPolicy::exponential(Duration::from_millis(100), Duration::from_secs(2))?;
    let mut maintenance = MaintenanceConfig::default();
    maintenance.promote_every = Duration::from_millis(100);
    maintenance.rescue_every = Duration::from_millis(500);
    maintenance.retention = RETENTION;
    let config =
        QueueConfig::default().concurrency(CONCURRENCY).prefetch(PREFETCH).poll_interval(Duration::from_millis(200));
    Ok(Worker::builder(store)
        .queue(queue, config)
        .blocking_handler(move |job, cx| {
            gate.pass();
            hash_file::handle(job, cx)
        })
        .heartbeat_interval(HEARTBEAT)
        .staleness(STALENESS)
        .retry(retry)
        .maintenance_config(maintenance)
        .shutdown_grace(Duration::from_secs(10))
        .build()?)
}
