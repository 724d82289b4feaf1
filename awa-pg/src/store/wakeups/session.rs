//! The task that owns the connection: listens, announces, withdraws; connects again with a growing pause after any loss.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use awa_core::id::InstanceId;
use tokio::sync::{mpsc, oneshot};

use super::ears::Placed;
use super::{BUCKETS, Listener, Shared};
use crate::session::{PgError, Session};
use crate::sql::Sql;
use crate::value::Param;

/// How often a lock is tried that producers hold for microseconds.
const TRIES: usize = 20;
/// The pauses between attempts to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

pub(super) enum Command {
    /// The reply is the number from which on the sleep is sound, or nothing when it could not be announced.
    Announce(InstanceId, Vec<Placed>, oneshot::Sender<Option<u64>>),
    Withdraw(InstanceId, Vec<Placed>),
}

/// For each bucket that this session holds a lock on: the transaction number that was drawn afterwards. It is good for every
/// announcement until a notification comes, so that only the first of a bucket costs a statement.
type Held = [Option<Number>; BUCKETS];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Drawn(u64),
    /// Producers who enqueued beside the one that notified have left it to that one, and may have larger numbers.
    Stale,
}

/// Tells everybody that no announcement stands when the task ends in any way, as with its runtime.
struct Ending(Weak<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            shared.ears.make_void();
        }
    }
}

/// Works until the store is gone.
pub(super) async fn run(shared: Weak<Shared>, channel: String, mut commands: mpsc::Receiver<Command>) {
    let _ending = Ending(Weak::clone(&shared));
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
                // Whoever sleeps must announce itself again: the locks went with the connection.
                if let Some(shared) = shared.upgrade() {
                    shared.ears.make_void();
                }
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

/// Works on one connection until it is lost (`Err`) or the store is gone (`Ok`).
async fn serve(
    shared: &Weak<Shared>,
    sql: &Sql,
    mut listener: Box<dyn Listener>,
    commands: &mut mpsc::Receiver<Command>,
) -> Result<(), PgError> {
    let mut held: Held = [None; BUCKETS];
    loop {
        tokio::select! {
            payload = listener.next() => {
                let bucket = payload?.parse::<usize>().ok().filter(|bucket| *bucket < BUCKETS);
                let Some(shared) = shared.upgrade() else { return Ok(()) };
                if let Some(bucket) = bucket {
                    held[bucket] = held[bucket].map(|_| Number::Stale);
                    shared.ears.ring(bucket);
                }
            }
            command = commands.recv() => match command {
                None => return Ok(()),
                Some(Command::Announce(instance, queues, reply)) => {
                    let buckets: BTreeSet<usize> = queues.iter().map(|(bucket, _)| *bucket).collect();
                    let drawn = hold(listener.session(), sql, &buckets, &mut held).await?;
                    let Some(shared) = shared.upgrade() else { return Ok(()) };
                    // What comes for them from now on is heard: no notification is looked at before this is over.
                    if drawn.is_some() {
                        shared.ears.listen(instance, queues);
                    }
                    let _ = reply.send(drawn);
                }
                Some(Command::Withdraw(instance, queues)) => {
                    let Some(shared) = shared.upgrade() else { return Ok(()) };
                    let deserted = shared.ears.ignore(instance, &queues);
                    release(listener.session(), sql, deserted, &mut held).await?;
                }
            },
        }
    }
}

/// Takes the locks that are missing, and gives the largest of the numbers drawn after the locks of `buckets`; `None` when
/// producers were in the way each time.
async fn hold(
    session: &mut dyn Session,
    sql: &Sql,
    buckets: &BTreeSet<usize>,
    held: &mut Held,
) -> Result<Option<u64>, PgError> {
    let mut missing: BTreeSet<usize> = buckets.iter().copied().filter(|bucket| held[*bucket].is_none()).collect();
    let mut taken = BTreeSet::new();
    for _ in 0..TRIES {
        if missing.is_empty() {
            break;
        }
        let rows = session.query(sql.statement("wakeups/announce"), &[numbers(&missing)]).await?;
        let Some(row) = rows.first() else { break };
        let got = row.get::<Option<Vec<i32>>>(0).ok().flatten().unwrap_or_default();
        for bucket in got.into_iter().filter_map(|bucket| usize::try_from(bucket).ok()) {
            missing.remove(&bucket);
            taken.insert(bucket);
        }
        if let Some(drawn) = row.opt_i64(1).ok().flatten() {
            for bucket in std::mem::take(&mut taken) {
                held[bucket] = Some(Number::Drawn(drawn.unsigned_abs()));
            }
        }
    }
    if !missing.is_empty() {
        // No number was drawn for these.
        if !taken.is_empty() {
            session.query(sql.statement("wakeups/withdraw"), &[numbers(&taken)]).await?;
        }
        return Ok(None);
    }
    if buckets.iter().any(|bucket| held[*bucket] == Some(Number::Stale)) {
        let rows = session.query(sql.statement("wakeups/draw"), &[]).await?;
        let drawn = rows.first().and_then(|row| row.opt_i64(0).ok().flatten());
        let Some(drawn) = drawn else { return Ok(None) };
        for bucket in buckets {
            held[*bucket] = Some(Number::Drawn(drawn.unsigned_abs()));
        }
    }
    Ok(buckets.iter().filter_map(|bucket| held[*bucket]).map(Number::value).max())
}

impl Number {
    fn value(self) -> u64 {
        match self {
            Self::Drawn(number) => number,
            Self::Stale => u64::MAX,
        }
    }
}

/// Gives the locks of buckets back that nobody listens to.
async fn release(
    session: &mut dyn Session,
    sql: &Sql,
    deserted: BTreeSet<usize>,
    held: &mut Held,
) -> Result<(), PgError> {
    let deserted: BTreeSet<usize> = deserted.into_iter().filter(|bucket| held[*bucket].take().is_some()).collect();
    if !deserted.is_empty() {
        session.query(sql.statement("wakeups/withdraw"), &[numbers(&deserted)]).await?;
    }
    Ok(())
}

fn numbers(buckets: &BTreeSet<usize>) -> Param<'static> {
    Param::I32s(buckets.iter().map(|bucket| i32::try_from(*bucket).unwrap_or(0)).collect())
}
