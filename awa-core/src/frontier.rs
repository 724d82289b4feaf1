//! Order in a lane without locks: the frontier, a cursor over transactions.
//!
//! Every ready row stores the number of the transaction that appended it, and a lane is read in the order of
//! [`RowKey`]: transactions by the order in which they began to write, the jobs of one transaction in enqueue order.
//! Transactions commit in another order, so a plain position would lose the rows of a late commit. The [`Frontier`] is
//! a set instead: `seen`, the transactions whose rows have all been taken, and `parts`, how far the partially taken ones
//! have been taken.
//!
//! A claim takes a [`Snapshot`] S, walks the [`Probe`]s of [`Frontier::candidates`] in order and stores what
//! [`Frontier::advance`] returns. Three facts carry the queue:
//!
//! - **Exactly once.** A row is passed if and only if a claim walked over it.
//! - **Exact prefix.** A claim gets the first rows, in order, of those that S sees and that are not passed. The rows of
//!   a late commit come in the very next claim, however deep the backlog or large the transaction before it.
//! - **Monotone.** An S older than the frontier cannot move it back, so one S serves all slots and lanes of a call and
//!   may be taken before the lane is locked.
//!
//! The frontier lives in the slot whose rows it describes; a new generation of the slot starts from [`Frontier::start`].

mod snapshot;

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::id::{JobId, Xid};

pub use snapshot::{BadSnapshot, Snapshot};

/// The place of a ready row in its lane and slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    /// The transaction that appended the row.
    pub xid: Xid,
    /// The job.
    pub job: JobId,
}

impl RowKey {
    /// The place of `job`, appended by `xid`.
    pub const fn new(xid: Xid, job: JobId) -> Self {
        Self { xid, job }
    }
}

/// One contiguous piece of the index on (lane, xid, job) that may hold rows of interest.
///
/// The pieces of a plan are disjoint and ascending. There is one piece for each running transaction that needs a look
/// and one for each stretch between running transactions, so that nobody walks through the rows of an uncommitted bulk
/// load to find that none of them is visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Probe {
    /// The rows of one transaction of the frontier's running list, behind the job taken last, if any.
    Member {
        /// The transaction.
        xid: Xid,
        /// The last job of it that is passed.
        after: Option<JobId>,
    },
    /// The rows of all transactions from `from` up to, but not including, `until`.
    Span {
        /// The first transaction.
        from: Xid,
        /// The first transaction behind the piece.
        until: Xid,
    },
    /// The rows of all transactions from `from` on.
    Tail {
        /// The first transaction.
        from: Xid,
    },
}

impl Probe {
    /// Whether the piece covers `row`.
    pub fn covers(&self, row: RowKey) -> bool {
        match *self {
            Self::Member { xid, after } => row.xid == xid && after.is_none_or(|last| row.job > last),
            Self::Span { from, until } => (from..until).contains(&row.xid),
            Self::Tail { from } => row.xid >= from,
        }
    }

    /// The piece as bounds for an ordered map or an index.
    pub fn bounds(&self) -> (Bound<RowKey>, Bound<RowKey>) {
        let first = |xid| RowKey::new(xid, JobId(i64::MIN));
        match *self {
            Self::Member { xid, after } => (
                after.map_or(Bound::Included(first(xid)), |last| Bound::Excluded(RowKey::new(xid, last))),
                Bound::Included(RowKey::new(xid, JobId(i64::MAX))),
            ),
            Self::Span { from, until } => (Bound::Included(first(from)), Bound::Excluded(first(until))),
            Self::Tail { from } => (Bound::Included(first(from)), Bound::Unbounded),
        }
    }
}

/// Where a walk over the candidates ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stop {
    /// Every candidate was walked over. Also the stop of a purge, which passes everything and emits nothing.
    Exhausted,
    /// This row was the last one walked over; there may be more behind it.
    At(RowKey),
}

/// What a visitor of [`Frontier::walk`] wants next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Go on with the next row.
    Continue,
    /// This row was the last one: it is passed and the walk ends.
    StopHere,
}

/// The result of a [`Frontier::walk`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walk {
    /// The frontier that has passed what was visited. It must be stored whenever [`Self::visited`] is not 0, also when
    /// nothing was emitted, else tombstones are walked over again by every poll.
    pub frontier: Frontier,
    /// The number of rows visited.
    pub visited: usize,
    /// Whether the walk ended because nothing was left, and not because the visitor stopped it.
    pub exhausted: bool,
}

/// The cursor of one lane in one slot: which rows have been passed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frontier {
    seen: Snapshot,
    /// Ascending, at most one for each transaction, and only of transactions in `seen`'s running list.
    parts: Vec<RowKey>,
}

/// A stored frontier that contradicts itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadFrontier {
    /// Two parts name the same transaction.
    #[error("frontier refused: transaction {0} is partially taken in two places; run the doctor command")]
    RepeatedPart(Xid),
    /// A part names a transaction that the frontier does not wait for.
    #[error("frontier refused: transaction {0} is partially taken but not in the running list; run the doctor command")]
    PartNotRunning(Xid),
}

impl Frontier {
    /// The frontier of a slot that was just opened: nothing is passed.
    pub const fn start() -> Self {
        Self { seen: Snapshot::empty(), parts: Vec::new() }
    }

    /// A frontier read back from storage; `parts` may come in any order.
    pub fn from_stored(seen: Snapshot, mut parts: Vec<RowKey>) -> Result<Self, BadFrontier> {
        parts.sort_unstable();
        if let Some(pair) = parts.windows(2).find(|pair| pair[0].xid == pair[1].xid) {
            return Err(BadFrontier::RepeatedPart(pair[0].xid));
        }
        if let Some(part) = parts.iter().find(|part| !seen.is_running(part.xid)) {
            return Err(BadFrontier::PartNotRunning(part.xid));
        }
        Ok(Self { seen, parts })
    }

    /// The transactions of which every row is passed, as a snapshot; partially taken ones are in its running list.
    pub const fn seen(&self) -> &Snapshot {
        &self.seen
    }

    /// The last passed row of each partially taken transaction, ascending.
    pub fn parts(&self) -> &[RowKey] {
        &self.parts
    }

    /// Whether the row was taken, moved, skipped as a tombstone or purged, so that no claim will look at it again.
    pub fn passed(&self, row: RowKey) -> bool {
        self.seen.sees(row.xid) || self.last_of(row.xid).is_some_and(|last| row.job <= last)
    }

    /// The plan of a claim that reads with `snapshot`: together the pieces cover exactly the transactions that
    /// `snapshot` sees, and of those exactly the rows that are not passed.
    ///
    /// First the members of the running list that have finished since, each from its part, then the pieces of the rest
    /// between the transactions that are running now. The number of pieces is at most that of the running transactions
    /// of both snapshots plus one.
    pub fn candidates(&self, snapshot: &Snapshot) -> Vec<Probe> {
        let mut plan: Vec<Probe> = self.members().filter(|(xid, _)| snapshot.sees(*xid)).map(member).collect();
        let mut from = self.seen.xmax();
        let gaps = snapshot.running().iter().copied().filter(|xid| *xid >= self.seen.xmax());
        for until in gaps.chain([snapshot.xmax()]) {
            if from < until {
                plan.push(Probe::Span { from, until });
            }
            from = from.max(Xid(until.0.saturating_add(1)));
        }
        plan
    }

    /// The pieces that hold every row that is not passed, whatever its transaction is doing: the slot is drained of
    /// this lane when all of them are empty while no writer is in flight.
    pub fn unpassed(&self) -> Vec<Probe> {
        self.members().map(member).chain([Probe::Tail { from: self.seen.xmax() }]).collect()
    }

    /// The frontier after a walk over [`Self::candidates`] of the same `snapshot` that ended at `stop`.
    ///
    /// Passed afterwards is exactly what was passed before and, of the rows that `snapshot` sees, those up to the stop.
    ///
    /// # Panics
    ///
    /// When the row of [`Stop::At`] is not a candidate: the claim has read with another snapshot or frontier, and to
    /// store the result would lose rows.
    #[must_use]
    pub fn advance(&self, snapshot: &Snapshot, stop: Stop) -> Self {
        match stop {
            Stop::Exhausted => self.advance_past_all(snapshot),
            Stop::At(row) => self.advance_to(snapshot, row),
        }
    }

    /// Walks over the candidate rows of an ordered map, as a claim does over the index, until nothing is left or the
    /// visitor stops.
    pub fn walk<R>(
        &self,
        snapshot: &Snapshot,
        rows: &BTreeMap<RowKey, R>,
        mut visit: impl FnMut(RowKey, &R) -> Step,
    ) -> Walk {
        let mut visited = 0;
        for probe in self.candidates(snapshot) {
            for (key, row) in rows.range(probe.bounds()) {
                visited += 1;
                if visit(*key, row) == Step::StopHere {
                    return Walk { frontier: self.advance(snapshot, Stop::At(*key)), visited, exhausted: false };
                }
            }
        }
        Walk { frontier: self.advance(snapshot, Stop::Exhausted), visited, exhausted: true }
    }

    fn last_of(&self, xid: Xid) -> Option<JobId> {
        self.parts.binary_search_by_key(&xid, |part| part.xid).ok().map(|found| self.parts[found].job)
    }

    fn members(&self) -> impl Iterator<Item = (Xid, Option<JobId>)> + '_ {
        self.seen.running().iter().map(|xid| (*xid, self.last_of(*xid)))
    }

    fn advance_past_all(&self, snapshot: &Snapshot) -> Self {
        let floor = self.seen.xmax();
        let waiting = self.seen.running().iter().filter(|xid| !snapshot.sees(**xid));
        let new = snapshot.running().iter().filter(|xid| **xid >= floor);
        let seen = Snapshot::of(floor.max(snapshot.xmax()), waiting.chain(new).copied(), None);
        let parts = self.parts.iter().filter(|part| seen.is_running(part.xid)).copied().collect();
        Self { seen, parts }
    }

    fn advance_to(&self, snapshot: &Snapshot, row: RowKey) -> Self {
        assert!(
            snapshot.sees(row.xid) && !self.passed(row),
            "claim stopped at transaction {} job {}, which is not a candidate of {self:?} under {snapshot:?}",
            row.xid,
            row.job
        );
        let floor = self.seen.xmax();
        let xmax = floor.max(Xid(row.xid.0 + 1));
        let waiting = self.seen.running().iter().filter(|xid| !(**xid < row.xid && snapshot.sees(**xid)));
        let new = snapshot.running().iter().filter(|xid| (floor..xmax).contains(*xid));
        let seen = Snapshot::of(xmax, waiting.chain(new).copied().chain([row.xid]), None);
        let others = self.parts.iter().filter(|part| seen.is_running(part.xid) && part.xid != row.xid);
        let mut parts: Vec<RowKey> = others.copied().chain([row]).collect();
        parts.sort_unstable();
        Self { seen, parts }
    }
}

fn member((xid, after): (Xid, Option<JobId>)) -> Probe {
    Probe::Member { xid, after }
}
