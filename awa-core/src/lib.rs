//! The rules of Awa, a job queue that lives inside PostgreSQL.
//!
//! This crate knows what a job is, which moves are legal and what must be proven before a partition is
//! reclaimed. It does no I/O, reads no clock, draws no random number and knows neither SQL nor a runtime:
//! time and randomness are arguments, decisions come back as values with their reasons.
//!
//! | to read about | open |
//! |---|---|
//! | identities of jobs, attempts, claims and partitions | [`id`] |
//! | what a caller may enqueue, and how bad input is refused | [`job`], [`name`], [`json`] |
//! | what is set per queue, and how its jobs are spread over lanes | [`queue`] |
//! | the states of a job and the table of legal transitions | [`state`] |
//! | how an attempt ends | [`attempt`] |
//! | waiting for somebody outside | [`callback`] |
//! | order without locks: the lane frontier over transaction snapshots | [`frontier`] |
//! | claims, closures and `open = claimed - closed` | [`receipt`] |
//! | partitions that are reclaimed by truncation | [`ring`], [`prune`] |
//! | freeing partitions that little keeps | [`unpin`] |
//! | finding claims whose worker is gone | [`sweep`] |
//! | retries | [`retry`] |
//! | at most one job at a time per key | [`unique`] |
//! | what must be done to a store that was carried into another cluster | [`repair`] |
//! | what a doctor thinks of a store | [`doctor`] |
//! | what a store must promise | [`store`] |
//! | the executable model that defines a store | [`model`] |

pub mod attempt;
pub mod callback;
pub mod doctor;
pub mod error;
pub mod frontier;
pub mod id;
pub mod job;
pub mod json;
pub mod model;
pub mod name;
pub mod prune;
pub mod queue;
pub mod receipt;
pub mod repair;
pub mod retry;
pub mod ring;
pub mod state;
pub mod store;
pub mod sweep;
pub mod time;
pub mod unique;
pub mod unpin;

pub use attempt::{AttemptEnd, ClaimedJob, Closure, ClosureAnswer};
pub use callback::{CallbackAnswer, CallbackToken};
pub use error::{BadInput, NotCompleted, StoreError, StoreErrorKind};
pub use id::{BatchId, InstanceId, JobId, LaneId, Nonce, ReceiptId, RunLease};
pub use job::{Enqueued, NewJob, Priority, RunAt};
pub use json::JsonText;
pub use name::{JobKind, QueueName};
pub use queue::{OrderingKey, QueueSettings, ShardCount};
pub use state::JobState;
pub use store::Store;
pub use time::Timestamp;
pub use unique::{OnConflict, Unique, UniqueBy};
