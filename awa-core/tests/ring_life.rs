//! The life of a ring: what opens, what is sealed, what a claim looks at.

use std::time::Duration;

use awa_core::id::{Generation, Slot};
use awa_core::ring::SlotState::{Drained, Free, Open, Sealed};
use awa_core::ring::{
    BadRing, DrainDecision, DrainFacts, DrainKeep, OpenSlotFacts, Pointer, RingKind, RingView, RotateDecision,
    RotationPolicy, SlotState, SlotView, StayReason, drain, rotate,
};
use proptest::prelude::*;

const POLICY: RotationPolicy = RotationPolicy { min_age: Duration::from_mins(1), max_bytes: 1_000 };
const DUE: OpenSlotFacts = OpenSlotFacts { age: Duration::from_mins(1), bytes: 1, is_empty: false };

fn at(generation: i64, slot: u8) -> Pointer {
    Pointer::new(Generation(generation), Slot(slot))
}

/// Slots as (generation, state); those in `pages` have pages.
fn ring(slots: &[(i64, SlotState)], pages: &[usize], pointer: Pointer) -> Result<RingView, BadRing> {
    let view = |(at, (generation, state)): (usize, &(i64, SlotState))| SlotView {
        generation: Generation(*generation),
        state: *state,
        has_pages: pages.contains(&at),
    };
    RingView::new(slots.iter().enumerate().map(view).collect(), pointer)
}

#[test]
fn the_table_of_transitions_is_complete() {
    let states = [Free, Open, Sealed, Drained];
    for kind in RingKind::ALL {
        for from in states {
            for to in states {
                let legal = match (from, to) {
                    (Free, Open) | (Open, Sealed) => true,
                    (Sealed, Drained) | (Drained, Free | Sealed) => kind.has_drained(),
                    (Sealed, Free) => !kind.has_drained(),
                    _ => false,
                };
                assert_eq!(kind.allows(from, to), legal, "{kind}: {from} to {to}");
            }
        }
    }
    assert_eq!(RingKind::ALL.map(RingKind::default_slots), [16, 8, 4]);
}

#[test]
fn a_pointer_packs_generation_and_slot_both_ways() {
    for (pointer, number) in [(at(0, 0), 0), (at(1, 0), 64), (at(1, 63), 127), (at(16, 5), 1029)] {
        assert_eq!(pointer.pack(), number);
        assert_eq!(Pointer::unpack(number), Ok(pointer));
    }
    let last = Pointer::new(Pointer::MAX_GENERATION, Slot(63));
    assert_eq!((last.pack(), Pointer::unpack(i64::MAX)), (i64::MAX, Ok(last)));
    assert!(Pointer::unpack(-1).unwrap_err().to_string().contains("negative"));
}

#[test]
#[should_panic(expected = "does not fit a ring pointer")]
fn a_slot_beyond_the_width_of_the_pointer_is_refused() {
    let _ = at(1, 64);
}

#[test]
fn rings_that_contradict_themselves_are_refused() {
    assert_eq!(ring(&[], &[], at(1, 0)), Err(BadRing::SlotCount(0)));
    assert_eq!(ring(&[(1, Free); 65], &[], at(1, 0)), Err(BadRing::SlotCount(65)));
    assert_eq!(ring(&[(1, Sealed), (0, Free)], &[], at(1, 0)), Err(BadRing::OpenSlots(0)));
    assert_eq!(ring(&[(1, Open), (2, Open)], &[], at(1, 0)), Err(BadRing::OpenSlots(2)));
    assert_eq!(ring(&[(1, Open), (2, Sealed)], &[], at(1, 0)), Err(BadRing::NewerThanOpen(Slot(1))));
    assert_eq!(ring(&[(1, Open), (0, Free)], &[], at(1, 2)), Err(BadRing::PointerOutside(Slot(2))));
}

#[test]
fn a_ring_turns_by_age_or_size_and_never_when_the_open_slot_is_empty() {
    let view = ring(&[(1, Open), (0, Free)], &[0], at(1, 0)).unwrap();
    for (age, bytes, is_empty, expected) in [
        (59, 999, false, RotateDecision::Stay(StayReason::NotDue)),
        (60, 1, false, RotateDecision::Open(at(2, 1))),
        (0, 1_000, false, RotateDecision::Open(at(2, 1))),
        (10_000, 0, true, RotateDecision::Stay(StayReason::OpenSlotEmpty)),
    ] {
        let facts = OpenSlotFacts { age: Duration::from_secs(age), bytes, is_empty };
        assert_eq!(rotate(&view, &POLICY, &facts), expected, "{facts:?}");
    }
}

#[test]
fn rotation_takes_the_next_free_slot_in_cyclic_order_and_adopts_strays_first() {
    let decide = |slots: &[(i64, SlotState)], pages: &[usize], pointer| {
        rotate(&ring(slots, pages, pointer).unwrap(), &POLICY, &DUE)
    };
    let opened = |generation, slot| RotateDecision::Open(at(generation, slot));
    let busy = [(5, Sealed), (6, Drained), (7, Open), (0, Free), (2, Free)];
    assert_eq!(decide(&busy, &[], at(7, 2)), opened(8, 3));
    assert_eq!(decide(&busy, &[0, 1, 2, 4], at(7, 2)), opened(8, 4), "a free slot with pages is adopted first");
    let wrapped = [(3, Free), (6, Sealed), (4, Free), (7, Open)];
    assert_eq!(decide(&wrapped, &[], at(7, 3)), opened(8, 0));
    let skipping = [(3, Sealed), (4, Drained), (5, Free), (7, Open)];
    assert_eq!(decide(&skipping, &[], at(7, 3)), opened(8, 2));
    let full = [(3, Sealed), (4, Drained), (7, Open)];
    assert_eq!(decide(&full, &[], at(7, 2)), RotateDecision::Stay(StayReason::NoFreeSlot));
    assert_eq!(decide(&[(1, Open)], &[0], at(1, 0)), RotateDecision::Stay(StayReason::NoFreeSlot));
}

#[test]
fn a_pointer_ahead_of_the_ledger_is_repaired_with_exactly_that_entry_before_anything_else() {
    let slots = [(5, Sealed), (7, Open), (0, Free)];
    let empty = OpenSlotFacts { is_empty: true, ..DUE };
    for facts in [DUE, empty] {
        for pointer in [at(8, 2), at(12, 2)] {
            let view = ring(&slots, &[], pointer).unwrap();
            assert_eq!(rotate(&view, &POLICY, &facts), RotateDecision::RepairLedger(pointer));
        }
    }
}

#[test]
fn a_pointer_that_no_rotation_can_have_left_is_reported_and_not_guessed_about() {
    let slots = [(5, Sealed), (7, Open), (0, Free)];
    for (pointer, reason) in [
        (at(6, 2), StayReason::PointerBehind(at(6, 2))),
        (at(8, 0), StayReason::PointerOnBusySlot(at(8, 0))),
        (at(8, 1), StayReason::PointerOnBusySlot(at(8, 1))),
        (at(7, 2), StayReason::PointerOnBusySlot(at(7, 2))),
    ] {
        let view = ring(&slots, &[], pointer).unwrap();
        assert_eq!(rotate(&view, &POLICY, &DUE), RotateDecision::Stay(reason));
        assert!(reason.is_alarming() && reason.to_string().contains("run the repair command"));
    }
    assert!(!StayReason::NotDue.is_alarming() && !StayReason::OpenSlotEmpty.is_alarming());
}

#[test]
fn a_claim_looks_at_undrained_slots_by_generation_and_at_the_pointers_own() {
    let slots = [(9, Open), (6, Sealed), (8, Sealed), (7, Drained), (4, Free)];
    let listed = |pointer| ring(&slots, &[], pointer).unwrap().claim_slots();
    assert_eq!(listed(at(9, 0)), [at(6, 1), at(8, 2), at(9, 0)]);
    assert_eq!(listed(at(10, 4)), [at(6, 1), at(8, 2), at(9, 0), at(10, 4)], "the rotator has not committed");
    assert_eq!(listed(at(10, 1)), [at(8, 2), at(9, 0), at(10, 1)], "one slot is listed once, as its newest");
    assert_eq!(listed(at(2, 3)), [at(6, 1), at(7, 3), at(8, 2), at(9, 0)], "an old pointer does not hide rows");
}

#[test]
fn a_slot_is_drained_when_it_is_sealed_apart_quiet_and_passed() {
    let spent = DrainFacts {
        slot: Slot(3),
        state: Sealed,
        pointer: at(9, 4),
        writers_in_flight: false,
        has_unpassed_rows: false,
    };
    assert_eq!(drain(&spent), DrainDecision::Drain);
    let keep = |facts: DrainFacts| match drain(&facts) {
        DrainDecision::Keep(reason) => reason,
        DrainDecision::Drain => panic!("{facts:?} was drained"),
    };
    for state in [Free, Open, Drained] {
        assert_eq!(keep(DrainFacts { state, ..spent }), DrainKeep::NotSealed(state));
    }
    assert_eq!(keep(DrainFacts { pointer: at(9, 3), ..spent }), DrainKeep::PointerOnIt);
    assert_eq!(keep(DrainFacts { writers_in_flight: true, ..spent }), DrainKeep::WritersInFlight);
    assert_eq!(keep(DrainFacts { has_unpassed_rows: true, ..spent }), DrainKeep::UnpassedRows);
}

#[test]
fn a_ring_that_turns_faster_than_retention_is_found_at_start() {
    assert!(POLICY.keeps(Duration::from_mins(13), 16));
    assert!(!POLICY.keeps(Duration::from_secs(13 * 60 + 1), 16));
    assert!(!POLICY.keeps(Duration::from_secs(1), 3), "three slots hold no history");
    assert!(!POLICY.keeps(Duration::from_secs(1), 2));
}

/// One tick of a ring in which slots are sealed, drained and freed at random, and rotators die half way.
#[derive(Debug, Clone)]
enum Tick {
    Rotate { dies: bool },
    Spend { which: usize },
    Stray { which: usize },
}

fn tick() -> impl Strategy<Value = Tick> {
    prop_oneof![
        4 => prop::bool::weighted(0.2).prop_map(|dies| Tick::Rotate { dies }),
        5 => any::<usize>().prop_map(|which| Tick::Spend { which }),
        1 => any::<usize>().prop_map(|which| Tick::Stray { which }),
    ]
}

/// Applies a ledger entry and checks that each change of state is legal.
fn enter(slots: &mut [SlotView], kind: RingKind, pointer: Pointer) -> Result<(), TestCaseError> {
    for (slot, view) in slots.iter_mut().enumerate() {
        let opens = slot == usize::from(pointer.slot.0);
        let to = match view.state {
            _ if opens => Open,
            Open => Sealed,
            other => other,
        };
        prop_assert!(to == view.state || kind.allows(view.state, to), "{} to {}", view.state, to);
        view.state = to;
        if opens {
            view.generation = pointer.generation;
            view.has_pages = true;
        }
    }
    Ok(())
}

/// Moves a slot one legal step towards free.
fn spend(view: &mut SlotView, kind: RingKind) {
    view.state = match view.state {
        Sealed if kind.has_drained() => Drained,
        Sealed | Drained => Free,
        other => other,
    };
    view.has_pages &= view.state != Free;
}

proptest! {
    #[test]
    fn any_mix_of_rotations_that_die_and_slots_that_are_spent_keeps_the_ring_sound(
        queue in any::<bool>(),
        slots in 2usize..6,
        ticks in prop::collection::vec(tick(), 1..80),
    ) {
        let kind = if queue { RingKind::Queue } else { RingKind::Claim };
        let fresh = SlotView { generation: Generation(0), state: Free, has_pages: false };
        let mut slots = vec![fresh; slots];
        let mut pointer = at(1, 0);
        slots[0] = SlotView { generation: Generation(1), state: Open, has_pages: true };
        for tick in ticks {
            match tick {
                Tick::Rotate { dies } => {
                    let view = RingView::new(slots.clone(), pointer).unwrap();
                    let before = pointer;
                    match rotate(&view, &POLICY, &DUE) {
                        RotateDecision::Open(next) => {
                            pointer = next;
                            if !dies { enter(&mut slots, kind, next)?; }
                        }
                        RotateDecision::RepairLedger(next) => enter(&mut slots, kind, next)?,
                        RotateDecision::Stay(reason) => {
                            prop_assert_eq!(reason, StayReason::NoFreeSlot);
                            prop_assert!(slots.iter().all(|slot| slot.state != Free));
                        }
                    }
                    prop_assert!(pointer >= before, "the pointer only goes forward");
                }
                Tick::Spend { which } => {
                    let which = which % slots.len();
                    // Neither drain nor prune touches the slot that writers are directed to.
                    if which != usize::from(pointer.slot.0) { spend(&mut slots[which], kind); }
                }
                Tick::Stray { which } => {
                    let which = which % slots.len();
                    slots[which].has_pages = true;
                }
            }
            let view = RingView::new(slots.clone(), pointer);
            prop_assert!(view.is_ok(), "{:?}", view);
            let view = view.unwrap();
            prop_assert_eq!(view.claim_slots().last().copied(), Some(pointer), "claims see the slot that writers are in");
            let undrained = slots.iter().filter(|slot| slot.state.is_undrained()).count();
            prop_assert_eq!(view.claim_slots().len(), undrained + usize::from(view.ledger() != pointer));
        }
    }
}
