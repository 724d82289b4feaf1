//! The crate `awa` 0.6, as published.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use async_trait::async_trait;
use published_awa::model::insert::params_with;
use published_awa::{
    Client, InsertOpts, JobArgs, JobResult, QueueConfig, QueueStorage, QueueStorageConfig, insert_with, migrations,
};
use serde::{Deserialize, Serialize};
use sqlx08::postgres::{PgPool, PgPoolOptions};
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use crate::args::Args;
use crate::peer::{Crew, Peer, Producer, Queue};
use crate::runs::Runs;
use crate::server::Server;
use crate::versions;

const QUEUE: &str = "bench";
/// From 512 on, its completions are flushed by four tasks instead of one.
const WORKERS: u32 = 512;
const CLAIMERS: u16 = 4;
/// What its benchmarking notes advise for one queue.
const CONNECTIONS: u32 = 24;

#[derive(Serialize, Deserialize)]
struct BenchJob {
    seq: u64,
    note: String,
}

impl JobArgs for BenchJob {
    fn kind() -> &'static str {
        "bench"
    }
}

/// The published crate.
#[derive(Debug)]
pub(super) struct PublishedAwa;

#[async_trait]
impl Peer for PublishedAwa {
    fn name(&self) -> &'static str {
        "awa-0.6"
    }

    fn version(&self) -> String {
        versions::locked("awa")
    }

    fn settings(&self) -> &'static str {
        "queue storage (its default engine) with default rings; max_workers 512, claimers 4, claim_batch_size 512 (default), \
         deadline_duration zero (compact claims, as in its own benchmark), 24 connections; \
         QueueStorage::enqueue_params_copy for bulk, insert_with for single jobs"
    }

    async fn missing(&self, _server: &Server) -> Result<Option<String>> {
        Ok(None)
    }

    async fn install(&self, url: &str) -> Result<()> {
        let pool = pool(url, CONNECTIONS).await?;
        // The compiler cannot see that this future may move between threads, so it stays here.
        block_in_place(|| Handle::current().block_on(migrations::run(&pool)))?;
        // The first worker of a fresh installation turns its default engine on.
        let client = client(&pool, Arc::new(Runs::new(0)))?;
        client.start().await?;
        client.shutdown(Duration::from_secs(5)).await;
        pool.close().await;
        Ok(())
    }

    async fn open(&self, url: &str, producers: usize) -> Result<Box<dyn Queue>> {
        let storage = Arc::new(QueueStorage::new(QueueStorageConfig::default())?);
        let producers = pool(url, u32::try_from(producers)?).await?;
        Ok(Box::new(Open { producers, workers: pool(url, CONNECTIONS).await?, storage }))
    }
}

/// A pool with all its connections made.
async fn pool(url: &str, connections: u32) -> Result<PgPool> {
    Ok(PgPoolOptions::new().min_connections(connections).max_connections(connections).connect(url).await?)
}

fn client(pool: &PgPool, runs: Arc<Runs>) -> Result<Client> {
    let config = QueueConfig {
        max_workers: WORKERS,
        claimers: CLAIMERS,
        deadline_duration: Duration::ZERO,
        poll_interval: Duration::from_millis(50),
        ..QueueConfig::default()
    };
    let client = Client::builder(pool.clone())
        .queue(QUEUE, config)
        .register::<BenchJob, _, _>(move |job: BenchJob, _context| {
            runs.ran(job.seq);
            async { Ok(JobResult::Completed) }
        })
        .build()?;
    Ok(client)
}

struct Open {
    producers: PgPool,
    workers: PgPool,
    storage: Arc<QueueStorage>,
}

#[async_trait]
impl Queue for Open {
    async fn producer(&self) -> Result<Box<dyn Producer>> {
        Ok(Box::new(Sender { pool: self.producers.clone(), storage: Arc::clone(&self.storage) }))
    }

    async fn work(&self, runs: Arc<Runs>) -> Result<Box<dyn Crew>> {
        let client = client(&self.workers, runs)?;
        client.start().await?;
        Ok(Box::new(Workers(client)))
    }

    async fn done(&self, enqueued: u64) -> Result<u64> {
        self.audit(enqueued).await
    }

    async fn audit(&self, _enqueued: u64) -> Result<u64> {
        Ok(self.storage.queue_counts(&self.workers, QUEUE).await?.terminal.unsigned_abs())
    }

    async fn waiting(&self) -> Result<u64> {
        Ok(self.storage.queue_counts(&self.workers, QUEUE).await?.available.unsigned_abs())
    }

    async fn close(self: Box<Self>) {
        self.producers.close().await;
        self.workers.close().await;
    }
}

struct Sender {
    pool: PgPool,
    storage: Arc<QueueStorage>,
}

fn options() -> InsertOpts {
    InsertOpts { queue: QUEUE.into(), ..Default::default() }
}

#[async_trait]
impl Producer for Sender {
    async fn enqueue_one(&mut self, job: &Args) -> Result<()> {
        let job = BenchJob { seq: job.seq, note: job.note.clone() };
        insert_with(&self.pool, &job, options()).await?;
        Ok(())
    }

    async fn enqueue_many(&mut self, jobs: &[Args]) -> Result<()> {
        let prepared =
            jobs.iter().map(|job| params_with(&BenchJob { seq: job.seq, note: job.note.clone() }, options()));
        let prepared = prepared.collect::<Result<Vec<_>, _>>()?;
        let stored = self.storage.enqueue_params_copy(&self.pool, &prepared).await?;
        ensure!(stored == jobs.len(), "{stored} of {} jobs were stored", jobs.len());
        Ok(())
    }
}

struct Workers(Client);

#[async_trait]
impl Crew for Workers {
    async fn stop(self: Box<Self>) -> Result<()> {
        self.0.shutdown(Duration::from_secs(5)).await;
        Ok(())
    }
}
