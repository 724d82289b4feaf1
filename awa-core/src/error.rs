//! The two kinds of failure: input that was refused before anything was written, and a store that could not answer.
//!
//! Expected refusals (a stale receipt, a slot that must be kept) are neither: they are values in the answers.

use std::error::Error;
use std::fmt;

/// Input that Awa refuses, with the field at fault and what would be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BadInput {
    /// The field at fault, as the caller spells it: `queue`, `kind`, `args`, `priority`, `run_at`, ...
    pub field: &'static str,
    /// What is wrong with it and what would be accepted.
    pub problem: String,
}

impl BadInput {
    /// The refusal of `field` for the reason `problem`.
    pub fn new(field: &'static str, problem: impl Into<String>) -> Self {
        Self { field, problem: problem.into() }
    }
}

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} refused: {}", self.field, self.problem)
    }
}

impl Error for BadInput {}

/// What kind of trouble a store is in; the answer to "what should the caller do?".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The store cannot be reached, or the connection broke: try again with a growing delay.
    Unavailable,
    /// Another transaction was in the way (lock or statement time-out, serialization failure): try again soon.
    Contended,
    /// The store is not set up, or by another version of Awa: an operator must act.
    NotReady,
    /// The credentials or privileges do not suffice: an operator must act.
    Denied,
    /// The call was refused as a whole and will be refused again.
    Refused,
    /// What is stored contradicts itself; nothing was guessed.
    Corrupt,
    /// A failure that Awa did not expect.
    Internal,
}

/// A store could not carry out a call. The outcome of a call that failed as [`StoreErrorKind::Unavailable`] is
/// unknown; every call of a store is safe to repeat in that case (clause C7 of [`crate::store`]).
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    operation: &'static str,
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl StoreError {
    /// A failure of `operation`; `message` names the object and the next step, in lower case.
    pub fn new(kind: StoreErrorKind, operation: &'static str, message: impl Into<String>) -> Self {
        Self { kind, operation, message: message.into(), source: None }
    }

    /// The same failure with its cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What kind of trouble it is.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// The operation that failed: `enqueue`, `claim`, `close`, ...
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// What happened, to which object, and what to do next, without the operation that [`Display`](fmt::Display) puts before it.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the same call may succeed later without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        matches!(self.kind, StoreErrorKind::Unavailable | StoreErrorKind::Contended)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.operation, self.message)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<BadInput> for StoreError {
    fn from(bad: BadInput) -> Self {
        Self::new(StoreErrorKind::Refused, "validate", bad.to_string()).with_source(bad)
    }
}

/// An attempt was not completed in the caller's transaction, which must now be rolled back.
///
/// It is an error, so that `?` in the closure or function that holds the transaction is enough.
#[derive(Debug)]
#[non_exhaustive]
pub enum NotCompleted {
    /// The attempt has ended elsewhere: it was rescued, cancelled, or completed before. Whatever the handler did belongs to
    /// nobody.
    Stale,
    /// Somebody else's open transaction is about to end the attempt, or the snapshot of this one is too old to tell: run the
    /// whole transaction again.
    Contended,
    /// The store could not carry out the call.
    Store(StoreError),
}

impl fmt::Display for NotCompleted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale => f.write_str("complete_in refused: the attempt has ended elsewhere; roll the transaction back"),
            Self::Contended => f.write_str(
                "complete_in refused: another transaction is about to end the attempt; roll back and run the transaction again",
            ),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl Error for NotCompleted {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::Stale | Self::Contended => None,
        }
    }
}

impl From<StoreError> for NotCompleted {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
