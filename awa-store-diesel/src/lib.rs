//! Awa's store on PostgreSQL through diesel.
//!
//! ```no_run
//! use awa_core::{JobKind, JsonText, NewJob, QueueName};
//! use awa_store_diesel::DieselStore;
//! use diesel_async::{AsyncConnection, RunQueryDsl};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let store = DieselStore::connect("postgres://localhost/app").await?;
//! store.prepare_schema().await?;
//!
//! let job = NewJob::new(QueueName::new("email")?, JobKind::new("send_email")?, JsonText::new("args", "{}")?);
//! let mut connection = store.pool().get().await?;
//! connection
//!     .transaction(async |connection| {
//!         diesel::sql_query("INSERT INTO users (name) VALUES ('Ada')").execute(connection).await?;
//!         store.enqueue_in(connection, &[job]).await?; // exists if and only if the user does
//!         Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
//!     })
//!     .await
//!     .map_err(|error| error.to_string())?;
//! # Ok(())
//! # }
//! ```
//!
//! Applications that use the blocking `diesel::PgConnection` enqueue with `BlockingProducer` (feature `blocking`).
//!
//! The crate is an adapter: it binds and fetches bytes. Everything else about PostgreSQL is in `awa-pg`.
//!
//! Diesel does not show by which SQLSTATE the server names an error. Awa tells its own errors and those that diesel tells
//! apart for certain, and others by the server's English words; through this store an error of a server that speaks
//! another language may be reported as [`Internal`](awa_core::StoreErrorKind::Internal) instead of, say,
//! [`Contended`](awa_core::StoreErrorKind::Contended). Nothing that Awa does depends on the difference.

mod bind;
#[cfg(feature = "blocking")]
mod blocking;
mod connect;
mod error;
mod listen;
mod options;
mod session;
mod store;

pub use awa_pg::SchemaName;
pub use awa_pg::sql::RingSizes;
pub use awa_pg::store::{Clock, DoctorOptions, PreRing, Prepared, Repaired};
#[cfg(feature = "blocking")]
pub use blocking::BlockingProducer;
pub use options::DieselStoreOptions;
pub use store::DieselStore;
