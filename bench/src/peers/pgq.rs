//! PgQ, the event bus of the Debian package `postgresql-NN-pgq3`: no identity per job, a batch is acknowledged at once.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use bytes::{BufMut as _, Bytes, BytesMut};
use futures::{SinkExt as _, TryStreamExt as _};
use tokio::task::{JoinHandle, JoinSet};
use tokio_postgres::{Client, Statement};
use tokio_util::sync::CancellationToken;

use crate::args::Args;
use crate::peer::{Crew, Peer, Producer, Queue};
use crate::runs::Runs;
use crate::server::{Server, connect};

const EXTENSION: &str = "pgq";
const SCHEMA: &str = "
CREATE EXTENSION pgq;
SELECT pgq.create_queue('bench');
SELECT pgq.register_consumer('bench', 'worker');
SELECT pgq.set_queue_config('bench', 'ticker_max_lag', '5 milliseconds');
SELECT pgq.set_queue_config('bench', 'ticker_idle_period', '5 milliseconds');
SELECT pgq.set_queue_config('bench', 'ticker_max_count', '2000');";
const INSERT: &str = "SELECT pgq.insert_event('bench', 'job', $1)";
const TABLE: &str = "SELECT pgq.current_event_table('bench')";
const TICK: &str = "SELECT pgq.ticker('bench')";
const NEXT: &str = "SELECT pgq.next_batch('bench', 'worker')";
const EVENTS: &str = "SELECT ev_data FROM pgq.get_batch_events($1)";
const FINISH: &str = "SELECT pgq.finish_batch($1)";
/// How often the ticker looks whether a tick is due.
const TICK_EVERY: Duration = Duration::from_millis(5);
const POLL: Duration = Duration::from_millis(2);

/// PgQ on the server's own functions.
#[derive(Debug)]
pub(super) struct PgQ;

#[async_trait]
impl Peer for PgQ {
    fn name(&self) -> &'static str {
        "pgq"
    }

    fn version(&self) -> String {
        "(the server's extension)".to_owned()
    }

    fn settings(&self) -> &'static str {
        "an event bus: batches are acknowledged as a whole, no identity per job; pgq 3.5, COPY into current_event_table for \
         bulk, insert_event for single jobs; one consumer; a ticker every 5 ms in the place of pgqd, ticker_max_lag 5 ms, \
         ticker_max_count 2,000; no rotation of its tables during a measurement"
    }

    async fn missing(&self, server: &Server) -> Result<Option<String>> {
        Ok(match server.extension(EXTENSION).await? {
            Some(_) => None,
            None => Some("the server has no extension pgq (Debian: apt-get install postgresql-NN-pgq3)".to_owned()),
        })
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
    /// Events in the queue, and those among them that the consumer's latest finished batch covers.
    async fn counts(&self) -> Result<(u64, u64)> {
        let find = "SELECT queue_data_pfx FROM pgq.queue WHERE queue_name = 'bench'";
        let table: String = self.control.query_one(find, &[]).await?.get(0);
        let count = format!(
            "SELECT count(*), count(*) FILTER (WHERE txid_visible_in_snapshot(e.ev_txid, t.tick_snapshot))
             FROM {table} AS e, pgq.subscription AS s, pgq.tick AS t
             WHERE t.tick_id = s.sub_last_tick AND t.tick_queue = s.sub_queue"
        );
        let row = self.control.query_one(&count, &[]).await?;
        Ok((row.get::<_, i64>(0).unsigned_abs(), row.get::<_, i64>(1).unsigned_abs()))
    }
}

#[async_trait]
impl Queue for Open {
    async fn producer(&self) -> Result<Box<dyn Producer>> {
        let (client, connection) = connect(&self.url).await?;
        let insert = client.prepare(INSERT).await?;
        Ok(Box::new(Sender { client, insert, _connection: connection }))
    }

    async fn work(&self, runs: Arc<Runs>) -> Result<Box<dyn Crew>> {
        let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
        tasks.spawn(tick(connect(&self.url).await?.0, stop.clone()));
        tasks.spawn(consume(connect(&self.url).await?.0, runs, stop.clone()));
        Ok(Box::new(Workers { stop, tasks }))
    }

    async fn done(&self, _enqueued: u64) -> Result<u64> {
        Ok(self.counts().await?.1)
    }

    async fn audit(&self, enqueued: u64) -> Result<u64> {
        self.done(enqueued).await
    }

    async fn waiting(&self) -> Result<u64> {
        let (all, done) = self.counts().await?;
        Ok(all - done)
    }

    async fn close(self: Box<Self>) {}
}

async fn tick(client: Client, stop: CancellationToken) -> Result<()> {
    let tick = client.prepare(TICK).await?;
    while !stop.is_cancelled() {
        client.query(&tick, &[]).await?;
        tokio::time::sleep(TICK_EVERY).await;
    }
    Ok(())
}

async fn consume(client: Client, runs: Arc<Runs>, stop: CancellationToken) -> Result<()> {
    let (next, events, finish) =
        (client.prepare(NEXT).await?, client.prepare(EVENTS).await?, client.prepare(FINISH).await?);
    while !stop.is_cancelled() {
        let Some(batch) = client.query_one(&next, &[]).await?.get::<_, Option<i64>>(0) else {
            tokio::time::sleep(POLL).await;
            continue;
        };
        let rows = client.query_raw(&events, [batch]).await?;
        let mut rows = std::pin::pin!(rows);
        while let Some(row) = rows.try_next().await? {
            runs.ran(serde_json::from_str::<Args>(row.get(0))?.seq);
        }
        client.query(&finish, &[&batch]).await?;
    }
    Ok(())
}

struct Sender {
    client: Client,
    insert: Statement,
    _connection: JoinHandle<()>,
}

#[async_trait]
impl Producer for Sender {
    async fn enqueue_one(&mut self, job: &Args) -> Result<()> {
        self.client.query(&self.insert, &[&job.json()]).await?;
        Ok(())
    }

    async fn enqueue_many(&mut self, jobs: &[Args]) -> Result<()> {
        let mut rows = BytesMut::with_capacity(jobs.len() * 80);
        for job in jobs {
            rows.put_slice(format!("now\tjob\t{}\n", job.json()).as_bytes());
        }
        // The name of the table holds for the transaction in which it is asked for.
        let transaction = self.client.transaction().await?;
        let table: String = transaction.query_one(TABLE, &[]).await?.get(0);
        let copy = format!("COPY {table} (ev_time, ev_type, ev_data) FROM STDIN");
        let sink = transaction.copy_in::<_, Bytes>(copy.as_str()).await.context("copying into the event table")?;
        {
            let mut sink = std::pin::pin!(sink);
            sink.send(rows.freeze()).await?;
            sink.finish().await?;
        }
        transaction.commit().await?;
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
