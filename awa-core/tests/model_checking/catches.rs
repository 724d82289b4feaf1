//! What the checker would notice. A checker that lets a mutant pass is broken.

use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model};

use super::database::Isolation::{ReadCommitted, RepeatableRead};
use super::directed;
use super::explore::report;
use super::laws::Law;
use super::model::ENDS;
use super::mutants::Mutant;
use super::scenes::{self, Scene};

/// How a mutant is looked for.
enum Hunt {
    /// By free exploration of a world.
    Free(fn() -> Scene),
    /// By the directed schedules.
    Directed,
}

/// A mutant, where it is looked for, and the law that it breaks.
struct Case {
    mutant: Mutant,
    hunt: Hunt,
    /// The law that it breaks; `None`: some job does not end.
    breaks: Option<Law>,
}

fn late() -> Scene {
    scenes::late_commit_into_a_sealed_slot(ReadCommitted)
}

fn frozen_eviction() -> Scene {
    scenes::evict_or_complete(RepeatableRead)
}

/// All mutants. The first eight are those that the test plan names.
const CASES: [Case; 20] = [
    Case {
        mutant: Mutant::OwnXidLooksFinished,
        hunt: Hunt::Free(scenes::claim_within_a_transaction),
        breaks: Some(Law::OnePlace),
    },
    Case {
        mutant: Mutant::NoSecondProof,
        hunt: Hunt::Free(scenes::claim_ring_turns),
        breaks: Some(Law::NoTruncationOverLife),
    },
    Case { mutant: Mutant::SlotReadBeforeLock, hunt: Hunt::Directed, breaks: Some(Law::NoTruncationOverLife) },
    Case {
        mutant: Mutant::ClosureReadWhileWaiting,
        hunt: Hunt::Free(scenes::complete_or_rescue),
        breaks: Some(Law::EndsOnce),
    },
    Case {
        mutant: Mutant::NoClosureConstraint,
        hunt: Hunt::Free(scenes::complete_or_rescue),
        breaks: Some(Law::EndsOnce),
    },
    Case { mutant: Mutant::DrainWithoutWritersLock, hunt: Hunt::Free(late), breaks: Some(Law::Claimable) },
    Case { mutant: Mutant::RescuerNotHealthy, hunt: Hunt::Free(scenes::outage), breaks: Some(Law::LivingWorker) },
    Case { mutant: Mutant::CursorPassesHeldClaim, hunt: Hunt::Free(scenes::held_claim), breaks: Some(Law::HeldClaim) },
    Case { mutant: Mutant::DrainReadBeforeLock, hunt: Hunt::Free(late), breaks: Some(Law::Claimable) },
    Case { mutant: Mutant::PresentReadAgain, hunt: Hunt::Free(scenes::outage), breaks: Some(Law::LivingWorker) },
    Case { mutant: Mutant::NobodyLooksDead, hunt: Hunt::Free(scenes::crashing_claimers), breaks: None },
    Case {
        mutant: Mutant::WriterLooksTwiceOnly,
        hunt: Hunt::Free(scenes::chased_pointer),
        breaks: Some(Law::Claimable),
    },
    Case { mutant: Mutant::PointerSlotNotListed, hunt: Hunt::Free(scenes::two_rotators), breaks: Some(Law::Claimable) },
    Case { mutant: Mutant::FrozenCloserBelieves, hunt: Hunt::Free(frozen_eviction), breaks: Some(Law::TrueAnswer) },
    Case {
        mutant: Mutant::CarryOverOvertakes,
        hunt: Hunt::Free(scenes::carry_over_beside_an_older_writer),
        breaks: Some(Law::Order),
    },
    Case {
        mutant: Mutant::CancelWithoutLaneLock,
        hunt: Hunt::Free(scenes::cancel_or_claim),
        breaks: Some(Law::FinalCancel),
    },
    Case {
        mutant: Mutant::MovedLeaseLooksOver,
        hunt: Hunt::Free(scenes::lease_is_moved),
        breaks: Some(Law::TrueAnswer),
    },
    Case {
        mutant: Mutant::NoSecondLookAtLeases,
        hunt: Hunt::Free(scenes::lease_slot_is_pruned),
        breaks: Some(Law::NoTruncationOverLife),
    },
    Case {
        mutant: Mutant::MoverCopiesWhatItSaw,
        hunt: Hunt::Free(scenes::lease_is_moved),
        breaks: Some(Law::OnePlace),
    },
    Case {
        mutant: Mutant::NeitherLaneLockNorChain,
        hunt: Hunt::Free(scenes::two_claimers),
        breaks: Some(Law::OneAttempt),
    },
];

/// How many states or schedules it took to see a law broken, and what was broken; or that nothing was.
fn hunt(case: &Case) -> (usize, Vec<String>) {
    match case.hunt {
        Hunt::Directed => {
            let (tried, broken) = directed::catch(case.mutant);
            (tried, broken.into_iter().collect())
        }
        Hunt::Free(scene) => {
            let setting = scene().with(case.mutant).setting;
            let checker = setting.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
            let found = checker.discoveries().into_iter().map(|(name, path)| {
                let broken = path.last_state().world.ghost().broken.clone();
                if name == ENDS { name.to_owned() } else { format!("{broken:?}") }
            });
            (checker.unique_state_count(), found.collect())
        }
    }
}

#[test]
fn every_mutant_is_caught() {
    let mut missed = Vec::new();
    for case in &CASES {
        let begun = Instant::now();
        let (states, found) = hunt(case);
        let expected = case.breaks.map_or_else(|| ENDS.to_owned(), |law| format!("{law:?}"));
        let is_caught = found.iter().any(|what| what.contains(&expected));
        let verdict = if is_caught { format!("caught: {expected}") } else { format!("MISSED: {found:?}") };
        report(&format!("mutant {:?}", case.mutant), states, begun.elapsed(), &verdict);
        if !is_caught {
            missed.push(format!("{:?}: {found:?}", case.mutant));
        }
    }
    assert!(missed.is_empty(), "mutants that pass: {}", missed.join("\n"));
}
