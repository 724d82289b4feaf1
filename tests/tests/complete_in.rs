//! Completing an attempt in a transaction of the application's, together with its rows and with what follows.

use std::sync::Arc;
use std::time::Duration;

use awa_core::attempt::{ErrorText, Receipt};
use awa_core::retry::RetryPolicy;
use awa_core::ring::RingKind;
use awa_core::store::{ClaimRequest, ClaimShape, Consumer, Maintainer, Operator, Producer};
use awa_core::{
    AttemptEnd, ClaimedJob, ClosureAnswer, JobState, JsonText, NotCompleted, StoreErrorKind, Unique, UniqueBy,
};
use awa_runtime::{IntoNewJob, Job, JobContext, Outcome, QueueConfig, StoreExt, Worker};
use awa_store_diesel::{Clock, RingSizes};
use awa_tests::diesel_store::FreshDieselStore;
use awa_tests::stage::{RESCUER, Stage, run, steady_retry};
use diesel::Connection as _;
use diesel_async::{AsyncConnection as _, RunQueryDsl as _};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

const NOTE: &str = "INSERT INTO notes (text) VALUES ('done')";

/// A stage with a table of the application's.
async fn with_notes() -> Stage {
    let stage = Stage::with_manual_clock().await;
    run(&mut stage.connect().await, "CREATE TABLE notes (text text NOT NULL)").await;
    stage
}

async fn notes(stage: &Stage) -> i64 {
    stage.number("SELECT count(*) FROM notes").await
}

async fn begun(stage: &Stage, how: &str) -> PgConnection {
    let mut user = stage.connect().await;
    run(&mut user, how).await;
    user
}

async fn complete(stage: &Stage, user: &mut PgConnection, job: &ClaimedJob) -> Result<(), NotCompleted> {
    stage.store().complete_in(user, &job.receipt).await
}

/// Open attempts of every kind: of a batch of one and of many, recorded one by one, and as a lease.
async fn of_every_shape(stage: &Stage) -> Vec<(&'static str, ClaimedJob)> {
    let claim = async |max_jobs, shape| {
        let request = ClaimRequest { shape, ..stage.request(max_jobs) };
        stage.store().claim(&request).await.unwrap().jobs.swap_remove(0)
    };
    stage.enqueue(5).await;
    let handed_back = claim(1, ClaimShape::Compact).await;
    stage.end(&[handed_back], AttemptEnd::Release { delay: Duration::ZERO }).await;
    vec![
        ("lease", claim(1, ClaimShape::Compact).await),
        ("single", claim(1, ClaimShape::Compact).await),
        ("row-local", claim(1, ClaimShape::RowLocal).await),
        ("batch", claim(2, ClaimShape::Compact).await),
    ]
}

#[tokio::test]
async fn rows_follow_ups_and_the_completion_exist_from_one_commit_on() {
    for with_result in [false, true] {
        let stage = with_notes().await;
        for (expected, (shape, job)) in (1..).zip(of_every_shape(&stage).await) {
            let mut user = begun(&stage, "BEGIN").await;
            run(&mut user, NOTE).await;
            let next = stage.enqueue_in(&mut user, 1).await[0];
            if with_result {
                let result = JsonText::new("result", "[1]").unwrap();
                stage.store().complete_with_in(&mut user, &job.receipt, &result).await.unwrap();
            } else {
                complete(&stage, &mut user, &job).await.unwrap();
            }
            assert_eq!(stage.place(job.receipt.job).await, "running", "{shape}");
            assert_eq!(notes(&stage).await, expected - 1);
            assert_eq!(stage.store().get(next).await.unwrap(), None);
            run(&mut user, "COMMIT").await;
            let view = stage.store().get(job.receipt.job).await.unwrap().unwrap();
            assert_eq!((view.state, view.result.is_some()), (JobState::Completed, with_result), "{shape}");
            assert_eq!((stage.place(next).await.as_str(), notes(&stage).await), ("ready", expected));
            assert_eq!(stage.end(&[job], AttemptEnd::Complete).await, [ClosureAnswer::Stale], "{shape}");
        }
    }
}

#[tokio::test]
async fn a_rollback_leaves_the_attempt_open_and_nothing_else() {
    let stage = with_notes().await;
    for (shape, job) in of_every_shape(&stage).await {
        for how_it_ends in ["ROLLBACK", "a lost connection"] {
            let mut user = begun(&stage, "BEGIN").await;
            run(&mut user, NOTE).await;
            let next = stage.enqueue_in(&mut user, 1).await[0];
            complete(&stage, &mut user, &job).await.unwrap();
            if how_it_ends == "ROLLBACK" {
                run(&mut user, "ROLLBACK").await;
            } else {
                let gone = awa_tests::stage::pid(&mut user).await;
                stage.number(&format!("SELECT pg_terminate_backend({gone}, 5000)::int::bigint")).await;
            }
            assert_eq!(stage.place(job.receipt.job).await, "running", "{shape}, {how_it_ends}");
            assert_eq!((stage.store().get(next).await.unwrap(), notes(&stage).await), (None, 0));
        }
        assert_eq!(stage.end(&[job], AttemptEnd::Complete).await, [ClosureAnswer::Closed], "{shape}");
    }
}

/// Review finding: a handler whose attempt was taken from it must not be able to commit as if it had it.
#[tokio::test]
async fn an_attempt_that_ended_elsewhere_is_refused_and_the_rows_go_with_it() {
    let stage = with_notes().await;
    for (shape, job) in of_every_shape(&stage).await {
        let (id, receipt) = (job.receipt.job, job.receipt);
        stage.store().cancel(&[id], &ErrorText::new("withdrawn")).await.unwrap();
        let mut user = begun(&stage, "BEGIN").await;
        run(&mut user, NOTE).await;
        let refused = complete(&stage, &mut user, &job).await;
        assert!(matches!(refused, Err(NotCompleted::Stale)), "{shape}: {refused:?}");
        let result = JsonText::new("result", "1").unwrap();
        let refused = stage.store().complete_with_in(&mut user, &receipt, &result).await;
        assert!(matches!(refused, Err(NotCompleted::Stale)), "{shape}: {refused:?}");
        run(&mut user, "ROLLBACK").await;
        assert_eq!((stage.place(id).await.as_str(), notes(&stage).await), ("cancelled", 0));
    }
    let jobs = stage.enqueue(1).await;
    let job = stage.claim(1).await.swap_remove(0);
    assert_eq!(job.receipt.job, jobs[0]);
    let mut user = begun(&stage, "BEGIN").await;
    complete(&stage, &mut user, &job).await.unwrap();
    let twice = complete(&stage, &mut user, &job).await;
    assert!(matches!(twice, Err(NotCompleted::Stale)), "{twice:?}");
    let forged = Receipt { nonce: awa_core::Nonce(job.receipt.nonce.0 + 1), ..job.receipt };
    assert!(matches!(stage.store().complete_in(&mut user, &forged).await, Err(NotCompleted::Stale)));
    run(&mut user, "COMMIT").await;
    assert_eq!(stage.place(jobs[0]).await, "completed");
}

#[tokio::test]
async fn while_it_is_open_nobody_else_ends_the_attempt_and_everything_else_goes_on() {
    let stage = with_notes().await;
    stage.enqueue(3).await;
    let jobs = stage.claim(2).await;
    let mut user = begun(&stage, "BEGIN").await;
    complete(&stage, &mut user, &jobs[0]).await.unwrap();

    let mut other = begun(&stage, "BEGIN").await;
    let refused = complete(&stage, &mut other, &jobs[0]).await;
    assert!(matches!(refused, Err(NotCompleted::Contended)), "{refused:?}");
    run(&mut other, "ROLLBACK").await;
    let released = AttemptEnd::Release { delay: Duration::ZERO };
    assert_eq!(stage.end(&jobs[..1], released).await, [ClosureAnswer::Contended]);
    assert_eq!(stage.store().are_open(&[jobs[0].receipt]).await.unwrap(), [true]);

    // Another member of its batch, the queue and the rings are not kept.
    stage.complete(&jobs[1..]).await;
    stage.complete(&stage.claim(1).await).await;
    stage.rotate(RingKind::Queue).await;
    stage.rotate(RingKind::Claim).await;
    stage.outlive().await;
    let rescued = stage.store().rescue(&Stage::rescue_request(), &steady_retry()).await.unwrap();
    assert_eq!((rescued.attempts, rescued.contended), (vec![], 1));
    run(&mut user, "ROLLBACK").await;
    let rescued = stage.store().rescue(&Stage::rescue_request(), &steady_retry()).await.unwrap();
    assert_eq!(rescued.attempts.len(), 1, "from then on it is rescued like any other");
    assert_ne!(RESCUER, awa_tests::stage::ME);
}

/// An open completion keeps its slots from being reclaimed, and a snapshot from before the claim proves nothing.
#[tokio::test]
async fn its_slots_stay_and_an_old_snapshot_is_told_to_run_again() {
    let stage = with_notes().await;
    let mut old = begun(&stage, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM notes").await;
    stage.enqueue(1).await;
    let job = stage.claim(1).await.swap_remove(0);
    let refused = complete(&stage, &mut old, &job).await;
    assert!(matches!(refused, Err(NotCompleted::Contended)), "{refused:?}");
    run(&mut old, "ROLLBACK").await;
    let mut fresh = begun(&stage, "BEGIN ISOLATION LEVEL SERIALIZABLE").await;
    complete(&stage, &mut fresh, &job).await.unwrap();
    stage.rotate(RingKind::Queue).await;
    stage.rotate(RingKind::Claim).await;
    stage.drain().await;
    for ring in [RingKind::Queue, RingKind::Claim] {
        assert!(stage.prune(ring).await.iter().all(|report| report.kept.is_some()), "{ring}");
    }
    run(&mut fresh, "COMMIT").await;
    assert_eq!(stage.place(job.receipt.job).await, "completed");
    for ring in [RingKind::Claim, RingKind::Queue] {
        assert!(stage.prune(ring).await.iter().all(|report| report.kept.is_none()), "{ring}");
    }
}

#[tokio::test]
async fn the_unique_key_is_free_from_the_commit_on() {
    let stage = with_notes().await;
    let key = UniqueBy::text("one").key_of(&stage.job("{}")).unwrap();
    let unique = stage.job("{}").with_unique(Unique::new(key));
    let first = stage.store().enqueue(std::slice::from_ref(&unique)).await.unwrap()[0].id();
    let job = stage.claim(1).await.swap_remove(0);
    let mut user = begun(&stage, "BEGIN").await;
    complete(&stage, &mut user, &job).await.unwrap();
    // Within the transaction as well: the next of its kind can be enqueued with the completion.
    let next = stage.store().enqueue_in(&mut user, std::slice::from_ref(&unique)).await.unwrap()[0];
    assert!(next.is_inserted());
    run(&mut user, "COMMIT").await;
    assert_eq!((stage.place(first).await, stage.place(next.id()).await), ("completed".into(), "ready".into()));
    assert!(!stage.store().enqueue(&[unique]).await.unwrap()[0].is_inserted());
}

#[tokio::test]
async fn a_server_error_is_told_as_one() {
    let stage = with_notes().await;
    stage.enqueue(1).await;
    let job = stage.claim(1).await.swap_remove(0);
    let mut user = begun(&stage, "BEGIN").await;
    awa_tests::stage::try_run(&mut user, "SELECT 1/0").await.unwrap_err();
    let refused = complete(&stage, &mut user, &job).await;
    let Err(NotCompleted::Store(error)) = refused else { panic!("{refused:?}") };
    assert_eq!((error.operation(), error.kind()), ("complete_in", StoreErrorKind::Refused), "{error}");
}

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "step", queue = "steps", max_attempts = 2)]
struct Step {
    left: u32,
    commits: bool,
}

/// A worker's handlers: each step writes a row, enqueues the next and ends, all in one transaction. One that only says so fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_completes_in_its_own_transaction() {
    let stage = Stage::new().await;
    run(&mut stage.connect().await, "CREATE TABLE notes (text text NOT NULL)").await;
    // Connections that a worker has opened end with it.
    let store = awa_store_sqlx::SqlxStore::connect(&stage.fresh.database.url()).await.unwrap();
    let store = Arc::new(store);
    let done = Arc::new(tokio::sync::Notify::new());
    let worker = Worker::builder(store.clone())
        .queue("steps", QueueConfig::default().concurrency(4))
        // The one that fails is not tried again while this runs.
        .retry(RetryPolicy::exponential(Duration::from_hours(1), Duration::from_hours(1)).unwrap())
        .state(Arc::clone(&store))
        .state(Arc::clone(&done))
        .handler(|step: Step, cx: JobContext| async move {
            let store = cx.state::<awa_store_sqlx::SqlxStore>()?;
            let mut tx = store.pool().begin().await?;
            sqlx::query(NOTE).execute(&mut *tx).await?;
            if step.left > 0 {
                let next = Step { left: step.left - 1, ..step }.into_new_job()?;
                store.enqueue_in(&mut tx, &[next]).await?;
            }
            store.complete_in(&mut tx, &cx.receipt()).await?;
            if step.commits {
                tx.commit().await?;
            } else {
                tx.rollback().await?;
            }
            if step.left == 0 {
                cx.state::<tokio::sync::Notify>()?.notify_one();
            }
            Ok(Outcome::Ended)
        })
        .build()
        .unwrap();
    let broken = store.enqueue_job(Step { left: 1, commits: false }).await.unwrap().id();
    store.enqueue_job(Step { left: 9, commits: true }).await.unwrap();
    let report = worker.run_until(async { done.notified().await }).await.unwrap();
    assert_eq!((report.stats.completed, report.stats.stale, report.stats.retried), (10, 0, 1), "{report:?}");
    assert_eq!(notes(&stage).await, 10);
    let broken = stage.store().get(broken).await.unwrap().unwrap();
    let error = broken.error.as_ref().map(|error| error.as_str().to_owned()).unwrap_or_default();
    assert!(error.contains("none has committed"), "{broken:?}");
    assert_eq!(broken.state, JobState::Deferred);
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// A claimed job of a diesel store.
async fn claimed(fresh: &FreshDieselStore) -> ClaimedJob {
    let queue = awa_core::QueueName::new("diesel").unwrap();
    fresh.store.open_queue(&queue).await.unwrap();
    let job = awa_core::NewJob::new(
        queue.clone(),
        awa_core::JobKind::new("test").unwrap(),
        JsonText::new("args", "{}").unwrap(),
    );
    fresh.store.enqueue(&[job]).await.unwrap();
    let request = ClaimRequest {
        queue,
        instance: awa_tests::stage::ME,
        nonce: awa_core::Nonce(1),
        max_jobs: awa_core::store::BatchLimit::new(1).unwrap(),
        max_bytes: 1 << 20,
        deadline: None,
        aging: None,
        shape: ClaimShape::Compact,
    };
    fresh.store.claim(&request).await.unwrap().jobs.swap_remove(0)
}

async fn with_notes_for_diesel() -> FreshDieselStore {
    let fresh = FreshDieselStore::new(RingSizes::default(), Clock::Server).await;
    let mut connection = fresh.store.pool().get().await.unwrap();
    diesel::sql_query("CREATE TABLE notes (text text NOT NULL)").execute(&mut connection).await.unwrap();
    drop(connection);
    fresh
}

async fn state(fresh: &FreshDieselStore, job: &ClaimedJob) -> JobState {
    fresh.store.get(job.receipt.job).await.unwrap().unwrap().state
}

/// What `?` does with the error of a closure is what rolls its rows back.
#[tokio::test]
async fn with_diesel_the_closure_of_a_transaction_completes_or_undoes_everything() {
    let fresh = with_notes_for_diesel().await;
    let (store, job) = (&fresh.store, claimed(&fresh).await);
    let next = job_like(&job);
    let mut connection = store.pool().get().await.unwrap();
    let end = async |connection: &mut diesel_async::AsyncPgConnection, fails: bool| {
        diesel::sql_query(NOTE).execute(connection).await?;
        store.enqueue_in(connection, std::slice::from_ref(&next)).await?;
        let result = JsonText::new("result", "[1]")?;
        store.complete_with_in(connection, &job.receipt, &result).await?;
        if fails { Err(AnyError::from("changed my mind")) } else { Ok(()) }
    };
    connection.transaction(async |connection| end(connection, true).await).await.unwrap_err();
    assert_eq!(state(&fresh, &job).await, JobState::Running);
    connection.transaction(async |connection| end(connection, false).await).await.unwrap();
    assert_eq!(state(&fresh, &job).await, JobState::Completed);
    let stale = connection.transaction(async |connection| end(connection, false).await).await.unwrap_err();
    assert!(matches!(stale.downcast_ref(), Some(NotCompleted::Stale)), "{stale}");
    let counted = diesel::sql_query(NOTE).execute(&mut connection).await.unwrap();
    assert_eq!(counted, 1);
    assert_eq!(diesel::sql_query("DELETE FROM notes").execute(&mut connection).await.unwrap(), 2);
    let ready = store.census().await.unwrap();
    assert_eq!(ready.iter().filter(|count| count.state == JobState::Ready).map(|count| count.jobs).sum::<u64>(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocking_transactions_complete_attempts_as_well() {
    let fresh = with_notes_for_diesel().await;
    let job = claimed(&fresh).await;
    let (producer, receipt) = (fresh.store.blocking(), job.receipt);
    let mut connection = fresh.connect_blocking().await;
    let outcome = tokio::task::spawn_blocking(move || {
        let mut end = || {
            connection.transaction(|connection| {
                diesel::RunQueryDsl::execute(diesel::sql_query(NOTE), connection)?;
                producer.complete_in(connection, &receipt, None)?;
                Ok::<_, AnyError>(())
            })
        };
        (end(), end())
    });
    let (first, second) = outcome.await.unwrap();
    first.unwrap();
    assert!(matches!(second.unwrap_err().downcast_ref(), Some(NotCompleted::Stale)));
    assert_eq!(state(&fresh, &job).await, JobState::Completed);
    let mut connection = fresh.store.pool().get().await.unwrap();
    assert_eq!(diesel::sql_query("DELETE FROM notes").execute(&mut connection).await.unwrap(), 1);
}

fn job_like(job: &ClaimedJob) -> awa_core::NewJob {
    awa_core::NewJob::new(job.queue.clone(), job.kind.clone(), job.args.clone())
}
