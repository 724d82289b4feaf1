//! Enqueueing alone; nobody works.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Result;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::Measured;
use crate::args::Args;
use crate::peer::{Producer, Queue};
use crate::plan::Plan;
use crate::server::Server;

/// One job per call over `connections` connections, for as long as the plan says.
pub(super) async fn single(server: &Server, queue: &dyn Queue, plan: &Plan, connections: usize) -> Result<Measured> {
    let (gate, next) = (Arc::new(Barrier::new(connections + 1)), Arc::new(AtomicU64::new(0)));
    let mut producers = JoinSet::new();
    for _ in 0..connections {
        let (mut producer, gate, next) = (queue.producer().await?, Arc::clone(&gate), Arc::clone(&next));
        let length = plan.length;
        // The first call of a connection also prepares its statement; it belongs to nobody's figure.
        producer.enqueue_one(&Args::new(next.fetch_add(1, Ordering::Relaxed))).await?;
        producers.spawn(async move {
            gate.wait().await;
            let start = Instant::now();
            while start.elapsed() < length {
                producer.enqueue_one(&Args::new(next.fetch_add(1, Ordering::Relaxed))).await?;
            }
            anyhow::Ok(())
        });
    }
    let (before, first) = (server.wal().await?, next.load(Ordering::Relaxed));
    gate.wait().await;
    let start = Instant::now();
    while let Some(ended) = producers.join_next().await {
        ended??;
    }
    let seconds = start.elapsed().as_secs_f64();
    let wal_bytes = server.wal().await?.since(before);
    let all = next.load(Ordering::Relaxed);
    let faults = missing(queue, all).await?;
    Ok(Measured { jobs: all - first, seconds, wal_bytes, latency: None, backlog: None, faults })
}

/// All jobs of the plan, in its batches, from its producers.
pub(super) async fn bulk(server: &Server, queue: &dyn Queue, plan: &Plan) -> Result<Measured> {
    let producers = producers(queue, plan).await?;
    let before = server.wal().await?;
    let start = Instant::now();
    all(producers, plan, None).await?;
    let seconds = start.elapsed().as_secs_f64();
    let wal_bytes = server.wal().await?.since(before);
    let faults = missing(queue, plan.jobs).await?;
    Ok(Measured { jobs: plan.jobs, seconds, wal_bytes, latency: None, backlog: None, faults })
}

/// The producers of the plan.
pub(super) async fn producers(queue: &dyn Queue, plan: &Plan) -> Result<Vec<Box<dyn Producer>>> {
    let mut producers = Vec::with_capacity(plan.producers);
    for _ in 0..plan.producers {
        producers.push(queue.producer().await?);
    }
    Ok(producers)
}

/// Enqueues all jobs of the plan; each batch that is stored is added to `stored`.
pub(super) async fn all(producers: Vec<Box<dyn Producer>>, plan: &Plan, stored: Option<Arc<AtomicU64>>) -> Result<()> {
    let jobs = Args::many(0..plan.jobs);
    let mut batches: Vec<Vec<Vec<Args>>> = producers.iter().map(|_| Vec::new()).collect();
    for (number, batch) in jobs.chunks(plan.batch).enumerate() {
        let whose = number % batches.len();
        batches[whose].push(batch.to_vec());
    }
    let mut tasks = JoinSet::new();
    for (mut producer, batches) in producers.into_iter().zip(batches) {
        let stored = stored.clone();
        tasks.spawn(async move {
            for batch in batches {
                producer.enqueue_many(&batch).await?;
                if let Some(stored) = &stored {
                    stored.fetch_add(batch.len() as u64, Ordering::Relaxed);
                }
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

async fn missing(queue: &dyn Queue, enqueued: u64) -> Result<Vec<String>> {
    let waiting = queue.waiting().await?;
    Ok(if waiting == enqueued { vec![] } else { vec![format!("LOST: {waiting} of {enqueued} jobs wait")] })
}
