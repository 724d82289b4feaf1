//! A ring of slots with their content.

use std::ops::Range;

use crate::id::{Generation, Slot};
use crate::ring::{OpenSlotFacts, Pointer, RingKind, RingView, SlotState, SlotView};
use crate::time::Timestamp;

/// What a slot holds.
pub(super) trait Content: Default {
    /// Whether nothing was ever written since the slot was emptied.
    fn is_empty(&self) -> bool;
    /// The size, roughly.
    fn bytes(&self) -> u64;
}

/// A ring and everything in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ring<C> {
    kind: RingKind,
    slots: Vec<RingSlot<C>>,
    pointer: Pointer,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RingSlot<C> {
    generation: Generation,
    state: SlotState,
    opened_at: Timestamp,
    content: C,
}

impl<C: Content> RingSlot<C> {
    fn free(now: Timestamp) -> Self {
        Self { generation: Generation(0), state: SlotState::Free, opened_at: now, content: C::default() }
    }
}

impl<C: Content> Ring<C> {
    /// A ring whose first slot is open as generation 1.
    pub(super) fn new(kind: RingKind, slots: u8, now: Timestamp) -> Self {
        assert!((2..=Pointer::SLOTS).contains(&slots), "a {kind} ring has 2 to {} slots, not {slots}", Pointer::SLOTS);
        let mut slots: Vec<_> = (0..slots).map(|_| RingSlot::free(now)).collect();
        let pointer = Pointer::new(Generation(1), Slot(0));
        slots[0].state = SlotState::Open;
        slots[0].generation = pointer.generation;
        Self { kind, slots, pointer }
    }

    /// Adds free slots.
    pub(super) fn grow(&mut self, slots: Range<u8>, now: Timestamp) {
        self.slots.extend(slots.map(|_| RingSlot::free(now)));
    }

    pub(super) fn len(&self) -> u8 {
        self.slots.len() as u8
    }

    pub(super) fn pointer(&self) -> Pointer {
        self.pointer
    }

    /// The ring as maintenance and claims see it.
    pub(super) fn view(&self) -> RingView {
        let view = |slot: &RingSlot<C>| SlotView {
            generation: slot.generation,
            state: slot.state,
            has_pages: !slot.content.is_empty(),
        };
        RingView::new(self.slots.iter().map(view).collect(), self.pointer)
            .expect("the model changes rings by legal steps only")
    }

    pub(super) fn state(&self, slot: Slot) -> SlotState {
        self.at(slot).state
    }

    pub(super) fn generation(&self, slot: Slot) -> Generation {
        self.at(slot).generation
    }

    pub(super) fn content(&self, slot: Slot) -> &C {
        &self.at(slot).content
    }

    pub(super) fn content_mut(&mut self, slot: Slot) -> &mut C {
        &mut self.at_mut(slot).content
    }

    /// The content of a slot that a caller named, or `None` when the ring does not have it.
    pub(super) fn find(&self, slot: Slot) -> Option<&C> {
        self.slots.get(usize::from(slot.0)).map(|slot| &slot.content)
    }

    /// The slot that writers append to.
    pub(super) fn open_mut(&mut self) -> &mut C {
        self.content_mut(self.pointer.slot)
    }

    pub(super) fn numbered(&self) -> impl Iterator<Item = (Slot, &C)> {
        self.slots.iter().enumerate().map(|(at, slot)| (Slot(at as u8), &slot.content))
    }

    pub(super) fn contents_mut(&mut self) -> impl Iterator<Item = &mut C> {
        self.slots.iter_mut().map(|slot| &mut slot.content)
    }

    pub(super) fn slots_in(&self, state: SlotState) -> Vec<Slot> {
        self.numbered().map(|(slot, _)| slot).filter(|slot| self.state(*slot) == state).collect()
    }

    pub(super) fn open_facts(&self, now: Timestamp) -> OpenSlotFacts {
        let open = self.at(self.pointer.slot);
        OpenSlotFacts { age: now.since(open.opened_at), bytes: open.content.bytes(), is_empty: open.content.is_empty() }
    }

    /// Seals the open slot and opens the next.
    pub(super) fn open_next(&mut self, next: Pointer, now: Timestamp) {
        self.set_state(self.pointer.slot, SlotState::Sealed);
        self.set_state(next.slot, SlotState::Open);
        let slot = self.at_mut(next.slot);
        slot.generation = next.generation;
        slot.opened_at = now;
        self.pointer = next;
    }

    /// Empties a slot, rescue cursors included.
    pub(super) fn truncate(&mut self, slot: Slot) {
        self.set_state(slot, SlotState::Free);
        self.at_mut(slot).content = C::default();
    }

    pub(super) fn set_state(&mut self, slot: Slot, state: SlotState) {
        let from = self.state(slot);
        assert!(self.kind.allows(from, state), "slot {slot} of the {} ring goes from {from} to {state}", self.kind);
        self.at_mut(slot).state = state;
    }

    fn at(&self, slot: Slot) -> &RingSlot<C> {
        &self.slots[usize::from(slot.0)]
    }

    fn at_mut(&mut self, slot: Slot) -> &mut RingSlot<C> {
        &mut self.slots[usize::from(slot.0)]
    }
}
