//! Producers and workers together, both as fast as they can.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::time::sleep;

use super::{Measured, enqueue, watch};
use crate::peer::Queue;
use crate::plan::Plan;
use crate::runs::Runs;
use crate::server::Server;

/// From the first enqueue to the durable end of the last job.
pub(super) async fn measure(server: &Server, queue: &dyn Queue, plan: &Plan) -> Result<Measured> {
    let producers = enqueue::producers(queue, plan).await?;
    let runs = Arc::new(Runs::new(plan.jobs));
    let (stored, deepest) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let crew = queue.work(Arc::clone(&runs)).await?;
    let sampler = tokio::spawn({
        let (runs, stored, deepest) = (Arc::clone(&runs), Arc::clone(&stored), Arc::clone(&deepest));
        async move {
            loop {
                let waiting = stored.load(Ordering::Relaxed).saturating_sub(runs.distinct());
                deepest.fetch_max(waiting, Ordering::Relaxed);
                sleep(Duration::from_millis(5)).await;
            }
        }
    });
    let before = server.wal().await?;
    let start = Instant::now();
    let enqueued = enqueue::all(producers, plan, Some(stored)).await;
    let watched = match enqueued {
        Ok(()) => watch::until_done(queue, &runs, plan.jobs, plan).await,
        Err(error) => Err(error),
    };
    sampler.abort();
    let wal_bytes = server.wal().await?.since(before);
    crew.stop().await?;
    let mut watched = watched?;
    watch::audit(queue, &runs, plan.jobs, &mut watched.faults).await?;
    let seconds = watched.at.saturating_duration_since(start).as_secs_f64();
    let backlog = Some(deepest.load(Ordering::Relaxed));
    Ok(Measured { jobs: runs.distinct(), seconds, wal_bytes, latency: None, backlog, faults: watched.faults })
}
