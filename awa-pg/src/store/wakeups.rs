//! Wake-ups through LISTEN and NOTIFY: one connection per process.
//!
//! Producers notify only when somebody sleeps. A dispatcher about to sleep holds a shared session lock on the bucket of
//! its queue, on the listener's own connection, which is never inside a transaction; producers try that lock after
//! their INSERT. A producer that tested before the announcement has a smaller transaction number than the one drawn
//! after it, so an empty claim that sees past that number proves that no job was missed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use awa_core::error::{StoreError, StoreErrorKind};
use awa_core::name::QueueName;
use awa_core::store::{Horizon, SleepTicket, Wakeups};
use tokio::sync::{Mutex, mpsc, oneshot, watch};

use crate::session::{PgError, Session};
use crate::sql::Sql;
use crate::value::Param;

const OPERATION: &str = "wake-ups";
const BUCKETS: usize = 64;
/// How often a lock is tried that producers hold for microseconds.
const TRIES: usize = 20;
/// The pauses between attempts to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

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
    buckets: Mutex<HashMap<QueueName, usize>>,
    channel: Mutex<Option<String>>,
    /// How many wake-ups each bucket has had.
    signals: Vec<watch::Sender<u64>>,
    /// The count that each queue's dispatcher has seen.
    seen: Mutex<HashMap<QueueName, u64>>,
}

enum Command {
    Announce(usize, QueueName, oneshot::Sender<Option<u64>>),
    Withdraw(usize, QueueName),
}

impl PgWakeups {
    pub(super) fn new(source: Arc<dyn ListenerSource>, sql: Arc<Sql>) -> Self {
        let shared = Shared {
            source,
            sql,
            task: Mutex::new(None),
            buckets: Mutex::default(),
            channel: Mutex::new(None),
            signals: (0..BUCKETS).map(|_| watch::Sender::new(0)).collect(),
            seen: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Where connections that listen come from.
    pub(super) fn source(&self) -> &Arc<dyn ListenerSource> {
        &self.shared.source
    }

    async fn bucket(&self, queue: &QueueName) -> Result<usize, StoreError> {
        if let Some(bucket) = self.shared.buckets.lock().await.get(queue) {
            return Ok(*bucket);
        }
        let lost = |error: PgError| error.into_store_error(OPERATION);
        let mut session = self.shared.source.session().await.map_err(lost)?;
        let statement = self.shared.sql.statement("wakeups/bucket");
        let rows = session.query(statement, &[Param::Text(queue.as_str().into())]).await.map_err(lost)?;
        let row = super::only_row(OPERATION, &rows)?;
        let bad = super::undecodable(OPERATION);
        let bucket = usize::try_from(row.i32(0).map_err(&bad)?).unwrap_or(BUCKETS);
        if bucket >= BUCKETS {
            let problem = format!("queue {queue} is said to be in bucket {bucket} of {BUCKETS}");
            return Err(StoreError::new(StoreErrorKind::Internal, OPERATION, problem));
        }
        *self.shared.channel.lock().await = Some(row.text(1).map_err(&bad)?.to_owned());
        self.shared.buckets.lock().await.insert(queue.clone(), bucket);
        Ok(bucket)
    }

    async fn command(&self, command: Command) {
        let mut task = self.shared.task.lock().await;
        let running = task.as_ref().filter(|sender| !sender.is_closed());
        let sender = if let Some(sender) = running {
            sender.clone()
        } else {
            let channel = self.shared.channel.lock().await.clone().unwrap_or_default();
            let (sender, receiver) = mpsc::channel(BUCKETS);
            tokio::spawn(run(Arc::downgrade(&self.shared), channel, receiver));
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
    async fn announce(&self, queue: &QueueName) -> Result<SleepTicket, StoreError> {
        let bucket = self.bucket(queue).await?;
        let count = *self.shared.signals[bucket].borrow();
        self.shared.seen.lock().await.insert(queue.clone(), count);
        let (reply, answer) = oneshot::channel();
        self.command(Command::Announce(bucket, queue.clone(), reply)).await;
        let drawn = answer.await.ok().flatten();
        Ok(SleepTicket { sound_from: Horizon(drawn.unwrap_or(u64::MAX)), announced: drawn.is_some() })
    }

    async fn withdraw(&self, queue: &QueueName) -> Result<(), StoreError> {
        let bucket = self.bucket(queue).await?;
        self.command(Command::Withdraw(bucket, queue.clone())).await;
        Ok(())
    }

    async fn wait(&self, queue: &QueueName, at_most: Duration) -> Result<bool, StoreError> {
        let bucket = self.bucket(queue).await?;
        let mut signal = self.shared.signals[bucket].subscribe();
        let seen = self.shared.seen.lock().await.get(queue).copied().unwrap_or(0);
        let woken = tokio::time::timeout(at_most, signal.wait_for(|count| *count > seen)).await;
        let Some(count) = woken.ok().and_then(Result::ok).map(|count| *count) else { return Ok(false) };
        self.shared.seen.lock().await.insert(queue.clone(), count);
        Ok(true)
    }
}

/// Owns the connection: listens, announces, withdraws; connects again with a growing pause after any loss.
async fn run(shared: std::sync::Weak<Shared>, channel: String, mut commands: mpsc::Receiver<Command>) {
    let mut pause = FIRST_PAUSE;
    let mut lost_before = false;
    loop {
        let Some(strong) = shared.upgrade() else { return };
        let (source, sql) = (Arc::clone(&strong.source), Arc::clone(&strong.sql));
        drop(strong);
        match source.listen(&channel).await {
            Ok(listener) => {
                pause = FIRST_PAUSE;
                if lost_before {
                    tracing::info!("listening for wake-ups again");
                }
                match serve(&shared, &sql, listener, &mut commands).await {
                    Ok(()) => return,
                    Err(error) => tracing::warn!(%error, "the connection for wake-ups was lost; polling meanwhile"),
                }
                lost_before = true;
                wake_all(&shared);
            }
            Err(error) => {
                if !lost_before {
                    tracing::warn!(%error, "cannot listen for wake-ups; polling until it works");
                }
                lost_before = true;
            }
        }
        if refuse_for(pause, &mut commands).await.is_err() {
            return;
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Answers commands while there is no connection: not announced. `Err` when the store is gone.
async fn refuse_for(pause: Duration, commands: &mut mpsc::Receiver<Command>) -> Result<(), ()> {
    let until = tokio::time::Instant::now() + pause;
    loop {
        match tokio::time::timeout_at(until, commands.recv()).await {
            Err(_) => return Ok(()),
            Ok(None) => return Err(()),
            Ok(Some(Command::Announce(_, _, reply))) => drop(reply.send(None)),
            Ok(Some(Command::Withdraw(..))) => {}
        }
    }
}

/// Whoever sleeps must announce itself again: the locks went with the connection.
fn wake_all(shared: &std::sync::Weak<Shared>) {
    if let Some(shared) = shared.upgrade() {
        for signal in &shared.signals {
            signal.send_modify(|count| *count += 1);
        }
    }
}

/// Works on one connection until it is lost (`Err`) or the store is gone (`Ok`).
async fn serve(
    shared: &std::sync::Weak<Shared>,
    sql: &Sql,
    mut listener: Box<dyn Listener>,
    commands: &mut mpsc::Receiver<Command>,
) -> Result<(), PgError> {
    // By queue and not by number: a withdrawal of before this connection, or of an announcement that nobody waited for,
    // takes nothing away from others.
    let mut announced: Vec<HashSet<QueueName>> = vec![HashSet::new(); BUCKETS];
    loop {
        tokio::select! {
            payload = listener.next() => {
                let bucket = payload?.parse::<usize>().ok().filter(|bucket| *bucket < BUCKETS);
                let Some(shared) = shared.upgrade() else { return Ok(()) };
                if let Some(bucket) = bucket {
                    shared.signals[bucket].send_modify(|count| *count += 1);
                }
            }
            command = commands.recv() => match command {
                None => return Ok(()),
                Some(Command::Announce(bucket, queue, reply)) => {
                    let drawn = announce(listener.session(), sql, bucket, !announced[bucket].is_empty()).await?;
                    if drawn.is_some() {
                        announced[bucket].insert(queue);
                    }
                    let _ = reply.send(drawn);
                }
                Some(Command::Withdraw(bucket, queue)) => {
                    if announced[bucket].remove(&queue) && announced[bucket].is_empty() {
                        let params = [Param::I32(i32::try_from(bucket).unwrap_or(0))];
                        listener.session().query(sql.statement("wakeups/withdraw"), &params).await?;
                    }
                }
            },
        }
    }
}

async fn announce(
    session: &mut dyn Session,
    sql: &Sql,
    bucket: usize,
    is_announced: bool,
) -> Result<Option<u64>, PgError> {
    let bucket = [Param::I32(i32::try_from(bucket).unwrap_or(0))];
    for _ in 0..TRIES {
        let rows = if is_announced {
            session.query(sql.statement("wakeups/announce_again"), &[]).await?
        } else {
            session.query(sql.statement("wakeups/announce"), &bucket).await?
        };
        let drawn = rows.first().and_then(|row| row.opt_i64(0).ok().flatten());
        if let Some(xid) = drawn {
            return Ok(Some(xid.unsigned_abs()));
        }
    }
    Ok(None)
}
