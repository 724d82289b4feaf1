//! What a job queue must offer to be measured.

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;

use crate::args::Args;
use crate::runs::Runs;
use crate::server::Server;

/// A job queue, or the floor.
#[async_trait]
pub trait Peer: Send + Sync {
    /// A short name for tables and `--peers`.
    fn name(&self) -> &'static str;

    /// Which version is measured.
    fn version(&self) -> String;

    /// The settings it is measured with, and whose advice they are.
    fn settings(&self) -> &'static str;

    /// Why it can't be measured here, if so.
    async fn missing(&self, server: &Server) -> Result<Option<String>>;

    /// Sets up an empty database. Every measurement begins with a copy of it.
    async fn install(&self, url: &str) -> Result<()>;

    /// Connects to a copy, with up to `producers` producers to come.
    async fn open(&self, url: &str, producers: usize) -> Result<Box<dyn Queue>>;
}

/// A queue that is set up and empty at first.
#[async_trait]
pub trait Queue: Send + Sync {
    /// A producer. Each has a connection for itself, of its own or from a pool that is large enough.
    async fn producer(&self) -> Result<Box<dyn Producer>>;

    /// Starts workers whose handlers write into `runs` and do nothing else.
    async fn work(&self, runs: Arc<Runs>) -> Result<Box<dyn Crew>>;

    /// How many of `enqueued` jobs count as done, by the peer's own tables or by what it offers for that question.
    async fn done(&self, enqueued: u64) -> Result<u64>;

    /// The same, counted job by job; as slow as it has to be.
    async fn audit(&self, enqueued: u64) -> Result<u64>;

    /// How many jobs wait, by the peer's own tables.
    async fn waiting(&self) -> Result<u64>;

    /// Closes what was opened, so that the database can be dropped.
    async fn close(self: Box<Self>);
}

/// Takes in jobs. Each call is durable when it returns.
#[async_trait]
pub trait Producer: Send {
    /// One job, in a transaction of its own.
    async fn enqueue_one(&mut self, job: &Args) -> Result<()>;

    /// Many jobs at once, in one transaction where the peer can.
    async fn enqueue_many(&mut self, jobs: &[Args]) -> Result<()>;
}

/// Workers at work.
#[async_trait]
pub trait Crew: Send {
    /// Stops them in order.
    async fn stop(self: Box<Self>) -> Result<()>;
}
