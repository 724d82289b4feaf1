//! Awa's memory store: the [executable model](awa_core::model) behind a lock, for tests without a database.
//!
//! [`MemStore`] keeps every clause of the [contract](awa_core::store) but durability: its jobs end with the process,
//! and other processes do not see them. Use it in unit tests and examples, never for work that must be done.
//!
//! ```
//! use awa_core::store::{Operator, Producer};
//! use awa_core::{JobKind, JobState, JsonText, NewJob, QueueName};
//! use awa_store_mem::MemStore;
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let store = MemStore::new();
//! let job = NewJob::new(
//!     QueueName::new("email")?,
//!     JobKind::new("send_email")?,
//!     JsonText::new("args", r#"{"to":"ada@example.org"}"#)?,
//! );
//! let mut transaction = store.begin()?;
//! let id = transaction.enqueue(&[job])?[0].id();
//! assert!(store.get(id).await?.is_none(), "not before the transaction commits");
//! transaction.commit()?;
//! assert_eq!(store.get(id).await?.map(|job| job.state), Some(JobState::Ready));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`FaultyStore`] wraps any store and lets chosen calls fail, before or after they did their work, or wait.

mod clock;
mod faulty;
mod store;
mod transaction;

pub use clock::{Clock, ManualClock, SystemClock, TokioClock};
pub use faulty::{Fault, FaultyStore, Operation};
pub use store::MemStore;
pub use transaction::MemTransaction;
