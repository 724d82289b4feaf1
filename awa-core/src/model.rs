//! The executable model of a store: the rules of this crate put together, without a clock, a lock or a disk.
//!
//! [`Model`] is a plain value that behaves as a store must: every method is one atomic step, takes the present as an
//! argument and returns what the method of the same name of the [store traits](crate::store) returns. The memory store
//! is this model behind a lock; a store on a database must be indistinguishable from it.
//!
//! It follows the design of the storage, not only its contract: ready rows lie in the slots of a ring and carry the
//! transaction that appended them, each lane has a [`Frontier`](crate::frontier::Frontier) in each slot, claims are
//! batches in a ring of their own, closures are [receipt sets](crate::receipt::ReceiptSet) beside them, and slots are
//! emptied when [`prune`](crate::prune) says so. Whatever a pure module of this crate decides is decided by it here; the
//! model only acts. Transactions are simulated: rows of one that is open are there and invisible, and it may commit
//! after others that began later.
//!
//! What it simplifies: steps are atomic, so nobody ever finds a lock taken or half a rotation done, a cancelled ready
//! job is always cancelled finally, and who would have to wait for a key is told to ask again.

mod carry;
mod check;
mod claim;
mod claims;
mod close;
mod counts;
mod enqueue;
#[cfg(test)]
mod histories;
mod leases;
mod memory;
mod moves;
mod operate;
mod places;
mod purge;
mod rescue;
mod rings;
mod rows;
mod slots;
mod sweeps;
mod transactions;
mod unique;
mod unpin;
mod wake;

use std::collections::{BTreeMap, BTreeSet};

use crate::frontier::RowKey;
use crate::id::{BatchId, InstanceId, JobId};
use crate::name::QueueName;
use crate::queue::QueueSettings;
use crate::ring::RingKind;
use crate::state::JobState;
use crate::store::Task;
use crate::time::Timestamp;
use crate::unique::StoredKey;

pub use check::Violation;
pub use transactions::TransactionId;
pub use unique::KeyInDoubt;

use claims::ClaimSlot;
use leases::LeaseSlot;
use memory::JobMemory;
use rescue::Process;
use rows::{DeadRow, DeferredRow, Lane, QueueSlot, ReadyRow};
use slots::Ring;
use transactions::Transactions;
use unique::Holder;

/// The sizes of a model's rings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct RingSizes {
    /// Slots of the queue ring, at least 2.
    pub queue: u8,
    /// Slots of the claim ring, at least 2.
    pub claim: u8,
    /// Slots of the lease ring, at least 2.
    pub lease: u8,
}

impl Default for RingSizes {
    /// The sizes of a new schema.
    fn default() -> Self {
        Self {
            queue: RingKind::Queue.default_slots(),
            claim: RingKind::Claim.default_slots(),
            lease: RingKind::Lease.default_slots(),
        }
    }
}

/// The state of a store, and every step that it can make.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Model {
    last_job: JobId,
    last_batch: BatchId,
    transactions: Transactions,
    queues: BTreeMap<QueueName, Queue>,
    queue_ring: Ring<QueueSlot>,
    claim_ring: Ring<ClaimSlot>,
    /// Ready rows that were moved out of the ring, or handed back; claims read them first.
    carried: BTreeMap<Lane, BTreeMap<RowKey, ReadyRow>>,
    lease_ring: Ring<LeaseSlot>,
    deferred: BTreeMap<JobId, DeferredRow>,
    dead: BTreeMap<JobId, DeadRow>,
    /// What the attempts of a job have noted.
    memory: BTreeMap<JobId, JobMemory>,
    /// How many jobs have ended in each way whose history was reclaimed.
    ended: BTreeMap<(QueueName, JobState), u64>,
    keys: BTreeMap<StoredKey, Holder>,
    /// Jobs that were claimed before the transaction that replaced them committed.
    keyless: BTreeSet<JobId>,
    processes: BTreeMap<InstanceId, Process>,
    last_ticks: BTreeMap<Task, Timestamp>,
    sleepers: BTreeMap<QueueName, BTreeSet<InstanceId>>,
    wakes: BTreeSet<QueueName>,
}

/// What is known of a queue beside its jobs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
struct Queue {
    paused: bool,
    settings: QueueSettings,
    /// When each lane had its last turn, counted in claims; lanes that are equally urgent take turns.
    turns: BTreeMap<Lane, u64>,
    /// Claims so far.
    claims: u64,
}

impl Model {
    /// An empty store with rings of these sizes.
    ///
    /// # Panics
    ///
    /// When a ring has fewer than 2 slots or more than [`Pointer::SLOTS`](crate::ring::Pointer::SLOTS).
    pub fn new(sizes: RingSizes, now: Timestamp) -> Self {
        Self {
            last_job: JobId(0),
            last_batch: BatchId(0),
            transactions: Transactions::default(),
            queues: BTreeMap::new(),
            queue_ring: Ring::new(RingKind::Queue, sizes.queue, now),
            claim_ring: Ring::new(RingKind::Claim, sizes.claim, now),
            carried: BTreeMap::new(),
            lease_ring: Ring::new(RingKind::Lease, sizes.lease, now),
            deferred: BTreeMap::new(),
            dead: BTreeMap::new(),
            memory: BTreeMap::new(),
            ended: BTreeMap::new(),
            keys: BTreeMap::new(),
            keyless: BTreeSet::new(),
            processes: BTreeMap::new(),
            last_ticks: BTreeMap::new(),
            sleepers: BTreeMap::new(),
            wakes: BTreeSet::new(),
        }
    }

    /// The sizes of the rings.
    pub fn ring_sizes(&self) -> RingSizes {
        RingSizes { queue: self.queue_ring.len(), claim: self.claim_ring.len(), lease: self.lease_ring.len() }
    }
}
