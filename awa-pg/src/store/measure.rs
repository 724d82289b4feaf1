//! What jobs cost the server, for benchmarks: counters to be read before and after, and the conditions they hold under.

use std::collections::BTreeMap;
use std::fmt;

use awa_core::error::StoreError;

use super::{PgStore, only_row, undecodable};
use crate::session::{PgError, Session};
use crate::value::Param;

const OPERATION: &str = "measure";

/// What the server has counted up to a moment. Only differences mean anything. Numbers of rows and transactions are
/// complete when the sessions that made them are gone ([`Measure::sessions`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Bytes of write-ahead log, of the whole server.
    pub wal_bytes: i64,
    /// Transactions committed in the database, read-only ones included.
    pub commits: i64,
    /// Rows inserted into the tables of the schema.
    pub inserted: i64,
    /// Rows updated there; each leaves a dead row behind.
    pub updated: i64,
    /// Rows deleted there; each is a dead row.
    pub deleted: i64,
}

/// Looks at a store's database from outside. Made by [`PgStore::measure`].
#[derive(Debug, Clone, Copy)]
pub struct Measure<'a>(&'a PgStore);

impl PgStore {
    /// A look at what the server counts.
    pub fn measure(&self) -> Measure<'_> {
        Measure(self)
    }
}

impl<'a> Measure<'a> {
    /// What has been counted so far.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the server cannot be asked, or is a standby.
    pub async fn counters(&self) -> Result<Counters, StoreError> {
        let rows = self.0.call(OPERATION, self.0.sql.statement("measure/counters"), &[]).await?;
        let (row, bad) = (only_row(OPERATION, &rows)?, undecodable(OPERATION));
        let number = |column| row.i64(column).map_err(&bad);
        Ok(Counters {
            wal_bytes: number(0)?,
            commits: number(1)?,
            inserted: number(2)?,
            updated: number(3)?,
            deleted: number(4)?,
        })
    }

    /// How many statements clients have sent to the database; `None` where the extension `pg_stat_statements` is missing.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the server cannot be asked, or the role may not read it.
    pub async fn statement_calls(&self) -> Result<Option<i64>, StoreError> {
        let rows = self.0.call(OPERATION, self.0.sql.statement("measure/statement_calls"), &[]).await?;
        rows.first().map(|row| row.i64(0).map_err(undecodable(OPERATION))).transpose()
    }

    /// The values of the named settings, with their units; those that the server does not know are left out.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the server cannot be asked.
    pub async fn settings(&self, names: &[&str]) -> Result<BTreeMap<String, String>, StoreError> {
        let bad = undecodable(OPERATION);
        let names = [Param::from(names)];
        let rows = self.0.call(OPERATION, self.0.sql.statement("measure/settings"), &names).await?;
        let read = |row: &crate::value::Row| {
            Ok((row.text(0).map_err(&bad)?.to_owned(), row.text(1).map_err(&bad)?.to_owned()))
        };
        rows.iter().map(read).collect()
    }

    /// The process ids of all other sessions of this role in this database.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the server cannot be asked.
    pub async fn sessions(&self) -> Result<Vec<i32>, StoreError> {
        let rows = self.0.call(OPERATION, self.0.sql.statement("measure/sessions"), &[]).await?;
        rows.iter().map(|row| row.i32(0).map_err(undecodable(OPERATION))).collect()
    }

    /// Holds a snapshot as a long report would: a transaction at REPEATABLE READ that reads nothing more. It takes a
    /// session of the pool until it is released or dropped.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the server cannot be asked.
    pub async fn hold_snapshot(&self) -> Result<HeldSnapshot<'a>, StoreError> {
        let lost = |error: PgError| error.into_store_error(OPERATION);
        let session = self.0.pool.session().await.map_err(lost)?;
        let mut held = HeldSnapshot { session, is_open: true };
        held.session.batch(BEGIN).await.map_err(lost)?;
        held.session.query(self.0.sql.statement("measure/take_snapshot"), &[]).await.map_err(lost)?;
        Ok(held)
    }

    /// Removes the schema with every job in it. For whoever made it only to measure.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the server refuses; nothing was removed.
    pub async fn drop_schema(&self) -> Result<(), StoreError> {
        let lost = |error: PgError| error.into_store_error(OPERATION);
        let mut session = self.0.pool.session().await.map_err(lost)?;
        session.batch(&self.0.sql.statement("measure/drop_schema").text).await.map_err(lost)
    }
}

const BEGIN: &str =
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = 0";

/// A snapshot that is held, from [`Measure::hold_snapshot`]. Dropping it gives it up with its connection.
pub struct HeldSnapshot<'a> {
    session: Box<dyn Session + 'a>,
    is_open: bool,
}

impl HeldSnapshot<'_> {
    /// Ends the transaction.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the connection was lost meanwhile.
    pub async fn release(mut self) -> Result<(), StoreError> {
        self.session.batch("ROLLBACK").await.map_err(|error| error.into_store_error(OPERATION))?;
        self.is_open = false;
        Ok(())
    }
}

impl Drop for HeldSnapshot<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.session.abandon();
        }
    }
}

impl fmt::Debug for HeldSnapshot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldSnapshot").field("is_open", &self.is_open).finish_non_exhaustive()
    }
}
