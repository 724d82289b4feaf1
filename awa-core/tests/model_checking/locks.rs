//! Locks: of tables in the modes of PostgreSQL, of rows, and advisory ones. All are held to the end of the transaction.

use std::collections::{BTreeMap, BTreeSet};

use awa_core::id::{JobId, LaneId, ReceiptId, Slot};
use awa_core::ring::RingKind;

use super::database::Who;

/// The modes in use, weakest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Mode {
    /// Taken by reading.
    AccessShare,
    /// Taken by writing, and by the writer protocol.
    RowExclusive,
    /// Against writers: draining and moving out.
    Share,
    /// Against everybody: truncation.
    AccessExclusive,
}

impl Mode {
    fn conflicts(self, other: Self) -> bool {
        use Mode::{AccessExclusive, RowExclusive, Share};
        matches!(
            (self, other),
            (AccessExclusive, _) | (_, AccessExclusive) | (RowExclusive, Share) | (Share, RowExclusive)
        )
    }
}

/// The children of the rings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Child {
    /// `ready_entries_n`.
    Ready(Slot),
    /// `ready_claim_attempt_batches_n`.
    Cursors(Slot),
    /// `ready_tombstones_n`.
    Tombstones(Slot),
    /// `done_entries_n`.
    Done(Slot),
    /// `receipt_completion_batches_n`.
    Completions(Slot),
    /// `lease_claim_batches_n`.
    Claims(Slot),
    /// `lease_claim_closure_batches_n`.
    Closures(Slot),
    /// `leases_n`.
    Leases(Slot),
}

impl Child {
    /// All children of a slot, in the order of the hot path.
    pub(crate) fn of_slot(ring: RingKind, slot: Slot) -> Vec<Self> {
        match ring {
            RingKind::Queue => vec![
                Self::Ready(slot),
                Self::Cursors(slot),
                Self::Tombstones(slot),
                Self::Done(slot),
                Self::Completions(slot),
            ],
            RingKind::Claim => vec![Self::Claims(slot), Self::Closures(slot)],
            RingKind::Lease => vec![Self::Leases(slot)],
        }
    }
}

/// What one transaction at a time may hold: rows for update, and advisory keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Sole {
    /// The key of a lane.
    Lane(LaneId),
    /// The key of a ring's rotation.
    Rotation(RingKind),
    /// A row of a ring's slots.
    SlotRow(RingKind, Slot),
    /// A row of `deferred_jobs`.
    Deferred(JobId),
    /// A row of `leases`.
    Lease(ReceiptId),
}

/// All locks that are held.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Locks {
    tables: BTreeSet<(Child, Mode, Who)>,
    sole: BTreeMap<Sole, Who>,
}

impl Locks {
    /// Takes a lock on a table if nobody is in the way.
    pub(crate) fn try_table(&mut self, who: Who, child: Child, mode: Mode) -> bool {
        let is_free =
            self.tables.iter().all(|(held, as_mode, by)| *held != child || *by == who || !mode.conflicts(*as_mode));
        if is_free {
            self.tables.insert((child, mode, who));
        }
        is_free
    }

    /// Takes a row or a key if nobody else has it.
    pub(crate) fn try_sole(&mut self, who: Who, sole: Sole) -> bool {
        *self.sole.entry(sole).or_insert(who) == who
    }

    /// Gives back everything that `who` holds.
    pub(crate) fn release(&mut self, who: Who) {
        self.tables.retain(|(_, _, by)| *by != who);
        self.sole.retain(|_, by| *by != who);
    }
}
