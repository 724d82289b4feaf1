//! The textbook queue: one table, `FOR UPDATE SKIP LOCKED`, a partial index on what is ready.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use tokio::task::{JoinHandle, JoinSet};
use tokio_postgres::{Client, Statement};
use tokio_util::sync::CancellationToken;

use crate::args::Args;
use crate::peer::{Crew, Peer, Producer, Queue};
use crate::runs::Runs;
use crate::server::{Server, connect};
use crate::versions;

const SCHEMA: &str = "
CREATE TABLE jobs (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_at     timestamptz NOT NULL DEFAULT now(),
    locked_at  timestamptz,
    attempts   integer     NOT NULL DEFAULT 0,
    state      text        NOT NULL DEFAULT 'ready',
    args       jsonb       NOT NULL
);
CREATE INDEX jobs_ready ON jobs (run_at, id) WHERE state = 'ready';";
const INSERT: &str = "INSERT INTO jobs (args) VALUES ($1::text::jsonb)";
const INSERT_MANY: &str = "INSERT INTO jobs (args) SELECT a::jsonb FROM unnest($1::text[]) AS a";
const CLAIM: &str = "
UPDATE jobs SET state = 'running', locked_at = now(), attempts = attempts + 1
WHERE id IN (SELECT id FROM jobs WHERE state = 'ready' AND run_at <= now() ORDER BY run_at, id LIMIT $1
             FOR UPDATE SKIP LOCKED)
RETURNING id, args::text";
const FINISH: &str = "DELETE FROM jobs WHERE id = ANY ($1)";

const WORKERS: usize = 4;
const BATCH: i64 = 500;
const POLL: Duration = Duration::from_millis(5);

/// The textbook queue.
#[derive(Debug)]
pub(super) struct SkipLocked;

#[async_trait]
impl Peer for SkipLocked {
    fn name(&self) -> &'static str {
        "skip-locked"
    }

    fn version(&self) -> String {
        format!("tokio-postgres {}", versions::locked("tokio-postgres"))
    }

    fn settings(&self) -> &'static str {
        "4 workers, claims of 500 by UPDATE .. FOR UPDATE SKIP LOCKED over a partial index, one DELETE per batch when its \
         jobs have run, polls every 5 ms when empty; INSERT .. unnest for bulk"
    }

    async fn missing(&self, _server: &Server) -> Result<Option<String>> {
        Ok(None)
    }

    async fn install(&self, url: &str) -> Result<()> {
        connect(url).await?.0.batch_execute(SCHEMA).await?;
        Ok(())
    }

    async fn open(&self, url: &str, _producers: usize) -> Result<Box<dyn Queue>> {
        Ok(Box::new(Open { url: url.to_owned(), control: connect(url).await?.0 }))
    }
}

struct Open {
    url: String,
    control: Client,
}

impl Open {
    async fn count(&self, which: &str) -> Result<u64> {
        let row = self.control.query_one(&format!("SELECT count(*) FROM jobs WHERE {which}"), &[]).await?;
        Ok(row.get::<_, i64>(0).unsigned_abs())
    }
}

#[async_trait]
impl Queue for Open {
    async fn producer(&self) -> Result<Box<dyn Producer>> {
        let (client, connection) = connect(&self.url).await?;
        let (one, many) = (client.prepare(INSERT).await?, client.prepare(INSERT_MANY).await?);
        Ok(Box::new(Sender { client, one, many, _connection: connection }))
    }

    async fn work(&self, runs: Arc<Runs>) -> Result<Box<dyn Crew>> {
        let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
        for _ in 0..WORKERS {
            tasks.spawn(work(connect(&self.url).await?.0, Arc::clone(&runs), stop.clone()));
        }
        Ok(Box::new(Workers { stop, tasks }))
    }

    async fn done(&self, enqueued: u64) -> Result<u64> {
        Ok(enqueued - self.count("true").await?)
    }

    async fn audit(&self, enqueued: u64) -> Result<u64> {
        self.done(enqueued).await
    }

    async fn waiting(&self) -> Result<u64> {
        self.count("state = 'ready'").await
    }

    async fn close(self: Box<Self>) {}
}

async fn work(client: Client, runs: Arc<Runs>, stop: CancellationToken) -> Result<()> {
    let (claim, finish) = (client.prepare(CLAIM).await?, client.prepare(FINISH).await?);
    while !stop.is_cancelled() {
        let rows = client.query(&claim, &[&BATCH]).await?;
        let mut ids: Vec<i64> = Vec::with_capacity(rows.len());
        for row in &rows {
            runs.ran(serde_json::from_str::<Args>(row.get(1))?.seq);
            ids.push(row.get(0));
        }
        if ids.is_empty() {
            tokio::time::sleep(POLL).await;
        } else {
            client.execute(&finish, &[&ids]).await?;
        }
    }
    Ok(())
}

struct Sender {
    client: Client,
    one: Statement,
    many: Statement,
    _connection: JoinHandle<()>,
}

#[async_trait]
impl Producer for Sender {
    async fn enqueue_one(&mut self, job: &Args) -> Result<()> {
        self.client.execute(&self.one, &[&job.json()]).await?;
        Ok(())
    }

    async fn enqueue_many(&mut self, jobs: &[Args]) -> Result<()> {
        let texts: Vec<String> = jobs.iter().map(Args::json).collect();
        self.client.execute(&self.many, &[&texts]).await?;
        Ok(())
    }
}

struct Workers {
    stop: CancellationToken,
    tasks: JoinSet<Result<()>>,
}

#[async_trait]
impl Crew for Workers {
    async fn stop(mut self: Box<Self>) -> Result<()> {
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended??;
        }
        Ok(())
    }
}
