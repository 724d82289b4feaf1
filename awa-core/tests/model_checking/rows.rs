//! The tables of the receipt plane, with the columns that decide anything.

use awa_core::frontier::{Frontier, RowKey};
use awa_core::id::{BatchId, Generation, InstanceId, JobId, LaneId, Nonce, ReceiptId, RunLease, Slot, Xid};
use awa_core::receipt::ReceiptSet;
use awa_core::ring::{RingKind, SlotState};
use awa_core::sweep::{BatchKey, SweepCursor};
use awa_core::time::Timestamp;

use super::database::{AnyTable, Row, Table};

/// A job that waits or waited: rows of `ready_entries`, `carried_entries` and `deferred_jobs`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct JobRow {
    pub(crate) lane: LaneId,
    pub(crate) xid: Xid,
    pub(crate) job: JobId,
    pub(crate) run_lease: RunLease,
    pub(crate) attempt: u32,
}

impl JobRow {
    /// Its place in its lane.
    pub(crate) fn place(&self) -> RowKey {
        RowKey::new(self.xid, self.job)
    }
}

/// `ready_claim_attempt_batches`: the cursor of a lane in a slot, and what the claim emitted.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct CursorRow {
    pub(crate) lane: LaneId,
    pub(crate) seq: i64,
    pub(crate) frontier: Frontier,
    /// `None`: nothing was emitted, or the rows were moved to the carry-over.
    pub(crate) batch: Option<BatchId>,
    /// Jobs and leases of the ready rows that were emitted or moved.
    pub(crate) rows: Vec<(JobId, RunLease)>,
}

/// `ready_tombstones`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct TombstoneRow {
    pub(crate) job: JobId,
    pub(crate) run_lease: RunLease,
}

/// A job that ended, in the wide form: `done_entries` and `dlq_entries`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct EndedRow {
    pub(crate) job: JobId,
}

/// `receipt_completion_batches`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct CompletionRow {
    pub(crate) lane: LaneId,
    pub(crate) seq: i64,
    pub(crate) receipts: ReceiptSet,
}

/// `lease_claim_batches`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ClaimRow {
    pub(crate) batch: BatchId,
    pub(crate) lane: LaneId,
    pub(crate) seq: i64,
    pub(crate) members: u16,
    pub(crate) ready_slot: Slot,
    /// What the claim believed to be the generation of the slot. No proof reads it, but in a mutant.
    pub(crate) ready_generation: Generation,
    pub(crate) instance: InstanceId,
    pub(crate) nonce: Nonce,
    pub(crate) claimed_at: Timestamp,
    pub(crate) deadline_at: Option<Timestamp>,
}

impl ClaimRow {
    /// Its receipts.
    pub(crate) fn receipts(&self) -> ReceiptSet {
        ReceiptSet::of_batch(self.batch, self.members)
    }
}

/// `lease_claim_closure_batches`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ClosureRow {
    pub(crate) receipts: ReceiptSet,
}

/// `leases`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct LeaseRow {
    pub(crate) receipt: ReceiptId,
    pub(crate) claim_slot: Slot,
    pub(crate) nonce: Nonce,
    pub(crate) instance: InstanceId,
    pub(crate) claimed_at: Timestamp,
    pub(crate) deadline_at: Option<Timestamp>,
    /// The job; its lease and attempt are those of the running attempt.
    pub(crate) job: JobRow,
}

/// `queue_ring_slots` and `claim_ring_slots`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct SlotRow {
    pub(crate) slot: Slot,
    pub(crate) generation: Generation,
    pub(crate) state: SlotState,
    pub(crate) stale: SweepCursor<BatchKey>,
    pub(crate) deadline: SweepCursor<BatchKey>,
}

/// `queue_ring_rotations` and `claim_ring_rotations`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct LedgerRow {
    pub(crate) generation: Generation,
}

macro_rules! keyed {
    ($row:ty, $key:ty, $this:ident => $value:expr) => {
        impl Row for $row {
            type Key = $key;
            fn key(&self) -> $key {
                let $this = self;
                $value
            }
        }
    };
}

keyed!(JobRow, (LaneId, RowKey, RunLease), row => (row.lane, row.place(), row.run_lease));
keyed!(CursorRow, (LaneId, i64), row => (row.lane, row.seq));
keyed!(TombstoneRow, (JobId, RunLease), row => (row.job, row.run_lease));
keyed!(EndedRow, JobId, row => row.job);
keyed!(CompletionRow, (LaneId, i64, Option<ReceiptId>), row => (row.lane, row.seq, row.receipts.iter().next()));
keyed!(ClaimRow, BatchId, row => row.batch);
keyed!(ClosureRow, Option<ReceiptId>, row => row.receipts.iter().next());
keyed!(LeaseRow, ReceiptId, row => row.receipt);
keyed!(SlotRow, (Slot, Generation, SlotState), row => (row.slot, row.generation, row.state));
keyed!(LedgerRow, Generation, row => row.generation);

/// The children of one slot of the queue ring.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct QueueSlot {
    pub(crate) ready: Table<JobRow>,
    pub(crate) cursors: Table<CursorRow>,
    pub(crate) tombstones: Table<TombstoneRow>,
    pub(crate) done: Table<EndedRow>,
    pub(crate) completions: Table<CompletionRow>,
}

/// The children of one slot of the claim ring.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct ClaimSlot {
    pub(crate) claims: Table<ClaimRow>,
    pub(crate) closures: Table<ClosureRow>,
}

/// What is kept of one ring besides its children.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct RingTables {
    pub(crate) slots: Table<SlotRow>,
    pub(crate) ledger: Table<LedgerRow>,
}

/// All tables.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Tables {
    pub(crate) queue: Vec<QueueSlot>,
    pub(crate) claim: Vec<ClaimSlot>,
    pub(crate) queue_ring: RingTables,
    pub(crate) claim_ring: RingTables,
    pub(crate) lease_ring: RingTables,
    pub(crate) deferred: Table<JobRow>,
    pub(crate) carried: Table<JobRow>,
    /// The only child of each slot of the lease ring.
    pub(crate) leases: Vec<Table<LeaseRow>>,
    pub(crate) dead: Table<EndedRow>,
}

impl Tables {
    /// The rings, of so many slots each, as installed: generation 1 is open in slot 0.
    pub(crate) fn new(queue_slots: u8, claim_slots: u8, lease_slots: u8) -> Self {
        let ring = |slots: u8| {
            let mut tables = RingTables::default();
            for slot in 0..slots {
                let (generation, state) = if slot == 0 { (1, SlotState::Open) } else { (0, SlotState::Free) };
                let (stale, deadline) = (SweepCursor::default(), SweepCursor::default());
                let row = SlotRow { slot: Slot(slot), generation: Generation(generation), state, stale, deadline };
                tables.slots.insert(row, Xid(0));
            }
            tables.ledger.insert(LedgerRow { generation: Generation(1) }, Xid(0));
            tables
        };
        Self {
            queue: vec![QueueSlot::default(); usize::from(queue_slots)],
            claim: vec![ClaimSlot::default(); usize::from(claim_slots)],
            queue_ring: ring(queue_slots),
            claim_ring: ring(claim_slots),
            leases: vec![Table::default(); usize::from(lease_slots)],
            lease_ring: ring(lease_slots),
            ..Self::default()
        }
    }

    /// The slots and the ledger of a ring.
    pub(crate) fn ring(&self, ring: RingKind) -> &RingTables {
        match ring {
            RingKind::Queue => &self.queue_ring,
            RingKind::Claim => &self.claim_ring,
            RingKind::Lease => &self.lease_ring,
        }
    }

    /// The same, to write to.
    pub(crate) fn ring_mut(&mut self, ring: RingKind) -> &mut RingTables {
        match ring {
            RingKind::Queue => &mut self.queue_ring,
            RingKind::Claim => &mut self.claim_ring,
            RingKind::Lease => &mut self.lease_ring,
        }
    }

    /// A slot of the queue ring.
    pub(crate) fn of_queue(&self, slot: Slot) -> &QueueSlot {
        &self.queue[usize::from(slot.0)]
    }

    /// The same, to write to.
    pub(crate) fn of_queue_mut(&mut self, slot: Slot) -> &mut QueueSlot {
        &mut self.queue[usize::from(slot.0)]
    }

    /// A slot of the claim ring.
    pub(crate) fn of_claim(&self, slot: Slot) -> &ClaimSlot {
        &self.claim[usize::from(slot.0)]
    }

    /// The same, to write to.
    pub(crate) fn of_claim_mut(&mut self, slot: Slot) -> &mut ClaimSlot {
        &mut self.claim[usize::from(slot.0)]
    }

    /// A slot of the lease ring.
    pub(crate) fn of_lease(&self, slot: Slot) -> &Table<LeaseRow> {
        &self.leases[usize::from(slot.0)]
    }

    /// The same, to write to.
    pub(crate) fn of_lease_mut(&mut self, slot: Slot) -> &mut Table<LeaseRow> {
        &mut self.leases[usize::from(slot.0)]
    }

    /// Whether any child of a slot has pages.
    pub(crate) fn has_pages(&self, ring: RingKind, slot: Slot) -> bool {
        match ring {
            RingKind::Queue => {
                let slot = self.of_queue(slot);
                slot.ready.has_pages()
                    || slot.cursors.has_pages()
                    || slot.tombstones.has_pages()
                    || slot.done.has_pages()
                    || slot.completions.has_pages()
            }
            RingKind::Claim => {
                let slot = self.of_claim(slot);
                slot.claims.has_pages() || slot.closures.has_pages()
            }
            RingKind::Lease => self.of_lease(slot).has_pages(),
        }
    }

    /// Empties the children of a slot.
    pub(crate) fn truncate(&mut self, ring: RingKind, slot: Slot) {
        match ring {
            RingKind::Queue => *self.of_queue_mut(slot) = QueueSlot::default(),
            RingKind::Claim => *self.of_claim_mut(slot) = ClaimSlot::default(),
            RingKind::Lease => *self.of_lease_mut(slot) = Table::default(),
        }
    }

    /// Every table.
    pub(crate) fn all(&mut self) -> impl Iterator<Item = &mut dyn AnyTable> {
        let queue = self.queue.iter_mut().flat_map(|slot| -> [&mut dyn AnyTable; 5] {
            [&mut slot.ready, &mut slot.cursors, &mut slot.tombstones, &mut slot.done, &mut slot.completions]
        });
        let claim =
            self.claim.iter_mut().flat_map(|slot| -> [&mut dyn AnyTable; 2] { [&mut slot.claims, &mut slot.closures] });
        let leases = self.leases.iter_mut().map(|child| -> &mut dyn AnyTable { child });
        let rings: [&mut dyn AnyTable; 9] = [
            &mut self.queue_ring.slots,
            &mut self.queue_ring.ledger,
            &mut self.claim_ring.slots,
            &mut self.claim_ring.ledger,
            &mut self.lease_ring.slots,
            &mut self.lease_ring.ledger,
            &mut self.deferred,
            &mut self.carried,
            &mut self.dead,
        ];
        queue.chain(claim).chain(leases).chain(rings)
    }
}
