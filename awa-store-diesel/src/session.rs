//! Sessions: a connection of the pool, or one that belongs to the caller.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use awa_pg::session::{PgError, Session, Statement};
use awa_pg::store::Pool as PgPool;
use awa_pg::value::{Param, Row};
use diesel::QueryResult;
use diesel_async::pooled_connection::deadpool::{Object, Pool};
use diesel_async::{AsyncPgConnection, SimpleAsyncConnection};
use tokio::time::timeout;

use crate::bind::run;
use crate::error::{reported, without_connection};

/// The pool as `awa-pg` sees it.
#[derive(Clone)]
pub(crate) struct DieselPool {
    pub(crate) pool: Pool<AsyncPgConnection>,
    /// How long a call waits for a free connection.
    pub(crate) patience: Duration,
}

impl fmt::Debug for DieselPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.pool.status();
        f.debug_struct("DieselPool").field("status", &status).field("patience", &self.patience).finish()
    }
}

#[async_trait]
impl PgPool for DieselPool {
    async fn session(&self) -> Result<Box<dyn Session + '_>, PgError> {
        let connection = timeout(self.patience, self.pool.get()).await.map_err(|_| {
            PgError::connection_lost("no connection became free in time; the pool is too small or the server is away")
        })?;
        Ok(Box::new(Pooled(Some(connection.map_err(without_connection)?))))
    }

    fn driver(&self) -> &'static str {
        "diesel"
    }
}

/// A connection of the pool; goes back to it when dropped, unless it was abandoned.
struct Pooled(Option<Object<AsyncPgConnection>>);

impl Pooled {
    fn connection(&mut self) -> Result<&mut AsyncPgConnection, PgError> {
        self.0.as_deref_mut().ok_or_else(|| PgError::connection_lost("the connection was given up"))
    }

    /// An answer of the connection, which is not used again when it is over: the pool finds out only a moment later.
    fn answered<T>(&mut self, answer: QueryResult<T>) -> Result<T, PgError> {
        answer.map_err(reported).inspect_err(|error| {
            if error.ends_session() {
                self.abandon();
            }
        })
    }
}

#[async_trait]
impl Session for Pooled {
    async fn query(&mut self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<Row>, PgError> {
        let answer = run(self.connection()?, statement, params).await;
        self.answered(answer)
    }

    async fn batch(&mut self, sql: &str) -> Result<(), PgError> {
        let answer = self.connection()?.batch_execute(sql).await;
        self.answered(answer)
    }

    fn abandon(&mut self) {
        // What was taken out of the pool closes when it is dropped.
        drop(self.0.take().map(Object::take));
    }
}

/// A connection that belongs to the caller, in whatever transaction it is in.
pub(crate) struct Borrowed<'c>(pub(crate) &'c mut AsyncPgConnection);

#[async_trait]
impl Session for Borrowed<'_> {
    async fn query(&mut self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<Row>, PgError> {
        run(self.0, statement, params).await.map_err(reported)
    }

    async fn batch(&mut self, sql: &str) -> Result<(), PgError> {
        self.0.batch_execute(sql).await.map_err(reported)
    }

    fn abandon(&mut self) {
        // The caller's transaction is the caller's: diesel rolls it back when its closure returns an error.
    }
}
