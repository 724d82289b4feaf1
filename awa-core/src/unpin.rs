//! Freeing old slots that little keeps.
//!
//! A slot is reclaimed as a whole, so one job that nobody claims, or one attempt that runs for days, would keep a slot
//! and all the history in it, and as many of them as there are slots would stop the ring. When free slots run short,
//! maintenance therefore looks at the oldest slots in use and moves out what little keeps them: rows that wait go into the
//! carry-over, which claims read first, and attempts that run go on as leases. A slot that much keeps is left alone: a
//! large backlog belongs in the ring.

use std::fmt;

use crate::id::{Generation, Slot};
use crate::prune::SlotFacts;
use crate::ring::{Pointer, RingView, SlotState};

/// When slots are freed by moving out what keeps them, and how much is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnpinPolicy {
    /// So many slots of a ring should be free; at most half of the slots beside the open one. Default: 2.
    pub min_free: u8,
    /// A slot in which more rows wait than this is not nearly drained. Default: 500.
    pub max_rows: u32,
    /// A slot on which more attempts run than this is busy. Default: 100.
    pub max_attempts: u32,
}

impl Default for UnpinPolicy {
    fn default() -> Self {
        Self { min_free: 2, max_rows: 500, max_attempts: 100 }
    }
}

/// The slots of a ring that should be free to go, oldest first.
///
/// These are the slots that the ring has gone around past, and as many of the oldest as are needed beside the free ones. A
/// slot that cannot be freed is passed over, and a younger one takes its turn.
#[derive(Debug, Clone)]
pub struct UnpinPlan {
    /// Sealed and drained slots, the youngest first.
    left: Vec<Pointer>,
    needed: usize,
    /// Slots of this and earlier generations have been passed.
    passed: Generation,
}

impl UnpinPlan {
    /// The plan for a ring.
    pub fn new(policy: &UnpinPolicy, ring: &RingView) -> Self {
        let slots = ring.slots();
        let free = slots.iter().filter(|slot| slot.state == SlotState::Free).count();
        let wanted = usize::from(policy.min_free).min(slots.len().saturating_sub(1) / 2).max(1);
        let numbered = (0_u8..).map(Slot).zip(slots);
        let mut left: Vec<Pointer> = numbered
            .filter(|(_, view)| matches!(view.state, SlotState::Sealed | SlotState::Drained))
            .map(|(slot, view)| Pointer { generation: view.generation, slot })
            .collect();
        left.sort_unstable_by(|one, other| other.cmp(one));
        let passed = Generation(ring.ledger().generation.0 - slots.len() as i64);
        Self { left, needed: wanted.saturating_sub(free), passed }
    }

    /// The next slot to look at.
    pub fn next_slot(&mut self) -> Option<Slot> {
        let next = self.left.pop()?;
        (self.needed > 0 || next.generation <= self.passed).then_some(next.slot)
    }

    /// The slot that was looked at last is free to go.
    pub fn freed(&mut self) {
        self.needed = self.needed.saturating_sub(1);
    }
}

/// What must be known of a slot to decide whether it is freed. Rows and attempts are counted up to one more than the
/// policy allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnpinFacts {
    /// State, generation and pointer.
    pub slot: SlotFacts,
    /// Whether a lock that conflicts with writers was refused, i.e. somebody may still append to it.
    pub writers_in_flight: bool,
    /// Rows in it that wait; always 0 in a ring without rows.
    pub waiting_rows: u64,
    /// Whether an older slot has rows of a lane that has some here, or may yet get them from a writer in flight. They go
    /// first, and would be overtaken. Also true of a lane that is not known yet.
    pub has_older_rows: bool,
    /// Attempts that have not ended and need it.
    pub open_attempts: u64,
}

/// What happens to a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnpinDecision {
    /// Nothing keeps it but its history.
    Unpinned,
    /// Move out its rows and its attempts.
    MoveOut,
    /// Leave it.
    Keep(PinReason),
}

/// Why a slot is not freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PinReason {
    /// It is open, or free.
    NotInUse(SlotState),
    /// Writers are directed to it.
    PointerOnIt,
    /// A transaction that wrote to it is still open.
    WritersInFlight,
    /// More jobs wait in it than are moved.
    Backlog,
    /// Jobs of the same lane wait in an older slot, or may come to.
    OlderRows,
    /// More attempts run on it than are moved.
    Busy,
    /// Somebody is using what would have to be moved; the next tick tries again.
    Contended,
}

impl fmt::Display for PinReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInUse(state) => write!(f, "it is {state}"),
            Self::PointerOnIt => f.write_str("writers are directed to it"),
            Self::WritersInFlight => f.write_str("a transaction that wrote to it is still open"),
            Self::Backlog => f.write_str("many jobs wait in it; they leave it when workers claim them"),
            Self::OlderRows => {
                f.write_str("jobs that go first wait in an older slot, or a transaction that wrote there is open")
            }
            Self::Busy => f.write_str("many jobs that run were claimed from it"),
            Self::Contended => f.write_str("somebody is using what keeps it; the next maintenance tick tries again"),
        }
    }
}

/// Decides whether a slot is freed. Pure.
pub fn decide(policy: &UnpinPolicy, facts: &UnpinFacts) -> UnpinDecision {
    let (state, waiting) = (facts.slot.state, facts.waiting_rows > 0);
    let keep = UnpinDecision::Keep;
    if !matches!(state, SlotState::Sealed | SlotState::Drained) {
        keep(PinReason::NotInUse(state))
    } else if facts.slot.pointer.slot == facts.slot.slot {
        keep(PinReason::PointerOnIt)
    } else if facts.writers_in_flight {
        keep(PinReason::WritersInFlight)
    } else if facts.waiting_rows > u64::from(policy.max_rows) {
        keep(PinReason::Backlog)
    } else if waiting && facts.has_older_rows {
        keep(PinReason::OlderRows)
    } else if facts.open_attempts > u64::from(policy.max_attempts) {
        keep(PinReason::Busy)
    } else if waiting || facts.open_attempts > 0 {
        UnpinDecision::MoveOut
    } else {
        UnpinDecision::Unpinned
    }
}
