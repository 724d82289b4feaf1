//! Connections between two calls.
//!
//! The pool asks the server for a sign of life whenever a connection comes back to it: a second round trip for each call. So a
//! connection that has just answered is kept for the call that follows at once, unless somebody may be waiting for it at the
//! pool, and goes back when it has idled for a moment or was out for long.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{PgPool, Postgres};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

/// So long a connection that is kept waits for a call.
const IDLE: Duration = Duration::from_millis(10);
/// So long a connection is out of the pool at most before it goes back for once: the pool also looks at its age.
const OUT: Duration = Duration::from_millis(100);

/// A connection, and since when it is out of the pool.
#[derive(Debug)]
pub(crate) struct Loan {
    pub(crate) connection: PoolConnection<Postgres>,
    since: Instant,
}

/// The connections that are kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<Shelf>>);

#[derive(Debug, Default)]
struct Shelf {
    /// The one that came last is the last, and taken first.
    loans: Vec<(Loan, Instant)>,
    /// Whether a task looks after them.
    is_watched: bool,
}

impl Loan {
    pub(crate) fn new(connection: PoolConnection<Postgres>) -> Self {
        Self { connection, since: Instant::now() }
    }
}

impl Kept {
    /// A connection that was kept.
    pub(crate) fn take(&self, pool: &PgPool) -> Option<Loan> {
        // A pool that is closed says so itself.
        let kept = if pool.is_closed() { None } else { lock(&self.0).loans.pop() };
        kept.map(|(loan, _)| loan)
    }

    /// Keeps a connection that has answered and is in no transaction, or gives it back to `pool`.
    pub(crate) fn put(&self, loan: Loan, pool: &PgPool) {
        let is_wanted = pool.num_idle() == 0 && pool.size() >= pool.options().get_max_connections();
        if is_wanted || pool.is_closed() || loan.since.elapsed() >= OUT {
            return;
        }
        // Outside of a runtime nobody would look after it.
        let Ok(runtime) = Handle::try_current() else { return };
        let mut shelf = lock(&self.0);
        shelf.loans.push((loan, Instant::now()));
        if !shelf.is_watched {
            shelf.is_watched = true;
            let watch = Watch(Arc::clone(&self.0));
            drop(shelf);
            runtime.spawn(watch.give_back());
        }
    }
}

/// The task that looks after what is kept. When it ends, nothing is.
struct Watch(Arc<Mutex<Shelf>>);

impl Watch {
    async fn give_back(self) {
        loop {
            sleep(IDLE).await;
            let mut shelf = lock(&self.0);
            // Those that idle are the oldest.
            let fresh = shelf.loans.partition_point(|(_, since)| since.elapsed() >= IDLE);
            let idle: Vec<_> = shelf.loans.drain(..fresh).collect();
            shelf.is_watched = !shelf.loans.is_empty();
            let is_over = !shelf.is_watched;
            drop(shelf);
            drop(idle);
            if is_over {
                return;
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut shelf = lock(&self.0);
        if std::mem::take(&mut shelf.is_watched) {
            // The runtime ends before its time, and the pool could not take them back.
            let orphans = std::mem::take(&mut shelf.loans);
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
