//! Many queues in one process: what they cost while they are idle, and that no wake-up is lost.

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use awa_runtime::core::{JobId, QueueName, StoreErrorKind};
use awa_runtime::{JobContext, Outcome, QueueConfig, Worker};
use common::fake_store::{FakeWakeups, Reply};
use common::{FakeStore, Numbered, Running, until};
use tokio::time::{Instant, sleep};

/// A poll interval that never ends in a test: what is found is found by a wake-up.
const NEVER: Duration = Duration::from_secs(1_000_000);
const SOON: Duration = Duration::from_millis(10);

fn name(number: usize) -> String {
    format!("q{number}")
}

/// When each job was started.
type Starts = Arc<Mutex<Vec<(JobId, Instant)>>>;

fn start(store: &Arc<FakeStore>, queues: usize, config: &QueueConfig) -> (Running, Starts) {
    let starts = Starts::default();
    let noted = Arc::clone(&starts);
    let mut builder = Worker::builder(store.clone()).maintenance(false).own_threads(0);
    for number in 0..queues {
        builder = builder.queue(name(number), config.clone());
    }
    let handler = move |_: Numbered, cx: JobContext| {
        noted.lock().unwrap().push((cx.id(), Instant::now()));
        async { Ok(Outcome::Done) }
    };
    (Running::start(builder.handler(handler)), starts)
}

fn waking(wakeups: FakeWakeups) -> Arc<FakeStore> {
    FakeStore::with_wakeups(wakeups)
}

fn announced(store: &FakeStore) -> usize {
    store.wakeups.as_ref().unwrap().announced()
}

/// Waits until all queues sleep.
async fn settle(store: &FakeStore, queues: usize) {
    until("all sleep", || announced(store) == queues).await;
    sleep(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_idle_queues_cost_one_call_per_second() {
    let store = waking(FakeWakeups::new(0, true).shared_by(156));
    let (worker, _) = start(&store, 10_000, &QueueConfig::default());
    settle(&store, 10_000).await;
    assert_eq!(store.calls("open_queues").len(), 20, "queues are opened by the hundred");
    assert_eq!(store.wakeups.as_ref().unwrap().log(), ["announce 10000"]);
    let before = store.all_calls();
    sleep(Duration::from_mins(10)).await;
    let calls = store.all_calls() - before;
    assert!(calls <= 600, "{calls} calls in ten minutes");
    let looks = store.calls("peek").len();
    assert!(looks >= 250, "{looks} looks: a wake-up that does not come must not be waited for");
    assert!(store.calls("peek").iter().all(|(_, queues)| *queues == 10_000));
    assert_eq!(store.calls("claim").len(), 0);
    worker.stop().await;
    assert_eq!(announced(&store), 0);
}

#[tokio::test(start_paused = true)]
async fn of_many_queues_that_share_a_wakeup_only_that_with_work_claims() {
    let store = waking(FakeWakeups::new(0, true).shared_by(100));
    let (worker, starts) = start(&store, 1_000, &QueueConfig::default().poll_interval(NEVER));
    settle(&store, 1_000).await;
    let looks = store.calls("peek").len();
    for round in 1..=5 {
        let put = Instant::now();
        store.put_into("q150");
        until("the job is done", || store.completed() == round).await;
        assert!(starts.lock().unwrap()[round - 1].1 - put < SOON);
        sleep(Duration::from_secs(1)).await;
    }
    let looks = store.calls("peek").split_off(looks);
    assert!(
        looks.len() == 10 && looks.iter().all(|(_, queues)| *queues <= 100),
        "one at once, one that is proof: {looks:?}"
    );
    assert_eq!(store.calls("claim").len(), 5, "only the queue of the job claims");
    worker.stop().await;
}

/// Of producers who overlap one notifies. Whoever is woken by it and finds nothing must not sleep before the others have
/// committed.
#[tokio::test(start_paused = true)]
async fn a_job_whose_producer_left_the_wakeup_to_another_is_found_when_it_commits() {
    for (queues, shared_by) in [(1, 1), (100, 100)] {
        let store = waking(FakeWakeups::new(0, true).shared_by(shared_by));
        let (worker, starts) = start(&store, queues, &QueueConfig::default().poll_interval(NEVER));
        settle(&store, queues).await;
        let wakeups = store.wakeups.as_ref().unwrap();
        // The silent one has drawn a number below this, and holds the horizon.
        wakeups.set_sound_from(1);
        wakeups.ring(&QueueName::new("q0").unwrap());
        sleep(Duration::from_millis(150)).await;
        let put = Instant::now();
        store.put_silently_into("q0");
        until("the job is done", || store.completed() == 1).await;
        let waited = starts.lock().unwrap()[0].1 - put;
        assert!(waited < Duration::from_millis(400), "{waited:?} with {queues} queues");
        worker.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn for_few_queues_a_claim_is_not_preceded_by_a_look() {
    let store = waking(FakeWakeups::new(0, true).shared_by(2));
    let (worker, _) = start(&store, 2, &QueueConfig::default().poll_interval(NEVER));
    settle(&store, 2).await;
    store.put_into("q1");
    until("the job is done", || store.completed() == 1).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(store.calls("peek").len(), 0);
    assert_eq!(store.calls("claim").len(), 6, "one of each queue at first, and two after the wake-up that they share");
    worker.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_comes_while_a_look_is_answered_is_found() {
    let store = waking(FakeWakeups::new(0, true).shared_by(1_000));
    store.travel(Arc::new(|| [Duration::ZERO, Duration::from_secs(5)]));
    let (worker, starts) = start(&store, 100, &QueueConfig::default().poll_interval(NEVER));
    until("it looks", || !store.calls("peek").is_empty()).await;
    sleep(Duration::from_secs(1)).await;
    // Its answer is on the way, and does not know of this.
    store.put_into("q7");
    until("the job is done", || store.completed() == 1).await;
    let waited = starts.lock().unwrap()[0].1 - store.calls("peek")[0].0;
    assert!(waited < Duration::from_secs(20), "{waited:?}");
    worker.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_comes_while_a_claim_is_answered_is_found() {
    let store = waking(FakeWakeups::new(0, true));
    let (worker, starts) = start(&store, 1, &QueueConfig::default().poll_interval(NEVER));
    settle(&store, 1).await;
    let answer = Arc::new(tokio::sync::Notify::new());
    let mut script = Some(Arc::clone(&answer));
    store.on_claim(Box::new(move |_| script.take().map_or(Reply::AtOnce, Reply::When)));
    store.put_into("q0");
    until("it claims", || store.calls("claim").len() == 2).await;
    store.put_into("q0");
    sleep(Duration::from_secs(1)).await;
    answer.notify_one();
    let answered = Instant::now();
    until("both are done", || store.completed() == 2).await;
    assert!(starts.lock().unwrap().iter().all(|(_, at)| *at - answered < SOON));
    worker.stop().await;
}

/// Random delays on the way of every call and answer, random moments of commits, and announcements that are lost: every job
/// starts as soon as a look and a claim after its commit can be answered.
#[tokio::test(start_paused = true)]
async fn no_wakeup_is_lost_whatever_the_timing() {
    const LONGEST: u64 = 120;
    for round in 0..40 {
        let (queues, shared_by) = [(1, 1), (3, 1), (12, 4), (60, 20), (60, 2)][round % 5];
        let store = waking(FakeWakeups::new(0, true).shared_by(shared_by));
        let millis = || Duration::from_millis(rand::random_range(0..LONGEST));
        store.travel(Arc::new(move || [millis(), millis()]));
        let (worker, starts) = start(&store, queues, &QueueConfig::default().poll_interval(NEVER));
        let mut put = Vec::new();
        for _ in 0..200 {
            sleep(Duration::from_millis(rand::random_range(0..2 * LONGEST))).await;
            let queue = name(rand::random_range(0..queues));
            put.push((store.put_into(&queue), Instant::now()));
            if rand::random_ratio(1, 50) {
                store.wakeups.as_ref().unwrap().lose();
            }
        }
        let last = Instant::now();
        until("all are done", || store.completed() == put.len()).await;
        assert!(last.elapsed() < Duration::from_secs(10), "the last {:?} later", last.elapsed());
        let starts = starts.lock().unwrap().clone();
        for (job, at) in put {
            let waited = starts.iter().find(|(started, _)| *started == job).unwrap().1 - at;
            // At worst a few calls, one after the other, that were under way or have become void on the way.
            assert!(waited <= Duration::from_millis(2 * 12 * LONGEST), "round {round}: {job} waited {waited:?}");
        }
        worker.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn lost_announcements_are_made_anew_for_all_at_once() {
    let store = waking(FakeWakeups::new(0, true).shared_by(100));
    let (worker, starts) = start(&store, 1_000, &QueueConfig::default().poll_interval(NEVER));
    settle(&store, 1_000).await;
    let wakeups = store.wakeups.as_ref().unwrap();
    wakeups.lose();
    let put = Instant::now();
    store.put_into("q500"); // and nobody is told
    until("the job is done", || store.completed() == 1).await;
    assert!(starts.lock().unwrap()[0].1 - put < SOON);
    settle(&store, 1_000).await;
    assert_eq!(wakeups.log()[..2], ["announce 1000", "announce 1000"]);
    store.put_into("q501");
    until("the job is done", || store.completed() == 2).await;
    worker.stop().await;
}

#[tokio::test(start_paused = true)]
async fn until_the_sleep_of_many_is_sound_they_are_looked_for_together() {
    let store = waking(FakeWakeups::new(7, true).shared_by(100));
    let (worker, _) = start(&store, 1_000, &QueueConfig::default().poll_interval(NEVER));
    sleep(Duration::from_secs(10)).await;
    let looks = store.calls("peek");
    assert!((15..=50).contains(&looks.len()), "{} looks", looks.len());
    assert!(looks.iter().all(|(_, queues)| *queues == 1_000), "{looks:?}");
    store.wakeups.as_ref().unwrap().set_sound_from(0);
    worker.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_wakeups_many_queues_are_polled_in_one_call_per_interval() {
    for store in [FakeStore::new(), waking(FakeWakeups::new(0, false))] {
        let (worker, starts) = start(&store, 1_000, &QueueConfig::default());
        sleep(Duration::from_mins(1)).await;
        let looks = store.calls("peek");
        assert!((45..=100).contains(&looks.len()), "{} looks in a minute", looks.len());
        assert!(looks.iter().skip(2).all(|(_, queues)| *queues == 1_000), "{looks:?}");
        for number in [0, 500, 999] {
            let put = Instant::now();
            store.put_into(&name(number));
            let done = store.completed() + 1;
            until("the job is done", || store.completed() == done).await;
            assert!(starts.lock().unwrap().last().unwrap().1 - put <= Duration::from_secs(2));
        }
        worker.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn looks_that_fail_are_repeated_and_what_they_were_for_is_found() {
    let store = waking(FakeWakeups::new(0, true).shared_by(100));
    let (worker, _) = start(&store, 100, &QueueConfig::default().poll_interval(NEVER));
    settle(&store, 100).await;
    store.fail("peek", Some(StoreErrorKind::Unavailable));
    let before = store.calls("peek").len();
    store.put_into("q50");
    sleep(Duration::from_mins(2)).await;
    let looks = store.calls("peek").len() - before;
    assert!((10..=80).contains(&looks), "{looks} looks in two minutes");
    store.fail("peek", None);
    let back = Instant::now();
    until("the job is done", || store.completed() == 1).await;
    assert!(back.elapsed() <= Duration::from_secs(10));
    worker.stop().await;
}

#[tokio::test(start_paused = true)]
async fn queues_that_cannot_be_opened_are_served_and_opened_later() {
    let store = waking(FakeWakeups::new(0, true));
    store.fail("open_queues", Some(StoreErrorKind::Unavailable));
    store.put_into("q0");
    let (worker, _) = start(&store, 1, &QueueConfig::default());
    until("the job is done", || store.completed() == 1).await;
    store.fail("open_queues", None);
    sleep(Duration::from_mins(1)).await;
    let tries = store.calls("open_queues").len();
    sleep(Duration::from_mins(1)).await;
    assert_eq!(store.calls("open_queues").len(), tries, "it went through");
    worker.stop().await;
}
