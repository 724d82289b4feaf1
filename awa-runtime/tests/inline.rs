//! A worker that runs on the task of a test treats jobs as any worker does.
#![cfg(feature = "testing")]

use std::sync::Arc;
use std::time::Duration;

use awa_core::store::Operator as _;
use awa_core::{AttemptEnd, ClosureAnswer, JobState, StoreErrorKind};
use awa_runtime::testing::{InlineWorker, TestContext, jobs_of};
use awa_runtime::{CancelCause, HandlerResult, Job, JobContext, Outcome, QueueConfig, StoreExt, Worker};
use awa_store_mem::MemStore;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job, Debug, Clone, PartialEq, Eq)]
#[job(kind = "do", queue = "tests", max_attempts = 2)]
struct Do {
    what: String,
}

fn job(what: &str) -> Do {
    Do { what: what.into() }
}

/// Does what a job says.
async fn obey(job: Do, cx: JobContext) -> HandlerResult {
    let store = cx.state::<MemStore>()?;
    match &*job.what {
        "panic" => panic!("as told"),
        "cancel me" => {
            store.cancel(&[cx.id()], &awa_core::attempt::ErrorText::new("by itself")).await?;
            Ok(Outcome::Done)
        }
        "go on" => {
            store.enqueue_job(job).await?;
            Ok(Outcome::Done)
        }
        "twice" => {
            store.enqueue_job(self::job("once")).await?;
            Ok(Outcome::done_with("again"))
        }
        _ => Ok(Outcome::Done),
    }
}

fn worker(store: &MemStore) -> InlineWorker {
    Worker::builder(Arc::new(store.clone()))
        .queue("tests", QueueConfig::default())
        .state(Arc::new(store.clone()))
        .handler(obey)
        .build()
        .unwrap()
        .inline()
}

#[tokio::test]
async fn a_panic_fails_the_attempt_and_the_budget_ends_the_job() {
    let (store, clock) = MemStore::with_manual_clock();
    store.enqueue_job(job("panic")).await.unwrap();
    let worker = worker(&store);
    let ran = worker.run_until_idle().await.unwrap();
    let [first] = &ran[..] else { panic!("{ran:?}") };
    assert!(matches!(&first.end, AttemptEnd::Retry { error, .. } if error.as_str().contains("as told")), "{first:?}");
    clock.advance(Duration::from_hours(1));
    let second = worker.run_one().await.unwrap().expect("its time has come");
    assert!(matches!(second.end, AttemptEnd::Fail { .. }), "{second:?}");
    assert_eq!(jobs_of::<Do>(&store).await.unwrap()[0].view.state, JobState::Dead);
}

#[tokio::test]
async fn what_a_handler_enqueues_is_run_in_its_turn() {
    let store = MemStore::new();
    store.enqueue_jobs([job("twice"), job("other")]).await.unwrap();
    let ran = worker(&store).run_until_idle().await.unwrap();
    let done: Vec<Do> = ran.iter().map(|ran| ran.job.args.decode().unwrap()).collect();
    assert_eq!(done, [job("twice"), job("other"), job("once")]);
    let stored = jobs_of::<Do>(&store).await.unwrap();
    assert_eq!(stored[0].view.result.as_ref().unwrap().as_str(), "\"again\"");
}

#[tokio::test]
async fn the_end_of_a_job_that_was_cancelled_meanwhile_is_stale() {
    let store = MemStore::new();
    store.enqueue_job(job("cancel me")).await.unwrap();
    let ran = worker(&store).run_one().await.unwrap().unwrap();
    assert_eq!((ran.end, ran.answer), (AttemptEnd::Complete, ClosureAnswer::Stale));
}

#[tokio::test]
async fn jobs_without_end_are_refused_instead_of_run_for_ever() {
    let store = MemStore::new();
    store.enqueue_job(job("go on")).await.unwrap();
    let refused = worker(&store).run_until_idle().await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Refused, "{refused}");
}

#[test]
fn a_context_is_what_the_test_says() {
    let told = job("x").with().metadata(&"note").priority(1);
    let cx = TestContext::of(told).unwrap().attempt(2).id(7.into()).cancelled(CancelCause::Shutdown).build();
    assert_eq!((cx.id().get(), cx.attempt(), cx.is_last_attempt()), (7, 2, true));
    assert_eq!((cx.queue().as_str(), cx.kind().as_str()), ("tests", "do"));
    assert_eq!(cx.metadata::<String>().unwrap().as_deref(), Some("note"));
    assert_eq!(cx.cancelled(), Some(CancelCause::Shutdown));
    assert!(cx.cancellation().is_cancelled());
    assert!(TestContext::of(job("\0")).is_err(), "what could not be enqueued cannot be run");
}
