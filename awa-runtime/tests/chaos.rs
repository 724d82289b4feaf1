//! A store that fails at random, before or after it did its work, or slowly: nothing is lost, and no handler runs twice.

mod common;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use awa_runtime::core::StoreErrorKind;
use awa_runtime::core::Timestamp;
use awa_runtime::core::model::RingSizes;
use awa_runtime::core::store::Operator;
use awa_runtime::{JobContext, Outcome, QueueConfig, StoreExt, Worker};
use awa_store_mem::{Fault, FaultyStore, MemStore, Operation, TokioClock};
use common::{Numbered, Running};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::Instant;

const JOBS: u32 = 400;

/// A fault that the contract allows for any call: one whose outcome is unknown is only ever unavailable.
fn random_fault(random: &mut StdRng) -> Fault {
    match random.random_range(0..7) {
        0 | 1 => Fault::Before(StoreErrorKind::Unavailable),
        2 => Fault::Before(StoreErrorKind::Contended),
        3 => Fault::Before(StoreErrorKind::Internal),
        4 => Fault::delay(tokio::time::sleep(Duration::from_millis(random.random_range(1..40_000)))),
        _ => Fault::After(StoreErrorKind::Unavailable),
    }
}

fn faulty(random: &mut StdRng) -> Arc<FaultyStore<MemStore>> {
    let clock = TokioClock::starting_at(Timestamp::from_micros(1_700_000_000_000_000));
    let store = Arc::new(FaultyStore::new(MemStore::with_clock(Arc::new(clock), RingSizes::default())));
    for operation in [
        Operation::Claim,
        Operation::Close,
        Operation::AreOpen,
        Operation::OpenAttempts,
        Operation::Announce,
        Operation::Withdraw,
        Operation::Wait,
        Operation::OpenQueue,
        Operation::Promote,
        Operation::Rescue,
        Operation::TryTick,
    ] {
        for _ in 0..random.random_range(0..12) {
            store.script(operation, random_fault(random));
        }
    }
    // Beats fail too, but not for so long that the process must be taken for dead.
    for _ in 0..random.random_range(0..4) {
        store.script(Operation::Beat, Fault::Before(StoreErrorKind::Unavailable));
        store.script(Operation::Beat, Fault::After(StoreErrorKind::Unavailable));
    }
    store
}

async fn one_history(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let store = faulty(&mut random);
    let jobs = (0..JOBS).map(|number| Numbered { number });
    store.inside().enqueue_jobs(jobs).await.unwrap();
    let runs = Arc::new(Mutex::new(HashMap::<u32, u32>::new()));
    let counted = Arc::clone(&runs);
    let config = QueueConfig::default().concurrency(random.random_range(1..80)).prefetch(random.random_range(0..40));
    let builder = Worker::builder(store.clone())
        .queue("default", config)
        .own_threads(0)
        .flush_at(random.random_range(1..60))
        .max_unconfirmed(random.random_range(1..300));
    let worker = Running::start(builder.handler(move |job: Numbered, _: JobContext| {
        let nth = {
            let mut runs = counted.lock().unwrap();
            let runs = runs.entry(job.number).or_default();
            *runs += 1;
            *runs
        };
        async move {
            tokio::time::sleep(Duration::from_millis(u64::from(job.number % 13) * 50)).await;
            match job.number % 10 {
                3 if nth == 1 => panic!("on purpose"),
                7 if nth == 1 => Err("on purpose".into()),
                _ => Ok(Outcome::Done),
            }
        }
    }));
    let began = Instant::now();
    loop {
        let census = store.inside().census().await.unwrap();
        assert_eq!(census.iter().map(|count| count.jobs).sum::<u64>(), u64::from(JOBS), "seed {seed}: {census:?}");
        let left = census.iter().filter(|count| !count.state.is_terminal()).map(|count| count.jobs).sum::<u64>();
        if left == 0 {
            break;
        }
        assert!(began.elapsed() < Duration::from_mins(12), "seed {seed}: {census:?} {:?}", worker.stats.read());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let report = worker.stop().await;
    assert_eq!((report.stats.in_flight, report.unconfirmed), (0, 0), "seed {seed}: {report:?}");
    for (number, &ran) in runs.lock().unwrap().iter() {
        let expected = if number % 10 == 3 || number % 10 == 7 { 2 } else { 1 };
        assert_eq!(ran, expected, "seed {seed}: job {number} ran {ran} times");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_at_random_loses_no_job_and_runs_no_handler_twice() {
    // One history: AWA_TEST_SEED=<seed>.
    let seeds = match std::env::var("AWA_TEST_SEED") {
        Ok(seed) => vec![seed.parse().expect("AWA_TEST_SEED is a number")],
        Err(_) => (0..30).collect(),
    };
    for seed in seeds {
        one_history(seed).await;
    }
}
