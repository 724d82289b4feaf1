//! The store at work, and after a restart.

use std::sync::Arc;

use awa_core::JobState;
use awa_runtime::testing::jobs_of;
use awa_runtime::{Job, JobContext, Outcome, QueueConfig, Store, StoreExt, Worker};
use example_sqlite_store::SqliteStore;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "add", queue = "sums")]
struct Add {
    a: i64,
    b: i64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_runs_its_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jobs.db");
    let store = Arc::new(SqliteStore::open(&file).unwrap());
    store.enqueue_jobs((0..100).map(|n| Add { a: n, b: 1 })).await.unwrap();

    let worker = Worker::builder(store)
        .queue("sums", QueueConfig::default())
        .handler(|job: Add, _: JobContext| async move { Ok(Outcome::done_with(&(job.a + job.b))) })
        .build()
        .unwrap();
    let stats = worker.stats();
    let all_done = async move {
        while stats.read().completed < 100 {
            tokio::task::yield_now().await;
        }
    };
    worker.run_until(all_done).await.unwrap();

    // What was acknowledged is in the file (C1).
    let reopened = SqliteStore::open(&file).unwrap();
    let jobs = jobs_of::<Add>(&reopened).await.unwrap();
    assert!(jobs.iter().all(|stored| stored.view.state == JobState::Completed));
    assert_eq!(jobs[41].view.result.as_ref().unwrap().as_str(), "42");
    assert!(reopened.is_durable());
}
