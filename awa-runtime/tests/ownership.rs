//! What this process holds is what it believes to hold: audit, cancellation, deadlines, unknown kinds.

mod common;

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use awa_runtime::core::{AttemptEnd, StoreErrorKind};
use awa_runtime::{CancelCause, JobContext, Outcome, QueueConfig};
use common::fake_store::Reply;
use common::{CountsDrops, FakeStore, Numbered, Running, builder, until};
use tokio::sync::Notify;
use tokio::time::Instant;

const HANDED_BACK: AttemptEnd = AttemptEnd::Release { delay: Duration::ZERO };

#[tokio::test(start_paused = true)]
async fn the_audit_hands_back_what_a_lost_answer_claimed() {
    let store = FakeStore::new();
    store.put_numbered(5);
    let mut first = true;
    store.on_claim(Box::new(move |_| if std::mem::take(&mut first) { Reply::Lost } else { Reply::AtOnce }));
    let worker = Running::start(
        builder(&store, QueueConfig::default()).handler(|_: Numbered, _: JobContext| async { Ok(Outcome::Done) }),
    );
    let began = Instant::now();
    until("all complete", || store.completed() == 5).await;
    assert!(began.elapsed() < Duration::from_secs(10), "the audit comes soon: {:?}", began.elapsed());
    assert_eq!(store.ends().iter().filter(|end| **end == HANDED_BACK).count(), 5);
    assert_eq!(worker.stop().await.stats.released, 5);
}

#[tokio::test(start_paused = true)]
async fn the_audit_does_not_hand_back_a_claim_whose_answer_is_on_the_way() {
    let store = FakeStore::new();
    store.put_numbered(5);
    let answer = Arc::new(Notify::new());
    let (sent, mut first) = (Arc::clone(&answer), true);
    store.on_claim(Box::new(
        move |_| {
            if std::mem::take(&mut first) { Reply::When(Arc::clone(&sent)) } else { Reply::AtOnce }
        },
    ));
    let worker = Running::start(builder(&store, QueueConfig::default()).call_timeout(Duration::from_mins(10)).handler(
        |_: Numbered, _: JobContext| async {
            tokio::time::sleep(Duration::from_secs(100)).await;
            Ok(Outcome::Done)
        },
    ));
    until("an audit has read its list", || !store.calls("open_attempts").is_empty()).await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!((store.open(), store.ends().len()), (5, 0), "the audit waits for the claim");
    answer.notify_one();
    until("all complete", || store.completed() == 5).await;
    assert_eq!(store.ends().len(), 5, "none was handed back");
    worker.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_audit_does_not_hand_back_what_runs_waits_or_is_being_confirmed() {
    let store = FakeStore::new();
    store.put_numbered(6);
    let config = QueueConfig::default().concurrency(4).prefetch(2);
    let worker = Running::start(builder(&store, config).handler(|job: Numbered, _: JobContext| async move {
        if job.number > 0 {
            tokio::time::sleep(Duration::from_mins(10)).await;
        }
        Ok(Outcome::Done)
    }));
    store.fail("close", Some(StoreErrorKind::Unavailable));
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert!(store.calls("open_attempts").len() >= 5);
    assert_eq!(store.open(), 6);
    store.fail("close", None);
    until("all complete", || store.completed() == 6).await;
    assert_eq!(store.ends().len(), 6, "none was handed back");
    worker.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_hears_within_a_heartbeat_interval_that_its_attempt_was_ended_elsewhere() {
    let store = FakeStore::new();
    store.put_numbered(2);
    let told = Arc::new(Mutex::new(None));
    let heard = Arc::clone(&told);
    let worker =
        Running::start(builder(&store, QueueConfig::default()).handler(move |job: Numbered, cx: JobContext| {
            let heard = Arc::clone(&heard);
            async move {
                if job.number == 0 {
                    cx.until_cancelled().await;
                    *heard.lock().unwrap() = Some((Instant::now(), cx.cancelled()));
                    return Err("stopped".into());
                }
                tokio::time::sleep(Duration::from_secs(100)).await;
                Ok(Outcome::Done)
            }
        }));
    until("both run", || store.open() == 2).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(*told.lock().unwrap(), None);
    let ended = Instant::now();
    store.end_elsewhere(1);
    until("it is told", || told.lock().unwrap().is_some()).await;
    let (at, cause) = told.lock().unwrap().unwrap();
    assert_eq!(cause, Some(CancelCause::EndedElsewhere));
    assert!(at - ended <= Duration::from_millis(5_100), "{:?}", at - ended);
    until("the other completes", || store.completed() == 1).await;
    let report = worker.stop().await;
    assert_eq!((report.stats.stale, report.stats.retried), (1, 0), "its own end was refused");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_ended_elsewhere_while_it_waits_for_a_permit_is_never_started() {
    let store = FakeStore::new();
    store.put_numbered(2);
    let started = Arc::new(Mutex::new(Vec::new()));
    let starts = Arc::clone(&started);
    let config = QueueConfig::default().concurrency(1).prefetch(1);
    let worker = Running::start(builder(&store, config).handler(move |job: Numbered, _: JobContext| {
        starts.lock().unwrap().push(job.number);
        async {
            tokio::time::sleep(Duration::from_secs(20)).await;
            Ok(Outcome::Done)
        }
    }));
    until("both are claimed", || store.open() == 2).await;
    store.end_elsewhere(2);
    until("the first completes", || store.completed() == 1).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(*started.lock().unwrap(), [0]);
    assert_eq!(worker.stop().await.stats.stale, 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_of_attempts_that_have_ended() {
    let store = FakeStore::new();
    store.put_numbered(5_000);
    let worker = Running::start(
        builder(&store, QueueConfig::default()).handler(|_: Numbered, _: JobContext| async { Ok(Outcome::Done) }),
    );
    until("all complete", || store.completed() == 5_000).await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    let pages: Vec<usize> = store.calls("open_attempts").into_iter().map(|call| call.1).collect();
    assert!(
        !pages.is_empty() && pages.iter().all(|&page| page == 1_000),
        "an audit asks beyond what is held: {pages:?}"
    );
    assert_eq!(worker.stop().await.stats.in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_ends_with_its_deadline() {
    let store = FakeStore::new();
    store.put_numbered(2);
    let dropped = Arc::new(AtomicU32::new(0));
    let drops = Arc::clone(&dropped);
    let config = QueueConfig::default().concurrency(1).deadline(Duration::from_secs(3));
    let worker = Running::start(builder(&store, config).handler(move |job: Numbered, _: JobContext| {
        let guard = CountsDrops(Arc::clone(&drops));
        async move {
            let _guard = guard;
            if job.number == 0 {
                std::future::pending::<()>().await;
            }
            Ok(Outcome::Done)
        }
    }));
    let began = Instant::now();
    until("the other has its turn", || store.completed() == 1).await;
    assert_eq!(dropped.load(Ordering::SeqCst), 2, "the handler was dropped, and its permit is free");
    assert!(began.elapsed() < Duration::from_millis(3_200), "{:?}", began.elapsed());
    let end = store.ends_of(1).remove(0);
    assert!(
        matches!(&end, AttemptEnd::Retry { error, .. } if error.as_str() == "the deadline of 3s was over"),
        "{end:?}"
    );
    worker.kill().await;
}

#[tokio::test]
async fn a_blocking_handler_past_its_deadline_is_told_and_its_late_result_is_not_used() {
    let store = FakeStore::new();
    store.put_numbered(1);
    let (told, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (tells, ends) = (Arc::clone(&told), Arc::clone(&ended));
    let config = QueueConfig::default().concurrency(1).deadline(Duration::from_millis(100));
    let worker = Running::start(builder(&store, config).blocking_handler(move |_: Numbered, cx: JobContext| {
        if cx.attempt() == 1 {
            while cx.cancelled().is_none() {
                std::thread::yield_now();
            }
            tells.store(cx.cancelled() == Some(CancelCause::Deadline), Ordering::SeqCst);
            ends.store(true, Ordering::SeqCst);
        }
        Ok(Outcome::Done)
    }));
    until("the handler has ended", || ended.load(Ordering::SeqCst)).await;
    until("the attempt has ended", || !store.ends().is_empty()).await;
    assert!(told.load(Ordering::SeqCst));
    assert!(matches!(&store.ends_of(1)[..], [AttemptEnd::Retry { .. }]));
    let report = worker.stop().await;
    assert_eq!((report.stats.completed, report.stats.stale), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_kind_without_a_handler_is_released_for_five_seconds_uncharged() {
    let store = FakeStore::new();
    store.put("new_kind", (0..20).map(|_| "{}".to_owned()));
    store.put_numbered(1);
    let worker = Running::start(
        builder(&store, QueueConfig::default()).handler(|_: Numbered, _: JobContext| async { Ok(Outcome::Done) }),
    );
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(store.completed(), 1);
    let delay = Duration::from_secs(5);
    let ends = store.ends_of(1);
    assert!(ends.iter().all(|end| *end == AttemptEnd::Release { delay }), "{ends:?}");
    assert!((8..=13).contains(&ends.len()), "{} claims of it in a minute", ends.len());
    let report = worker.stop().await;
    assert!(report.stats.unknown_kind >= 160 && report.stats.failed + report.stats.retried == 0, "{:?}", report.stats);
}

#[tokio::test(start_paused = true)]
async fn a_fallback_handler_takes_every_kind_and_a_raw_one_its_own() {
    let store = FakeStore::new();
    store.put("a", ["[1, 2.50]".to_owned()]);
    store.put("b", ["{}".to_owned()]);
    store.put_numbered(1);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (by_fallback, by_kind) = (Arc::clone(&seen), Arc::clone(&seen));
    let worker = Running::start(
        builder(&store, QueueConfig::default())
            .handler(|_: Numbered, _: JobContext| async { Ok(Outcome::Done) })
            .raw_handler("b", move |job, _| {
                by_kind.lock().unwrap().push(format!("raw {}", job.kind));
                async { Ok(Outcome::Done) }
            })
            .fallback_handler(move |job, cx| {
                by_fallback.lock().unwrap().push(format!("{} {} {}", cx.id(), job.kind, job.args));
                async { Ok(Outcome::Done) }
            }),
    );
    until("all complete", || store.completed() == 3).await;
    assert_eq!(*seen.lock().unwrap(), ["1 a [1, 2.50]", "raw b"]);
    worker.stop().await;
}

#[tokio::test(start_paused = true)]
async fn retries_back_off_and_end_with_the_budget() {
    let store = FakeStore::new();
    store.put_numbered(1);
    let runs = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&runs);
    let worker = Running::start(builder(&store, QueueConfig::default()).handler(move |_: Numbered, cx: JobContext| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move { Err(format!("attempt {} of {}", cx.attempt(), cx.max_attempts()).into()) }
    }));
    let began = Instant::now();
    tokio::time::sleep(Duration::from_hours(16)).await;
    assert_eq!(runs.load(Ordering::SeqCst), 25, "{:?}", began.elapsed());
    assert!(matches!(store.ends_of(1).pop(), Some(AttemptEnd::Fail { error }) if error.as_str() == "attempt 25 of 25"));
    worker.stop().await;
}
