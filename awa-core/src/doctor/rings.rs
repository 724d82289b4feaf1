//! What is thought of a ring.

use std::time::Duration;

use super::facts::{RingFacts, SlotReport};
use super::{Finding, Severity};
use crate::prune::{KeepReason, PruneDecision};
use crate::ring::{BadRing, DrainKeep, Pointer, RotateDecision, SlotState, StayReason};

/// With fewer free slots, what keeps the others is a warning.
const COMFORTABLE_FREE_SLOTS: usize = 2;
/// A writer that has been in a sealed slot for so long is forgotten rather than slow.
const LONG_WRITER: Duration = Duration::from_mins(10);

/// Judges one ring: where it is, whether it can turn, and why each used slot is kept.
pub(super) fn examine(facts: &RingFacts, findings: &mut Vec<Finding>) {
    let object = format!("{} ring", facts.ring);
    match &facts.rotation {
        Err(damage) => findings.push(damaged(&object, *damage)),
        Ok((ledger, decision)) => findings.push(position(&object, facts, *ledger, *decision)),
    }
    let free = facts.slots.iter().filter(|slot| slot.state == SlotState::Free).count();
    for slot in &facts.slots {
        let object = format!("{} ring slot {}", facts.ring, slot.slot.slot);
        if slot.state == SlotState::Free && slot.bytes > 0 && slot.slot.slot != facts.pointer.slot {
            findings.push(Finding::new(
                Severity::Notice,
                object,
                format!("a stray: it is free and holds {} bytes of a late writer", slot.bytes),
                "the next rotation opens it and thereby adopts its rows",
            ));
        } else if let Some(finding) = kept(&object, slot, free) {
            findings.push(finding);
        }
    }
}

fn damaged(object: &str, damage: BadRing) -> Finding {
    let action = "stop the workers and restore the control tables from a backup; nothing is guessed";
    Finding::new(Severity::Critical, object, damage.to_string(), action)
}

fn position(object: &str, facts: &RingFacts, ledger: Pointer, decision: RotateDecision) -> Finding {
    let count = |state| facts.slots.iter().filter(|slot| slot.state == state).count();
    let states = [SlotState::Open, SlotState::Sealed, SlotState::Drained, SlotState::Free];
    let counts: Vec<String> =
        states.iter().filter(|state| count(**state) > 0).map(|state| format!("{} {state}", count(*state))).collect();
    let bytes: u64 = facts.slots.iter().map(|slot| slot.bytes).sum();
    let shape = format!("{}, {} bytes, writes go to {}", counts.join(", "), bytes, facts.pointer);
    match decision {
        RotateDecision::Stay(reason @ (StayReason::PointerBehind(_) | StayReason::PointerOnBusySlot(_))) => {
            let what = format!("{shape}, but the ledger is at {ledger}: {reason}");
            Finding::new(Severity::Critical, object, what, "run `awa repair`")
        }
        RotateDecision::Stay(reason @ StayReason::NoFreeSlot) => {
            Finding::new(Severity::Warning, object, format!("{shape}; {reason}"), "see the slots below")
        }
        RotateDecision::Stay(reason) => Finding::ok(object, format!("{shape}; not turned now, because {reason}")),
        RotateDecision::Open(next) => Finding::ok(object, format!("{shape}; due to turn to {next}")),
        RotateDecision::RepairLedger(pointer) => Finding::new(
            Severity::Notice,
            object,
            format!("{shape}; a rotation to {pointer} was cut off before it was written down"),
            "the next tick of any worker completes it",
        ),
    }
}

/// Why a slot in use is not free, when that is worth a line.
fn kept(object: &str, slot: &SlotReport, free: usize) -> Option<Finding> {
    let reason = match slot.decision? {
        PruneDecision::Keep(reason) => reason,
        PruneDecision::Truncate => return None,
        PruneDecision::Undrain => {
            let what = "a job waits in it although it was marked as drained";
            return Some(Finding::new(Severity::Warning, object, what, "the next tick of any worker corrects it"));
        }
    };
    let is_tight = free < COMFORTABLE_FREE_SLOTS;
    let tight = |otherwise| if is_tight { Severity::Warning } else { otherwise };
    let (severity, what, action) = match (reason, slot.undrained) {
        (KeepReason::WrongState { .. }, Some(undrained)) => {
            let is_forgotten = undrained == DrainKeep::WritersInFlight && slot.age > LONG_WRITER;
            let severity = if is_forgotten { Severity::Warning } else { tight(Severity::Notice) };
            let action = match undrained {
                DrainKeep::WritersInFlight => "see the oldest transactions below",
                DrainKeep::UnpassedRows => "start workers for its queues, or resume paused ones",
                _ => "",
            };
            (severity, format!("not drained, because {undrained}"), action)
        }
        // Sealed and drainable, or of a state that no rule names: the next tick moves it on.
        (KeepReason::WrongState { .. }, None) => return None,
        (KeepReason::Retained(_), _) => (Severity::Ok, format!("not emptied, because {reason}"), ""),
        (KeepReason::InUse, _) => (Severity::Notice, format!("not emptied, because {reason}"), ""),
        _ => (tight(Severity::Notice), format!("not emptied, because {reason}"), ""),
    };
    let what = format!("{what} (opened {} s ago, {} bytes)", slot.age.as_secs(), slot.bytes);
    Some(Finding::new(severity, object, what, action))
}
