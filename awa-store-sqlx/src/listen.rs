//! A connection of its own that listens for wake-ups.

use async_trait::async_trait;
use awa_pg::session::{PgError, Session, Statement};
use awa_pg::store::{Listener, ListenerSource};
use awa_pg::value::{Param, Row};
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgPool};

use crate::bind::{Keep, run};
use crate::error::reported;
use crate::session::SqlxPool;

/// Makes listening connections beside the pool, so that a pool of one is not used up by them.
#[derive(Debug)]
pub(crate) struct ListenDirectly {
    pub(crate) options: PgConnectOptions,
    pub(crate) pool: SqlxPool,
}

#[async_trait]
impl ListenerSource for ListenDirectly {
    async fn listen(&self, channel: &str) -> Result<Box<dyn Listener>, PgError> {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .max_lifetime(None)
            .idle_timeout(None)
            .test_before_acquire(false)
            .connect_lazy_with(self.options.clone());
        let mut listener = PgListener::connect_with(&pool).await.map_err(reported)?;
        listener.eager_reconnect(false);
        listener.ignore_pool_close_event(true);
        listener.listen(channel).await.map_err(reported)?;
        Ok(Box::new(Listening { listener, _pool: pool }))
    }

    async fn session(&self) -> Result<Box<dyn Session + '_>, PgError> {
        awa_pg::store::Pool::session(&self.pool).await
    }
}

struct Listening {
    listener: PgListener,
    /// Keeps the pool of one alive that the connection belongs to.
    _pool: PgPool,
}

#[async_trait]
impl Listener for Listening {
    fn session(&mut self) -> &mut dyn Session {
        self
    }

    async fn next(&mut self) -> Result<String, PgError> {
        match self.listener.try_recv().await.map_err(reported)? {
            Some(notification) => Ok(notification.payload().to_owned()),
            None => Err(PgError::connection_lost("the server closed the connection")),
        }
    }
}

#[async_trait]
impl Session for Listening {
    async fn query(&mut self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<Row>, PgError> {
        run(&mut self.listener, statement, params, Keep::Statements).await.map_err(reported)
    }

    async fn batch(&mut self, sql: &str) -> Result<(), PgError> {
        use sqlx::Executor as _;
        self.listener.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.map(drop).map_err(reported)
    }

    fn abandon(&mut self) {
        // The listener is never inside a transaction.
    }
}
