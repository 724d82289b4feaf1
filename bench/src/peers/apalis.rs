//! `apalis-postgres`, with its listener and large batches.

use std::sync::Arc;
use std::time::Duration;

use ::apalis::prelude::{
    BackendExt as _, BoxDynError, Data, ParallelizeExt as _, TaskBuilder, WorkerBuilder, WorkerContext,
};
use anyhow::{Result, anyhow};
use apalis_postgres::{Config, PostgresStorage, queries::push_tasks};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use sqlx::postgres::{PgPool, PgPoolOptions};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::args::Args;
use crate::peer::{Crew, Peer, Producer, Queue};
use crate::runs::Runs;
use crate::server::Server;
use crate::versions;

const QUEUE: &str = "bench";
const WORKERS: usize = 2;
const BATCH: usize = 1_000;
const POLL: Duration = Duration::from_millis(20);
const CONNECTIONS: u32 = 10;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct BenchJob {
    seq: u64,
    note: String,
}

/// The published crate.
#[derive(Debug)]
pub(super) struct Apalis;

#[async_trait]
impl Peer for Apalis {
    fn name(&self) -> &'static str {
        "apalis"
    }

    fn version(&self) -> String {
        format!("apalis-postgres {}", versions::locked("apalis-postgres"))
    }

    fn settings(&self) -> &'static str {
        "2 workers with parallelize(tokio::spawn), batch_size 1,000, with_pubsub and an interval of 20 ms, lock_tasks off \
         (a fetch locks them already), persist_results on (without it no job counts as done); push_tasks"
    }

    async fn missing(&self, server: &Server) -> Result<Option<String>> {
        Ok(match server.extension("hstore").await? {
            Some(_) => None,
            None => Some("its migrations need the extension hstore, which this server does not have".to_owned()),
        })
    }

    async fn install(&self, url: &str) -> Result<()> {
        let pool = pool(url, 2).await?;
        PostgresStorage::setup(&pool).await?;
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
        Ok(Box::new(Sender(self.producers.clone())))
    }

    async fn work(&self, runs: Arc<Runs>) -> Result<Box<dyn Crew>> {
        let (mut contexts, mut workers) = (Vec::new(), JoinSet::new());
        for number in 0..WORKERS {
            let config = Config::default().queue(QUEUE).batch_size(BATCH).lock_tasks(false);
            let backend = PostgresStorage::<BenchJob>::new(&self.workers)
                .with_config(config)
                .with_pubsub()
                .poll_with_interval(POLL);
            let context = WorkerContext::new(&format!("worker-{number}"));
            let worker = WorkerBuilder::new(&context)
                .backend(backend)
                .data(Arc::clone(&runs))
                .parallelize(tokio::spawn)
                .build(run);
            contexts.push(context);
            // The compiler cannot see that this future may move between threads, so it gets one for itself.
            let runtime = Handle::current();
            workers.spawn_blocking(move || runtime.block_on(worker.run()).map_err(|error| anyhow!("{error}")));
        }
        Ok(Box::new(Workers { contexts, workers }))
    }

    async fn done(&self, _enqueued: u64) -> Result<u64> {
        self.count("SELECT count(*) FROM apalis.jobs WHERE status = 'Done'").await
    }

    async fn audit(&self, enqueued: u64) -> Result<u64> {
        self.done(enqueued).await
    }

    async fn waiting(&self) -> Result<u64> {
        self.count("SELECT count(*) FROM apalis.jobs WHERE status = 'Pending'").await
    }

    async fn close(self: Box<Self>) {
        self.producers.close().await;
        self.workers.close().await;
    }
}

async fn run(job: BenchJob, runs: Data<Arc<Runs>>, _worker: WorkerContext) -> Result<(), BoxDynError> {
    runs.ran(job.seq);
    Ok(())
}

struct Sender(PgPool);

#[async_trait]
impl Producer for Sender {
    async fn enqueue_one(&mut self, job: &Args) -> Result<()> {
        self.enqueue_many(std::slice::from_ref(job)).await
    }

    async fn enqueue_many(&mut self, jobs: &[Args]) -> Result<()> {
        let tasks = jobs
            .iter()
            .map(|job| {
                Ok(TaskBuilder::new(serde_json::to_vec(&BenchJob { seq: job.seq, note: job.note.clone() })?).build())
            })
            .collect::<Result<Vec<_>>>()?;
        let mut connection = self.0.acquire().await?;
        push_tasks(&mut *connection, QUEUE, tasks).await?;
        Ok(())
    }
}

struct Workers {
    contexts: Vec<WorkerContext>,
    workers: JoinSet<Result<()>>,
}

#[async_trait]
impl Crew for Workers {
    async fn stop(mut self: Box<Self>) -> Result<()> {
        for context in &self.contexts {
            context.stop().map_err(|error| anyhow!("{error}"))?;
        }
        while let Some(ended) = self.workers.join_next().await {
            ended??;
        }
        Ok(())
    }
}
