//! Maintenance goes on, whichever of its tasks fails.

mod common;

use std::sync::Arc;
use std::time::Duration;

use awa_runtime::core::StoreErrorKind;
use awa_runtime::core::store::Task;
use awa_runtime::{Maintenance, MaintenanceConfig, Worker, WorkerBuilder};
use common::{FakeStore, Running};

const STEPS: [&str; 6] = ["promote", "rescue", "rotate", "drain", "prune", "tidy"];

fn maintainer(store: &Arc<FakeStore>) -> WorkerBuilder {
    Worker::builder(store.clone()).claims(false).own_threads(0)
}

fn counts(store: &FakeStore) -> [usize; 6] {
    STEPS.map(|step| store.calls(step).len())
}

#[tokio::test(start_paused = true)]
async fn every_task_runs_once_per_interval() {
    let store = FakeStore::new();
    let worker = Running::start(maintainer(&store));
    tokio::time::sleep(Duration::from_mins(10)).await;
    let about = |calls: usize, expected: usize| (expected * 8 / 10..=expected * 12 / 10).contains(&calls);
    let expected = [2_400, 300, 1_800, 600, 1_800, 10]; // three rings
    let counts = counts(&store);
    assert!(counts.iter().zip(expected).all(|(&calls, expected)| about(calls, expected)), "{counts:?}");
    assert!(store.calls("claim").is_empty(), "a worker without claims only maintains");
    worker.stop().await;
}

/// Of a fleet one process or a few have the turns; the others ask now and then, and take over when they are gone.
#[tokio::test(start_paused = true)]
async fn who_does_not_get_the_turn_asks_rarely_and_takes_over() {
    const FLEET: usize = 20;
    let store = FakeStore::new();
    let mut fleet = Vec::new();
    for _ in 0..FLEET {
        fleet.push(Running::start(maintainer(&store)));
    }
    tokio::time::sleep(Duration::from_mins(1)).await;
    let before = (store.calls("try_tick").len(), store.calls("promote").len());
    tokio::time::sleep(Duration::from_mins(10)).await;
    let asked = (store.calls("try_tick").len() - before.0) as f64 / 600.0;
    let promoted = store.calls("promote").len() - before.1;
    assert!(asked < 1.2 * FLEET as f64 + 5.0, "{asked} times a second");
    assert!((1_900..=2_400).contains(&promoted), "{promoted} promotions in ten minutes");
    // Whoever had the turns is among those that stop.
    let last = fleet.pop().unwrap();
    for worker in fleet {
        worker.stop().await;
    }
    let (stopped, before) = (tokio::time::Instant::now(), store.calls("promote").len());
    tokio::time::sleep(Duration::from_mins(1)).await;
    let calls = store.calls("promote");
    let (first, _) = calls[before];
    assert!(first - stopped < Duration::from_secs(4), "{:?} without a promotion", first - stopped);
    assert!((190..=240).contains(&(calls.len() - before)), "{} in the minute after", calls.len() - before);
    last.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_step_that_fails_hangs_or_panics_stops_no_other() {
    for failing in STEPS {
        let store = FakeStore::new();
        store.fail(failing, Some(StoreErrorKind::Internal));
        store.panic_once(failing);
        let worker = Running::start(maintainer(&store));
        tokio::time::sleep(Duration::from_mins(10)).await;
        let counts = counts(&store);
        assert!(counts.iter().all(|&calls| calls >= 8), "{failing} fails: {counts:?}");
        worker.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_tick_does_every_task_and_reports_what_failed() {
    let store = FakeStore::new();
    store.fail("prune", Some(StoreErrorKind::Contended));
    let maintenance = Maintenance::new(store.clone(), MaintenanceConfig::default()).unwrap();
    let report = maintenance.tick(Duration::from_secs(1)).await;
    assert_eq!(report.ran, [Task::Promote, Task::Rescue, Task::Tidy]);
    assert_eq!(report.failed.iter().map(|(task, _)| *task).collect::<Vec<_>>(), [Task::Rings; 3]);
    assert_eq!((counts(&store), store.calls("beat").len()), ([1, 1, 3, 1, 3, 1], 1));
}

#[tokio::test(start_paused = true)]
async fn dead_jobs_are_held_for_ever_unless_a_time_is_set() {
    for (retention, calls) in [(None, 0), (Some(Duration::from_hours(24)), 1)] {
        let store = FakeStore::new();
        let mut config = MaintenanceConfig::default();
        config.dead_retention = retention;
        let report = Maintenance::new(store.clone(), config).unwrap().tick(Duration::from_secs(1)).await;
        assert_eq!((store.calls("forget_dead").len(), report.forgotten), (calls, 0), "{retention:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn settings_that_make_no_sense_are_refused() {
    let store = FakeStore::new();
    let changes: [fn(&mut MaintenanceConfig); 3] = [
        |config| config.promote_every = Duration::ZERO,
        |config| config.promote_limit = 0,
        |config| config.rescue_page = 0,
    ];
    for change in changes {
        let mut config = MaintenanceConfig::default();
        change(&mut config);
        assert!(Maintenance::new(store.clone(), config).is_err());
    }
}
