//! What the sqlx store does with its connections between two calls: it keeps one that has just answered, and holds none back from the
//! program that shares the pool.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use awa_core::store::Producer;
use awa_store_sqlx::SqlxStore;
use awa_tests::stage::{Stage, run};
use sqlx::postgres::PgPoolOptions;
use tokio::time::{sleep, timeout};

const LONG: Duration = Duration::from_mins(1);

async fn store_of(stage: &Stage, connections: u32) -> SqlxStore {
    stage.fresh.another_pool(|options| options.max_connections(connections)).await
}

/// Waits until the pool has so many connections at rest.
async fn until_idle(store: &SqlxStore, connections: usize) {
    let began = Instant::now();
    while store.pool().num_idle() != connections {
        assert!(began.elapsed() < LONG, "{} at rest instead of {connections}", store.pool().num_idle());
        sleep(Duration::from_millis(1)).await;
    }
}

/// A store on a pool that counts how often a connection comes back to it.
async fn counting(stage: &Stage, connections: u32) -> (SqlxStore, Arc<AtomicU32>) {
    let returned = Arc::new(AtomicU32::new(0));
    let pool = PgPoolOptions::new().max_connections(connections).test_before_acquire(false).after_release({
        let returned = Arc::clone(&returned);
        move |_, _| {
            returned.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { Ok(true) })
        }
    });
    let store = SqlxStore::from_pool(pool.connect(&stage.fresh.database.url()).await.unwrap());
    until_idle(&store, 1).await;
    returned.store(0, Ordering::SeqCst);
    (store, returned)
}

#[tokio::test]
async fn a_connection_that_has_answered_is_kept_for_the_next_call_and_goes_back_when_none_comes() {
    let stage = Stage::new().await;
    let (store, returned) = counting(&stage, 3).await;
    let began = Instant::now();
    for _ in 0..100 {
        store.enqueue(&stage.jobs(2)).await.unwrap();
    }
    // Nothing runs between two of these calls, so that only its age sends a connection back.
    let most = began.elapsed().as_secs() / 5;
    let times = u64::from(returned.load(Ordering::SeqCst));
    assert!(times <= most, "{times} times back in {:?}", began.elapsed());
    assert_eq!(store.pool().size(), 1, "one is enough for calls behind each other");
    until_idle(&store, 1).await;
}

/// Somebody may be waiting for it at the pool.
#[tokio::test]
async fn the_last_connection_of_a_pool_is_not_kept() {
    const CALLS: u32 = 20;
    let stage = Stage::new().await;
    for others in [0, 1] {
        let (store, returned) = counting(&stage, 1 + others).await;
        let _held = if others == 1 { Some(store.pool().acquire().await.unwrap()) } else { None };
        for _ in 0..CALLS {
            store.enqueue(&stage.jobs(2)).await.unwrap();
        }
        until_idle(&store, 1).await;
        assert_eq!(returned.load(Ordering::SeqCst), CALLS, "each call gives it back, beside {others} others");
    }
}

/// Calls without a pause never starve whoever shares the pool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_shares_the_pool_gets_a_connection_beside_calls_without_a_pause() {
    let stage = Stage::new().await;
    let store = store_of(&stage, 2).await;
    let jobs = stage.jobs(2);
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (store, jobs) = (store.clone(), jobs.clone());
        callers.spawn(async move {
            loop {
                store.enqueue(&jobs).await.unwrap();
            }
        });
    }
    for _ in 0..20 {
        let mut transaction = timeout(LONG, store.pool().begin()).await.expect("a connection comes").unwrap();
        store.enqueue_in(&mut transaction, &jobs).await.unwrap();
        transaction.commit().await.unwrap();
    }
    callers.shutdown().await;
}

/// A call that was given up leaves its connection in the middle of an answer, and one that failed may have lost it.
#[tokio::test]
async fn who_gave_up_or_failed_leaves_the_connection_to_the_pool() {
    let stage = Stage::new().await;
    let store = store_of(&stage, 3).await;
    let mut other = stage.connect().await;
    run(&mut other, "BEGIN; LOCK TABLE awa.ready_entries IN ACCESS EXCLUSIVE MODE").await;
    let jobs = stage.jobs(2);
    assert!(timeout(Duration::from_millis(50), store.enqueue(&jobs)).await.is_err(), "it waits for the lock");
    run(&mut other, "ROLLBACK").await;
    let stored = store.enqueue(&jobs).await.unwrap();
    assert_eq!(stored.len(), 2, "the answer belongs to this call");
    let of_this_database = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
        WHERE application_name = 'awa' AND datname = current_database()";
    run(&mut other, of_this_database).await;
    // Those at rest are found broken, each once; then it works.
    let began = Instant::now();
    while store.enqueue(&jobs).await.is_err() {
        assert!(began.elapsed() < LONG);
    }
}

#[tokio::test]
async fn a_pool_that_is_closed_waits_for_no_connection_that_is_kept() {
    let stage = Stage::new().await;
    let store = store_of(&stage, 3).await;
    store.enqueue(&stage.jobs(2)).await.unwrap();
    timeout(LONG, store.pool().close()).await.expect("nothing is held back");
    let refused = store.enqueue(&stage.jobs(2)).await.unwrap_err();
    assert!(refused.to_string().contains("closed"), "{refused}");
}

/// The store outlives the runtime it was used in.
#[test]
fn a_store_may_be_dropped_outside_of_a_runtime() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let first = runtime();
    let (stage, store) = first.block_on(async {
        let stage = Stage::new().await;
        let store = store_of(&stage, 3).await;
        store.enqueue(&stage.jobs(2)).await.unwrap();
        (stage, store)
    });
    drop(first);
    drop(store);
    let second = runtime();
    second.block_on(async {
        let store = store_of(&stage, 3).await;
        store.enqueue(&stage.jobs(2)).await.unwrap();
    });
    second.block_on(async move { drop(stage) });
}
