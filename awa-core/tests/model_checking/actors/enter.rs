//! The writer protocol, for every child that anyone appends to: read the pointer, lock the child, read the pointer again,
//! repeat until equal. Mirrors `enter_ready_slot`, `enter_claim_slot`, `enter_done_slot` and `enter_lease_slot`; there is nothing to decide
//! in it, so that `awa-core` has no function for it. The cap of eight turns is left out: it takes eight rotations.

use awa_core::id::Slot;
use awa_core::ring::{Pointer, RingKind};

use super::Halt;
use crate::locks::{Child, Mode};
use crate::mutants::Mutant;
use crate::turn::Turn;

/// Where a writer stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Enter {
    /// Before everything.
    Read,
    /// It has read this pointer.
    Lock(Pointer),
    /// It has locked that slot.
    Again(Pointer),
    /// It has locked a slot and will not look again: a mutant.
    Last(Pointer),
}

/// What a writer appends to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Door {
    /// `ready_entries`.
    Ready,
    /// `done_entries`.
    Done,
    /// `lease_claim_batches`.
    Claims,
    /// `leases`.
    Leases,
}

/// What a step of the protocol came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entered {
    /// There is more to do.
    Next(Enter),
    /// The slot to write to, which is locked.
    In(Slot),
}

impl Enter {
    /// One step.
    pub(crate) fn step(self, turn: &mut Turn<'_>, door: Door) -> Result<Entered, Halt> {
        let ring = match door {
            Door::Ready | Door::Done => RingKind::Queue,
            Door::Claims => RingKind::Claim,
            Door::Leases => RingKind::Lease,
        };
        let child = |slot| match door {
            Door::Ready => Child::Ready(slot),
            Door::Done => Child::Done(slot),
            Door::Claims => Child::Claims(slot),
            Door::Leases => Child::Leases(slot),
        };
        let pointer = turn.world.pointer(ring);
        match self {
            Self::Lock(at) => {
                turn.lock(child(at.slot), Mode::RowExclusive)?;
                Ok(Entered::Next(Self::Again(at)))
            }
            Self::Again(at) if pointer == at => Ok(Entered::In(at.slot)),
            Self::Again(_) if turn.rules.breaks(Mutant::WriterLooksTwiceOnly) => Ok(Entered::Next(Self::Last(pointer))),
            Self::Read | Self::Again(_) => Ok(Entered::Next(Self::Lock(pointer))),
            Self::Last(at) => {
                turn.lock(child(at.slot), Mode::RowExclusive)?;
                Ok(Entered::In(at.slot))
            }
        }
    }
}
