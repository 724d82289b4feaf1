//! Rings of partitions that are emptied by truncation, never by deleting rows.
//!
//! A ring has one open slot that writers append to. Rotation opens the next free slot and thereby seals the former; a
//! sealed slot is emptied when everything in it is proven to be spent (see [`crate::prune`]). The queue ring has one
//! state more, drained: claims have nothing to find in such a slot and do not look at it, while its history is kept.
//!
//! Two things say which slot is open. The **ledger** (and the slot states that go with it) is transactional. The
//! **pointer** is not: every writer, also one with an old snapshot, reads the newest value, so that nobody enters a slot
//! that was sealed before the write began. A rotation that dies between the two leaves the pointer ahead of the ledger,
//! which [`rotate`] repairs.

mod growth;

use std::fmt;
use std::time::Duration;

pub use growth::{GrowRefusal, grow};

use crate::id::{Generation, Slot};

/// What happens to a slot at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotState {
    /// Empty, waiting to be opened.
    Free,
    /// The slot that writers append to.
    Open,
    /// Closed to new writers; its content is still needed, or nobody has looked.
    Sealed,
    /// Queue ring only: no writer is in flight and every row is passed, so claims skip it.
    Drained,
}

impl SlotState {
    /// Whether rows may be waiting in a slot of this state.
    pub const fn is_undrained(self) -> bool {
        matches!(self, Self::Open | Self::Sealed)
    }
}

impl fmt::Display for SlotState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Free => "free",
            Self::Open => "open",
            Self::Sealed => "sealed",
            Self::Drained => "drained",
        })
    }
}

/// The three rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RingKind {
    /// Ready rows, their cursors, and terminal history.
    Queue,
    /// Claims and their closures.
    Claim,
    /// Attempts with mutable state.
    Lease,
}

impl RingKind {
    /// All rings.
    pub const ALL: [Self; 3] = [Self::Queue, Self::Claim, Self::Lease];

    /// The number of slots of a new schema.
    pub const fn default_slots(self) -> u8 {
        match self {
            Self::Queue => 16,
            Self::Claim => 8,
            Self::Lease => 4,
        }
    }

    /// Whether slots of this ring are drained before they are freed.
    pub const fn has_drained(self) -> bool {
        matches!(self, Self::Queue)
    }

    /// Every change of state that a slot of this ring may make, as (from, to).
    pub const fn legal_transitions(self) -> &'static [(SlotState, SlotState)] {
        use SlotState::{Drained, Free, Open, Sealed};
        match self {
            // Drained to sealed is the un-draining: a row was found after all. It is counted and alarmed.
            Self::Queue => &[(Free, Open), (Open, Sealed), (Sealed, Drained), (Drained, Free), (Drained, Sealed)],
            Self::Claim | Self::Lease => &[(Free, Open), (Open, Sealed), (Sealed, Free)],
        }
    }

    /// Whether a slot of this ring may go from one state to the other.
    pub fn allows(self, from: SlotState, to: SlotState) -> bool {
        self.legal_transitions().contains(&(from, to))
    }
}

impl fmt::Display for RingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queue => "queue",
            Self::Claim => "claim",
            Self::Lease => "lease",
        })
    }
}

/// Which slot is open, and in which generation: `generation * 64 + slot` in one number, so that it is read whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pointer {
    /// The generation, at least 0. It only grows.
    pub generation: Generation,
    /// The slot that this generation opened, below [`Self::SLOTS`].
    pub slot: Slot,
}

/// A packed pointer that no rotation can have written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("ring pointer refused: {0} is negative; run the doctor command")]
pub struct BadPointer(pub i64);

impl Pointer {
    /// The largest number of slots of a ring.
    pub const SLOTS: u8 = 64;
    /// The largest generation that fits.
    pub const MAX_GENERATION: Generation = Generation(i64::MAX / Self::SLOTS as i64);

    /// The pointer to `slot`, opened as `generation`.
    ///
    /// # Panics
    ///
    /// When the slot is not below [`Self::SLOTS`], or the generation is not in 0 to [`Self::MAX_GENERATION`]: the number
    /// would name another slot.
    pub fn new(generation: Generation, slot: Slot) -> Self {
        assert!(slot.0 < Self::SLOTS, "slot {slot} does not fit a ring pointer");
        assert!(
            (Generation(0)..=Self::MAX_GENERATION).contains(&generation),
            "generation {generation} does not fit a ring pointer"
        );
        Self { generation, slot }
    }

    /// The pointer as one number.
    pub const fn pack(self) -> i64 {
        self.generation.0 * Self::SLOTS as i64 + self.slot.0 as i64
    }

    /// The pointer that this number stands for.
    ///
    /// # Errors
    ///
    /// When the number is negative.
    pub const fn unpack(number: i64) -> Result<Self, BadPointer> {
        if number < 0 {
            return Err(BadPointer(number));
        }
        let slots = Self::SLOTS as i64;
        Ok(Self { generation: Generation(number / slots), slot: Slot((number % slots) as u8) })
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slot {} (generation {})", self.slot, self.generation)
    }
}

/// One slot as maintenance sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SlotView {
    /// The generation that last opened it; 0 when none has.
    pub generation: Generation,
    /// Its state in the ledger.
    pub state: SlotState,
    /// Whether any of its children has pages.
    pub has_pages: bool,
}

/// A ring as one statement saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RingView {
    slots: Vec<SlotView>,
    open: Slot,
    pointer: Pointer,
}

/// A ring that contradicts itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadRing {
    /// The number of slots is 0 or above [`Pointer::SLOTS`].
    #[error("ring refused: it has {0} slots, and 1 to 64 are possible; run the doctor command")]
    SlotCount(usize),
    /// Not exactly one slot is open.
    #[error("ring refused: {0} slots are open instead of one; run the doctor command")]
    OpenSlots(usize),
    /// A slot is of a later generation than the open one.
    #[error("ring refused: slot {0} is newer than the open slot; run the doctor command")]
    NewerThanOpen(Slot),
    /// The pointer names a slot that the ring does not have.
    #[error("ring refused: the pointer names slot {0}, which does not exist; run the doctor command")]
    PointerOutside(Slot),
}

impl RingView {
    /// The ring with these slots, numbered from 0, and this pointer.
    ///
    /// # Errors
    ///
    /// When it contradicts itself; nothing is guessed.
    pub fn new(slots: Vec<SlotView>, pointer: Pointer) -> Result<Self, BadRing> {
        if slots.is_empty() || slots.len() > usize::from(Pointer::SLOTS) {
            return Err(BadRing::SlotCount(slots.len()));
        }
        let open: Vec<usize> = (0..slots.len()).filter(|at| slots[*at].state == SlotState::Open).collect();
        let [open] = open[..] else { return Err(BadRing::OpenSlots(open.len())) };
        let newest = slots[open].generation;
        if let Some(at) = (0..slots.len()).find(|at| *at != open && slots[*at].generation >= newest) {
            return Err(BadRing::NewerThanOpen(Slot(at as u8)));
        }
        if usize::from(pointer.slot.0) >= slots.len() {
            return Err(BadRing::PointerOutside(pointer.slot));
        }
        Ok(Self { slots, open: Slot(open as u8), pointer })
    }

    /// The slots, from 0.
    pub fn slots(&self) -> &[SlotView] {
        &self.slots
    }

    /// One slot.
    ///
    /// # Panics
    ///
    /// When the ring does not have it.
    pub fn slot(&self, slot: Slot) -> &SlotView {
        &self.slots[usize::from(slot.0)]
    }

    /// The pointer that the writers follow.
    pub const fn pointer(&self) -> Pointer {
        self.pointer
    }

    /// The newest entry of the ledger: the slot that is open by the transactional record.
    pub fn ledger(&self) -> Pointer {
        Pointer { generation: self.slot(self.open).generation, slot: self.open }
    }

    /// The slots in which a claim looks, oldest generation first: those that are not drained, and the pointer's own,
    /// because a rotator that stalls or dies between pointer and commit has writers in a slot that the ledger calls free.
    pub fn claim_slots(&self) -> Vec<Pointer> {
        let undrained = self.numbered().filter(|(slot, view)| view.state.is_undrained() && *slot != self.pointer.slot);
        let mut listed: Vec<Pointer> =
            undrained.map(|(slot, view)| Pointer { generation: view.generation, slot }).collect();
        let pointed = self.slot(self.pointer.slot).generation.max(self.pointer.generation);
        listed.push(Pointer { generation: pointed, slot: self.pointer.slot });
        listed.sort_unstable();
        listed
    }

    fn numbered(&self) -> impl Iterator<Item = (Slot, &SlotView)> + Clone {
        self.slots.iter().enumerate().map(|(at, view)| (Slot(at as u8), view))
    }

    /// The slots behind the open one, once around, without itself.
    fn behind_open(&self) -> impl Iterator<Item = (Slot, &SlotView)> {
        let from = usize::from(self.open.0) + 1;
        self.numbered().cycle().skip(from).take(self.slots.len() - 1)
    }
}

/// When a slot is due to be sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RotationPolicy {
    /// The age at which an open slot that is not empty is sealed.
    pub min_age: Duration,
    /// The size in bytes at which it is sealed before that age.
    pub max_bytes: u64,
}

impl RotationPolicy {
    /// Slots that cannot hold history: the open one, one that is being drained and one that is being emptied.
    const BUSY_SLOTS: u32 = 3;

    /// Whether a ring of `slots` turns slowly enough to keep history for `retention` when age alone rotates it. When it
    /// does not, the byte cap or a ring without free slots decides how long history lives; say so at start.
    pub fn keeps(&self, retention: Duration, slots: u8) -> bool {
        let for_history = u32::from(slots).saturating_sub(Self::BUSY_SLOTS);
        self.min_age.saturating_mul(for_history) >= retention
    }
}

/// What was observed of the open slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OpenSlotFacts {
    /// The time since it was opened.
    pub age: Duration,
    /// The size of all its children.
    pub bytes: u64,
    /// Whether all its children are without pages.
    pub is_empty: bool,
}

/// What a tick does with a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RotateDecision {
    /// Open this slot as this generation, which seals the open one; the pointer follows in the same transaction.
    Open(Pointer),
    /// Write exactly this entry into the ledger: the writers are there already.
    RepairLedger(Pointer),
    /// Leave the ring as it is.
    Stay(StayReason),
}

/// Why a ring is left as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StayReason {
    /// The open slot holds nothing; an idle ring does not turn.
    OpenSlotEmpty,
    /// The open slot is neither old nor large enough.
    NotDue,
    /// Every other slot is in use; the open slot absorbs all traffic.
    NoFreeSlot,
    /// The pointer is behind the ledger, as after a logical restore.
    PointerBehind(Pointer),
    /// The pointer names a slot that the ledger says is in use, as after a logical restore.
    PointerOnBusySlot(Pointer),
}

impl StayReason {
    /// Whether an operator should hear of it.
    pub const fn is_alarming(self) -> bool {
        matches!(self, Self::NoFreeSlot | Self::PointerBehind(_) | Self::PointerOnBusySlot(_))
    }
}

impl fmt::Display for StayReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OpenSlotEmpty => f.write_str("the open slot is empty"),
            Self::NotDue => f.write_str("the open slot is neither old nor large enough"),
            Self::NoFreeSlot => f.write_str(
                "no slot is free, so the open slot takes everything; see why the others are kept, or grow the ring",
            ),
            Self::PointerBehind(pointer) => {
                write!(f, "the pointer is at {pointer}, behind the ledger; run the repair command")
            }
            Self::PointerOnBusySlot(pointer) => {
                write!(f, "the pointer is at {pointer}, which is in use by the ledger; run the repair command")
            }
        }
    }
}

/// Decides whether the ring turns, and where to.
///
/// A pointer ahead of the ledger comes first: a rotation died half way, and the next step is to finish it. Otherwise
/// the ring turns when the open slot is not empty and is old or large enough, to the next free slot in cyclic order,
/// before all to one that has pages although it is free: a stray writer was there, and opening the slot adopts the rows.
/// Slots in use are skipped. Two ticks that decide at once choose the same generation, which the ledger takes once.
pub fn rotate(view: &RingView, policy: &RotationPolicy, facts: &OpenSlotFacts) -> RotateDecision {
    let (pointer, ledger) = (view.pointer, view.ledger());
    if pointer != ledger {
        return RotateDecision::from_disagreement(view);
    }
    if facts.is_empty {
        return RotateDecision::Stay(StayReason::OpenSlotEmpty);
    }
    if facts.age < policy.min_age && facts.bytes < policy.max_bytes {
        return RotateDecision::Stay(StayReason::NotDue);
    }
    let free = || view.behind_open().filter(|(_, view)| view.state == SlotState::Free);
    match free().find(|(_, view)| view.has_pages).or_else(|| free().next()) {
        Some((slot, _)) => RotateDecision::Open(Pointer::new(Generation(ledger.generation.0 + 1), slot)),
        None => RotateDecision::Stay(StayReason::NoFreeSlot),
    }
}

impl RotateDecision {
    fn from_disagreement(view: &RingView) -> Self {
        let pointer = view.pointer;
        if pointer.generation < view.ledger().generation {
            Self::Stay(StayReason::PointerBehind(pointer))
        } else if view.slot(pointer.slot).state == SlotState::Free && pointer.generation > view.ledger().generation {
            Self::RepairLedger(pointer)
        } else {
            Self::Stay(StayReason::PointerOnBusySlot(pointer))
        }
    }
}

/// What was observed of a slot of the queue ring that may be drained. State, pointer and rows are read in a new
/// statement after the writers' lock was asked for, because a writer may have committed meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DrainFacts {
    /// The slot.
    pub slot: Slot,
    /// Its state.
    pub state: SlotState,
    /// The pointer.
    pub pointer: Pointer,
    /// Whether a lock that conflicts with writers was refused, i.e. somebody may still append.
    pub writers_in_flight: bool,
    /// Whether some row is not passed. A tombstone does not pass a row; a cursor over it does.
    pub has_unpassed_rows: bool,
}

/// What happens to a slot that may be drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DrainDecision {
    /// Record it as drained.
    Drain,
    /// Leave it.
    Keep(DrainKeep),
}

/// Why a slot is not drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DrainKeep {
    /// It is not sealed.
    NotSealed(SlotState),
    /// The pointer names it, so writers may enter.
    PointerOnIt,
    /// A transaction that began in it has not ended.
    WritersInFlight,
    /// Rows of it are waiting to be claimed.
    UnpassedRows,
}

impl fmt::Display for DrainKeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSealed(state) => write!(f, "it is {state}, not sealed"),
            Self::PointerOnIt => f.write_str("writers are directed to it"),
            Self::WritersInFlight => f.write_str("a transaction that wrote to it is still open"),
            Self::UnpassedRows => f.write_str("jobs in it are waiting to be claimed"),
        }
    }
}

/// Decides whether a slot of the queue ring is drained.
pub const fn drain(facts: &DrainFacts) -> DrainDecision {
    if !matches!(facts.state, SlotState::Sealed) {
        DrainDecision::Keep(DrainKeep::NotSealed(facts.state))
    } else if facts.pointer.slot.0 == facts.slot.0 {
        DrainDecision::Keep(DrainKeep::PointerOnIt)
    } else if facts.writers_in_flight {
        DrainDecision::Keep(DrainKeep::WritersInFlight)
    } else if facts.has_unpassed_rows {
        DrainDecision::Keep(DrainKeep::UnpassedRows)
    } else {
        DrainDecision::Drain
    }
}
