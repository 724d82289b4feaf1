//! Awa's worker runtime: typed jobs, handlers, and everything that runs them on any Awa store.
//!
//! | to read about | open |
//! |---|---|
//! | typed jobs and enqueueing them | [`Job`], [`StoreExt`], [`EnqueueOptions`] |
//! | running jobs | [`Worker`], [`WorkerBuilder`], [`QueueConfig`] |
//! | what a handler gets and returns | [`JobContext`], [`Outcome`], [`JobError`], [`Fatal`] |
//! | keeping a store in order without a worker | [`Maintenance`] |

mod attempt;
mod audit;
mod backoff;
mod batcher;
mod builder;
mod call;
mod client;
mod context;
mod crew;
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
mod maintenance;
mod maintenance_config;
mod options;
mod outbox;
mod outcome;
mod panic;
mod queue;
mod seats;
mod settings;
mod shutdown;
mod sleep;
mod state;
mod stats;
mod supervise;
#[cfg(test)]
mod testing;
mod threads;
mod verdict;
mod watch;
mod worker;

pub use awa_core as core;
pub use awa_core::Store;
pub use awa_core::retry::RetryPolicy;
pub use awa_macros::Job;

pub use attempt::CancelCause;
pub use builder::WorkerBuilder;
pub use client::StoreExt;
pub use context::JobContext;
pub use error::{BuildError, RuntimeError};
pub use failure::{Fatal, Interrupted, JobError};
pub use handler::JobHandler;
pub use job::Job;
pub use maintenance::{Maintenance, TickReport};
pub use maintenance_config::MaintenanceConfig;
pub use options::{EnqueueOptions, IntoNewJob, WithOptions, new_job};
pub use outcome::{HandlerResult, JobResult, Outcome};
pub use queue::QueueConfig;
pub use shutdown::{AbandonedAttempt, ShutdownReport};
pub use state::MissingState;
pub use stats::{StatsHandle, WorkerStats};
pub use worker::Worker;
