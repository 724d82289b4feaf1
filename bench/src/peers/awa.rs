//! Our own queue, through the same interface as everybody.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use async_trait::async_trait;
use awa_core::store::{Accuracy, Maintainer as _, Operator as _};
use awa_core::{Enqueued, JobState, QueueName, Store};
use awa_runtime::{Job, JobContext, Outcome, QueueConfig, ShutdownReport, StatsHandle, StoreExt as _, Worker};
use awa_store_sqlx::SqlxStore;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::args::Args;
use crate::peer::{Crew, Peer, Producer, Queue};
use crate::runs::Runs;
use crate::server::Server;

pub(super) const NAME: &str = "awa";
const QUEUE: &str = "bench";

const CONCURRENCY: usize = 1_024;
/// Connections of the workers.
const CONNECTIONS: u32 = 8;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "bench", queue = "bench")]
struct BenchJob {
    seq: u64,
    note: String,
}

/// This repository's Awa over sqlx.
#[derive(Debug)]
pub(super) struct Awa;

#[async_trait]
impl Peer for Awa {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> String {
        format!("{} (this tree)", env!("CARGO_PKG_VERSION"))
    }

    fn settings(&self) -> &'static str {
        "sqlx store; concurrency 1,024, otherwise defaults (claims of up to 1,000, wake-ups on, maintenance in the same \
         process, one shard), a pool of 8 for the worker; the queue opened before; enqueue_jobs, enqueue_job"
    }

    async fn missing(&self, _server: &Server) -> Result<Option<String>> {
        Ok(None)
    }

    async fn install(&self, url: &str) -> Result<()> {
        let store = SqlxStore::options().wakeups(false).max_connections(1).connect(url).await?;
        store.prepare_schema().await?;
        // As it is once a worker has served the queue.
        store.open_queue(&QueueName::new(QUEUE)?).await?;
        store.pool().close().await;
        Ok(())
    }

    async fn open(&self, url: &str, producers: usize) -> Result<Box<dyn Queue>> {
        // One more: a pool that has no other connection asks of each that comes back whether it still lives.
        let producers = producers + 1;
        let store = SqlxStore::options().max_connections(u32::try_from(producers)?).connect(url).await?;
        let control = SqlxStore::options().max_connections(CONNECTIONS).connect(url).await?;
        for (pool, connections) in [(store.pool(), producers), (control.pool(), CONNECTIONS as usize)] {
            let mut held = Vec::new();
            for _ in 0..connections {
                held.push(pool.acquire().await?);
            }
        }
        Ok(Box::new(Open { store, control }))
    }
}

struct Open {
    store: SqlxStore,
    /// The workers' own handle, as the builder recommends.
    control: SqlxStore,
}

#[async_trait]
impl Queue for Open {
    async fn producer(&self) -> Result<Box<dyn Producer>> {
        Ok(Box::new(Sender(self.store.clone())))
    }

    async fn work(&self, runs: Arc<Runs>) -> Result<Box<dyn Crew>> {
        let store: Arc<dyn Store> = Arc::new(self.store.clone());
        let config = QueueConfig::default().concurrency(CONCURRENCY);
        let worker = Worker::builder(store)
            .control_store(Arc::new(self.control.clone()))
            .queue(QUEUE, config)
            .shutdown_grace(Duration::from_secs(5))
            .handler(move |job: BenchJob, _cx: JobContext| {
                runs.ran(job.seq);
                async { Ok(Outcome::Done) }
            })
            .build()?;
        let stats = worker.stats();
        let (stop, stopped) = oneshot::channel::<()>();
        let run = tokio::spawn(worker.run_until(async { drop(stopped.await) }));
        Ok(Box::new(Workers { run, stop, stats }))
    }

    async fn done(&self, enqueued: u64) -> Result<u64> {
        // Batches are counted, not jobs; nothing that counts as unfinished may be left.
        let counts = self.control.counts(Accuracy::Estimate).await?;
        let open = [JobState::Ready, JobState::Running, JobState::Deferred, JobState::Waiting];
        let (mut done, mut left) = (0, 0);
        for queue in &counts.queues {
            done += queue.in_states(&[JobState::Completed]);
            left += queue.in_states(&open);
        }
        Ok(if left > 0 { done.min(enqueued - 1) } else { done })
    }

    async fn audit(&self, _enqueued: u64) -> Result<u64> {
        let census = self.control.census().await?;
        Ok(census.iter().filter(|count| count.state == JobState::Completed).map(|count| count.jobs).sum())
    }

    async fn waiting(&self) -> Result<u64> {
        let census = self.control.census().await?;
        Ok(census.iter().filter(|count| count.state == JobState::Ready).map(|count| count.jobs).sum())
    }

    async fn close(self: Box<Self>) {
        self.store.pool().close().await;
        self.control.pool().close().await;
    }
}

struct Sender(SqlxStore);

#[async_trait]
impl Producer for Sender {
    async fn enqueue_one(&mut self, job: &Args) -> Result<()> {
        let answer = self.0.enqueue_job(BenchJob { seq: job.seq, note: job.note.clone() }).await?;
        ensure!(matches!(answer, Enqueued::Inserted(_)), "job {} was not stored: {answer:?}", job.seq);
        Ok(())
    }

    async fn enqueue_many(&mut self, jobs: &[Args]) -> Result<()> {
        let jobs = jobs.iter().map(|job| BenchJob { seq: job.seq, note: job.note.clone() });
        self.0.enqueue_jobs(jobs).await?;
        Ok(())
    }
}

struct Workers {
    run: JoinHandle<Result<ShutdownReport, awa_runtime::RuntimeError>>,
    stop: oneshot::Sender<()>,
    stats: StatsHandle,
}

#[async_trait]
impl Crew for Workers {
    async fn stop(self: Box<Self>) -> Result<()> {
        drop(self.stop);
        self.run.await??;
        let stats = self.stats.read();
        ensure!(stats.failed + stats.retried + stats.stale == 0, "ends were refused or failed: {stats:?}");
        Ok(())
    }
}
