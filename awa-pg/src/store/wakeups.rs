//! Wake-ups through LISTEN and NOTIFY: one connection per process.
//!
//! Producers notify only when somebody sleeps. A dispatcher about to sleep holds a shared session lock on the bucket of
//! its queue, on the listener's own connection, which is never inside a transaction; producers try that lock after
//! their INSERT. A producer that tested before the announcement has a smaller transaction number than the one drawn
//! after it, so an empty claim that sees past that number proves that no job was missed.

mod ears;
mod session;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use awa_core::error::{StoreError, StoreErrorKind};
use awa_core::id::InstanceId;
use awa_core::name::QueueName;
use awa_core::store::{Horizon, SleepTicket, Wakeups, Woken};
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::session::{PgError, Session};
use crate::sql::Sql;
use crate::value::Param;
use ears::{Ears, Placed};
use session::Command;

const OPERATION: &str = "wake-ups";
const BUCKETS: usize = 64;

/// A connection that listens.
#[async_trait]
pub trait Listener: Send {
    /// The connection, for statements outside any transaction.
    fn session(&mut self) -> &mut dyn Session;

    /// The payload of the next notification. Dropping the future loses none.
    async fn next(&mut self) -> Result<String, PgError>;
}

/// Makes connections that listen. They must be sessions of their own, not shared through a transaction pooler.
#[async_trait]
pub trait ListenerSource: Send + Sync + std::fmt::Debug {
    /// A new connection that listens on `channel`.
    async fn listen(&self, channel: &str) -> Result<Box<dyn Listener>, PgError>;

    /// A session for short statements.
    async fn session(&self) -> Result<Box<dyn Session + '_>, PgError>;
}

/// The script that makes a connection listen on `channel`, for [`Session::batch`] of a driver that has no call for it.
pub fn listen_script(channel: &str) -> String {
    format!("LISTEN \"{}\"", channel.replace('"', "\"\""))
}

/// The wake-ups of a [`PgStore`](super::PgStore). Clones share one connection.
#[derive(Debug, Clone)]
pub struct PgWakeups {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    source: Arc<dyn ListenerSource>,
    sql: Arc<Sql>,
    /// The task that owns the connection; started with the first announcement, and again when its runtime ended.
    task: Mutex<Option<mpsc::Sender<Command>>>,
    places: Mutex<Places>,
    ears: Ears,
}

/// Where queues belong, as far as anybody has asked.
#[derive(Debug, Default)]
struct Places {
    buckets: HashMap<QueueName, usize>,
    channel: String,
}

impl PgWakeups {
    pub(super) fn new(source: Arc<dyn ListenerSource>, sql: Arc<Sql>) -> Self {
        let (task, places, ears) = (Mutex::new(None), Mutex::default(), Ears::default());
        Self { shared: Arc::new(Shared { source, sql, task, places, ears }) }
    }

    /// Where connections that listen come from.
    pub(super) fn source(&self) -> &Arc<dyn ListenerSource> {
        &self.shared.source
    }

    /// The queues with their buckets. Asks once for each queue.
    async fn place(&self, queues: &[QueueName]) -> Result<Vec<Placed>, StoreError> {
        let mut places = self.shared.places.lock().await;
        let unknown: Vec<_> = queues.iter().filter(|queue| !places.buckets.contains_key(*queue)).collect();
        if !unknown.is_empty() {
            let lost = |error: PgError| error.into_store_error(OPERATION);
            let mut session = self.shared.source.session().await.map_err(lost)?;
            let names = Param::Texts(unknown.iter().map(|queue| queue.as_str()).collect());
            let rows = session.query(self.shared.sql.statement("wakeups/buckets"), &[names]).await.map_err(lost)?;
            let row = super::only_row(OPERATION, &rows)?;
            let bad = super::undecodable(OPERATION);
            let buckets = row.i32s(0).map_err(&bad)?;
            let good: Vec<usize> = buckets.iter().filter_map(|bucket| usize::try_from(*bucket).ok()).collect();
            if good.len() != unknown.len() || good.iter().any(|bucket| *bucket >= BUCKETS) {
                let problem = format!("{} queues are said to be in buckets {buckets:?} of {BUCKETS}", unknown.len());
                return Err(StoreError::new(StoreErrorKind::Internal, OPERATION, problem));
            }
            row.text(1).map_err(&bad)?.clone_into(&mut places.channel);
            places.buckets.extend(unknown.into_iter().cloned().zip(good));
        }
        Ok(queues.iter().map(|queue| (places.buckets[queue], queue.clone())).collect())
    }

    async fn command(&self, command: Command) {
        let mut task = self.shared.task.lock().await;
        let running = task.as_ref().filter(|sender| !sender.is_closed());
        let sender = if let Some(sender) = running {
            sender.clone()
        } else {
            let channel = self.shared.places.lock().await.channel.clone();
            let (sender, receiver) = mpsc::channel(BUCKETS);
            tokio::spawn(session::run(Arc::downgrade(&self.shared), channel, receiver));
            *task = Some(sender.clone());
            sender
        };
        drop(task);
        // A task that ends takes its commands with it; the caller's reply is dropped and it polls.
        let _ = sender.send(command).await;
    }
}

#[async_trait]
impl Wakeups for PgWakeups {
    async fn announce(&self, instance: InstanceId, queues: &[QueueName]) -> Result<SleepTicket, StoreError> {
        let placed = self.place(queues).await?;
        let (reply, answer) = oneshot::channel();
        self.command(Command::Announce(instance, placed, reply)).await;
        let drawn = answer.await.ok().flatten();
        Ok(SleepTicket { sound_from: Horizon(drawn.unwrap_or(u64::MAX)), announced: drawn.is_some() })
    }

    async fn withdraw(&self, instance: InstanceId, queues: &[QueueName]) -> Result<(), StoreError> {
        let placed = self.place(queues).await?;
        self.command(Command::Withdraw(instance, placed)).await;
        Ok(())
    }

    async fn wait(&self, instance: InstanceId, at_most: Duration) -> Result<Woken, StoreError> {
        Ok(tokio::time::timeout(at_most, self.shared.ears.hear(instance)).await.unwrap_or(Woken::Nothing))
    }
}
