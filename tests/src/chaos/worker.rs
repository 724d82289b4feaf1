//! A worker process of a scene, from the inside.
//!
//! It works until its standard input ends, which also happens when the
//! run dies. It tells on its standard output when it begins and how it ended: one JSON object per line.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use awa_core::ring::RotationPolicy;
use awa_core::store::{ClaimShape, RetentionPolicy};
use awa_runtime::{
    Fatal, HandlerResult, JobContext, JobError, MaintenanceConfig, Outcome, QueueConfig, RetryPolicy, Worker,
};
use awa_store_sqlx::{SqlxStore, SqlxStoreOptions};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::Failure;
use super::job::{Course, Errand, QUEUES};
use super::journal::{Journal, What};

/// After so long without a sign of life a worker is taken for dead: short, so that a scene is.
pub(super) const STALENESS: Duration = Duration::from_secs(2);
/// The pause between two signs of life.
const HEARTBEAT: Duration = Duration::from_millis(400);
/// Handlers at a time per queue.
const CONCURRENCY: usize = 8;

/// How a worker process is started; handed over as one JSON argument.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Orders {
    /// The file that handlers write to.
    pub journal: String,
    /// The database.
    pub address: Address,
}

/// How a process comes to the database.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Address {
    /// The URL, without a password.
    pub url: String,
    /// The size of the pool.
    pub connections: u32,
    /// Whether a pooler in transaction mode stands between.
    pub is_pooled: bool,
    /// Where to listen for wake-ups when it is not where the pool connects.
    pub listen_url: Option<String>,
}

impl Address {
    /// The options of a store for it.
    pub(super) fn options(&self) -> SqlxStoreOptions {
        let options = SqlxStore::options()
            .max_connections(self.connections)
            .acquire_timeout(Duration::from_secs(3))
            .transaction_pooler(self.is_pooled);
        match &self.listen_url {
            Some(url) => options.listen_url(url),
            None => options,
        }
    }
}

/// What a worker process tells.
#[derive(Serialize, Deserialize, PartialEq, Eq, Clone, Copy, Debug)]
#[serde(rename_all = "snake_case")]
pub(super) enum Told {
    /// It begins to work; the clock is its own, in microseconds since 1970.
    Started { instance: i64, clock: u64 },
    /// It has stopped in order: how many ends were refused as stale, and how many were not confirmed.
    Ended { stale: u64, unconfirmed: usize },
}

/// Works until the end of standard input.
///
/// # Errors
///
/// When the worker cannot start, or cannot tell what it did.
pub async fn work(orders: &Orders) -> Result<(), Failure> {
    // The server may be away at this moment, as at any other.
    let store = loop {
        match orders.address.options().connect(&orders.address.url).await {
            Ok(store) => break store,
            Err(error) if error.is_transient() => tokio::time::sleep(Duration::from_millis(100)).await,
            Err(error) => return Err(error.into()),
        }
    };
    let journal = Arc::new(Journal::open(Path::new(&orders.journal))?);
    let worker = build(store, journal)?;
    let clock = SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros() as u64;
    tell(Told::Started { instance: worker.instance().0, clock })?;
    let report = worker.run_until(end_of_input()).await?;
    tell(Told::Ended { stale: report.stats.stale, unconfirmed: report.unconfirmed })
}

fn build(store: SqlxStore, journal: Arc<Journal>) -> Result<Worker, Failure> {
    let rotation = RotationPolicy { min_age: Duration::from_millis(500), max_bytes: 1 << 20 };
    let mut maintenance = MaintenanceConfig::default();
    maintenance.promote_every = Duration::from_millis(100);
    maintenance.rescue_every = Duration::from_millis(300);
    maintenance.rings_every = Duration::from_millis(200);
    maintenance.tidy_every = Duration::from_secs(2);
    maintenance.queue_rotation = rotation;
    maintenance.claim_rotation = rotation;
    maintenance.lease_rotation = rotation;
    // No history, so that the rings turn as fast as they can; the audit keeps what the census needs.
    maintenance.retention = RetentionPolicy::NONE;
    let config = |shape| {
        let poll = Duration::from_millis(200);
        QueueConfig::default().concurrency(CONCURRENCY).prefetch(8).poll_interval(poll).claim_shape(shape)
    };
    Ok(Worker::builder(Arc::new(store))
        .queue(QUEUES[0], config(ClaimShape::Compact))
        .queue(QUEUES[1], config(ClaimShape::RowLocal))
        .state(journal)
        .handler(run)
        .heartbeat_interval(HEARTBEAT)
        .staleness(STALENESS)
        .retry(RetryPolicy::exponential(Duration::from_millis(100), Duration::from_millis(400))?)
        .call_timeout(Duration::from_secs(5))
        .maintenance_config(maintenance)
        .shutdown_grace(Duration::from_secs(10))
        .build()?)
}

/// The handler: writes down that it begins, does what the job's course says, and writes down how it is about to end.
async fn run(job: Errand, cx: JobContext) -> HandlerResult {
    let journal = cx.state::<Journal>()?;
    let receipt = cx.receipt();
    let note = |what| journal.note(job.number, &receipt, what).map_err(|error| JobError::from(error.to_string()));
    note(What::Start)?;
    match job.course {
        Course::Slow(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
        Course::WithResult => {
            note(What::Done)?;
            return Ok(Outcome::done_with(&job.number));
        }
        Course::FailsFirst(times) if cx.attempt() <= times => {
            note(What::Again)?;
            return Err("as the course says".into());
        }
        Course::PutOff if receipt.run_lease.0 <= 1 => {
            note(What::Again)?;
            return Ok(Outcome::Snooze(Duration::from_millis(150)));
        }
        Course::Quick | Course::FailsFirst(_) | Course::PutOff => {}
        Course::Notes => {
            cx.checkpoint(&job.number).await?;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Course::Fatal => {
            note(What::Fatal)?;
            return Err(Fatal::new("as the course says").into());
        }
    }
    note(What::Done)?;
    Ok(Outcome::Done)
}

/// An error is an end.
async fn end_of_input() {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(_)) = lines.next_line().await {}
}

fn tell(what: Told) -> Result<(), Failure> {
    let line = serde_json::to_string(&what)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}
