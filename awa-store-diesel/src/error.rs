//! From diesel's errors to the one that `awa-pg` judges.

use std::error::Error as StdError;

use awa_pg::PgError;
use diesel::ConnectionError;
use diesel::result::{DatabaseErrorKind, Error};
use diesel_async::pooled_connection::PoolError as MakeError;
use diesel_async::pooled_connection::deadpool::PoolError;

/// What happened, without a judgement of what to do about it.
pub(crate) fn reported(error: Error) -> PgError {
    let reported = match &error {
        Error::DatabaseError(DatabaseErrorKind::UnableToSendCommand | DatabaseErrorKind::ClosedConnection, said) => {
            PgError::connection_lost(said.message())
        }
        Error::DatabaseError(kind, said) => match code(*kind) {
            Some(code) => PgError::from_server(code, said.message()),
            None => PgError::from_server_words(said.message(), said.constraint_name()),
        }
        .with_detail(said.details())
        .with_hint(said.hint()),
        _ => PgError::from_driver(error.to_string()),
    };
    reported.with_source(error)
}

/// What diesel tells apart, under the name that the server gives it.
fn code(kind: DatabaseErrorKind) -> Option<&'static str> {
    match kind {
        DatabaseErrorKind::SerializationFailure => Some("40001"),
        DatabaseErrorKind::ReadOnlyTransaction => Some("25006"),
        DatabaseErrorKind::UniqueViolation => Some("23505"),
        DatabaseErrorKind::ForeignKeyViolation => Some("23503"),
        DatabaseErrorKind::NotNullViolation => Some("23502"),
        DatabaseErrorKind::CheckViolation => Some("23514"),
        DatabaseErrorKind::ExclusionViolation => Some("23P01"),
        DatabaseErrorKind::RestrictViolation => Some("23001"),
        _ => None,
    }
}

/// Why a pool gave no connection.
pub(crate) fn without_connection(error: PoolError) -> PgError {
    match error {
        PoolError::Backend(MakeError::ConnectionError(error)) => not_connected(error),
        PoolError::Backend(MakeError::QueryError(error)) => reported(error),
        other => PgError::connection_lost(other.to_string()).with_source(other),
    }
}

/// Why a connection could not be made.
pub(crate) fn not_connected(error: ConnectionError) -> PgError {
    match error {
        // The connections of this crate's own options keep what the server said.
        ConnectionError::CouldntSetupConfiguration(Error::QueryBuilderError(cause)) => match cause.downcast() {
            Ok(error) => refused(*error),
            Err(cause) => PgError::from_driver(cause.to_string()).with_source(cause),
        },
        ConnectionError::CouldntSetupConfiguration(error) => reported(error),
        other => PgError::connection_lost(other.to_string()).with_source(other),
    }
}

/// How an error of tokio-postgres passes through diesel's types unharmed, for [`not_connected`].
pub(crate) fn carried(error: tokio_postgres::Error) -> ConnectionError {
    ConnectionError::CouldntSetupConfiguration(Error::QueryBuilderError(Box::new(error)))
}

/// Why the server, or the way to it, refused a connection.
fn refused(error: tokio_postgres::Error) -> PgError {
    let reported = match error.as_db_error() {
        Some(said) => {
            PgError::from_server(said.code().code(), said.message()).with_detail(said.detail()).with_hint(said.hint())
        }
        None if is_about_encryption(&error) => PgError::from_driver(
            "the server or the URL asks for encryption; give DieselStore::from_pool a pool of encrypted connections",
        ),
        None => PgError::connection_lost(in_words(&error)),
    };
    reported.with_source(error)
}

/// tokio-postgres says "error performing TLS handshake" and no more.
fn is_about_encryption(error: &tokio_postgres::Error) -> bool {
    error.to_string().contains("TLS")
}

/// An error with its causes, because tokio-postgres keeps what went wrong in them.
fn in_words(error: &dyn StdError) -> String {
    match error.source() {
        Some(cause) if !error.to_string().contains(&cause.to_string()) => format!("{error}: {}", in_words(cause)),
        _ => error.to_string(),
    }
}
