//! What went wrong on a connection, and what a caller of a store is told about it.

use std::error::Error;
use std::fmt;

use awa_core::error::{StoreError, StoreErrorKind};

use super::redact::without_passwords;
use super::words;

/// A failure as the driver reported it, free of passwords.
#[derive(Debug)]
pub struct PgError {
    sqlstate: Option<String>,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
    connection_lost: bool,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl PgError {
    /// An error that the server answered with, by its SQLSTATE and its message.
    pub fn from_server(sqlstate: impl Into<String>, message: impl AsRef<str>) -> Self {
        Self { sqlstate: Some(sqlstate.into()), ..Self::from_driver(message) }
    }

    /// An error that the server answered with, through a driver that hides the SQLSTATE: it is told from the server's
    /// words where they are known, and from the constraint that the error names, if any.
    pub fn from_server_words(message: impl AsRef<str>, constraint: Option<&str>) -> Self {
        let sqlstate = words::sqlstate(message.as_ref(), constraint).map(str::to_owned);
        Self { sqlstate, ..Self::from_driver(message) }
    }

    /// A connection that could not be made, was not free in time, or broke.
    pub fn connection_lost(message: impl AsRef<str>) -> Self {
        Self { connection_lost: true, ..Self::from_driver(message) }
    }

    /// Any other failure inside the driver: a protocol error, a type it cannot carry.
    pub fn from_driver(message: impl AsRef<str>) -> Self {
        Self {
            sqlstate: None,
            message: without_passwords(message.as_ref()),
            detail: None,
            hint: None,
            connection_lost: false,
            source: None,
        }
    }

    /// The same error with the server's detail. It may hold data of a row, so it stays out of messages.
    #[must_use]
    pub fn with_detail(mut self, detail: Option<impl AsRef<str>>) -> Self {
        self.detail = detail.map(|detail| without_passwords(detail.as_ref()));
        self
    }

    /// The same error with the server's hint.
    #[must_use]
    pub fn with_hint(mut self, hint: Option<impl AsRef<str>>) -> Self {
        self.hint = hint.map(|hint| without_passwords(hint.as_ref()));
        self
    }

    /// The same error with the driver's error as its cause. A cause whose text shows a password is kept as its
    /// cleaned text only.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let source = source.into();
        let text = chain(source.as_ref());
        let debug = format!("{source:?}");
        let clean = without_passwords(&text);
        let is_clean = clean == text && without_passwords(&debug) == debug;
        self.source = Some(if is_clean { source } else { clean.into() });
        self
    }

    /// The five characters that PostgreSQL classifies its errors by, when the server answered.
    pub fn sqlstate(&self) -> Option<&str> {
        self.sqlstate.as_deref()
    }

    /// The primary message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The server's detail; it may hold data of a row.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// The server's hint.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Whether the connection is gone, so that the outcome of the call is unknown.
    pub fn is_connection_lost(&self) -> bool {
        self.connection_lost
    }

    /// Whether the connection is of no further use: it is gone, or the server said that it ends it.
    pub fn ends_session(&self) -> bool {
        let ends = |code: &str| code.starts_with("57P0") || code.starts_with("08") || matches!(code, "25P03" | "25P04");
        self.connection_lost || self.sqlstate.as_deref().is_some_and(ends)
    }

    /// What kind of trouble it is, by SQLSTATE.
    pub fn kind(&self) -> StoreErrorKind {
        self.judge().0
    }

    /// The failure of the store's call `operation`, with the next step in its message.
    pub fn into_store_error(self, operation: &'static str) -> StoreError {
        let (kind, next_step) = self.judge();
        let next_step = match (&self.hint, next_step) {
            (Some(hint), NextStep::AsHinted(_)) => sentence_part(hint),
            (_, NextStep::Fixed(text) | NextStep::AsHinted(text)) => text.to_owned(),
        };
        let code = self.sqlstate.as_ref().map(|code| format!(" (SQLSTATE {code})")).unwrap_or_default();
        let message = format!("{}{code}; {next_step}", sentence_part(&self.message));
        StoreError::new(kind, operation, message).with_source(self)
    }

    /// The one table from SQLSTATE to the kind of trouble and what to do about it.
    fn judge(&self) -> (StoreErrorKind, NextStep) {
        use NextStep::{AsHinted, Fixed};
        use StoreErrorKind::{Contended, Corrupt, Denied, Internal, NotReady, Refused, Unavailable};

        let Some(code) = self.sqlstate.as_deref() else {
            return if self.connection_lost {
                (Unavailable, Fixed(UNREACHABLE))
            } else {
                (Internal, Fixed(UNEXPECTED))
            };
        };
        match code {
            "AW001" => (NotReady, AsHinted(MIGRATE)),
            "AW002" => (Corrupt, AsHinted("run `awa doctor` before anything else writes")),
            "AW003" => (Refused, AsHinted("change the call, repeating it will not help")),
            "40001" | "40P01" | "55P03" | "57014" => (Contended, Fixed("try again soon")),
            // The server ended the session on purpose because it idled inside a transaction or took too long.
            "25P03" | "25P04" | "40003" => (Unavailable, Fixed(UNREACHABLE)),
            "25006" => (Unavailable, Fixed("the server takes no writes, connect to the primary")),
            "3D000" => (NotReady, Fixed("create the database, then run `awa migrate`")),
            "3F000" | "42P01" | "42883" | "42703" => (NotReady, Fixed(MIGRATE)),
            "42501" => (Denied, Fixed("grant the privilege to the role in the database URL, or use another role")),
            "53300" => (Unavailable, Fixed("raise max_connections or make the pools smaller")),
            "XX001" | "XX002" => (Corrupt, Fixed("stop writing and restore the database from a backup")),
            _ if code.starts_with("57P0") || code.starts_with("08") => (Unavailable, Fixed(UNREACHABLE)),
            _ if code.starts_with("53") => (Unavailable, Fixed("free memory or disk space on the database server")),
            _ if code.starts_with("28") => (Denied, Fixed("check the role and the password in the database URL")),
            "25P02" => (Refused, Fixed("roll the transaction back, an earlier statement in it failed")),
            "23514" | "54000" | "54001" => (Refused, Fixed("change what is stored, the server cannot take it")),
            _ if code.starts_with("22") => (Refused, Fixed("change what is stored, the server cannot take it")),
            _ if self.connection_lost => (Unavailable, Fixed(UNREACHABLE)),
            _ => (Internal, Fixed(UNEXPECTED)),
        }
    }
}

const UNREACHABLE: &str =
    "check that PostgreSQL runs and can be reached at the address in the database URL, the call is safe to repeat";
const MIGRATE: &str = "run `awa migrate`";
const UNEXPECTED: &str = "this is not expected, the server's log has more";

/// What an operator or a caller does next.
enum NextStep {
    /// This.
    Fixed(&'static str),
    /// What the hint of Awa's own function says, else this.
    AsHinted(&'static str),
}

impl fmt::Display for PgError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.sqlstate {
            Some(code) => write!(f, "{} (SQLSTATE {code})", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl Error for PgError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// The texts of an error and of its causes, which must not show a password either.
fn chain(error: &dyn Error) -> String {
    /// Longer chains are cut; no driver nests deeper.
    const MAX_CAUSES: usize = 16;
    let causes = std::iter::successors(Some(error), |error: &&dyn Error| (*error).source()).take(MAX_CAUSES);
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// A message as a part of a longer sentence: without a full stop, and in lower case unless it begins with an
/// abbreviation such as SSL.
fn sentence_part(message: &str) -> String {
    let message = message.trim().trim_end_matches('.');
    let mut characters = message.chars();
    match (characters.next(), characters.next()) {
        (Some(first), Some(second)) if first.is_uppercase() && (second.is_lowercase() || second == ' ') => {
            first.to_lowercase().chain(message[first.len_utf8()..].chars()).collect()
        }
        _ => message.to_owned(),
    }
}

#[cfg(test)]
mod tests;
