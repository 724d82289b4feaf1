//! Simulated transactions: who has begun to write, and who has finished.

use std::collections::{BTreeMap, BTreeSet};

use super::Model;
use crate::attempt::ErrorText;
use crate::frontier::Snapshot;
use crate::id::{JobId, RunLease, Slot, Xid};
use crate::name::QueueName;
use crate::time::Timestamp;
use crate::unique::StoredKey;

/// A transaction of an application that has begun.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct TransactionId(u64);

/// All transactions that a snapshot must know of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Transactions {
    last_begun: TransactionId,
    next_xid: Xid,
    open: BTreeMap<TransactionId, OpenTransaction>,
}

/// A transaction that has neither committed nor rolled back.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct OpenTransaction {
    /// Its number, drawn with its first write.
    xid: Option<Xid>,
    /// The slot of the queue ring in which it appended its first ready row; it stays there.
    pub(super) slot: Option<Slot>,
    /// Queues that had a sleeper when the transaction wrote to them.
    pub(super) wakes: BTreeSet<QueueName>,
    /// Which jobs its jobs replace.
    pub(super) replaced: Vec<(JobId, JobId)>,
    /// Which jobs it cancels when it commits, and why.
    pub(super) cancelled: Vec<(JobId, ErrorText)>,
    /// The rows, ready or deferred, in which it found the jobs that it cancels or replaces; an id and a lease name one for ever.
    pub(super) held: BTreeSet<(JobId, RunLease)>,
    /// The keys of the deferred jobs that it cancels, with the holders of before the transaction: free for itself at once, and
    /// for others when it commits.
    pub(super) given_up: BTreeMap<StoredKey, Option<JobId>>,
}

impl Default for Transactions {
    fn default() -> Self {
        // As in PostgreSQL, the first numbers belong to the system: 0 is none, and the empty snapshot ends at 1.
        Self { last_begun: TransactionId(0), next_xid: Xid(3), open: BTreeMap::new() }
    }
}

impl Transactions {
    /// What a statement sees that begins now. Rows of transactions that rolled back do not exist any more.
    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot::of(self.next_xid, self.open.values().filter_map(|open| open.xid), None)
    }

    /// What a statement of an open transaction sees: also what the transaction itself has written.
    pub(super) fn snapshot_in(&self, transaction: TransactionId) -> Snapshot {
        let others = self.open.iter().filter(|(id, _)| **id != transaction);
        Snapshot::of(self.next_xid, others.filter_map(|(_, open)| open.xid), None)
    }

    /// The number of a transaction that begins, writes and commits within one step.
    pub(super) fn write_and_commit(&mut self) -> Xid {
        let xid = self.next_xid;
        self.next_xid = Xid(xid.0 + 1);
        xid
    }

    /// The number of an open transaction that writes.
    pub(super) fn xid_of(&mut self, transaction: TransactionId) -> Xid {
        if let Some(xid) = self.open_mut(transaction).xid {
            return xid;
        }
        let xid = self.write_and_commit();
        self.open_mut(transaction).xid = Some(xid);
        xid
    }

    pub(super) fn open_mut(&mut self, transaction: TransactionId) -> &mut OpenTransaction {
        self.open.get_mut(&transaction).unwrap_or_else(|| panic!("transaction {} is over", transaction.0))
    }

    /// Whether a transaction that appended to this slot of the queue ring is still open.
    pub(super) fn has_writer_in(&self, slot: Slot) -> bool {
        self.open.values().any(|open| open.slot == Some(slot))
    }

    /// Whether an open transaction cancels or replaces this job, and found it in this ready or deferred row. A job that was
    /// handed out since then and has come back is held by nobody.
    pub(super) fn is_held(&self, job: JobId, lease: RunLease) -> bool {
        self.open.values().any(|open| open.held.contains(&(job, lease)))
    }

    /// Whether another open transaction gives this key up when it commits.
    pub(super) fn is_being_given_up(&self, key: &StoredKey, transaction: Option<TransactionId>) -> bool {
        self.open.iter().any(|(other, open)| Some(*other) != transaction && open.given_up.contains_key(key))
    }

    fn end(&mut self, transaction: TransactionId) -> OpenTransaction {
        self.open.remove(&transaction).unwrap_or_else(|| panic!("transaction {} is over", transaction.0))
    }
}

impl Model {
    /// Begins a transaction of an application. It has no place in the order of transactions before it writes.
    pub fn begin(&mut self) -> TransactionId {
        let transaction = TransactionId(self.transactions.last_begun.0 + 1);
        self.transactions.last_begun = transaction;
        self.transactions.open.insert(transaction, OpenTransaction::default());
        transaction
    }

    /// Commits: the jobs of the transaction exist from now on, and sleepers of their queues are woken.
    ///
    /// # Panics
    ///
    /// When the transaction is over.
    pub fn commit(&mut self, transaction: TransactionId, now: Timestamp) {
        let ended = self.transactions.end(transaction);
        self.commit_keys(transaction);
        self.cancel_replaced(&ended.replaced, now);
        for (job, reason) in &ended.cancelled {
            self.cancel_now(*job, reason, now);
        }
        self.wakes.extend(ended.wakes);
    }

    /// Rolls back: the jobs of the transaction have never existed.
    ///
    /// # Panics
    ///
    /// When the transaction is over.
    pub fn rollback(&mut self, transaction: TransactionId) {
        self.roll_back_keys(transaction);
        let ended = self.transactions.end(transaction);
        for (key, job) in ended.given_up {
            if let Some(job) = job {
                self.restore_key(key, job);
            }
        }
        let Some(xid) = ended.xid else { return };
        self.deferred.retain(|_, row| row.xid != xid);
        for slot in self.queue_ring.contents_mut() {
            slot.remove_rows_of(xid);
        }
    }
}
