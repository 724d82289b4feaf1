//! Connections between two calls.
//!
//! The pool asks the server for a sign of life whenever a connection comes back to it: a second round trip for each call. And it
//! hands out in turn what it has, so that each of ten connections is cold when it is used at last. So one that has
//! just answered is kept for the next call. It goes back when somebody may be waiting at the pool, when no call came for a while,
//! and now and then.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{PgPool, Postgres};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

/// So long a connection that is kept waits for a call.
const IDLE: Duration = Duration::from_secs(1);
/// So long a connection is out of the pool at most before it goes back for once: the pool looks at its age.
const OUT: Duration = Duration::from_secs(5);
/// How often somebody looks whether the pool has run out of connections while some are kept.
const LOOK: Duration = Duration::from_millis(10);

/// A connection, and since when it is out of the pool.
#[derive(Debug)]
pub(crate) struct Loan {
    pub(crate) connection: PoolConnection<Postgres>,
    since: Instant,
}

/// The connections of a pool that are kept. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Kept(Arc<Mutex<Shelf>>);

#[derive(Debug)]
struct Shelf {
    pool: PgPool,
    /// The one that came last is the last, and taken first.
    loans: Vec<(Loan, Instant)>,
    /// Whether a task looks after them.
    is_watched: bool,
}

impl Loan {
    pub(crate) fn new(connection: PoolConnection<Postgres>) -> Self {
        Self { connection, since: Instant::now() }
    }

    /// Ends it where there may be no runtime, in which the pool could take the connection back.
    fn end(self) {
        if Handle::try_current().is_ok() {
            drop(self.connection);
        } else {
            drop(self.connection.detach());
        }
    }
}

impl Kept {
    pub(crate) fn new(pool: PgPool) -> Self {
        Self(Arc::new(Mutex::new(Shelf { pool, loans: Vec::new(), is_watched: false })))
    }

    /// A connection that was kept.
    pub(crate) fn take(&self) -> Option<Loan> {
        let mut shelf = lock(&self.0);
        // A pool that is closed says so itself.
        let kept = if shelf.pool.is_closed() { None } else { shelf.loans.pop() };
        kept.map(|(loan, _)| loan)
    }

    /// Keeps a connection that has answered and is in no transaction, or gives it back.
    pub(crate) fn put(&self, loan: Loan) {
        // Outside of a runtime nobody would look after it.
        let Ok(runtime) = Handle::try_current() else { return loan.end() };
        let mut shelf = lock(&self.0);
        if shelf.is_wanted_back() || loan.since.elapsed() >= OUT {
            return;
        }
        shelf.loans.push((loan, Instant::now()));
        if !mem::replace(&mut shelf.is_watched, true) {
            drop(shelf);
            runtime.spawn(Watch(Arc::downgrade(&self.0)).keep_looking());
        }
    }
}

impl Shelf {
    /// Whether somebody may be waiting at the pool.
    fn is_wanted_back(&self) -> bool {
        self.pool.num_idle() == 0 && self.pool.size() >= self.pool.options().get_max_connections()
            || self.pool.is_closed()
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        for (loan, _) in mem::take(&mut self.loans) {
            loan.end();
        }
    }
}

/// The task that looks after what is kept. When it ends, nothing is.
struct Watch(Weak<Mutex<Shelf>>);

impl Watch {
    async fn keep_looking(self) {
        loop {
            sleep(LOOK).await;
            let Some(kept) = self.0.upgrade() else { return };
            let mut shelf = lock(&kept);
            // Those that idle longest come first.
            let mut back = shelf.loans.partition_point(|(_, since)| since.elapsed() >= IDLE);
            if shelf.is_wanted_back() {
                back = shelf.loans.len();
            }
            let back: Vec<_> = shelf.loans.drain(..back).collect();
            shelf.is_watched = !shelf.loans.is_empty();
            let is_over = !shelf.is_watched;
            drop(shelf);
            drop(back);
            if is_over {
                return;
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Some(kept) = self.0.upgrade() else { return };
        let mut shelf = lock(&kept);
        if mem::take(&mut shelf.is_watched) {
            // The runtime ends before its time, and the pool could not take them back.
            let orphans = mem::take(&mut shelf.loans);
            drop(shelf);
            for (loan, _) in orphans {
                drop(loan.connection.detach());
            }
        }
    }
}

fn lock(shelf: &Mutex<Shelf>) -> MutexGuard<'_, Shelf> {
    // Nothing that can panic runs under this lock.
    shelf.lock().unwrap_or_else(PoisonError::into_inner)
}
