//! Everything of Awa on PostgreSQL that is not a driver.
//!
//! A driver adapter implements [`session::Session`], two calls that carry SQL text and raw bytes, and holds neither
//! SQL nor a decision. All the rest is here, once for every driver.
//!
//! | to read about | open |
//! |---|---|
//! | parameters and result cells in PostgreSQL's binary format | [`value`] |
//! | what an adapter must do, and how its errors are judged | [`session`] |
//! | the name of the schema and why no name is dangerous | [`schema_name`] |
//! | how the files under `sql/` become statements | [`sql`] |
//! | the calls of a store, and how an adapter wraps them | [`store`] |
//! | throw-away servers for tests, demos and benchmarks (feature `cluster`) | `cluster` |

#[cfg(feature = "cluster")]
pub mod cluster;
pub mod schema_name;
pub mod session;
pub mod sql;
pub mod store;
pub mod value;

pub use schema_name::SchemaName;
pub use session::{PgError, Session, Statement};
pub use sql::{RingSizes, Sql};
pub use store::{PgStore, Pool};
pub use value::{DecodeError, Param, Row};
