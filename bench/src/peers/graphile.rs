//! `graphile_worker`, with its local queue and batched completion.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use async_trait::async_trait;
use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, TaskHandler, Worker, WorkerContext, WorkerOptions, WorkerUtils,
};
use serde::{Deserialize, Serialize};
use sqlx::postgres::{PgPool, PgPoolOptions};
use tokio::task::JoinHandle;

use crate::args::Args;
use crate::peer::{Crew, Peer, Producer, Queue};
use crate::runs::Runs;
use crate::server::Server;
use crate::versions;

const SCHEMA: &str = "graphile_worker";
const CONCURRENCY: usize = 500;
const LOCAL_QUEUE: usize = 5_000;
const DELAY: Duration = Duration::from_millis(5);
const CONNECTIONS: u32 = 20;

#[derive(Clone, Serialize, Deserialize)]
struct BenchJob {
    seq: u64,
    note: String,
}

#[derive(Clone, Debug)]
struct Book(Arc<Runs>);

impl TaskHandler for BenchJob {
    const IDENTIFIER: &'static str = "bench";

    async fn run(self, context: WorkerContext) -> impl IntoTaskHandlerResult {
        match context.get_ext::<Book>() {
            Some(book) => {
                book.0.ran(self.seq);
                Ok(())
            }
            None => Err("the worker was started without its book".to_owned()),
        }
    }
}

/// The published crate.
#[derive(Debug)]
pub(super) struct Graphile;

#[async_trait]
impl Peer for Graphile {
    fn name(&self) -> &'static str {
        "graphile"
    }

    fn version(&self) -> String {
        format!("graphile_worker {}", versions::locked("graphile_worker"))
    }

    fn settings(&self) -> &'static str {
        "as in its own throughput benchmark: concurrency 500, local_queue of 5,000, complete_job_batch_delay 5 ms, \
         poll_interval 5 ms; 20 connections; add_jobs, add_job. Completed jobs are deleted"
    }

    async fn missing(&self, _server: &Server) -> Result<Option<String>> {
        Ok(None)
    }

    async fn install(&self, url: &str) -> Result<()> {
        let pool = pool(url, 2).await?;
        // Also registers the kind of the jobs, which a first enqueue would do otherwise.
        drop(worker(&pool, Arc::new(Runs::new(0))).await?);
        pool.close().await;
        Ok(())
    }

    async fn open(&self, url: &str, producers: usize) -> Result<Box<dyn Queue>> {
        let producers = pool(url, u32::try_from(producers)?).await?;
        Ok(Box::new(Open { producers, workers: pool(url, CONNECTIONS).await? }))
    }
}

/// A pool with all its connections made.
async fn pool(url: &str, connections: u32) -> Result<PgPool> {
    Ok(PgPoolOptions::new().min_connections(connections).max_connections(connections).connect(url).await?)
}

async fn worker(pool: &PgPool, runs: Arc<Runs>) -> Result<Worker> {
    let worker = WorkerOptions::default()
        .pg_pool(pool.clone())
        .schema(SCHEMA)
        .concurrency(CONCURRENCY)
        .poll_interval(DELAY)
        .complete_job_batch_delay(DELAY)
        .local_queue(LocalQueueConfig::default().with_size(LOCAL_QUEUE))
        .listen_os_shutdown_signals(false)
        .add_extension(Book(runs))
        .define_job::<BenchJob>()
        .init()
        .await?;
    Ok(worker)
}

struct Open {
    producers: PgPool,
    workers: PgPool,
}

impl Open {
    async fn count(&self, which: &'static str) -> Result<u64> {
        let (jobs,): (i64,) = sqlx::query_as(which).fetch_one(&self.workers).await?;
        Ok(jobs.unsigned_abs())
    }
}

#[async_trait]
impl Queue for Open {
    async fn producer(&self) -> Result<Box<dyn Producer>> {
        Ok(Box::new(Sender(WorkerUtils::new(self.producers.clone(), SCHEMA))))
    }

    async fn work(&self, runs: Arc<Runs>) -> Result<Box<dyn Crew>> {
        let worker = Arc::new(worker(&self.workers, runs).await?);
        let run = tokio::spawn({
            let worker = Arc::clone(&worker);
            async move { worker.run().await.map_err(|error| anyhow::anyhow!("{error}")) }
        });
        Ok(Box::new(Workers { worker, run }))
    }

    async fn done(&self, enqueued: u64) -> Result<u64> {
        Ok(enqueued - self.count("SELECT count(*) FROM graphile_worker._private_jobs").await?.min(enqueued))
    }

    async fn audit(&self, enqueued: u64) -> Result<u64> {
        self.done(enqueued).await
    }

    async fn waiting(&self) -> Result<u64> {
        self.count("SELECT count(*) FROM graphile_worker._private_jobs WHERE locked_at IS NULL AND is_available").await
    }

    async fn close(self: Box<Self>) {
        self.producers.close().await;
        self.workers.close().await;
    }
}

struct Sender(WorkerUtils);

#[async_trait]
impl Producer for Sender {
    async fn enqueue_one(&mut self, job: &Args) -> Result<()> {
        let job = BenchJob { seq: job.seq, note: job.note.clone() };
        self.0.add_job(job, JobSpec::default()).await?;
        Ok(())
    }

    async fn enqueue_many(&mut self, jobs: &[Args]) -> Result<()> {
        let spec = JobSpec::default();
        let jobs: Vec<_> = jobs.iter().map(|job| (BenchJob { seq: job.seq, note: job.note.clone() }, &spec)).collect();
        let stored = self.0.add_jobs(&jobs).await?;
        ensure!(stored.len() == jobs.len(), "{} of {} jobs were stored", stored.len(), jobs.len());
        Ok(())
    }
}

struct Workers {
    worker: Arc<Worker>,
    run: JoinHandle<Result<()>>,
}

#[async_trait]
impl Crew for Workers {
    async fn stop(self: Box<Self>) -> Result<()> {
        self.worker.request_shutdown();
        self.run.await?
    }
}
