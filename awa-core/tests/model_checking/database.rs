//! A small database with the visibility rules of PostgreSQL at READ COMMITTED and REPEATABLE READ.
//!
//! A row is a version with the transaction that made it and the one that removed it. A statement sees what was committed
//! when it began, and so does one that had to wait. What a transaction did is undone when it aborts.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use awa_core::frontier::Snapshot;
use awa_core::id::Xid;

/// A client of the database: an actor, or whoever heals at the end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Who(pub(crate) u8);

/// The isolation level of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Isolation {
    /// Each statement takes a new snapshot.
    ReadCommitted,
    /// The first statement's snapshot serves all.
    RepeatableRead,
}

/// What a table holds. The key says only in which order rows are kept, so that worlds with the same rows are equal.
pub(crate) trait Row: Clone + Eq + Hash + Debug {
    /// See [`Row::key`].
    type Key: Ord;
    /// Where the row stands in its table.
    fn key(&self) -> Self::Key;
}

/// A row with the transactions that made and removed it. [`Xid`] 0: made before anybody who can still ask.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Version<R> {
    /// The row.
    pub(crate) row: R,
    /// The transaction that inserted it.
    pub(crate) made_by: Xid,
    /// The transaction that deleted it, or replaced it by another version.
    pub(crate) removed_by: Option<Xid>,
}

/// A table, or one child of a partitioned one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Table<R> {
    versions: Arc<Vec<Version<R>>>,
    has_pages: bool,
}

impl<R> Default for Table<R> {
    fn default() -> Self {
        Self { versions: Arc::new(Vec::new()), has_pages: false }
    }
}

impl<R: Row> Table<R> {
    /// All versions, of running transactions too.
    pub(crate) fn versions(&self) -> &[Version<R>] {
        &self.versions
    }

    /// Whether anything was ever written since the last truncation, by an aborted transaction too.
    pub(crate) fn has_pages(&self) -> bool {
        self.has_pages
    }

    /// What a statement with this snapshot, inside the transaction `own`, sees.
    pub(crate) fn seen<'a>(&'a self, snapshot: &'a Snapshot, own: Option<Xid>) -> impl Iterator<Item = &'a R> {
        let sees = move |xid: Xid| Some(xid) == own || snapshot.sees(xid);
        let is_seen = move |version: &&Version<R>| sees(version.made_by) && !version.removed_by.is_some_and(sees);
        self.versions.iter().filter(is_seen).map(|version| &version.row)
    }

    /// Adds a row.
    pub(crate) fn insert(&mut self, row: R, xid: Xid) {
        let versions = Arc::make_mut(&mut self.versions);
        let at = versions.partition_point(|version| (version.row.key(), version.made_by) <= (row.key(), xid));
        versions.insert(at, Version { row, made_by: xid, removed_by: None });
        self.has_pages = true;
    }

    /// Marks the rows as removed that nobody has removed yet and that are meant; how many.
    pub(crate) fn remove(&mut self, xid: Xid, is_meant: impl Fn(&R) -> bool) -> usize {
        let mut removed = 0;
        for version in Arc::make_mut(&mut self.versions) {
            if version.removed_by.is_none() && is_meant(&version.row) {
                version.removed_by = Some(xid);
                removed += 1;
            }
        }
        removed
    }

    /// Takes back what an aborted transaction did.
    fn undo(&mut self, xid: Xid) {
        if self.versions.iter().any(|version| version.made_by == xid || version.removed_by == Some(xid)) {
            let versions = Arc::make_mut(&mut self.versions);
            versions.retain(|version| version.made_by != xid);
            for version in versions.iter_mut().filter(|version| version.removed_by == Some(xid)) {
                version.removed_by = None;
            }
        }
    }

    /// Forgets what no snapshot can tell any more. Nobody holds one when this is called.
    fn vacuum(&mut self, is_running: impl Fn(Xid) -> bool) {
        let is_over = |xid: Xid| !is_running(xid);
        let is_dead = |version: &Version<R>| version.removed_by.is_some_and(is_over);
        if self
            .versions
            .iter()
            .any(|version| is_dead(version) || (version.made_by != Xid(0) && is_over(version.made_by)))
        {
            let versions = Arc::make_mut(&mut self.versions);
            versions.retain(|version| !is_dead(version));
            for version in versions.iter_mut().filter(|version| is_over(version.made_by)) {
                version.made_by = Xid(0);
            }
        }
    }
}

/// What every table can do, whatever its rows are.
pub(crate) trait AnyTable {
    /// See [`Table::undo`].
    fn undo(&mut self, xid: Xid);
    /// See [`Table::vacuum`].
    fn vacuum(&mut self, is_running: &dyn Fn(Xid) -> bool);
}

impl<R: Row> AnyTable for Table<R> {
    fn undo(&mut self, xid: Xid) {
        Table::undo(self, xid);
    }

    fn vacuum(&mut self, is_running: &dyn Fn(Xid) -> bool) {
        Table::vacuum(self, is_running);
    }
}

/// An open transaction.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Transaction<E> {
    pub(crate) xid: Option<Xid>,
    pub(crate) isolation: Isolation,
    /// The snapshot of all statements, at REPEATABLE READ.
    pub(crate) frozen: Option<Snapshot>,
    /// The snapshot of a statement that is waiting for somebody.
    pub(crate) waiting: Option<Snapshot>,
    /// What becomes true when it commits.
    pub(crate) effects: Vec<E>,
}

/// The transactions of the database. A finished one that left rows has committed: an aborted one leaves none.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Transactions<E> {
    next: u64,
    latest: u64,
    open: BTreeMap<Who, Transaction<E>>,
}

impl<E: Clone> Transactions<E> {
    /// The numbers begin behind those of the installation.
    pub(crate) fn new() -> Self {
        Self { next: 10, latest: 9, open: BTreeMap::new() }
    }

    /// The transaction of `who`, begun when there is none.
    pub(crate) fn begin(&mut self, who: Who, isolation: Isolation) -> &mut Transaction<E> {
        self.open.entry(who).or_insert_with(|| Transaction {
            xid: None,
            isolation,
            frozen: None,
            waiting: None,
            effects: Vec::new(),
        })
    }

    /// The open transaction of `who`.
    pub(crate) fn of(&self, who: Who) -> Option<&Transaction<E>> {
        self.open.get(&who)
    }

    /// The number of the transaction of `who`, drawn when it has none.
    pub(crate) fn xid(&mut self, who: Who) -> Xid {
        let next = &mut self.next;
        let transaction = self.open.get_mut(&who).expect("a statement runs in a transaction");
        *transaction.xid.get_or_insert_with(|| {
            let xid = Xid(*next);
            *next += 1;
            xid
        })
    }

    /// Who is writing at the moment.
    pub(crate) fn running(&self) -> impl Iterator<Item = Xid> {
        self.open.values().filter_map(|transaction| transaction.xid)
    }

    /// The snapshot of this moment, with `own` counted as running.
    pub(crate) fn snapshot(&self, own: Option<Xid>) -> Snapshot {
        // PostgreSQL leaves the caller's own number out of its running list.
        let others = self.running().filter(|xid| Some(*xid) != own);
        Snapshot::of(Xid(self.latest + 1), others, own)
    }

    /// The snapshot of this moment as PostgreSQL gives it, in which the caller's own number looks finished.
    pub(crate) fn snapshot_without(&self, own: Option<Xid>) -> Snapshot {
        Snapshot::of(Xid(self.latest + 1), self.running().filter(|xid| Some(*xid) != own), None)
    }

    /// Ends the transaction of `who`; its number is finished for every snapshot taken from now on.
    pub(crate) fn end(&mut self, who: Who) -> Option<Transaction<E>> {
        let transaction = self.open.remove(&who)?;
        if let Some(xid) = transaction.xid {
            self.latest = self.latest.max(xid.0);
        }
        Some(transaction)
    }

    /// Whether somebody holds a snapshot of an earlier moment.
    pub(crate) fn snapshots_are_held(&self) -> bool {
        self.open.values().any(|transaction| transaction.frozen.is_some() || transaction.waiting.is_some())
    }
}
