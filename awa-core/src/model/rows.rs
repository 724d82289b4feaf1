//! The rows of the model, and the content of one slot of the queue ring.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::slots::Content;
use super::unique::OwnKey;
use crate::attempt::ErrorText;
use crate::frontier::{Frontier, RowKey, Snapshot};
use crate::id::{JobId, RunLease, Slot, Xid};
use crate::job::{MaxAttempts, Priority};
use crate::json::JsonText;
use crate::name::{JobKind, QueueName};
use crate::queue::Shard;
use crate::state::JobState;
use crate::store::DeferredReason;
use crate::time::Timestamp;

/// Bytes that a row takes beside its texts, roughly.
pub(super) const ROW_OVERHEAD: u64 = 64;

/// A stretch of order: one shard of one priority of one queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Lane {
    pub(super) queue: QueueName,
    pub(super) priority: Priority,
    pub(super) shard: Shard,
}

/// What stays the same while a job is not moved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Body {
    pub(super) queue: QueueName,
    pub(super) kind: JobKind,
    pub(super) args: JsonText,
    pub(super) metadata: Option<JsonText>,
    pub(super) priority: Priority,
    pub(super) shard: Shard,
    pub(super) max_attempts: MaxAttempts,
    pub(super) created_at: Timestamp,
    pub(super) unique: Option<OwnKey>,
}

impl Body {
    pub(super) fn lane(&self) -> Lane {
        Lane { queue: self.queue.clone(), priority: self.priority, shard: self.shard }
    }

    pub(super) fn bytes(&self) -> u64 {
        let metadata = self.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len());
        ROW_OVERHEAD + (self.args.as_str().len() + metadata) as u64
    }
}

/// A job between two attempts, or after the last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Row {
    pub(super) body: Arc<Body>,
    /// How often it has been claimed or moved.
    pub(super) run_lease: RunLease,
    /// Charged attempts so far.
    pub(super) attempt: u32,
    /// Of the latest failed attempt.
    pub(super) error: Option<ErrorText>,
}

/// A row of `ready_entries`. A claim does not change it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ReadyRow {
    pub(super) row: Row,
    /// When it was appended; priorities age from here.
    pub(super) ready_at: Timestamp,
}

/// Where a ready row lies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ReadyPlace {
    pub(super) slot: Slot,
    pub(super) lane: Lane,
    pub(super) key: RowKey,
}

/// A row of `deferred_jobs`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct DeferredRow {
    pub(super) xid: Xid,
    pub(super) row: Row,
    pub(super) run_at: Timestamp,
    pub(super) reason: DeferredReason,
}

/// A row of `dlq_entries`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct DeadRow {
    pub(super) row: Row,
    pub(super) died_at: Timestamp,
}

/// A row of `done_entries`: self-contained history.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct DoneRow {
    pub(super) row: Row,
    pub(super) state: JobState,
    pub(super) finalized_at: Timestamp,
    pub(super) result: Option<JsonText>,
}

/// What decides whether a failed job is carried forward.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailedRow {
    pub(super) failed_at: Timestamp,
    pub(super) bytes: u64,
}

impl DoneRow {
    fn failed(&self) -> FailedRow {
        let body = &self.row.body;
        let metadata = body.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len());
        let error = self.row.error.as_ref().map_or(0, |error| error.as_str().len());
        FailedRow { failed_at: self.finalized_at, bytes: (body.args.as_str().len() + metadata + error) as u64 }
    }
}

/// Compact history: a job that completed with nothing to keep, told by its ready row of the same slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Completion {
    pub(super) lane: Lane,
    pub(super) key: RowKey,
    pub(super) run_lease: RunLease,
    pub(super) attempt: u32,
    pub(super) finalized_at: Timestamp,
}

/// Why a ready row must not be handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum TombstoneKind {
    /// Its job was cancelled.
    Cancelled,
    /// Its job was moved, and has a newer row.
    Moved,
}

/// A ready row that claims pass over, told by the row of the same slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tombstone {
    pub(super) kind: TombstoneKind,
    pub(super) lane: Lane,
    pub(super) key: RowKey,
    pub(super) reason: ErrorText,
    pub(super) cancelled_at: Timestamp,
}

/// The content of one slot of the queue ring.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct QueueSlot {
    pub(super) ready: BTreeMap<Lane, BTreeMap<RowKey, ReadyRow>>,
    /// The newest cursor of each lane; without one nothing is passed.
    pub(super) frontiers: BTreeMap<Lane, Frontier>,
    /// A job may be in a slot twice, with two leases, and only one of the two rows is cancelled.
    pub(super) tombstones: BTreeMap<(JobId, RunLease), Tombstone>,
    pub(super) completions: BTreeMap<JobId, Completion>,
    pub(super) done: BTreeMap<JobId, DoneRow>,
    /// History that was deleted: it is there until the slot is emptied, and nobody sees it.
    pub(super) hidden: BTreeSet<JobId>,
}

impl QueueSlot {
    pub(super) fn append(&mut self, key: RowKey, ready: ReadyRow) {
        let lane = ready.row.body.lane();
        let before = self.ready.entry(lane).or_default().insert(key, ready);
        assert!(before.is_none(), "job {} was appended twice by one transaction", key.job);
    }

    pub(super) fn row(&self, lane: &Lane, key: RowKey) -> Option<&ReadyRow> {
        self.ready.get(lane)?.get(&key)
    }

    /// How far the lane is passed in this slot.
    pub(super) fn frontier(&self, lane: &Lane) -> Frontier {
        self.frontiers.get(lane).cloned().unwrap_or_else(Frontier::start)
    }

    pub(super) fn is_tombstoned(&self, key: RowKey, row: &ReadyRow) -> bool {
        self.tombstones.contains_key(&(key.job, row.row.run_lease))
    }

    /// The rows of a lane that no claim has passed, in order, whoever wrote them.
    pub(super) fn unpassed<'a>(&'a self, lane: &'a Lane) -> impl Iterator<Item = (RowKey, &'a ReadyRow)> {
        let rows = self.ready.get(lane);
        let probes = self.frontier(lane).unpassed();
        rows.into_iter().flat_map(move |rows| {
            let pieces: Vec<_> = probes.iter().map(|probe| rows.range(probe.bounds())).collect();
            pieces.into_iter().flatten().map(|(key, row)| (*key, row))
        })
    }

    /// The rows that wait to be claimed, in order, whoever wrote them.
    pub(super) fn waiting(&self) -> Vec<(Lane, RowKey)> {
        let rows = self.ready.keys().flat_map(|lane| self.unpassed(lane).map(move |(key, row)| (lane, key, row)));
        rows.filter(|(_, key, row)| !self.is_tombstoned(*key, row)).map(|(lane, key, _)| (lane.clone(), key)).collect()
    }

    /// Whether a row that `snapshot` sees is not passed. It does not see rows of open transactions: those are the
    /// reason why a slot with writers in flight is left alone.
    pub(super) fn has_unpassed_rows(&self, snapshot: &Snapshot) -> bool {
        self.ready.keys().any(|lane| self.unpassed(lane).any(|(key, _)| snapshot.sees(key.xid)))
    }

    /// Whether any row is not passed, of whatever transaction.
    pub(super) fn is_waited_in(&self) -> bool {
        self.ready.keys().any(|lane| self.unpassed(lane).next().is_some())
    }

    pub(super) fn remove_rows_of(&mut self, xid: Xid) {
        for rows in self.ready.values_mut() {
            rows.retain(|key, _| key.xid != xid);
        }
        self.ready.retain(|_, rows| !rows.is_empty());
    }

    /// When the youngest completed job of its history ended.
    pub(super) fn last_completed(&self) -> Option<Timestamp> {
        let completed = self.completions.values().map(|completion| completion.finalized_at);
        completed.chain(self.done_as(JobState::Completed)).max()
    }

    /// When the youngest cancelled job of its history ended.
    pub(super) fn last_cancelled(&self) -> Option<Timestamp> {
        let cancelled = self.tombstones.values().filter(|tombstone| tombstone.kind == TombstoneKind::Cancelled);
        cancelled.map(|tombstone| tombstone.cancelled_at).chain(self.done_as(JobState::Cancelled)).max()
    }

    fn done_as(&self, state: JobState) -> impl Iterator<Item = Timestamp> {
        self.done.values().filter(move |done| done.state == state).map(|done| done.finalized_at)
    }

    /// The failed jobs of its history that were not deleted, the youngest first.
    pub(super) fn failed(&self) -> Vec<(JobId, FailedRow)> {
        let shown = self.done.iter().filter(|(job, _)| !self.hidden.contains(job));
        let failed = shown.filter(|(_, done)| done.state == JobState::Failed);
        let mut failed: Vec<_> = failed.map(|(job, done)| (*job, done.failed())).collect();
        failed.sort_unstable_by_key(|(job, row)| std::cmp::Reverse((row.failed_at, *job)));
        failed
    }
}

impl Content for QueueSlot {
    fn is_empty(&self) -> bool {
        self == &Self::default()
    }

    fn bytes(&self) -> u64 {
        let ready: u64 = self.ready.values().flat_map(BTreeMap::values).map(|ready| ready.row.body.bytes()).sum();
        let done = self.done.values().map(|done| {
            let result = done.result.as_ref().map_or(0, |result| result.as_str().len() as u64);
            done.row.body.bytes() + result
        });
        let small = self.completions.len() + self.tombstones.len() + self.frontiers.len() + self.hidden.len();
        ready + done.sum::<u64>() + ROW_OVERHEAD * small as u64
    }
}
