//! Jobs that note their progress and wait for callbacks, in whole workers on the memory store and a paused clock.

mod common;

use std::sync::Arc;
use std::time::Duration;

use awa_runtime::core::attempt::ErrorText;
use awa_runtime::core::model::RingSizes;
use awa_runtime::core::store::Operator;
use awa_runtime::core::{CallbackAnswer, CallbackToken, JobId, JobState, Timestamp};
use awa_runtime::{
    AttemptError, CallbackExt, HandlerResult, Job, JobContext, Outcome, QueueConfig, StoreExt, Worker, WorkerBuilder,
};
use awa_store_mem::{MemStore, TokioClock};
use common::Running;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "long", max_attempts = 3)]
enum Long {
    /// Counts to five, and fails after each step.
    Steps,
    /// Waits for a callback with a number.
    Ask,
    /// Waits for a callback and has asked nobody.
    AskNobody,
    /// Goes on after it was cancelled.
    Stubborn,
    /// Does nothing.
    Plain,
}

/// What a handler tells its test.
#[derive(Debug)]
enum Said {
    Token(CallbackToken),
    Payload(u64),
    Step(u32),
    Refused(AttemptError),
    Ran(JobId),
}

async fn play(job: Long, cx: JobContext) -> HandlerResult {
    let said = cx.state::<UnboundedSender<Said>>()?;
    match job {
        Long::Steps => {
            let step: u32 = cx.progress().await?.unwrap_or(0) + 1;
            said.send(Said::Step(step)).unwrap();
            cx.checkpoint(&step).await?;
            if step < 3 { Err("crashed".into()) } else { Ok(Outcome::Done) }
        }
        Long::Ask => {
            if let Some(number) = cx.callback_payload::<u64>().await? {
                said.send(Said::Payload(number)).unwrap();
                return Ok(Outcome::Done);
            }
            let token = cx.register_callback().await?;
            assert_eq!(cx.register_callback().await?, token, "an attempt has one token");
            said.send(Said::Token(token)).unwrap();
            Ok(Outcome::WaitForCallback { timeout: Duration::from_mins(10) })
        }
        Long::AskNobody => Ok(Outcome::WaitForCallback { timeout: Duration::from_mins(10) }),
        Long::Stubborn => {
            cx.heartbeat().await?;
            said.send(Said::Ran(cx.id())).unwrap();
            cx.until_cancelled().await;
            for refusal in [
                cx.checkpoint("late").await,
                cx.heartbeat().await,
                cx.register_callback().await.map(drop),
                cx.progress::<u32>().await.map(drop),
                cx.callback_payload::<u32>().await.map(drop),
            ] {
                said.send(Said::Refused(refusal.unwrap_err())).unwrap();
            }
            Ok(Outcome::Done)
        }
        Long::Plain => {
            said.send(Said::Ran(cx.id())).unwrap();
            Ok(Outcome::Done)
        }
    }
}

fn memory() -> Arc<MemStore> {
    let clock = TokioClock::starting_at(Timestamp::from_micros(1_700_000_000_000_000));
    Arc::new(MemStore::with_clock(Arc::new(clock), RingSizes::default()))
}

/// A worker with one seat, and what its handlers say.
fn worker(store: &Arc<MemStore>) -> (WorkerBuilder, UnboundedReceiver<Said>) {
    let (said, heard) = unbounded_channel();
    let config = QueueConfig::default().concurrency(1).prefetch(0);
    let builder = Worker::builder(store.clone()).own_threads(0).queue("default", config);
    (builder.state(Arc::new(said)).handler(play), heard)
}

async fn until_state(store: &MemStore, job: JobId, wanted: JobState) {
    let began = Instant::now();
    loop {
        let state = store.get(job).await.unwrap().expect("the job is there").state;
        if state == wanted {
            return;
        }
        assert!(began.elapsed() < Duration::from_hours(24), "{job} is {state}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn token(heard: &mut UnboundedReceiver<Said>) -> CallbackToken {
    match heard.recv().await {
        Some(Said::Token(token)) => token,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_goes_on_from_its_checkpoint() {
    let store = memory();
    let (builder, mut heard) = worker(&store);
    let running = Running::start(builder);
    let id = store.enqueue_job(Long::Steps).await.unwrap().id();
    for expected in 1..=3 {
        assert!(matches!(heard.recv().await, Some(Said::Step(step)) if step == expected), "step {expected}");
    }
    until_state(&store, id, JobState::Completed).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_parked_job_holds_no_seat_and_runs_on_when_called_back() {
    let store = memory();
    let (builder, mut heard) = worker(&store);
    let running = Running::start(builder);
    let id = store.enqueue_job(Long::Ask).await.unwrap().id();
    let token = token(&mut heard).await;
    until_state(&store, id, JobState::Waiting).await;
    let other = store.enqueue_job(Long::Plain).await.unwrap().id();
    assert!(matches!(heard.recv().await, Some(Said::Ran(ran)) if ran == other), "the only seat is free");
    assert_eq!(store.call_back(token, &42).await.unwrap(), CallbackAnswer::Resumed);
    assert!(matches!(heard.recv().await, Some(Said::Payload(42))));
    until_state(&store, id, JobState::Completed).await;
    assert_eq!(store.get(id).await.unwrap().unwrap().attempt, 1, "waiting is not charged");
    assert_eq!(store.call_back(token, &43).await.unwrap(), CallbackAnswer::Unknown);
    let report = running.stop().await;
    assert_eq!((report.stats.parked, report.stats.completed, report.stats.in_flight), (1, 2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_never_called_back_uses_up_its_attempts() {
    let store = memory();
    let (builder, mut heard) = worker(&store);
    let running = Running::start(builder);
    let job = Long::Ask.with().max_attempts(2);
    let id = store.enqueue_job(job).await.unwrap().id();
    let tokens = [token(&mut heard).await, token(&mut heard).await];
    assert_ne!(tokens[0], tokens[1]);
    assert_eq!(store.call_back(tokens[0], &1).await.unwrap(), CallbackAnswer::Unknown);
    until_state(&store, id, JobState::Dead).await;
    assert_eq!(store.call_back(tokens[1], &1).await.unwrap(), CallbackAnswer::AttemptOver);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_waits_for_nobody_fails_and_says_why() {
    let store = memory();
    let (builder, _heard) = worker(&store);
    let running = Running::start(builder);
    let id = store.enqueue_job(Long::AskNobody).await.unwrap().id();
    until_state(&store, id, JobState::Dead).await;
    let error = store.get(id).await.unwrap().unwrap().error.unwrap();
    assert!(error.as_str().contains("register_callback"), "{error}");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_attempt_has_ended_is_told_so_by_all_it_asks() {
    let store = memory();
    let (builder, mut heard) = worker(&store);
    let running = Running::start(builder);
    let id = store.enqueue_job(Long::Stubborn).await.unwrap().id();
    assert!(matches!(heard.recv().await, Some(Said::Ran(ran)) if ran == id));
    store.cancel(&[id], &ErrorText::new("no longer wanted")).await.unwrap();
    for operation in ["checkpoint", "heartbeat", "register_callback", "progress", "callback_payload"] {
        let Some(Said::Refused(refusal)) = heard.recv().await else { panic!("{operation} was not refused") };
        assert!(matches!(refusal, AttemptError::Over { job, attempt: 1, .. } if job == id), "{refusal:?}");
        let expected =
            format!("{operation} of job {id} refused: attempt 1 has ended; stop and return from the handler");
        assert_eq!(refusal.to_string(), expected);
    }
    until_state(&store, id, JobState::Cancelled).await;
    running.stop().await;
}
