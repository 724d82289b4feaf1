//! Random histories, told to the memory store and to PostgreSQL through both drivers: what can be seen of them is the same
//! after each step.
//!
//! `AWA_TEST_HISTORIES` says how many, `AWA_TEST_SEED` repeats a run. A failure is cut down to a short history, which is printed
//! as a reader would tell it.

use std::cell::Cell;
use std::time::{Duration, Instant};

use awa_conformance::Subject;
use awa_tests::differential::{Difference, HistoryServer, MutantStore, Mutation, START, Step, Told, history, tell};
use awa_tests::memory::FreshMemory;
use awa_tests::seed::Seed;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

const HISTORIES: u32 = 100;
const STEPS: usize = 50;
/// Unless a number was asked for, a slow machine tells fewer than [`HISTORIES`], and no fewer than [`FEWEST`].
const PATIENCE: Duration = Duration::from_secs(75);
const FEWEST: u32 = 5;

fn runner(cases: u32, seed: u64) -> TestRunner {
    let rng_seed = RngSeed::Fixed(seed);
    TestRunner::new(Config {
        cases,
        rng_seed,
        failure_persistence: None,
        max_shrink_iters: 50,
        max_shrink_time: 240_000,
        ..Config::default()
    })
}

/// Leaves out each step without which the stores still differ, the latest first, until none is left.
fn without_idle_steps(
    mut steps: Vec<Step>,
    mut difference: Difference,
    tell: impl Fn(&[Step]) -> Result<Told, Difference>,
) -> (Vec<Step>, Difference) {
    let mut at = steps.len();
    while at > 0 {
        at -= 1;
        let mut fewer = steps.clone();
        fewer.remove(at);
        if let Err(other) = tell(&fewer) {
            (steps, difference) = (fewer, other);
            // What stood behind may be idle now.
            at = steps.len();
        }
    }
    (steps, difference)
}

/// Looks for a history that does not end well, and makes it short.
fn shortest_failure(
    runner: &mut TestRunner,
    tell: impl Fn(&[Step]) -> Result<Told, Difference>,
) -> Option<(Vec<Step>, Difference)> {
    let outcome = runner
        .run(&history(STEPS), |steps| tell(&steps).map(drop).map_err(|what| TestCaseError::fail(what.to_string())));
    match outcome {
        Ok(()) => None,
        Err(TestError::Fail(_, steps)) => {
            let difference = tell(&steps).expect_err("what failed fails again");
            Some(without_idle_steps(steps, difference, tell))
        }
        Err(TestError::Abort(reason)) => panic!("the run was broken off: {reason}"),
    }
}

#[test]
fn memory_and_both_drivers_show_the_same_in_every_history() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let asked = std::env::var("AWA_TEST_HISTORIES").ok().map(|text| text.parse().expect("it is a number"));
    let seed = Seed::announced().number();
    let (started, making, told) = (Instant::now(), Cell::new(Duration::ZERO), Cell::new(0));
    let has_failed = Cell::new(false);
    let server = runtime.block_on(HistoryServer::start());
    let tell_all = |steps: &[Step]| {
        if asked.is_none() && !has_failed.get() && started.elapsed() > PATIENCE {
            return Ok(Told::default());
        }
        told.set(told.get() + 1);
        runtime.block_on(async {
            let began = Instant::now();
            let stores = server.fresh().await;
            making.set(making.get() + began.elapsed());
            let told = tell(&[&stores.memory as &dyn Subject, &stores.sqlx, &stores.diesel], steps).await;
            server.done(stores).await;
            has_failed.set(has_failed.get() || told.is_err());
            told
        })
    };
    if let Some((_, difference)) = shortest_failure(&mut runner(asked.unwrap_or(HISTORIES), seed), tell_all) {
        panic!("stores differ in this history:\n{difference}");
    }
    let (all, making) = (started.elapsed().as_secs_f64(), making.get().as_secs_f64());
    let histories = told.get();
    assert!(histories >= FEWEST, "only {histories} histories could be told");
    println!(
        "proof | {histories} histories of {STEPS} steps in {all:.0} s, {making:.0} s of them waiting for databases"
    );
}

#[test]
fn a_store_with_a_broken_rule_is_found_out_in_a_few_steps() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let seed = Seed::announced().number();
    for mutation in Mutation::ALL {
        let tell_both = |steps: &[Step]| {
            let (sound, mutant) = (FreshMemory::at(START), MutantStore::at(START, mutation));
            runtime.block_on(tell(&[&sound as &dyn Subject, &mutant], steps))
        };
        let found = shortest_failure(&mut runner(1_000, seed), tell_both);
        let (steps, difference) = found.unwrap_or_else(|| panic!("{mutation:?} is not noticed"));
        println!("{mutation:?} is found out by\n{difference}");
        assert!(steps.len() <= 8, "{mutation:?} takes {} steps", steps.len());
    }
}

#[test]
fn a_memory_store_does_not_differ_from_itself() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let tell_both = |steps: &[Step]| {
        runtime.block_on(tell(&[&FreshMemory::at(START) as &dyn Subject, &FreshMemory::at(START)], steps))
    };
    if let Some((_, difference)) = shortest_failure(&mut runner(200, Seed::announced().number()), tell_both) {
        panic!("{difference}");
    }
}
