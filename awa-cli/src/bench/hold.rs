//! What stays open beside the work, as somebody's long report or slow transaction does.

use awa_pg::store::HeldSnapshot;
use awa_runtime::IntoNewJob;
use awa_store_mem::MemTransaction;

use super::job::{EPOCH, Noop};
use super::site::Hand;
use crate::driver::Transaction;
use crate::failure::Failure;

/// What is to stay open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Beside {
    Nothing,
    /// A snapshot at REPEATABLE READ.
    Snapshot,
    /// A transaction that has enqueued a job.
    Enqueueing,
}

/// What is open. Its jobs never come to exist.
#[derive(Debug)]
pub(super) enum Held<'h> {
    Nothing,
    Snapshot(HeldSnapshot<'h>),
    Memory(MemTransaction),
    Postgres(Box<Transaction>),
}

impl Hand {
    /// Opens it on a connection of this store.
    pub(super) async fn hold(&self, what: Beside) -> Result<Held<'_>, Failure> {
        let job = Noop { due: EPOCH, pad: String::new() }.into_new_job()?;
        Ok(match (what, self) {
            (Beside::Nothing, _) => Held::Nothing,
            (Beside::Snapshot, Self::Memory(_)) => return Err(Failure::usage("the memory store has no snapshots")),
            (Beside::Snapshot, Self::Postgres(database)) => Held::Snapshot(database.measure().hold_snapshot().await?),
            (Beside::Enqueueing, Self::Memory(store)) => {
                let mut transaction = store.begin()?;
                transaction.enqueue(&[job])?;
                Held::Memory(transaction)
            }
            (Beside::Enqueueing, Self::Postgres(database)) => {
                let mut transaction = database.begin().await?;
                transaction.enqueue(&[job]).await?;
                Held::Postgres(Box::new(transaction))
            }
        })
    }
}

impl Held<'_> {
    /// Ends it without a trace.
    pub(super) async fn release(self) -> Result<(), Failure> {
        match self {
            Self::Nothing => Ok(()),
            Self::Snapshot(held) => Ok(held.release().await?),
            Self::Memory(transaction) => Ok(transaction.rollback()?),
            Self::Postgres(transaction) => transaction.roll_back().await,
        }
    }
}
