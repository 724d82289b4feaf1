//! What the conformance suite cannot see: clones, many threads, and what a failed step leaves.

use std::sync::Arc;
use std::time::Duration;

use awa_core::model::RingSizes;
use awa_core::store::{Operator, Producer, Wakeups, Woken};
use awa_core::{InstanceId, JobKind, JsonText, NewJob, QueueName, StoreErrorKind, Timestamp};
use awa_store_mem::{Clock, MemStore, SystemClock};

const ME: InstanceId = InstanceId(1);

fn queue() -> QueueName {
    QueueName::new("email").unwrap()
}

fn job() -> NewJob {
    NewJob::new(queue(), JobKind::new("test").unwrap(), JsonText::new("args", "1").unwrap())
}

#[tokio::test]
async fn clones_share_their_jobs_and_their_clock() {
    let (store, clock) = MemStore::with_manual_clock();
    let clone = store.clone();
    clock.advance(Duration::from_secs(5));
    let id = store.enqueue(&[job()]).await.unwrap()[0].id();
    assert_eq!(clone.get(id).await.unwrap().unwrap().created_at, clock.now());
    let stranger = MemStore::new();
    assert_eq!(stranger.get(id).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn producers_on_many_threads_get_different_ids() {
    let store = MemStore::new();
    let producers: Vec<_> = (0..8)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.enqueue(&[job(), job(), job()]).await.unwrap() })
        })
        .collect();
    let mut ids = Vec::new();
    for producer in producers {
        ids.extend(producer.await.unwrap().iter().map(|answer| answer.id()));
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 24);
    store.model().unwrap().check().unwrap();
}

#[tokio::test]
async fn a_waiting_sleeper_is_woken_by_a_commit_of_another_task() {
    let store = MemStore::new();
    store.announce(ME, &[queue()]).await.unwrap();
    let sleeper = tokio::spawn({
        let store = store.clone();
        async move { store.wait(ME, Duration::from_hours(1)).await.unwrap() }
    });
    tokio::task::yield_now().await;
    let mut transaction = store.begin().unwrap();
    transaction.enqueue(&[job()]).unwrap();
    transaction.commit().unwrap();
    assert_eq!(sleeper.await.unwrap(), Woken::Queues(vec![queue()]));
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_its_time() {
    let store = MemStore::new();
    store.announce(ME, &[queue()]).await.unwrap();
    let before = tokio::time::Instant::now();
    assert_eq!(store.wait(ME, Duration::from_secs(30)).await.unwrap(), Woken::Nothing);
    assert_eq!(before.elapsed().as_secs(), 30);
}

/// A clock that breaks when it is told to.
#[derive(Debug)]
struct BrokenClock(std::sync::atomic::AtomicBool);

impl Clock for BrokenClock {
    fn now(&self) -> Timestamp {
        assert!(!self.0.load(std::sync::atomic::Ordering::SeqCst), "the clock is broken");
        SystemClock.now()
    }
}

#[tokio::test]
async fn a_store_that_broke_off_a_call_says_so_from_then_on() {
    let clock = Arc::new(BrokenClock(false.into()));
    let store = MemStore::with_clock(Arc::<BrokenClock>::clone(&clock), RingSizes::default());
    clock.0.store(true, std::sync::atomic::Ordering::SeqCst);
    let broken = store.clone();
    let call = tokio::spawn(async move { broken.enqueue(&[job()]).await });
    assert!(call.await.unwrap_err().is_panic());
    clock.0.store(false, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(store.census().await.unwrap_err().kind(), StoreErrorKind::Corrupt);
}
