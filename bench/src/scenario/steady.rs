//! A fixed rate: how long until a handler has run the job.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::task::JoinSet;
use tokio::time::sleep_until;

use super::{Latency, Measured, watch};
use crate::args::Args;
use crate::peer::Queue;
use crate::plan::Plan;
use crate::runs::Runs;
use crate::server::Server;

/// Producers that take turns, so that one slow call does not hold up the next ones.
pub(super) const PRODUCERS: usize = 4;
/// What is enqueued in one call: the jobs of so long a time.
const TICK: Duration = Duration::from_millis(5);
/// How long the load goes on before latencies count.
const WARM_UP: Duration = Duration::from_secs(1);

/// Latencies count from the moment in which a call was due, so that a producer that falls behind is not let off.
pub(super) async fn measure(server: &Server, queue: &dyn Queue, plan: &Plan, rate: u64) -> Result<Measured> {
    let ticks = |length: Duration| (length.as_secs_f64() / TICK.as_secs_f64()).round() as u64;
    // Fractions of a job are carried to the next tick.
    let until = move |tick: u64| (tick as f64 * TICK.as_secs_f64() * rate as f64).round() as u64;
    let (all_ticks, first_counted) = (ticks(WARM_UP + plan.length), until(ticks(WARM_UP)));
    let jobs = until(all_ticks);
    let runs = Arc::new(Runs::new(jobs));
    let crew = queue.work(Arc::clone(&runs)).await?;
    let before = server.wal().await?;
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for whose in 0..PRODUCERS as u64 {
        let (mut producer, runs) = (queue.producer().await?, Arc::clone(&runs));
        tasks.spawn(async move {
            for tick in (0..all_ticks).filter(|tick| tick % PRODUCERS as u64 == whose) {
                let due = start + TICK.mul_f64(tick as f64);
                let batch = Args::many(until(tick)..until(tick + 1));
                if batch.is_empty() {
                    continue;
                }
                sleep_until(due.into()).await;
                for job in &batch {
                    runs.sent(job.seq, due);
                }
                producer.enqueue_many(&batch).await?;
            }
            anyhow::Ok(())
        });
    }
    let mut enqueued = Ok(());
    while let Some(ended) = tasks.join_next().await {
        enqueued = enqueued.and(ended?);
    }
    let watched = match enqueued {
        Ok(()) => watch::until_done(queue, &runs, jobs, plan).await,
        Err(error) => Err(error),
    };
    let wal_bytes = server.wal().await?.since(before);
    crew.stop().await?;
    let mut watched = watched?;
    watch::audit(queue, &runs, jobs, &mut watched.faults).await?;
    let seconds = watched.at.saturating_duration_since(start).as_secs_f64();
    let latency = Latency::of(&runs.lags_from(first_counted));
    Ok(Measured { jobs: runs.distinct(), seconds, wal_bytes, latency, backlog: None, faults: watched.faults })
}
