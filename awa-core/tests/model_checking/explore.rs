//! Free exploration with stateright: every interleaving, every crash, of every small world.

use std::time::{Duration, Instant};

use stateright::{Checker, HasDiscoveries, Model};

use super::database::Isolation::{ReadCommitted, RepeatableRead};
use super::scenes::{self, Scene};

/// Generated states after which a large world is cut off. One of four or five of them is a new one.
const LARGE: usize = 5_200_000;
/// The same in the normal test run, for the worlds that are only begun there.
const SMALL: usize = 40_000;

/// Whether this is the long run of `cargo xtask prove`.
pub(crate) fn is_long_run() -> bool {
    std::env::var_os("AWA_PROVE").is_some_and(|value| value == "large")
}

/// One line of the table.
pub(crate) fn report(what: &str, states: usize, took: Duration, verdict: &str) {
    println!("proof | {what:<44} | {states:>9} | {:>7.1} | {verdict}", took.as_secs_f64());
}

/// Explores a world to its end, or up to the bound, and complains about every law that was broken.
fn explore(scene: Scene) {
    let begun = Instant::now();
    let Scene { name, mut setting, reaches } = scene;
    if is_long_run() {
        setting.crashes = setting.crashes.max(1);
    }
    let bound = if is_long_run() { LARGE } else { SMALL };
    let checker = setting.checker().threads(if is_long_run() { 2 } else { 1 });
    let checker = checker.finish_when(HasDiscoveries::AnyFailures).target_state_count(bound).spawn_bfs().join();
    let is_whole = checker.state_count() < bound;
    let verdict = if is_whole { "every law holds, all states" } else { "every law holds, up to the bound" };
    let broken: Vec<String> = checker
        .discoveries()
        .into_iter()
        .map(|(law, path)| {
            let ghost = path.last_state().world.ghost().broken.clone();
            format!("{law} {ghost:?} after {:#?}", path.into_actions())
        })
        .collect();
    let verdict = if broken.is_empty() { verdict } else { "BROKEN" };
    report(name, checker.unique_state_count(), begun.elapsed(), verdict);
    assert!(broken.is_empty(), "{name}: {}", broken.join("\n"));
    let reached = checker.model().reached.lock().unwrap().clone();
    let missing: Vec<_> = reaches.iter().filter(|reach| !reached.contains(reach)).collect();
    assert!(
        !is_whole || missing.is_empty(),
        "{name}: a world in which nobody ever meets {missing:?} proves nothing about it"
    );
}

#[test]
fn late_commits_reach_one_claimer_each() {
    explore(scenes::late_commits());
}

#[test]
fn a_producer_or_a_claimer_that_crashes_loses_nothing() {
    explore(scenes::crashing_claimers());
}

#[test]
fn a_cursor_is_right_also_when_its_own_transaction_writes_to_the_lane() {
    explore(scenes::claim_within_a_transaction());
}

#[test]
fn of_four_closers_one_wins() {
    explore(scenes::four_closers());
}

#[test]
fn a_job_is_completed_or_rescued_and_never_both() {
    explore(scenes::complete_or_rescue());
}

#[test]
fn a_closer_at_repeatable_read_is_told_the_truth() {
    explore(scenes::frozen_closer());
}

#[test]
fn a_job_is_cancelled_or_claimed() {
    explore(scenes::cancel_or_claim());
}

#[test]
fn a_late_commit_into_a_sealed_slot_is_found() {
    explore(scenes::late_commit_into_a_sealed_slot(ReadCommitted));
    explore(scenes::late_commit_into_a_sealed_slot(RepeatableRead));
}

#[test]
fn a_producer_that_chases_the_pointer_ends_in_a_slot_that_claims_list() {
    explore(scenes::chased_pointer());
}

#[test]
fn two_rotators_open_one_slot() {
    explore(scenes::two_rotators());
}

#[test]
fn a_claim_survives_the_turn_of_its_ring() {
    explore(scenes::claim_ring_turns());
}

#[test]
fn an_attempt_is_evicted_or_completed() {
    explore(scenes::evict_or_complete(ReadCommitted));
    explore(scenes::evict_or_complete(RepeatableRead));
    explore(scenes::evict_from_the_queue_ring());
}

#[test]
fn a_row_is_carried_over_claimed_or_cancelled() {
    explore(scenes::carry_over());
}

#[test]
fn rows_are_carried_over_in_order() {
    explore(scenes::carry_over_beside_an_older_writer());
}

#[test]
fn behind_an_outage_nobody_who_lives_is_rescued_from() {
    explore(scenes::outage());
}

#[test]
fn a_sweep_comes_back_to_what_it_could_not_close() {
    explore(scenes::held_claim());
}

#[test]
fn a_lease_ends_once() {
    explore(scenes::lease());
}

#[test]
fn a_lease_that_is_moved_ends_once() {
    explore(scenes::lease_is_moved());
}

#[test]
fn an_attempt_that_goes_on_as_a_lease_survives_the_turn_of_the_lease_ring() {
    explore(scenes::lease_ring_turns());
    explore(scenes::lease_slot_is_pruned());
}

#[test]
fn two_maintainers_do_the_work_of_one() {
    explore(scenes::two_maintainers());
}

#[test]
fn two_claimers_share_nothing() {
    explore(scenes::two_claimers());
}

#[test]
fn every_end_of_an_attempt_leaves_its_job_in_one_place() {
    explore(scenes::other_ends());
}

#[test]
fn everybody_at_once_breaks_no_law() {
    explore(scenes::everybody());
}
