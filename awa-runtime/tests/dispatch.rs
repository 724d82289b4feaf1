//! When a dispatcher claims, and when it sleeps.

mod common;

use std::sync::Arc;
use std::time::Duration;

use awa_runtime::core::StoreErrorKind;
use awa_runtime::{JobContext, Outcome, QueueConfig};
use common::fake_store::{FakeWakeups, Reply};
use common::{FakeStore, Numbered, Running, builder, until};
use tokio::time::Instant;

fn with_wakeups(sound_from: u64, announced: bool) -> Arc<FakeStore> {
    FakeStore::with_wakeups(FakeWakeups::new(sound_from, announced))
}

fn start(store: &Arc<FakeStore>, config: QueueConfig) -> Running {
    Running::start(builder(store, config).handler(|_: Numbered, _: JobContext| async { Ok(Outcome::Done) }))
}

fn log(store: &FakeStore) -> Vec<String> {
    store.wakeups.as_ref().unwrap().log()
}

/// The times between one claim and the next.
fn pauses(store: &FakeStore) -> Vec<Duration> {
    let claims = store.calls("claim");
    claims.windows(2).map(|pair| pair[1].0 - pair[0].0).collect()
}

#[tokio::test(start_paused = true)]
async fn a_dispatcher_announces_claims_once_and_then_sleeps_soundly() {
    let store = with_wakeups(0, true);
    let worker = start(&store, QueueConfig::default().poll_interval(Duration::from_secs(100)));
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(log(&store), ["announce 1"]);
    assert_eq!(store.calls("claim").len(), 1, "after the announcement");
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(log(&store), ["announce 1"], "it stands");
    let pauses = pauses(&store);
    let range = Duration::from_secs(75)..=Duration::from_secs(125);
    assert!(!pauses.is_empty() && pauses.iter().all(|pause| range.contains(pause)), "{pauses:?}");
    worker.stop().await;
}

#[tokio::test(start_paused = true)]
async fn until_its_sleep_is_sound_a_dispatcher_looks_again_after_growing_pauses() {
    let store = with_wakeups(7, true);
    let worker = start(&store, QueueConfig::default().poll_interval(Duration::from_secs(100)));
    tokio::time::sleep(Duration::from_secs(5)).await;
    let pauses: Vec<_> = pauses(&store).iter().map(Duration::as_millis).collect();
    assert!(pauses.iter().all(|pause| (1..=501).contains(pause)), "{pauses:?}");
    assert!(pauses[0] <= 3 && *pauses.last().unwrap() >= 250 && (15..=35).contains(&pauses.len()), "{pauses:?}");
    assert_eq!(log(&store), ["announce 1"], "the announcement stands");
    worker.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_wakeup_ends_the_sleep_and_the_next_is_announced_anew() {
    let store = with_wakeups(0, true);
    let worker = start(&store, QueueConfig::default().poll_interval(Duration::from_secs(1_000)));
    tokio::time::sleep(Duration::from_mins(1)).await;
    let put = Instant::now();
    store.put_numbered(1);
    until("the job is done", || store.completed() == 1).await;
    assert!(put.elapsed() < Duration::from_millis(10), "{:?}", put.elapsed());
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(log(&store), ["announce 1", "announce 1"], "it was not up for long enough to take it back");
    assert_eq!(store.calls("claim").len(), 3, "one before the first sleep, one for the job, one that proves the next");
    worker.stop().await;
}

/// Transactions that notify commit one at a time, so that nobody is to notify in the middle of a stream.
#[tokio::test(start_paused = true)]
async fn while_jobs_come_often_a_dispatcher_stays_awake_and_nobody_notifies() {
    let store = with_wakeups(0, true);
    let worker = start(&store, QueueConfig::default().poll_interval(Duration::from_secs(1_000)));
    let announced = || store.wakeups.as_ref().unwrap().announced();
    until("it sleeps", || announced() == 1).await;
    for number in 1..=200 {
        store.put_numbered(1);
        tokio::time::sleep(Duration::from_millis(2)).await;
        assert!(number < 50 || announced() == 0, "after {number} jobs: {:?}", log(&store));
    }
    until("the stream is done", || store.completed() == 200).await;
    until("it sleeps again", || announced() == 1).await;
    worker.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_dispatcher_that_stays_up_takes_its_announcement_back() {
    let store = with_wakeups(0, true);
    let hold = Arc::new(tokio::sync::Semaphore::new(0));
    let held = Arc::clone(&hold);
    let handler = move |_: Numbered, _: JobContext| {
        let held = Arc::clone(&held);
        async move {
            held.acquire().await.unwrap().forget();
            Ok(Outcome::Done)
        }
    };
    let config = QueueConfig::default().concurrency(1).prefetch(0).poll_interval(Duration::from_secs(1_000));
    let worker = Running::start(builder(&store, config).handler(handler));
    until("it sleeps", || store.calls("claim").len() == 1).await;
    store.put_numbered(3);
    until("it has no room", || store.open() == 1).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(log(&store), ["announce 1", "withdraw 1"]);
    hold.add_permits(3);
    until("all are done", || store.completed() == 3).await;
    until("it is announced again", || store.wakeups.as_ref().unwrap().announced() == 1).await;
    worker.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_dispatcher_that_ends_takes_its_announcement_back() {
    let store = with_wakeups(0, true);
    let worker = start(&store, QueueConfig::default());
    until("it sleeps", || !store.calls("claim").is_empty()).await;
    worker.stop().await;
    assert_eq!(log(&store).last().map(String::as_str), Some("withdraw 1"));
}

#[tokio::test(start_paused = true)]
async fn without_a_session_for_announcements_a_queue_is_polled() {
    let store = with_wakeups(0, false);
    let worker = start(&store, QueueConfig::default());
    tokio::time::sleep(Duration::from_mins(1)).await;
    let claims = store.calls("claim").len();
    assert!((45..=85).contains(&claims), "{claims} claims in a minute");
    worker.stop().await;
}

#[tokio::test(start_paused = true)]
async fn dispatchers_without_wakeups_poll_out_of_phase() {
    let store = FakeStore::new();
    let workers: Vec<_> = (0..20).map(|_| start(&store, QueueConfig::default())).collect();
    tokio::time::sleep(Duration::from_mins(1)).await;
    let late: Vec<Instant> = store.calls("claim").into_iter().map(|call| call.0).rev().take(400).collect();
    let busiest = late.iter().map(|at| late.iter().filter(|other| *other == at).count()).max().unwrap();
    assert!(busiest <= 5, "{busiest} of 20 dispatchers polled in the same millisecond");
    for worker in workers {
        worker.kill().await;
    }
}

#[tokio::test(start_paused = true)]
async fn claims_that_fail_are_repeated_with_growing_pauses() {
    for kind in
        [StoreErrorKind::Unavailable, StoreErrorKind::Contended, StoreErrorKind::Denied, StoreErrorKind::Internal]
    {
        let store = FakeStore::new();
        store.put_numbered(1);
        store.fail("claim", Some(kind));
        let worker = start(&store, QueueConfig::default());
        tokio::time::sleep(Duration::from_mins(2)).await;
        let calls = store.calls("claim").len();
        // The pauses grow to five seconds, and each is varied by chance.
        assert!((10..=80).contains(&calls), "{kind:?}: {calls} calls in two minutes");
        store.fail("claim", None);
        let back = Instant::now();
        until("the job is done", || store.completed() == 1).await;
        assert!(back.elapsed() <= Duration::from_secs(10));
        worker.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_hangs_is_given_up_and_a_panic_in_the_store_ends_no_dispatcher() {
    let store = FakeStore::new();
    store.put_numbered(3);
    let (never, mut calls) = (Arc::new(tokio::sync::Notify::new()), 0);
    store.on_claim(Box::new(move |_| {
        calls += 1;
        if calls == 1 { Reply::When(Arc::clone(&never)) } else { Reply::AtOnce }
    }));
    store.panic_once("open_queues");
    store.panic_once("beat");
    let worker = start(&store, QueueConfig::default());
    until("all are done", || store.completed() == 3).await;
    worker.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_always_promises_more_makes_no_hot_loop() {
    let store = FakeStore::new();
    store.on_claim(Box::new(|_| Reply::MoreWithoutAny));
    let worker = start(&store, QueueConfig::default());
    tokio::time::sleep(Duration::from_secs(10)).await;
    let claims = store.calls("claim").len();
    assert!((200..=450).contains(&claims), "{claims} claims in ten seconds");
    worker.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_backlog_is_claimed_without_a_pause() {
    let store = FakeStore::new();
    store.put_numbered(10_000);
    let began = Instant::now();
    let worker = start(&store, QueueConfig::default().concurrency(500).max_batch(500));
    until("all are done", || store.completed() == 10_000).await;
    assert!(began.elapsed() < Duration::from_millis(200), "{:?}", began.elapsed());
    let claims = store.calls("claim");
    assert!(claims.len() <= 60, "{} claims", claims.len());
    worker.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_the_store_has_not_seen_for_the_staleness_time_claims_nothing() {
    let store = FakeStore::new();
    let worker = start(&store, QueueConfig::default());
    until("it claims", || !store.calls("claim").is_empty()).await;
    store.fail("beat", Some(StoreErrorKind::Unavailable));
    tokio::time::sleep(Duration::from_secs(40)).await;
    let calls = store.calls("claim").len();
    store.put_numbered(1);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(store.calls("claim").len(), calls);
    store.fail("beat", None);
    until("the job is done", || store.completed() == 1).await;
    worker.stop().await;
}
