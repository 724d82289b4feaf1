//! Which old slots are freed, and why the others are not.

use awa_core::id::{Generation, Slot};
use awa_core::prune::SlotFacts;
use awa_core::ring::{Pointer, RingView, SlotState, SlotView};
use awa_core::unpin::{PinReason, UnpinDecision, UnpinFacts, UnpinPlan, UnpinPolicy, decide};

const POLICY: UnpinPolicy = UnpinPolicy { min_free: 2, max_rows: 10, max_attempts: 5 };

/// A ring of slots in these states, the first the oldest; free slots are of no generation, the open one is the last.
fn ring(states: &[SlotState]) -> RingView {
    let slots = (1_i64..).zip(states).map(|(generation, state)| SlotView {
        generation: Generation(if *state == SlotState::Free { 0 } else { generation }),
        state: *state,
        has_pages: *state != SlotState::Free,
    });
    let open = states.iter().position(|state| *state == SlotState::Open).expect("one slot is open");
    let pointer = Pointer::new(Generation(open as i64 + 1), Slot(open as u8));
    RingView::new(slots.collect(), pointer).expect("the ring is sound")
}

/// The slots that a plan looks at when it frees each.
fn freed(policy: &UnpinPolicy, ring: &RingView) -> Vec<u8> {
    let mut plan = UnpinPlan::new(policy, ring);
    let mut slots = Vec::new();
    while let Some(slot) = plan.next_slot() {
        slots.push(slot.0);
        plan.freed();
    }
    slots
}

#[test]
fn the_oldest_slots_are_freed_only_when_free_ones_run_short() {
    use SlotState::{Drained, Free, Open, Sealed};
    for (states, expected) in [
        (vec![Sealed, Drained, Open, Free, Free, Free], vec![]),
        (vec![Sealed, Drained, Sealed, Open, Free, Free], vec![]),
        (vec![Sealed, Drained, Sealed, Sealed, Open, Free], vec![0]),
        (vec![Sealed, Drained, Sealed, Sealed, Sealed, Open], vec![0, 1]),
        (vec![Sealed, Sealed, Open], vec![0]),
        (vec![Sealed, Open, Free], vec![]),
        (vec![Sealed, Open], vec![0]),
    ] {
        assert_eq!(freed(&POLICY, &ring(&states)), expected, "{states:?}");
    }
}

#[test]
fn a_slot_that_cannot_be_freed_gives_its_turn_to_the_next() {
    use SlotState::{Free, Open, Sealed};
    let mut plan = UnpinPlan::new(&POLICY, &ring(&[Sealed, Sealed, Sealed, Sealed, Open, Free]));
    assert_eq!((plan.next_slot(), plan.next_slot()), (Some(Slot(0)), Some(Slot(1))));
    plan.freed();
    assert_eq!(plan.next_slot(), None);
}

#[test]
fn a_slot_that_the_ring_has_gone_around_past_is_freed_though_others_are_free() {
    let view = |generation, state| SlotView { generation: Generation(generation), state, has_pages: true };
    let around = |oldest| {
        let slots = vec![
            view(oldest, SlotState::Sealed),
            view(9, SlotState::Open),
            view(0, SlotState::Free),
            view(0, SlotState::Free),
        ];
        RingView::new(slots, Pointer::new(Generation(9), Slot(1))).expect("the ring is sound")
    };
    assert_eq!(freed(&POLICY, &around(5)), [0], "four slots, four generations ago");
    assert_eq!(freed(&POLICY, &around(6)), [0_u8; 0]);
}

#[test]
fn each_reason_to_keep_a_slot_is_named() {
    let slot = SlotFacts {
        slot: Slot(0),
        generation: Generation(1),
        state: SlotState::Sealed,
        pointer: Pointer::new(Generation(2), Slot(1)),
    };
    let pinned =
        UnpinFacts { slot, writers_in_flight: false, waiting_rows: 10, has_older_rows: false, open_attempts: 5 };
    let of_state = |state| UnpinFacts { slot: SlotFacts { state, ..slot }, ..pinned };
    let nothing = UnpinFacts { waiting_rows: 0, open_attempts: 0, ..pinned };
    let keep = UnpinDecision::Keep;
    for (facts, expected) in [
        (pinned, UnpinDecision::MoveOut),
        (UnpinFacts { waiting_rows: 0, has_older_rows: true, ..pinned }, UnpinDecision::MoveOut),
        (UnpinFacts { open_attempts: 0, ..pinned }, UnpinDecision::MoveOut),
        (nothing, UnpinDecision::Unpinned),
        (of_state(SlotState::Drained), UnpinDecision::MoveOut),
        (of_state(SlotState::Open), keep(PinReason::NotInUse(SlotState::Open))),
        (of_state(SlotState::Free), keep(PinReason::NotInUse(SlotState::Free))),
        (
            UnpinFacts { slot: SlotFacts { pointer: Pointer::new(Generation(1), Slot(0)), ..slot }, ..pinned },
            keep(PinReason::PointerOnIt),
        ),
        (UnpinFacts { writers_in_flight: true, ..nothing }, keep(PinReason::WritersInFlight)),
        (UnpinFacts { waiting_rows: 11, ..pinned }, keep(PinReason::Backlog)),
        (UnpinFacts { has_older_rows: true, ..pinned }, keep(PinReason::OlderRows)),
        (UnpinFacts { open_attempts: 6, ..pinned }, keep(PinReason::Busy)),
    ] {
        assert_eq!(decide(&POLICY, &facts), expected, "{facts:?}");
    }
}
