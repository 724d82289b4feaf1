//! What unit tests of jobs need besides a store in memory (feature `testing`).
//!
//! | to | use |
//! |---|---|
//! | call a handler directly | [`TestContext`] |
//! | run jobs one by one, or all that can run, on the task of the test | [`InlineWorker`], made by [`Worker::inline`](crate::Worker::inline) |
//! | see what was enqueued, with typed arguments | [`jobs_of`] |
//! | let time pass | `MemStore::with_manual_clock` of `awa-store-mem` |
//!
//! ```
//! use std::sync::Arc;
//!
//! use awa_runtime::testing::jobs_of;
//! use awa_runtime::{Job, JobContext, Outcome, QueueConfig, StoreExt, Worker};
//! use awa_store_mem::MemStore;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize, Job, Debug, PartialEq)]
//! #[job(kind = "send_email", queue = "email")]
//! struct SendEmail {
//!     to: String,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let store = Arc::new(MemStore::new());
//! store.enqueue_job(SendEmail { to: "ada@example.org".into() }).await?;
//! assert_eq!(jobs_of::<SendEmail>(&*store).await?[0].job, SendEmail { to: "ada@example.org".into() });
//!
//! let worker = Worker::builder(store)
//!     .queue("email", QueueConfig::default())
//!     .handler(|_: SendEmail, _: JobContext| async { Ok(Outcome::Done) })
//!     .build()?
//!     .inline();
//! assert_eq!(worker.run_until_idle().await?.len(), 1);
//! # Ok(())
//! # }
//! ```

mod context;
mod enqueued;
mod inline;
#[cfg(test)]
mod samples;

pub use context::TestContext;
pub use enqueued::{StoredJob, jobs_of};
pub use inline::{InlineWorker, Ran};
#[cfg(test)]
pub(crate) use samples::{attempts, claimed};
