//! Awa's worker runtime: typed jobs, handlers, and everything that runs them on any Awa store.
//!
//! ```
//! use std::sync::Arc;
//!
//! use awa_runtime::{Job, JobContext, Outcome, QueueConfig, StoreExt, Worker};
//! use awa_store_mem::MemStore;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize, Job)]
//! #[job(kind = "send_email", queue = "email", max_attempts = 5)]
//! struct SendEmail {
//!     to: String,
//!     subject: String,
//! }
//!
//! async fn send(job: SendEmail) -> Result<(), std::io::Error> {
//!     println!("{} gets {:?}", job.to, job.subject);
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = Arc::new(MemStore::new()); // or a store on Postgres, or your own
//! store.enqueue_job(SendEmail { to: "ada@example.org".into(), subject: "hello".into() }).await?;
//!
//! let sent = Arc::new(tokio::sync::Notify::new());
//! let worker = Worker::builder(store)
//!     .queue("email", QueueConfig::default().concurrency(64))
//!     .state(Arc::clone(&sent))
//!     .handler(|job: SendEmail, cx: JobContext| async move {
//!         send(job).await?;
//!         cx.state::<tokio::sync::Notify>()?.notify_one();
//!         Ok(Outcome::Done)
//!     })
//!     .build()?;
//! let report = worker.run_until(async { sent.notified().await }).await?;
//! assert_eq!(report.stats.completed, 1);
//! # Ok(())
//! # }
//! ```
//!
//! | to read about | open |
//! |---|---|
//! | typed jobs and enqueueing them | [`Job`], [`StoreExt`], [`EnqueueOptions`] |
//! | running jobs | [`Worker`], [`WorkerBuilder`], [`QueueConfig`] |
//! | what a handler gets and returns | [`JobContext`], [`Outcome`], [`JobError`], [`Fatal`] |
//! | progress of long jobs, and waiting for somebody outside | [`callbacks`], [`AttemptError`] |
//! | what a worker has done, and how it ended | [`WorkerStats`], [`ShutdownReport`] |
//! | keeping a store in order without a worker | [`Maintenance`] |
//! | unit tests of jobs and of what enqueues them (feature `testing`) | `testing` |
//!
//! # Inside a worker
//!
//! One **dispatcher** per queue claims what can soon run, and sleeps by the store's wake-ups with polling underneath. A
//! claimed job waits for a **seat**, the permit of its queue; a **runner** sits on it, runs handler after handler, fences
//! each against panics and leaves its end in the **outbox**. The **batcher** takes ends of all queues to the store in
//! batches and keeps each until it is confirmed: while the store is away it repeats itself, and when one end is in the
//! way of others it halves the batch. Too many unconfirmed ends stop the claims. The **heartbeat** shows that the process
//! is alive, the **watch** tells handlers that their attempt was ended elsewhere and enforces deadlines, the **audit**
//! hands back what a lost answer claimed, and **maintenance** keeps the store in order together with all other processes.
//!
//! The end of an attempt is said once, by whoever is first to take the right to it: the handler, its deadline, or the
//! shutdown. All of this runs on threads of the worker's own; only handlers run on the caller's runtime.

mod ahead;
mod attempt;
mod audit;
mod backoff;
mod batcher;
mod builder;
mod call;
mod client;
mod context;
mod crew;
mod desk;
mod dispatcher;
mod error;
mod executor;
mod failure;
mod flights;
mod flush;
mod handler;
mod hands;
mod heartbeat;
mod job;
mod lookout;
mod maintenance;
mod maintenance_config;
mod notes;
mod options;
mod outbox;
mod outcome;
mod panic;
mod queue;
mod seats;
mod settings;
mod shutdown;
mod state;
mod stats;
mod supervise;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod threads;
mod verdict;
mod vigil;
mod warned;
mod watch;
mod worker;

#[doc = include_str!("callbacks.md")]
pub mod callbacks {}

pub use awa_core as core;
pub use awa_core::Store;
pub use awa_core::retry::RetryPolicy;
pub use awa_macros::Job;

pub use attempt::CancelCause;
pub use builder::WorkerBuilder;
pub use client::{CallbackExt, StoreExt};
pub use context::JobContext;
pub use error::{BuildError, RuntimeError};
pub use failure::{Fatal, Interrupted, JobError};
pub use handler::JobHandler;
pub use job::Job;
pub use maintenance::{Maintenance, StuckRing, TickReport};
pub use maintenance_config::MaintenanceConfig;
pub use notes::AttemptError;
pub use options::{EnqueueOptions, IntoNewJob, WithOptions, new_job};
pub use outcome::{HandlerResult, JobResult, Outcome};
pub use queue::QueueConfig;
pub use shutdown::{AbandonedAttempt, ShutdownReport};
pub use state::MissingState;
pub use stats::{StatsHandle, WorkerStats};
pub use worker::Worker;
