//! Awa's store on PostgreSQL through sqlx.
//!
//! ```no_run
//! use awa_core::{JobKind, JsonText, NewJob, QueueName};
//! use awa_store_sqlx::SqlxStore;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let store = SqlxStore::connect("postgres://localhost/app").await?;
//! store.prepare_schema().await?;
//!
//! let job = NewJob::new(QueueName::new("email")?, JobKind::new("send_email")?, JsonText::new("args", "{}")?);
//! let mut tx = store.pool().begin().await?;
//! sqlx::query("INSERT INTO users (name) VALUES ('Ada')").execute(&mut *tx).await?;
//! store.enqueue_in(&mut tx, &[job]).await?; // exists if and only if the user does
//! tx.commit().await?;
//! # Ok(())
//! # }
//! ```
//!
//! The crate is an adapter: it binds and fetches bytes. Everything else about PostgreSQL is in `awa-pg`.

mod bind;
mod error;
mod kept;
mod listen;
mod options;
mod session;
mod store;

pub use awa_pg::SchemaName;
pub use awa_pg::sql::RingSizes;
pub use awa_pg::store::{Clock, DoctorOptions, PreRing, Prepared, Repaired};
pub use options::SqlxStoreOptions;
pub use store::SqlxStore;
