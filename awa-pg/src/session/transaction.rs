//! Transactions of more than one statement, which a frozen client cannot keep open.

use std::fmt::Write as _;
use std::time::Duration;

use super::{PgError, Session};

/// How long a transaction and its statements may take before the server ends them.
///
/// Lengths are rounded up to whole milliseconds and kept between 1 ms and 24 days, the range of the server's
/// settings; zero would mean "no limit" there and is not on offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionLimits {
    /// The longest wait of the server for the next statement; afterwards it closes the connection.
    pub idle: Duration,
    /// The longest run of one statement.
    pub statement: Duration,
    /// The longest wait for one lock; `None` leaves it to the limit of the statement.
    pub lock: Option<Duration>,
}

impl Default for TransactionLimits {
    /// Five seconds idle, thirty per statement, no limit of its own for locks.
    fn default() -> Self {
        Self { idle: Duration::from_secs(5), statement: Duration::from_secs(30), lock: None }
    }
}

impl TransactionLimits {
    /// The statements that begin a transaction at READ COMMITTED under these limits, for [`Session::batch`]. Names are
    /// looked for in PostgreSQL's own catalog only: in a schema of the role's search path, a function of somebody else's
    /// may fit an argument better than the one that is meant. Nothing is compiled: the plans of the large views take longer to
    /// compile than to run, and hold what they read meanwhile.
    pub fn begin_script(&self) -> String {
        let mut script = format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
             SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL jit = off; \
             SET LOCAL idle_in_transaction_session_timeout = {}; SET LOCAL statement_timeout = {}",
            millis(self.idle),
            millis(self.statement)
        );
        if let Some(lock) = self.lock {
            write!(script, "; SET LOCAL lock_timeout = {}", millis(lock)).expect("a string takes any text");
        }
        script
    }
}

/// A transaction on a session.
///
/// Dropped without [`Self::commit`], [`Self::rollback`], [`Self::finish`] or [`Self::undo`], for example because the future around it
/// was cancelled, it abandons the session: the connection must not be used again.
pub struct Transaction<'s> {
    session: &'s mut dyn Session,
    ended: bool,
}

/// COMMIT of a transaction that failed is a rollback which the server reports as a success. The statement before it
/// fails in that case, so that a swallowed error is never taken for a commit.
const COMMIT_SCRIPT: &str = "SELECT 1; COMMIT";

impl<'s> Transaction<'s> {
    /// Begins a transaction at READ COMMITTED under `limits`, in one round trip. The session must not be inside a
    /// transaction.
    pub async fn begin(session: &'s mut dyn Session, limits: &TransactionLimits) -> Result<Self, PgError> {
        let transaction = Self { session, ended: false };
        transaction.session.batch(&limits.begin_script()).await?;
        Ok(transaction)
    }

    /// The session, for the statements of the transaction.
    pub fn session(&mut self) -> &mut dyn Session {
        self.session
    }

    /// Commits. After an error that says the connection is lost, the outcome is unknown.
    pub async fn commit(mut self) -> Result<(), PgError> {
        self.session.batch(COMMIT_SCRIPT).await?;
        self.ended = true;
        Ok(())
    }

    /// Rolls back.
    pub async fn rollback(mut self) -> Result<(), PgError> {
        self.session.batch("ROLLBACK").await?;
        self.ended = true;
        Ok(())
    }

    /// Commits when `result` is `Ok`, else rolls back. The error of `result` is returned also when the rollback fails
    /// in its turn; the session is abandoned then. `lost` makes of a failed commit what the caller returns.
    pub async fn finish<T, E>(self, result: Result<T, E>, lost: impl FnOnce(PgError) -> E) -> Result<T, E> {
        match result {
            Ok(value) => self.commit().await.map(|()| value).map_err(lost),
            error => self.undo(error, lost).await,
        }
    }

    /// Rolls back, whatever `result` is, and returns it. Its error is returned also when the rollback fails in its turn; the
    /// session is abandoned then. `lost` makes of a failed rollback what the caller returns.
    pub async fn undo<T, E>(self, result: Result<T, E>, lost: impl FnOnce(PgError) -> E) -> Result<T, E> {
        match (self.rollback().await, result) {
            (Ok(()), result) => result,
            (Err(rollback), Ok(_)) => Err(lost(rollback)),
            (Err(rollback), error) => {
                tracing::debug!(error = %rollback, "rollback failed, the connection is given up");
                error
            }
        }
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.session.abandon();
        }
    }
}

impl std::fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction").field("ended", &self.ended).finish_non_exhaustive()
    }
}

/// Whole milliseconds for a setting of the server, never zero.
fn millis(length: Duration) -> i32 {
    i32::try_from(length.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX).max(1)
}

#[cfg(test)]
mod tests;
