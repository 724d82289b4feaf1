//! The floor: one table with the same row and indexes as Awa's ready row, filled by COPY and read once by index.
//!
//! Nothing is claimed, nothing is closed, nobody else may read. Who keeps each job in a row of its own and hands it out in
//! order does at least this.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use bytes::{BufMut as _, Bytes, BytesMut};
use futures::{SinkExt as _, TryStreamExt as _};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Statement};
use tokio_util::sync::CancellationToken;

use crate::args::Args;
use crate::peer::{Crew, Peer, Producer, Queue};
use crate::runs::Runs;
use crate::server::{Server, connect};
use crate::versions;

pub(super) const NAME: &str = "floor";

const SCHEMA: &str = "
CREATE TABLE floor (
    lane_id      bigint      NOT NULL,
    xid          xid8        NOT NULL DEFAULT pg_current_xact_id(),
    job_id       bigint      NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    ready_slot   smallint    NOT NULL,
    max_attempts smallint    NOT NULL,
    attempt      smallint,
    run_lease    bigint,
    kind         text        NOT NULL,
    args         json        NOT NULL,
    metadata     json,
    last_error   text
) WITH (autovacuum_enabled = false);
CREATE UNIQUE INDEX floor_order ON floor (lane_id, xid, job_id);
CREATE INDEX floor_first ON floor USING brin (job_id) WHERE run_lease IS NULL;
CREATE INDEX floor_again ON floor (job_id) WHERE run_lease IS NOT NULL;
SELECT brin_desummarize_range('floor_first', 0);";
const INSERT: &str = "INSERT INTO floor (lane_id, job_id, ready_slot, max_attempts, kind, args)
                      VALUES ($1, $2, 0, 25, 'bench', $3::text::json)";
const COPY: &str = "COPY floor (lane_id, job_id, ready_slot, max_attempts, kind, args) FROM STDIN";
/// What follows the last row read, in the order of the index. Each producer has a lane, so that a row that commits later
/// can't come before it.
const READ: &str = "SELECT f.xid::text, f.job_id, f.args::text FROM floor AS f
                    WHERE f.lane_id = $1 AND (f.xid, f.job_id) > ($2::text::xid8, $3) ORDER BY f.xid, f.job_id";
const POLL: Duration = Duration::from_millis(1);

/// The floor.
#[derive(Debug)]
pub(super) struct Floor;

#[async_trait]
impl Peer for Floor {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> String {
        format!("tokio-postgres {}", versions::locked("tokio-postgres"))
    }

    fn settings(&self) -> &'static str {
        "the row and indexes of Awa's ready_entries; COPY per batch, bare prepared INSERT for single jobs; one reader, each \
         row once in index order, nothing recorded; looks every 1 ms when empty"
    }

    async fn missing(&self, _server: &Server) -> Result<Option<String>> {
        Ok(None)
    }

    async fn install(&self, url: &str) -> Result<()> {
        connect(url).await?.0.batch_execute(SCHEMA).await?;
        Ok(())
    }

    async fn open(&self, url: &str, _producers: usize) -> Result<Box<dyn Queue>> {
        let open =
            Open { url: url.to_owned(), control: connect(url).await?.0, lanes: Arc::default(), read: Arc::default() };
        Ok(Box::new(open))
    }
}

struct Open {
    url: String,
    control: Client,
    lanes: Arc<AtomicU64>,
    read: Arc<AtomicU64>,
}

impl Open {
    async fn count(&self) -> Result<u64> {
        let row = self.control.query_one("SELECT count(*) FROM floor", &[]).await?;
        Ok(row.get::<_, i64>(0).unsigned_abs())
    }
}

#[async_trait]
impl Queue for Open {
    async fn producer(&self) -> Result<Box<dyn Producer>> {
        let (client, connection) = connect(&self.url).await?;
        let (insert, copy) = (client.prepare(INSERT).await?, client.prepare(COPY).await?);
        let lane = self.lanes.fetch_add(1, Ordering::SeqCst).cast_signed();
        Ok(Box::new(Sender { client, insert, copy, lane, _connection: connection }))
    }

    async fn work(&self, runs: Arc<Runs>) -> Result<Box<dyn Crew>> {
        let client = connect(&self.url).await?.0;
        let stop = CancellationToken::new();
        let task = tokio::spawn(read(client, runs, Arc::clone(&self.lanes), Arc::clone(&self.read), stop.clone()));
        Ok(Box::new(Reader { stop, task }))
    }

    /// There is nothing to be done with a row but to read it.
    async fn done(&self, _enqueued: u64) -> Result<u64> {
        Ok(self.read.load(Ordering::SeqCst))
    }

    async fn audit(&self, enqueued: u64) -> Result<u64> {
        Ok(self.count().await?.min(self.done(enqueued).await?))
    }

    async fn waiting(&self) -> Result<u64> {
        self.count().await
    }

    async fn close(self: Box<Self>) {}
}

async fn read(
    client: Client,
    runs: Arc<Runs>,
    lanes: Arc<AtomicU64>,
    read: Arc<AtomicU64>,
    stop: CancellationToken,
) -> Result<()> {
    client.batch_execute("SET enable_seqscan = off; SET enable_bitmapscan = off").await?;
    let statement = client.prepare(READ).await?;
    let mut cursors: Vec<(String, i64)> = Vec::new();
    while !stop.is_cancelled() {
        cursors.resize(lanes.load(Ordering::SeqCst) as usize, ("0".to_owned(), 0));
        let mut found = 0;
        for (lane, cursor) in cursors.iter_mut().enumerate() {
            let from: (i64, &String, &i64) = (lane as i64, &cursor.0, &cursor.1);
            let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 3] = [&from.0, from.1, from.2];
            let rows = client.query_raw(&statement, parameters).await?;
            let mut rows = std::pin::pin!(rows);
            let mut last = None;
            while let Some(row) = rows.try_next().await? {
                runs.ran(serde_json::from_str::<Args>(row.get(2))?.seq);
                found += 1;
                last = Some(row);
            }
            if let Some(row) = last {
                *cursor = (row.get(0), row.get(1));
            }
        }
        read.fetch_add(found, Ordering::SeqCst);
        if found == 0 {
            tokio::time::sleep(POLL).await;
        }
    }
    Ok(())
}

struct Sender {
    client: Client,
    insert: Statement,
    copy: Statement,
    lane: i64,
    _connection: JoinHandle<()>,
}

impl Sender {
    /// Ids begin at 1, because the reader begins behind 0.
    fn id(job: &Args) -> i64 {
        job.seq.cast_signed() + 1
    }
}

#[async_trait]
impl Producer for Sender {
    async fn enqueue_one(&mut self, job: &Args) -> Result<()> {
        self.client.execute(&self.insert, &[&self.lane, &Self::id(job), &job.json()]).await?;
        Ok(())
    }

    async fn enqueue_many(&mut self, jobs: &[Args]) -> Result<()> {
        let mut rows = BytesMut::with_capacity(jobs.len() * 100);
        for job in jobs {
            // The arguments have no character that COPY would want to be escaped.
            let line = format!("{}\t{}\t0\t25\tbench\t{}\n", self.lane, Self::id(job), job.json());
            rows.put_slice(line.as_bytes());
        }
        let sink = self.client.copy_in::<_, Bytes>(&self.copy).await?;
        let mut sink = std::pin::pin!(sink);
        sink.send(rows.freeze()).await?;
        sink.finish().await?;
        Ok(())
    }
}

struct Reader {
    stop: CancellationToken,
    task: JoinHandle<Result<()>>,
}

#[async_trait]
impl Crew for Reader {
    async fn stop(self: Box<Self>) -> Result<()> {
        self.stop.cancel();
        self.task.await?
    }
}
