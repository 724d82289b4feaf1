//! Whole workers on the memory store, on a paused clock: enqueue, claim, wake-ups, retries, rescue, rings, census.

mod common;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use awa_runtime::core::attempt::ErrorText;
use awa_runtime::core::model::RingSizes;
use awa_runtime::core::store::Operator;
use awa_runtime::core::{JobId, JobState, Timestamp};
use awa_runtime::{CancelCause, Fatal, Job, JobContext, Outcome, QueueConfig, StoreExt, Worker, WorkerBuilder};
use awa_store_mem::{MemStore, TokioClock};
use common::{Numbered, Running};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

fn memory() -> Arc<MemStore> {
    let clock = TokioClock::starting_at(Timestamp::from_micros(1_700_000_000_000_000));
    Arc::new(MemStore::with_clock(Arc::new(clock), RingSizes::default()))
}

fn worker(store: &Arc<MemStore>) -> WorkerBuilder {
    Worker::builder(store.clone()).own_threads(0)
}

fn with_default_queue(store: &Arc<MemStore>) -> WorkerBuilder {
    worker(store).queue("default", QueueConfig::default())
}

async fn state(store: &MemStore, job: JobId) -> JobState {
    store.get(job).await.unwrap().expect("the job is there").state
}

/// Waits on the paused clock until the job is in `wanted`.
async fn until_state(store: &MemStore, job: JobId, wanted: JobState) {
    let began = Instant::now();
    while state(store, job).await != wanted {
        assert!(began.elapsed() < Duration::from_hours(2), "{job} is {}", state(store, job).await);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The number of jobs in each state that has some.
async fn census(store: &MemStore) -> HashMap<JobState, u64> {
    let counts = store.census().await.unwrap();
    counts.into_iter().filter(|count| count.jobs > 0).map(|count| (count.state, count.jobs)).collect()
}

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "scripted", queue = "scripts", max_attempts = 3)]
enum Scripted {
    Done,
    WithResult,
    FailTwice,
    FailAlways,
    Fatal,
    SnoozeOnce,
    Cancel,
}

async fn play(job: Scripted, cx: JobContext) -> awa_runtime::HandlerResult {
    static SNOOZED: Mutex<Vec<JobId>> = Mutex::new(Vec::new());
    Ok(match job {
        Scripted::WithResult => Outcome::done_with(&("answer", 42)),
        Scripted::FailTwice if cx.attempt() < 3 => return Err("not yet".into()),
        Scripted::FailAlways => return Err(format!("attempt {}", cx.attempt()).into()),
        Scripted::Fatal => return Err(Fatal::new("no use").into()),
        Scripted::SnoozeOnce if !SNOOZED.lock().unwrap().contains(&cx.id()) => {
            SNOOZED.lock().unwrap().push(cx.id());
            Outcome::Snooze(Duration::from_secs(30))
        }
        Scripted::Done | Scripted::FailTwice | Scripted::SnoozeOnce => Outcome::Done,
        Scripted::Cancel => Outcome::Cancel("no longer wanted".into()),
    })
}

#[tokio::test(start_paused = true)]
async fn every_outcome_leads_where_it_says() {
    let store = memory();
    let jobs = [
        (Scripted::Done, JobState::Completed, None),
        (Scripted::WithResult, JobState::Completed, None),
        (Scripted::FailTwice, JobState::Completed, None),
        (Scripted::FailAlways, JobState::Dead, Some("attempt 3")),
        (Scripted::Fatal, JobState::Dead, Some("no use")),
        (Scripted::SnoozeOnce, JobState::Completed, None),
        (Scripted::Cancel, JobState::Cancelled, Some("no longer wanted")),
    ];
    let mut expected = Vec::new();
    for (job, ends_as, error) in jobs {
        expected.push((store.enqueue_job(job).await.unwrap().id(), ends_as, error));
    }
    let worker = Running::start(worker(&store).queue("scripts", QueueConfig::default()).handler(play));
    for (id, ends_as, error) in expected {
        until_state(&store, id, ends_as).await;
        let view = store.get(id).await.unwrap().unwrap();
        if let Some(error) = error {
            assert_eq!(view.error.as_ref().map(ErrorText::as_str), Some(error), "{view:?}");
        }
    }
    let second = store.get(JobId(2)).await.unwrap().unwrap();
    assert_eq!(second.result.map(|result| result.as_str().to_owned()).as_deref(), Some(r#"["answer",42]"#));
    let report = worker.stop().await;
    assert_eq!((report.stats.retried, report.stats.failed, report.stats.snoozed), (4, 2, 1), "{:?}", report.stats);
}

#[tokio::test(start_paused = true)]
async fn a_job_enqueued_while_the_dispatcher_sleeps_starts_at_once() {
    let store = memory();
    let config = QueueConfig::default().poll_interval(Duration::from_hours(1));
    let worker = Running::start(
        worker(&store).queue("default", config).handler(|_: Numbered, _: JobContext| async { Ok(Outcome::Done) }),
    );
    for number in 0..5 {
        tokio::time::sleep(Duration::from_mins(10)).await;
        let enqueued = Instant::now();
        let id = store.enqueue_job(Numbered { number }).await.unwrap().id();
        until_state(&store, id, JobState::Completed).await;
        assert!(enqueued.elapsed() < Duration::from_millis(100), "{:?}", enqueued.elapsed());
    }
    worker.stop().await;
}

/// Quick jobs are claimed far ahead. When long ones follow, those that wait for a handler are left to other workers.
#[tokio::test(start_paused = true)]
async fn what_waits_behind_jobs_that_have_turned_long_is_handed_back_uncharged() {
    const QUICK: u32 = 5_000;
    let store = memory();
    store.enqueue_jobs((0..QUICK + 1_000).map(|number| Numbered { number })).await.unwrap();
    let handler = |job: Numbered, cx: JobContext| async move {
        assert_eq!(cx.attempt(), 1);
        let length = if job.number < QUICK { Duration::from_millis(1) } else { Duration::from_hours(1) };
        tokio::time::sleep(length).await;
        Ok(Outcome::Done)
    };
    let first = Running::start(with_default_queue(&store).handler(handler));
    tokio::time::sleep(Duration::from_secs(10)).await;
    let stats = first.stats.read();
    assert!(stats.released > 100, "it had claimed ahead: {stats:?}");
    assert_eq!(census(&store).await[&JobState::Running], 16, "only what runs is held");
    let second = Running::start(with_default_queue(&store).handler(handler));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(census(&store).await[&JobState::Running], 32);
    first.kill().await;
    second.kill().await;
}

#[tokio::test(start_paused = true)]
async fn delayed_jobs_start_when_they_are_due() {
    let store = memory();
    let worker =
        Running::start(with_default_queue(&store).handler(|_: Numbered, _: JobContext| async { Ok(Outcome::Done) }));
    let enqueued = Instant::now();
    let minute = Duration::from_mins(1);
    let id = store.enqueue_job(Numbered { number: 1 }.with().delay(minute)).await.unwrap().id();
    until_state(&store, id, JobState::Completed).await;
    let took = enqueued.elapsed();
    assert!(took >= minute && took < minute + Duration::from_secs(2), "{took:?}");
    worker.stop().await;
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_jobs_of_three_queues_all_complete_and_their_history_is_reclaimed() {
    let store = memory();
    for queue in ["a", "b", "c"] {
        let jobs = (0..3_334).map(|number| Numbered { number }.with().queue(queue));
        assert_eq!(store.enqueue_jobs(jobs).await.unwrap().len(), 3_334);
    }
    let config = || QueueConfig::default().concurrency(100);
    let builder = worker(&store).queue("a", config()).queue("b", config()).queue("c", config());
    let worker = Running::start(builder.handler(|_: Numbered, _: JobContext| async { Ok(Outcome::Done) }));
    let began = Instant::now();
    while worker.stats.read().completed < 10_002 {
        assert!(began.elapsed() < Duration::from_mins(1), "{:?}", worker.stats.read());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(census(&store).await, HashMap::from([(JobState::Completed, 10_002)]));
    tokio::time::sleep(Duration::from_hours(2)).await;
    assert_eq!(census(&store).await, HashMap::new(), "retention is over, and the rings have been emptied");
    let report = worker.stop().await;
    assert_eq!((report.stats.claimed, report.stats.stale, report.stats.in_flight), (10_002, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn jobs_of_a_killed_worker_are_rescued_and_run_once_more() {
    let store = memory();
    let jobs = store.enqueue_jobs((0..50).map(|number| Numbered { number })).await.unwrap();
    let dying = Running::start(with_default_queue(&store).handler(|_: Numbered, _: JobContext| async {
        std::future::pending::<()>().await;
        Ok(Outcome::Done)
    }));
    let heir = Running::start(
        worker(&store)
            .queue("other", QueueConfig::default())
            .handler(|_: Numbered, _: JobContext| async { Ok(Outcome::Done) }),
    );
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(heir.stats.read().claimed, 0);
    assert_eq!(census(&store).await[&JobState::Running], 16, "those that beat are not rescued");
    dying.kill().await;
    let runs = Arc::new(Mutex::new(HashMap::<u32, u32>::new()));
    let counted = Arc::clone(&runs);
    let next = Running::start(with_default_queue(&store).handler(move |job: Numbered, _: JobContext| {
        *counted.lock().unwrap().entry(job.number).or_default() += 1;
        async { Ok(Outcome::Done) }
    }));
    let died = Instant::now();
    for job in &jobs {
        until_state(&store, job.id(), JobState::Completed).await;
    }
    assert!(died.elapsed() < Duration::from_secs(40), "{:?}", died.elapsed());
    assert!(runs.lock().unwrap().values().all(|&runs| runs == 1));
    next.stop().await;
    heir.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_running_job_that_is_cancelled_hears_of_it() {
    let store = memory();
    let id = store.enqueue_job(Numbered { number: 0 }).await.unwrap().id();
    let told = Arc::new(Mutex::new(None));
    let heard = Arc::clone(&told);
    let worker = Running::start(with_default_queue(&store).handler(move |_: Numbered, cx: JobContext| {
        let heard = Arc::clone(&heard);
        async move {
            cx.until_cancelled().await;
            *heard.lock().unwrap() = cx.cancelled();
            Ok(Outcome::Done)
        }
    }));
    until_state(&store, id, JobState::Running).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    store.cancel(&[id], &ErrorText::new("enough")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(*told.lock().unwrap(), Some(CancelCause::EndedElsewhere));
    let report = worker.stop().await;
    assert_eq!((state(&store, id).await, report.stats.stale), (JobState::Cancelled, 1));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_stops_leaves_its_jobs_to_the_next_one_uncharged() {
    let store = memory();
    store.enqueue_jobs((0..30).map(|number| Numbered { number })).await.unwrap();
    let stubborn = |_: Numbered, _: JobContext| async {
        std::future::pending::<()>().await;
        Ok(Outcome::Done)
    };
    let grace = Duration::from_secs(5);
    let config = QueueConfig::default().prefetch(4);
    let first = Running::start(worker(&store).queue("default", config).shutdown_grace(grace).handler(stubborn));
    tokio::time::sleep(Duration::from_secs(10)).await;
    let report = first.stop().await;
    assert_eq!((report.abandoned.len(), report.returned, report.unconfirmed), (16, 4, 0));
    assert!(report.took <= grace + Duration::from_secs(1));
    let attempts = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&attempts);
    let second = Running::start(with_default_queue(&store).handler(move |_: Numbered, cx: JobContext| {
        seen.lock().unwrap().push(cx.attempt());
        async { Ok(Outcome::Done) }
    }));
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(census(&store).await, HashMap::from([(JobState::Completed, 30)]));
    assert_eq!(*attempts.lock().unwrap(), [1; 30]);
    second.stop().await;
}

/// Starts, stops and kills workers in every order while jobs come in.
#[tokio::test(start_paused = true)]
async fn no_job_is_lost_while_workers_come_and_go() {
    let store = memory();
    let mut enqueued = 0;
    for round in 0_u32..40 {
        let jobs = (0..25).map(|n| Numbered { number: round * 25 + n });
        enqueued += store.enqueue_jobs(jobs).await.unwrap().len() as u64;
        let grace = Duration::from_millis(u64::from(round % 5) * 20);
        let worker = Running::start(with_default_queue(&store).shutdown_grace(grace).handler(
            |job: Numbered, _: JobContext| async move {
                tokio::time::sleep(Duration::from_millis(u64::from(job.number % 50))).await;
                Ok(Outcome::Done)
            },
        ));
        tokio::time::sleep(Duration::from_millis(u64::from(round % 7) * 11)).await;
        match round % 3 {
            0 => worker.kill().await,
            _ => drop(worker.stop().await),
        }
        assert_eq!(census(&store).await.values().sum::<u64>(), enqueued, "round {round}");
    }
    let last =
        Running::start(with_default_queue(&store).handler(|_: Numbered, _: JobContext| async { Ok(Outcome::Done) }));
    let began = Instant::now();
    while census(&store).await.get(&JobState::Completed) != Some(&enqueued) {
        assert!(began.elapsed() < Duration::from_mins(5), "{:?}", census(&store).await);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    last.stop().await;
}

#[derive(Serialize, Deserialize, Job, Clone, PartialEq, Debug)]
#[job(kind = "shape", queue = "default", max_attempts = 1)]
#[serde(tag = "type")]
enum Shape {
    Circle { radius: f64 },
}

/// serde reads such an enum through a buffer, in which numbers must stay numbers.
#[tokio::test(start_paused = true)]
async fn a_job_may_be_a_tagged_enum_with_fractions() {
    let store = memory();
    let job = store.enqueue_job(Shape::Circle { radius: 1.5 }).await.unwrap().id();
    let seen = Arc::new(Mutex::new(Vec::<Shape>::new()));
    let builder =
        with_default_queue(&store).state(Arc::clone(&seen)).handler(|job: Shape, cx: JobContext| async move {
            cx.state::<Mutex<Vec<Shape>>>()?.lock().unwrap().push(job);
            Ok(Outcome::Done)
        });
    let running = Running::start(builder);
    until_state(&store, job, JobState::Completed).await;
    running.stop().await;
    assert_eq!(*seen.lock().unwrap(), [Shape::Circle { radius: 1.5 }]);
}
