//! The seam between Awa and a PostgreSQL driver.
//!
//! An adapter implements [`Session`] for one connection: it sends text, binds bytes and returns bytes. Everything
//! that is decided about an error is decided here, in [`PgError::into_store_error`], so that no adapter and no caller
//! of a store ever looks at an SQLSTATE.

mod error;
mod pooler;
mod redact;
mod transaction;
mod words;

use std::sync::Arc;

use async_trait::async_trait;

pub use error::PgError;
pub use pooler::BehindPooler;
pub use redact::without_passwords;
pub use transaction::{Transaction, TransactionLimits};

use crate::value::{Param, Row};

/// One SQL statement with the name of its file.
///
/// The text is what identifies a statement to a cache of prepared statements: instances of one file for several ring
/// slots or schemas share the name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Statement {
    /// The file under `sql/statements/` without its ending, for example `jobs/enqueue`; for logs and traces.
    pub name: &'static str,
    /// The SQL text, with the schema filled in and parameters as `$1`, `$2`, ...
    pub text: Arc<str>,
}

/// One connection to PostgreSQL, as a driver adapter offers it.
///
/// Calls are made one at a time. A future of a call that is dropped before it is ready leaves the connection in a
/// state only the adapter knows; the adapter must then not use it again unless its driver recovers by itself.
#[async_trait]
pub trait Session: Send {
    /// Runs one prepared statement and returns all rows of its result.
    ///
    /// The adapter prepares the statement with the parameter types of [`Param::oid`], binds the bytes of
    /// [`Param::encode`] in binary format and asks for the result in binary format. It should keep the prepared
    /// statement, by its text, for the life of the connection.
    async fn query(&mut self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<Row>, PgError>;

    /// Runs one or more statements without parameters by the simple protocol, in one round trip, and drops their
    /// results. Stops at the first one that fails.
    async fn batch(&mut self, sql: &str) -> Result<(), PgError>;

    /// Says that the connection may be inside a transaction that nobody will end: it must be closed, not given back
    /// to a pool. Called when a [`Transaction`] is dropped unfinished or its end failed.
    fn abandon(&mut self);
}

#[cfg(test)]
pub(crate) mod scripted;
