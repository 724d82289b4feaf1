//! From sqlx's errors to the one that `awa-pg` judges.

use awa_pg::PgError;
use sqlx::postgres::PgDatabaseError;

/// What happened, without a judgement of what to do about it.
pub(crate) fn reported(error: sqlx::Error) -> PgError {
    let reported = match &error {
        sqlx::Error::Database(database) => {
            let server = database.try_downcast_ref::<PgDatabaseError>();
            PgError::from_server(database.code().unwrap_or_default(), database.message())
                .with_detail(server.and_then(PgDatabaseError::detail))
                .with_hint(server.and_then(PgDatabaseError::hint))
        }
        sqlx::Error::PoolTimedOut => {
            PgError::connection_lost("no connection became free in time; the pool is too small or the server is away")
        }
        sqlx::Error::Tls(_) if !cfg!(feature = "tls") => PgError::from_driver(
            "the server or the URL asks for encryption; build with the feature tls of awa-store-sqlx",
        ),
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => {
            PgError::connection_lost(error.to_string())
        }
        _ => PgError::from_driver(error.to_string()),
    };
    reported.with_source(error)
}
