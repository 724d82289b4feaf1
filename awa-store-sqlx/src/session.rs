//! Sessions: a connection of the pool, or one that belongs to the caller.

use async_trait::async_trait;
use awa_pg::session::{BehindPooler, PgError, Session, Statement};
use awa_pg::store::Pool;
use awa_pg::value::{Param, Row};
use sqlx::{AssertSqlSafe, PgConnection, PgPool};

use crate::bind::{Keep, run};
use crate::error::reported;
use crate::kept::{Kept, Loan};

/// The pool as `awa-pg` sees it. Clones share what is kept.
#[derive(Debug, Clone)]
pub(crate) struct SqlxPool {
    pool: PgPool,
    /// Whether prepared statements can be kept; they cannot behind a pooler in transaction mode.
    pub(crate) keep: Keep,
    kept: Kept,
}

impl SqlxPool {
    pub(crate) fn new(pool: PgPool, keep: Keep) -> Self {
        Self { kept: Kept::new(pool.clone()), pool, keep }
    }
}

#[async_trait]
impl Pool for SqlxPool {
    async fn session(&self) -> Result<Box<dyn Session + '_>, PgError> {
        let loan = match self.kept.take() {
            Some(loan) => loan,
            None => Loan::new(self.pool.acquire().await.map_err(reported)?),
        };
        let session = Pooled { loan: Some(loan), has_answered: false, home: self };
        Ok(match self.keep {
            Keep::Statements => Box::new(session),
            Keep::Nothing => Box::new(BehindPooler::new(session)),
        })
    }

    fn driver(&self) -> &'static str {
        "sqlx"
    }

    fn keeps_statements(&self) -> bool {
        self.keep == Keep::Statements
    }
}

/// A connection of the pool; goes back to it when dropped, or is kept for the next call, unless it was abandoned.
struct Pooled<'p> {
    loan: Option<Loan>,
    /// Whether the last statement was answered: one that failed or was given up leaves it to the pool to find out what state the
    /// connection is in.
    has_answered: bool,
    home: &'p SqlxPool,
}

impl Pooled<'_> {
    fn connection(&mut self) -> Result<&mut PgConnection, PgError> {
        self.has_answered = false;
        let loan = self.loan.as_mut().ok_or_else(|| PgError::connection_lost("the connection was given up"))?;
        Ok(&mut loan.connection)
    }
}

#[async_trait]
impl Session for Pooled<'_> {
    async fn query(&mut self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<Row>, PgError> {
        let keep = self.home.keep;
        let rows = run(self.connection()?, statement, params, keep).await.map_err(reported)?;
        self.has_answered = true;
        Ok(rows)
    }

    async fn batch(&mut self, sql: &str) -> Result<(), PgError> {
        batch_on(self.connection()?, sql).await?;
        self.has_answered = true;
        Ok(())
    }

    fn abandon(&mut self) {
        if let Some(mut loan) = self.loan.take() {
            loan.connection.close_on_drop();
        }
    }
}

impl Drop for Pooled<'_> {
    fn drop(&mut self) {
        if let Some(loan) = self.loan.take()
            && self.has_answered
        {
            self.home.kept.put(loan);
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
