//! What must be proven before a slot is emptied: every combination of facts, and the order of retention.

use std::time::Duration;

use awa_core::id::{Generation, Slot};
use awa_core::prune::{
    ClaimFacts, ClaimProof, FailedJob, KeepReason, LeaseFacts, Phase, PruneDecision, PruneFacts, QueueFacts,
    RetentionPolicy, SlotFacts, SlotHistory, decide,
};
use awa_core::ring::SlotState::{Drained, Free, Open, Sealed};
use awa_core::ring::{Pointer, SlotState};

const SECOND: Duration = Duration::from_secs(1);

fn slot(slot: u8, generation: i64, state: SlotState) -> SlotFacts {
    let pointer = Pointer::new(Generation(100), Slot(9));
    SlotFacts { slot: Slot(slot), generation: Generation(generation), state, pointer }
}

fn spent(number: u8, generation: i64) -> QueueFacts {
    QueueFacts {
        slot: slot(number, generation, Drained),
        has_unpassed_rows: false,
        open_claims: 0,
        retention_left: Duration::ZERO,
    }
}

fn after(chosen: i64) -> Phase {
    Phase::AfterLock { chosen: Generation(chosen) }
}

#[test]
fn a_queue_slot_is_emptied_only_when_every_proof_holds() {
    let flags = [false, true];
    let mut truncated = 0;
    for state in [Free, Open, Sealed, Drained] {
        for bits in 0..32 {
            let flag = |bit: u32| flags[bits >> bit & 1];
            let (pointed, unpassed, open, retained, locked) = (flag(0), flag(1), flag(2), flag(3), flag(4));
            let mut facts = spent(3, 7);
            facts.slot.state = state;
            facts.has_unpassed_rows = unpassed;
            facts.open_claims = u64::from(open);
            facts.retention_left = if retained { SECOND } else { Duration::ZERO };
            if pointed {
                facts.slot.pointer.slot = Slot(3);
            }
            let phase = if locked { after(7) } else { Phase::BeforeLock };
            let decision = decide(phase, &PruneFacts::Queue(facts));
            let reachable = state == Drained && !pointed;
            let proven = reachable && !unpassed && !open && (locked || !retained);
            assert_eq!(decision == PruneDecision::Truncate, proven, "{phase:?} {facts:?}");
            assert_eq!(decision == PruneDecision::Undrain, reachable && unpassed, "{phase:?} {facts:?}");
            truncated += usize::from(proven);
        }
    }
    assert_eq!(truncated, 3, "before the lock once, under it with and without retention");
}

#[test]
fn each_refusal_names_its_reason() {
    let queue = |change: &dyn Fn(&mut QueueFacts)| {
        let mut facts = spent(3, 7);
        change(&mut facts);
        PruneFacts::Queue(facts)
    };
    let claim = |state, open_claims| PruneFacts::Claim(ClaimFacts { slot: slot(3, 7, state), open_claims });
    let lease = |state, leases| PruneFacts::Lease(LeaseFacts { slot: slot(3, 7, state), leases });
    for (facts, text) in [
        (queue(&|f| f.slot.state = Sealed), "it is sealed, and only a drained slot can be emptied"),
        (queue(&|f| f.slot.pointer.slot = Slot(3)), "writers are directed to it"),
        (queue(&|f| f.open_claims = 12), "12 claimed jobs in it have not ended"),
        (queue(&|f| f.retention_left = Duration::from_millis(1500)), "its history is kept for 2 s more"),
        (claim(Open, 0), "it is open, and only a sealed slot can be emptied"),
        (claim(Sealed, 3), "3 claimed jobs in it have not ended"),
        (lease(Free, 0), "it is free, and only a sealed slot can be emptied"),
        (lease(Sealed, 4), "4 running jobs keep their state in it"),
    ] {
        match decide(Phase::BeforeLock, &facts) {
            PruneDecision::Keep(reason) => assert!(reason.to_string().contains(text), "{reason} is not {text}"),
            other => panic!("{facts:?} gave {other:?} instead of {text}"),
        }
    }
    for facts in [claim(Sealed, 0), lease(Sealed, 0)] {
        assert_eq!(decide(Phase::BeforeLock, &facts), PruneDecision::Truncate);
        assert_eq!(decide(after(7), &facts), PruneDecision::Truncate);
        assert_eq!(decide(after(6), &facts), PruneDecision::Keep(KeepReason::Reopened));
    }
}

#[test]
fn what_commits_while_prune_waits_for_its_lock_stops_it() {
    let chosen = spent(3, 7);
    assert_eq!(decide(Phase::BeforeLock, &PruneFacts::Queue(chosen)), PruneDecision::Truncate);
    let claimed = QueueFacts { open_claims: 1, ..chosen };
    let appended = QueueFacts { has_unpassed_rows: true, ..chosen };
    let reopened = QueueFacts { slot: slot(3, 16, Drained), ..chosen };
    let under_lock = |facts| decide(after(7), &PruneFacts::Queue(facts));
    assert_eq!(under_lock(claimed), PruneDecision::Keep(KeepReason::OpenClaims(1)));
    assert_eq!(under_lock(appended), PruneDecision::Undrain);
    assert_eq!(under_lock(reopened), PruneDecision::Keep(KeepReason::Reopened));
}

#[test]
fn a_waiting_row_undrains_the_slot_even_while_other_things_keep_it() {
    let facts = QueueFacts { has_unpassed_rows: true, open_claims: 5, retention_left: SECOND, ..spent(3, 7) };
    assert_eq!(decide(Phase::BeforeLock, &PruneFacts::Queue(facts)), PruneDecision::Undrain);
}

const RETENTION: RetentionPolicy =
    RetentionPolicy { cancelled: Duration::from_secs(30), ..RetentionPolicy::uniform(Duration::from_secs(100), 1_000) };

fn history(completed: Option<u64>, bytes: u64) -> SlotHistory {
    SlotHistory { completed: completed.map(Duration::from_secs), cancelled: None, bytes }
}

fn kept(left: u64) -> PruneDecision {
    PruneDecision::Keep(KeepReason::Retained(Duration::from_secs(left)))
}

#[test]
fn history_goes_by_age_oldest_slot_first() {
    let plan = RETENTION.plan(&[
        (spent(0, 9), history(Some(40), 10)),
        (spent(1, 6), history(Some(100), 10)),
        (spent(2, 7), history(Some(99), 10)),
        (spent(3, 8), history(None, 10)),
    ]);
    let expected = [
        (Slot(1), PruneDecision::Truncate),
        (Slot(2), kept(1)),
        (Slot(3), PruneDecision::Truncate),
        (Slot(0), kept(60)),
    ];
    assert_eq!(plan, expected);
}

#[test]
fn a_slot_is_kept_for_whatever_of_its_history_must_be_kept_longest() {
    let ages = |completed: Option<u64>, cancelled: Option<u64>| SlotHistory {
        completed: completed.map(Duration::from_secs),
        cancelled: cancelled.map(Duration::from_secs),
        bytes: 10,
    };
    let plan = RETENTION.plan(&[
        (spent(0, 6), ages(Some(99), Some(1))),
        (spent(1, 7), ages(Some(90), Some(25))),
        (spent(2, 8), ages(None, Some(29))),
        (spent(3, 9), ages(Some(100), Some(30))),
    ]);
    let expected = [(Slot(0), kept(29)), (Slot(1), kept(10)), (Slot(2), kept(1)), (Slot(3), PruneDecision::Truncate)];
    assert_eq!(plan, expected);
}

#[test]
fn failed_jobs_are_carried_forward_within_their_time_and_room_the_youngest_first() {
    let failed = |age, bytes| FailedJob { age: Duration::from_secs(age), bytes };
    let slot = [failed(1, 400), failed(50, 600), failed(99, 1), failed(100, 0)];
    assert_eq!(RETENTION.carried_forward(&slot), 2, "the third is beyond the room");
    assert_eq!(RETENTION.carried_forward(&slot[1..]), 2, "the last is beyond its time");
    assert_eq!(RETENTION.carried_forward(&[failed(0, 1_001), failed(1, 1)]), 0, "none is jumped over");
    assert_eq!(RETENTION.carried_forward(&[failed(0, u64::MAX), failed(1, 1)]), 0);
    assert_eq!(RetentionPolicy::NONE.carried_forward(&[failed(0, 0)]), 0);
}

#[test]
fn history_over_the_byte_cap_goes_oldest_first_until_the_rest_fits() {
    let plan = RETENTION.plan(&[
        (spent(0, 8), history(Some(1), 500)),
        (spent(1, 7), history(Some(2), 500)),
        (spent(2, 6), history(Some(3), 500)),
        (spent(3, 5), history(Some(4), 1)),
    ]);
    let expected = [
        (Slot(3), PruneDecision::Truncate),
        (Slot(2), PruneDecision::Truncate),
        (Slot(1), kept(98)),
        (Slot(0), kept(99)),
    ];
    assert_eq!(plan, expected);
}

#[test]
fn only_slots_that_nothing_but_history_keeps_count_against_the_byte_cap() {
    let busy = QueueFacts { open_claims: 1, ..spent(0, 1) };
    let open = QueueFacts { slot: slot(1, 9, Open), ..spent(1, 9) };
    let plan = RETENTION.plan(&[
        (busy, history(Some(5_000), 50_000)),
        (open, history(None, 50_000)),
        (spent(2, 2), history(Some(1), 1_000)),
    ]);
    assert_eq!(plan[0], (Slot(0), PruneDecision::Keep(KeepReason::OpenClaims(1))));
    assert_eq!(plan[1], (Slot(2), kept(99)), "1,000 bytes are just inside the cap");
    assert!(matches!(plan[2], (Slot(1), PruneDecision::Keep(KeepReason::WrongState { is: Open, .. }))));
}

#[test]
fn sizes_beyond_64_bits_do_not_overflow() {
    let huge = history(Some(1), u64::MAX);
    let plan = RETENTION.plan(&[(spent(0, 1), huge), (spent(1, 2), huge)]);
    assert_eq!(plan[0].1, PruneDecision::Truncate);
}

/// What can happen to a slot of claims between the proof and the lock.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Meanwhile {
    Claimed,
    Closed,
    EmptiedAndReopened,
}

#[test]
fn a_claim_that_committed_between_the_proofs_is_noticed() {
    use Meanwhile::{Claimed, Closed, EmptiedAndReopened};
    let mut histories = vec![vec![]];
    for _ in 0..6 {
        let longer = |history: &Vec<Meanwhile>| {
            [Claimed, Closed, EmptiedAndReopened].map(|next| [history.as_slice(), &[next]].concat())
        };
        histories.extend(histories.clone().iter().flat_map(longer).collect::<Vec<_>>());
    }
    let (mut trusted, mut noticed) = (0, 0);
    for history in &histories {
        for (claims, open) in [(0, 0), (1, 0), (2, 0), (2, 1)] {
            let proof = ClaimProof { generation: Generation(4), claims, open };
            let (mut generation, mut now, mut open_now) = (Generation(4), claims, open);
            for event in history {
                match event {
                    Claimed => (now, open_now) = (now + 1, open_now + 1),
                    Closed => open_now = open_now.saturating_sub(1),
                    // Only a slot without open claims is emptied, and it comes back as another generation.
                    EmptiedAndReopened if open_now == 0 => (generation, now) = (Generation(generation.0 + 8), 0),
                    EmptiedAndReopened => {}
                }
            }
            let holds = proof.still_holds(generation, now);
            assert!(!holds || open_now == 0, "{proof:?} was believed after {history:?}");
            trusted += usize::from(holds);
            noticed += usize::from(!holds && open_now > 0);
            if history.iter().all(|event| *event == Closed) && open == 0 {
                assert!(holds, "{proof:?} was not believed after {history:?}, in which nothing was claimed");
            }
        }
    }
    assert!(trusted > 0 && noticed > 0, "{trusted} {noticed}");
}
