//! The claim ring: who holds what, and what has ended, in both shapes.

use std::collections::{BTreeMap, BTreeSet};

use super::rows::{Lane, ROW_OVERHEAD};
use super::slots::Content;
use crate::frontier::RowKey;
use crate::id::{BatchId, Generation, InstanceId, Nonce, ReceiptId, RunLease, Slot};
use crate::receipt::ReceiptSet;
use crate::store::ClaimShape;
use crate::sweep::{BatchKey, RowLocalKey, SweepCursor};
use crate::time::Timestamp;

/// One claim call on one lane and slot: a row of `lease_claim_batches`, or a row of `lease_claims` per member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Batch {
    pub(super) shape: ClaimShape,
    pub(super) nonce: Nonce,
    pub(super) instance: InstanceId,
    pub(super) claimed_at: Timestamp,
    pub(super) deadline_at: Option<Timestamp>,
    pub(super) ready_slot: Slot,
    pub(super) ready_generation: Generation,
    pub(super) lane: Lane,
    /// The members; the receipt of the first has the index 1.
    pub(super) members: Vec<Member>,
}

/// One claimed job of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Member {
    pub(super) key: RowKey,
    /// Of this attempt.
    pub(super) run_lease: RunLease,
    /// Of this attempt, from 1.
    pub(super) attempt: u32,
}

impl Batch {
    pub(super) fn claimed(&self, id: BatchId) -> ReceiptSet {
        ReceiptSet::of_batch(id, self.members.len() as u16)
    }

    /// The member that a receipt of this batch names.
    pub(super) fn member(&self, receipt: ReceiptId) -> Option<&Member> {
        self.members.get(usize::from(receipt.index()) - 1)
    }
}

/// The content of one slot of the claim ring. Closures lie beside the claims that they close, each in the shape of its
/// claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct ClaimSlot {
    pub(super) batches: BTreeMap<BatchId, Batch>,
    /// What has been closed of each compact batch: the rows of `lease_claim_closure_batches`.
    pub(super) closed: BTreeMap<BatchId, ReceiptSet>,
    /// The rows of `lease_claim_closures`.
    pub(super) closed_rows: BTreeSet<ReceiptId>,
    /// Compact batches in the order of their claims.
    pub(super) by_claim: BTreeSet<BatchKey>,
    /// Compact batches that have a deadline, in the order of it.
    pub(super) by_deadline: BTreeSet<BatchKey>,
    /// Row-local claims in the order of their claims.
    pub(super) rows_by_claim: BTreeMap<RowLocalKey, ReceiptId>,
    /// Row-local claims that have a deadline, in the order of it.
    pub(super) rows_by_deadline: BTreeMap<RowLocalKey, ReceiptId>,
    pub(super) stale_cursor: SweepCursor<BatchKey>,
    pub(super) deadline_cursor: SweepCursor<BatchKey>,
    pub(super) row_stale_cursor: SweepCursor<RowLocalKey>,
    pub(super) row_deadline_cursor: SweepCursor<RowLocalKey>,
}

impl ClaimSlot {
    pub(super) fn append(&mut self, id: BatchId, batch: Batch) {
        match batch.shape {
            ClaimShape::Compact => {
                self.by_claim.insert(BatchKey { at: batch.claimed_at, batch: id });
                self.by_deadline.extend(batch.deadline_at.map(|at| BatchKey { at, batch: id }));
            }
            ClaimShape::RowLocal => {
                for (index, member) in (1_u16..).zip(&batch.members) {
                    let key = |at| RowLocalKey { at, job: member.key.job, run_lease: member.run_lease };
                    let receipt = ReceiptId::new(id, index);
                    self.rows_by_claim.insert(key(batch.claimed_at), receipt);
                    self.rows_by_deadline.extend(batch.deadline_at.map(|at| (key(at), receipt)));
                }
            }
        }
        self.batches.insert(id, batch);
    }

    /// What has been closed of a batch, by the evidence of its shape.
    pub(super) fn closed(&self, id: BatchId) -> ReceiptSet {
        match self.batches.get(&id).map(|batch| batch.shape) {
            Some(ClaimShape::RowLocal) => {
                let all = ReceiptId::new(id, 1)..=ReceiptId::new(id, ReceiptId::MAX_INDEX);
                self.closed_rows.range(all).copied().collect()
            }
            _ => self.closed.get(&id).cloned().unwrap_or_default(),
        }
    }

    /// Closes a member of a batch of this slot. The closure follows the shape of the claim, whoever ends it and how.
    pub(super) fn close(&mut self, id: ReceiptId) {
        let is_first = match self.batches[&id.batch()].shape {
            ClaimShape::RowLocal => self.closed_rows.insert(id),
            ClaimShape::Compact => {
                let closed = self.closed.entry(id.batch()).or_default();
                let before = closed.contains(id);
                *closed = closed.union(&[id].into_iter().collect());
                !before
            }
        };
        assert!(is_first, "receipt {id} is closed twice");
    }

    /// The attempts of a batch that have not ended.
    pub(super) fn open(&self, id: BatchId) -> ReceiptSet {
        let Some(batch) = self.batches.get(&id) else { return ReceiptSet::new() };
        crate::receipt::open(&batch.claimed(id), &self.closed(id))
    }

    /// All attempts that have not ended, by batch.
    pub(super) fn open_attempts(&self) -> impl Iterator<Item = (&Batch, ReceiptId)> {
        self.batches.iter().flat_map(|(id, batch)| {
            let open: Vec<ReceiptId> = self.open(*id).iter().collect();
            open.into_iter().map(move |receipt| (batch, receipt))
        })
    }

    /// A closure that no claim of its shape belongs to.
    pub(super) fn stray_closure(&self) -> Option<ReceiptId> {
        let claimed = |receipt: &ReceiptId, shape| {
            let batch = self.batches.get(&receipt.batch()).filter(|batch| batch.shape == shape);
            batch.is_some_and(|batch| batch.claimed(receipt.batch()).contains(*receipt))
        };
        let compact = self.closed.values().flat_map(ReceiptSet::iter);
        let stray = compact.into_iter().find(|receipt| !claimed(receipt, ClaimShape::Compact));
        stray.or_else(|| self.closed_rows.iter().copied().find(|receipt| !claimed(receipt, ClaimShape::RowLocal)))
    }
}

impl Content for ClaimSlot {
    fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.closed.is_empty() && self.closed_rows.is_empty()
    }

    fn bytes(&self) -> u64 {
        let members: usize = self.batches.values().map(|batch| batch.members.len()).sum();
        (members + self.batches.len() + self.closed.len() + self.closed_rows.len()) as u64 * ROW_OVERHEAD
    }
}
