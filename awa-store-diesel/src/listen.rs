//! A connection of its own that listens for wake-ups.

use std::fmt;

use async_trait::async_trait;
use awa_pg::session::{PgError, Session, Statement};
use awa_pg::store::{Listener, ListenerSource, Pool as _, listen_script};
use awa_pg::value::{Param, Row};
use deadpool::managed::Manager;
use diesel_async::pooled_connection::PoolError as MakeError;
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::{AsyncPgConnection, SimpleAsyncConnection};
use futures::StreamExt;

use crate::bind::run;
use crate::error::{not_connected, reported};
use crate::session::DieselPool;

/// Makes listening connections beside the pool, so that a pool of one is not used up by them.
pub(crate) struct ListenDirectly {
    /// Whose manager makes the connections.
    pub(crate) direct: Pool<AsyncPgConnection>,
    pub(crate) pool: DieselPool,
}

impl fmt::Debug for ListenDirectly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListenDirectly").field("pool", &self.pool).finish_non_exhaustive()
    }
}

#[async_trait]
impl ListenerSource for ListenDirectly {
    async fn listen(&self, channel: &str) -> Result<Box<dyn Listener>, PgError> {
        let connection = self.direct.manager().create().await.map_err(|error| match error {
            MakeError::ConnectionError(error) => not_connected(error),
            MakeError::QueryError(error) => reported(error),
        })?;
        let mut listening = Listening(connection);
        listening.batch(&listen_script(channel)).await?;
        Ok(Box::new(listening))
    }

    async fn session(&self) -> Result<Box<dyn Session + '_>, PgError> {
        self.pool.session().await
    }
}

struct Listening(AsyncPgConnection);

#[async_trait]
impl Listener for Listening {
    fn session(&mut self) -> &mut dyn Session {
        self
    }

    async fn next(&mut self) -> Result<String, PgError> {
        // Notifications wait in the connection, not in this stream.
        let next = Box::pin(self.0.notifications_stream()).next().await;
        match next {
            Some(notification) => Ok(notification.map_err(reported)?.payload),
            None => Err(PgError::connection_lost("the server closed the connection")),
        }
    }
}

#[async_trait]
impl Session for Listening {
    async fn query(&mut self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<Row>, PgError> {
        run(&mut self.0, statement, params).await.map_err(reported)
    }

    async fn batch(&mut self, sql: &str) -> Result<(), PgError> {
        self.0.batch_execute(sql).await.map_err(reported)
    }

    fn abandon(&mut self) {
        // The listener is never inside a transaction.
    }
}
