//! Sessions: a connection of the pool, or one that belongs to the caller.

use async_trait::async_trait;
use awa_pg::session::{BehindPooler, PgError, Session, Statement};
use awa_pg::store::Pool;
use awa_pg::value::{Param, Row};
use sqlx::pool::PoolConnection;
use sqlx::{AssertSqlSafe, PgConnection, PgPool, Postgres};

use crate::bind::{Keep, run};
use crate::error::reported;

/// The pool as `awa-pg` sees it.
#[derive(Debug)]
pub(crate) struct SqlxPool {
    pub(crate) pool: PgPool,
    /// Whether prepared statements can be kept; they cannot behind a pooler in transaction mode.
    pub(crate) keep: Keep,
}

#[async_trait]
impl Pool for SqlxPool {
    async fn session(&self) -> Result<Box<dyn Session + '_>, PgError> {
        let session = Pooled { connection: Some(self.pool.acquire().await.map_err(reported)?), keep: self.keep };
        Ok(match self.keep {
            Keep::Statements => Box::new(session),
            Keep::Nothing => Box::new(BehindPooler::new(session)),
        })
    }

    fn driver(&self) -> &'static str {
        "sqlx"
    }
}

/// A connection of the pool; goes back to it when dropped, unless it was abandoned.
struct Pooled {
    connection: Option<PoolConnection<Postgres>>,
    keep: Keep,
}

impl Pooled {
    fn connection(&mut self) -> Result<&mut PgConnection, PgError> {
        self.connection.as_deref_mut().ok_or_else(|| PgError::connection_lost("the connection was given up"))
    }
}

#[async_trait]
impl Session for Pooled {
    async fn query(&mut self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<Row>, PgError> {
        let keep = self.keep;
        run(self.connection()?, statement, params, keep).await.map_err(reported)
    }

    async fn batch(&mut self, sql: &str) -> Result<(), PgError> {
        batch_on(self.connection()?, sql).await
    }

    fn abandon(&mut self) {
        if let Some(mut connection) = self.connection.take() {
            connection.close_on_drop();
        }
    }
}

/// A connection that belongs to the caller, in whatever transaction it is in.
pub(crate) struct Borrowed<'c> {
    pub(crate) connection: &'c mut PgConnection,
    pub(crate) keep: Keep,
}

#[async_trait]
impl Session for Borrowed<'_> {
    async fn query(&mut self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<Row>, PgError> {
        run(&mut *self.connection, statement, params, self.keep).await.map_err(reported)
    }

    async fn batch(&mut self, sql: &str) -> Result<(), PgError> {
        batch_on(self.connection, sql).await
    }

    fn abandon(&mut self) {
        // The caller's transaction is the caller's: sqlx rolls it back when it is dropped unfinished.
    }
}

async fn batch_on(connection: &mut PgConnection, sql: &str) -> Result<(), PgError> {
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await.map(drop).map_err(reported)
}
