//! Random histories, told to the memory store and to PostgreSQL through both drivers: what can be seen of them is the same
//! after each step.
//!
//! `AWA_TEST_HISTORIES` says how many, `AWA_TEST_SEED` repeats a run. A failure is cut down to a short history, which is printed
//! as a reader would tell it.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use awa_conformance::Subject;
use awa_tests::differential::{
    Difference, HistoryServer, MutantStore, Mutation, Place, START, Step, Told, history, tell,
};
use awa_tests::memory::FreshMemory;
use awa_tests::seed::Seed;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

const HISTORIES: u32 = 100;
const STEPS: usize = 50;
/// So many runs tell side by side, each with a seed of its own; a fixed number, so that a seed means the same everywhere.
const RUNS: u32 = 2;
/// Unless a number was asked for, a slow machine tells fewer than [`HISTORIES`], and no fewer than [`FEWEST`].
const PATIENCE: Duration = Duration::from_secs(75);
const FEWEST: u32 = 5;

fn runner(cases: u32, seed: u64) -> TestRunner {
    let rng_seed = RngSeed::Fixed(seed);
    TestRunner::new(Config {
        cases,
        rng_seed,
        failure_persistence: None,
        max_shrink_iters: 20,
        max_shrink_time: 240_000,
        ..Config::default()
    })
}

/// Leaves out steps without which the stores still differ, first many at once, the latest first, until each is needed.
fn without_idle_steps(
    mut steps: Vec<Step>,
    mut difference: Difference,
    tell: impl Fn(&[Step]) -> Result<Told, Difference>,
) -> (Vec<Step>, Difference) {
    let mut together = steps.len().div_ceil(2);
    loop {
        steps.truncate(difference.steps());
        let before = steps.len();
        let mut at = steps.len();
        while at > 0 {
            let from = at.saturating_sub(together);
            let mut fewer = steps.clone();
            fewer.drain(from..at);
            if let Err(other) = tell(&fewer) {
                fewer.truncate(other.steps());
                (steps, difference) = (fewer, other);
            }
            at = from.min(steps.len());
        }
        if together == 1 && steps.len() == before {
            return (steps, difference);
        }
        together = together.div_ceil(2);
    }
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

/// What is told side by side, and in what time.
struct Telling<'a> {
    server: &'a HistoryServer,
    /// How many are to be told, when that was asked for.
    asked: Option<u32>,
    started: Instant,
    told: AtomicU32,
    has_failed: AtomicBool,
}

impl Telling<'_> {
    /// Whether a run that found nothing so far goes on.
    fn is_over(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed) || self.asked.is_none() && self.started.elapsed() > PATIENCE
    }

    /// One run after the other.
    fn tell(&self, seed: u64) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let place = RefCell::new(Place::new(self.server));
        let is_found = Cell::new(false);
        let tell = |steps: &[Step]| {
            if !is_found.get() && self.is_over() {
                return Ok(Told::default());
            }
            self.told.fetch_add(1, Ordering::Relaxed);
            let told = runtime.block_on(place.borrow_mut().tell(steps));
            if told.is_err() {
                is_found.set(true);
                self.has_failed.store(true, Ordering::Relaxed);
            }
            told
        };
        let histories = self.asked.unwrap_or(HISTORIES).div_ceil(RUNS);
        if let Some((_, difference)) = shortest_failure(&mut runner(histories, seed), tell) {
            panic!("stores differ in this history:\n{difference}");
        }
    }
}

#[test]
fn memory_and_both_drivers_show_the_same_in_every_history() {
    let asked = std::env::var("AWA_TEST_HISTORIES").ok().map(|text| text.parse().expect("it is a number"));
    let seed = Seed::announced();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = runtime.block_on(HistoryServer::start());
    let (told, has_failed) = (AtomicU32::new(0), AtomicBool::new(false));
    let telling = Telling { server: &server, asked, started: Instant::now(), told, has_failed };
    std::thread::scope(|scope| {
        for run in 0..RUNS {
            let (seed, telling) = (seed.split(run.into()).number(), &telling);
            scope.spawn(move || telling.tell(seed));
        }
    });
    let (seconds, told) = (telling.started.elapsed().as_secs_f64(), telling.told.into_inner());
    assert!(told >= FEWEST, "only {told} histories could be told");
    println!("proof | {told} histories of {STEPS} steps in {seconds:.0} s, {RUNS} at once");
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
