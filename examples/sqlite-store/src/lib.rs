//! Awa's store on SQLite: the worked example of `docs/custom-store.md`.
//!
//! SQLite has one writer at a time, so every call is one short transaction, and the rules about races hold by themselves.
//! What it cannot do is said by what it does not declare: an application's transaction that stays open would keep every
//! other writer waiting (C10), so it offers none; it has no wake-ups, so dispatchers poll; it deletes history row by row,
//! so it has no rings. The conformance suite names the cases that are not covered for these reasons.

mod consumer;
mod job;
mod maintainer;
mod missing;
mod operator;
mod producer;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use awa_core::store::{Store, Wakeups};
use awa_core::{StoreError, StoreErrorKind, Timestamp};
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};

/// Tells the time; all comparisons use it (C12).
type Clock = dyn Fn() -> Timestamp + Send + Sync;

/// A store in a file of SQLite's. Clones share its connection.
#[derive(Clone)]
pub struct SqliteStore {
    connection: Arc<Mutex<Connection>>,
    clock: Arc<Clock>,
}

impl SqliteStore {
    /// Opens a file, and makes what is missing in it.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the file cannot be used.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::with_clock(path, Arc::new(system_time))
    }

    /// The same on another clock, for tests.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub fn with_clock(path: impl AsRef<Path>, clock: Arc<Clock>) -> Result<Self, StoreError> {
        let prepare = || {
            let connection = Connection::open(path)?;
            // What is acknowledged is on the disk (C1); other processes wait for their turn instead of failing.
            connection.pragma_update(None, "journal_mode", "wal")?;
            connection.pragma_update(None, "synchronous", "full")?;
            connection.busy_timeout(std::time::Duration::from_secs(5))?;
            connection.execute_batch(include_str!("schema.sql"))?;
            Ok(connection)
        };
        let connection = prepare().map_err(|error| told("open", error))?;
        Ok(Self { connection: Arc::new(Mutex::new(connection)), clock })
    }

    /// Carries out one call in a transaction of its own: all of it or nothing.
    ///
    /// A server would do this on a thread for blocking work; a call takes microseconds, and the example stays short.
    fn step<T>(
        &self,
        operation: &'static str,
        step: impl FnOnce(&Transaction<'_>, Timestamp) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let mut connection = self.connection.lock().map_err(|_| {
            StoreError::new(StoreErrorKind::Internal, operation, "an earlier call panicked; open the store again")
        })?;
        let carry_out = || {
            // To be the writer from the beginning: what is read is still true when it is acted upon.
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let answer = step(&transaction, (self.clock)())?;
            transaction.commit()?;
            Ok(answer)
        };
        carry_out().map_err(|error| told(operation, error))
    }
}

impl Store for SqliteStore {
    fn describe(&self) -> String {
        "SQLite".to_owned()
    }

    fn wakeups(&self) -> Option<&dyn Wakeups> {
        None
    }

    fn is_durable(&self) -> bool {
        true
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SqliteStore")
    }
}

fn system_time() -> Timestamp {
    Timestamp::EPOCH.saturating_add(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// What a caller should do about an error of SQLite's.
fn told(operation: &'static str, error: rusqlite::Error) -> StoreError {
    let (kind, next) = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (StoreErrorKind::Contended, "try again soon"),
        Some(ErrorCode::CannotOpen | ErrorCode::SystemIoFailure | ErrorCode::DiskFull) => {
            (StoreErrorKind::Unavailable, "check the file and the disk it is on")
        }
        Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
            (StoreErrorKind::Denied, "let this user write to the file and its folder")
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            (StoreErrorKind::Corrupt, "stop writing and restore the file from a backup")
        }
        _ => (StoreErrorKind::Internal, "this is not expected"),
    };
    StoreError::new(kind, operation, format!("{error}; {next}")).with_source(error)
}

/// The next number of a series.
fn next_number(transaction: &Transaction<'_>, name: &str) -> rusqlite::Result<i64> {
    let sql = "INSERT INTO numbers (name, last) VALUES (?1, 1)
               ON CONFLICT (name) DO UPDATE SET last = last + 1 RETURNING last";
    transaction.prepare_cached(sql)?.query_row([name], |row| row.get(0))
}
