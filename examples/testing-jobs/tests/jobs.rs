//! The application's unit tests: no database, no runtime threads, no waiting.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use awa_core::store::{
    Consumer, Maintainer, MockConsumer, MockMaintainer, MockOperator, MockProducer, MockWakeups, Wakeups, Woken,
};
use awa_core::{AttemptEnd, Enqueued, InstanceId, JobId, JobState, StoreError, StoreErrorKind};
use awa_runtime::testing::{InlineWorker, TestContext, jobs_of};
use awa_runtime::{EnqueueOptions, Outcome, QueueConfig, Worker, new_job};
use awa_store_mem::{ManualClock, MemStore};
use example_testing_jobs::{Office, Post, SendReminder, SendWelcome, send_reminder, send_welcome, sign_up};

/// A post office that writes down what it sends, and is closed for a while.
#[derive(Default)]
struct Notebook {
    sent: Mutex<Vec<String>>,
    closed_for: Mutex<u32>,
}

#[async_trait]
impl Post for Notebook {
    async fn send(&self, to: &str, text: &str) -> Result<(), io::Error> {
        let mut closed_for = self.closed_for.lock().unwrap();
        if *closed_for > 0 {
            *closed_for -= 1;
            return Err(io::Error::other("the office is closed"));
        }
        self.sent.lock().unwrap().push(format!("{to}: {text}"));
        Ok(())
    }
}

fn office(closed_for: u32) -> (Arc<Notebook>, Arc<Office>) {
    let notebook = Arc::new(Notebook { closed_for: Mutex::new(closed_for), ..Notebook::default() });
    (Arc::clone(&notebook), Arc::new(notebook as Office))
}

/// A worker that runs jobs when the test says so, and the clock that the test moves.
fn worker(office: Arc<Office>) -> (MemStore, ManualClock, InlineWorker) {
    let (store, clock) = MemStore::with_manual_clock();
    let worker = Worker::builder(Arc::new(store.clone()))
        .queue("email", QueueConfig::default())
        .state(office)
        .handler(send_welcome)
        .handler(send_reminder)
        .build()
        .unwrap()
        .inline();
    (store, clock, worker)
}

fn welcome() -> SendWelcome {
    SendWelcome { to: "ada@example.org".into() }
}

#[tokio::test]
async fn a_handler_is_called_like_any_function() {
    let (notebook, office) = office(1);
    let attempt = |number| TestContext::of(welcome()).unwrap().state(Arc::clone(&office)).attempt(number).build();
    // The office is closed: the first attempt fails.
    let error = send_welcome(welcome(), attempt(1)).await.unwrap_err();
    assert!(format!("{error:?}").contains("closed"));
    // Then it is open.
    assert!(matches!(send_welcome(welcome(), attempt(2)).await, Ok(Outcome::DoneWith(_))));
    assert_eq!(*notebook.sent.lock().unwrap(), ["ada@example.org: welcome"]);
}

#[tokio::test]
async fn the_last_attempt_gives_up_in_peace() {
    let (_, office) = office(u32::MAX);
    let cx = TestContext::of(welcome()).unwrap().state(office).attempt(3).build();
    assert!(matches!(send_welcome(welcome(), cx).await, Ok(Outcome::Cancel(why)) if why.contains("ada@example.org")));
}

#[tokio::test]
async fn signing_up_enqueues_a_letter_and_a_reminder() {
    let store = MemStore::new();
    sign_up(&store, "ada@example.org").await.unwrap();
    sign_up(&store, "ada@example.org").await.unwrap();
    let letters = jobs_of::<SendWelcome>(&store).await.unwrap();
    assert_eq!(letters.len(), 1, "one letter per address");
    assert_eq!(letters[0].job, welcome());
    assert_eq!((letters[0].view.queue.as_str(), letters[0].view.state), ("email", JobState::Ready));
    let reminders = jobs_of::<SendReminder>(&store).await.unwrap();
    assert_eq!(reminders[0].job.to, "ada@example.org");
    assert_eq!(reminders[0].view.state, JobState::Deferred);
}

#[tokio::test]
async fn time_passes_when_the_test_says_so() {
    let (notebook, office) = office(1);
    let (store, clock, worker) = worker(office);
    sign_up(&store, "ada@example.org").await.unwrap();

    // The office is closed, so the letter waits for another attempt, which comes with time.
    let ran = worker.run_until_idle().await.unwrap();
    assert!(
        matches!(&ran[..], [ran] if matches!(&ran.end, AttemptEnd::Retry { error, .. } if error.as_str().contains("closed")))
    );
    clock.advance(Duration::from_mins(1));
    let ran = worker.run_one().await.unwrap().expect("it is tried again");
    assert!(matches!(ran.end, AttemptEnd::CompleteWith { .. }));
    assert!(worker.run_one().await.unwrap().is_none(), "the reminder has time");

    clock.advance(Duration::from_hours(72));
    assert_eq!(worker.run_until_idle().await.unwrap().len(), 1);
    assert_eq!(*notebook.sent.lock().unwrap(), ["ada@example.org: welcome", "ada@example.org: do you still like us?"]);
    let letters = jobs_of::<SendWelcome>(&store).await.unwrap();
    assert_eq!(letters[0].view.result.as_ref().unwrap().as_str(), "\"sent\"");
}

#[tokio::test]
async fn a_transaction_that_rolls_back_sends_nothing() {
    let (notebook, office) = office(0);
    let (store, _, worker) = worker(office);
    let mut transaction = store.begin().unwrap();
    transaction.enqueue(&[new_job(&welcome(), &EnqueueOptions::default()).unwrap()]).unwrap();
    transaction.rollback().unwrap();
    assert!(worker.run_until_idle().await.unwrap().is_empty());
    assert!(notebook.sent.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_service_meets_a_store_that_fails() {
    let mut jobs = MockProducer::new();
    jobs.expect_enqueue().times(1).returning(|_| Ok(vec![Enqueued::Inserted(JobId(1))]));
    jobs.expect_enqueue()
        .times(1)
        .returning(|_| Err(StoreError::new(StoreErrorKind::Unavailable, "enqueue", "the database is away")));
    let error = sign_up(&jobs, "ada@example.org").await.unwrap_err();
    assert!(error.is_transient(), "{error}");
}

#[tokio::test]
async fn every_trait_of_a_store_has_a_mock() {
    let away = || StoreError::new(StoreErrorKind::Unavailable, "mock", "the database is away");
    let (mut consumer, mut maintainer) = (MockConsumer::new(), MockMaintainer::new());
    let (mut operator, mut wakeups) = (MockOperator::new(), MockWakeups::new());
    consumer.expect_retire().returning(move |_| Err(away()));
    maintainer.expect_tidy().returning(move || Err(away()));
    operator.expect_list().returning(move |_| Err(away()));
    wakeups.expect_wait().returning(|_, _| Ok(Woken::Nothing));
    assert!(consumer.retire(InstanceId(1)).await.unwrap_err().is_transient());
    assert!(maintainer.tidy().await.unwrap_err().is_transient());
    assert!(jobs_of::<SendWelcome>(&operator).await.unwrap_err().to_string().contains("away"));
    assert_eq!(wakeups.wait(InstanceId(1), Duration::ZERO).await.unwrap(), Woken::Nothing);
}
