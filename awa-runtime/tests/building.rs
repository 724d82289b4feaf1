//! A worker that cannot work is refused when it is built, with what to change.

mod common;

use std::sync::Arc;
use std::time::Duration;

use awa_runtime::{BuildError, JobContext, MissingState, Outcome, QueueConfig, Worker, WorkerBuilder};
use common::{FakeStore, Numbered, Running, builder, until};

fn plain() -> WorkerBuilder {
    Worker::builder(FakeStore::new())
}

async fn done(_: Numbered, _: JobContext) -> awa_runtime::HandlerResult {
    Ok(Outcome::Done)
}

fn queue(builder: WorkerBuilder) -> WorkerBuilder {
    builder.queue("default", QueueConfig::default())
}

#[test]
fn each_mistake_has_its_own_error() {
    let refused = |builder: WorkerBuilder| builder.build().unwrap_err();
    assert!(matches!(refused(plain().handler(done)), BuildError::NoQueue));
    assert!(matches!(refused(queue(plain())), BuildError::NoHandler));
    assert!(matches!(refused(queue(plain()).claims(false).maintenance(false)), BuildError::NoRole));
    assert!(matches!(refused(queue(queue(plain())).handler(done)), BuildError::DuplicateQueue(_)));
    let twice = queue(plain()).handler(done).raw_handler("numbered", |_, _| async { Ok(Outcome::Done) });
    assert!(matches!(refused(twice), BuildError::DuplicateHandler(kind) if kind.as_str() == "numbered"));
    let stateful = queue(plain()).handler(done).state(Arc::new(1_u8)).state(Arc::new(2_u8));
    assert!(matches!(refused(stateful), BuildError::DuplicateState("u8")));
    let fallback = |builder: WorkerBuilder| builder.fallback_handler(|_, _| async { Ok(Outcome::Done) });
    assert!(matches!(refused(fallback(fallback(queue(plain())))), BuildError::DuplicateFallback));
    assert!(plain().claims(false).build().is_ok());
}

#[test]
fn a_bad_name_or_number_is_named() {
    let said = |builder: WorkerBuilder| builder.handler(done).build().unwrap_err().to_string();
    assert!(said(plain().queue("no spaces", QueueConfig::default())).contains("queue refused: ' ' at byte 2"));
    assert!(said(queue(plain()).raw_handler("", |_, _| async { Ok(Outcome::Done) })).contains("kind refused"));
    assert!(said(plain().queue("q", QueueConfig::default().concurrency(0))).starts_with("queue q cannot be served"));
    let second = Duration::from_secs(1);
    assert!(said(queue(plain()).staleness(second)).contains("staleness refused: 1s is below three"));
    assert!(said(queue(plain()).heartbeat_interval(Duration::ZERO)).contains("heartbeat_interval"));
    assert!(said(queue(plain()).flush_at(0)).contains("flush_at"));
    assert!(said(queue(plain()).max_unconfirmed(0)).contains("max_unconfirmed"));
    assert!(said(queue(plain()).own_threads(65)).contains("own_threads"));
    assert!(said(queue(plain()).call_timeout(Duration::ZERO)).contains("call_timeout"));
}

#[tokio::test(start_paused = true)]
async fn handlers_read_the_state_they_were_given() {
    struct Greeting(&'static str);
    let store = FakeStore::new();
    store.put_numbered(1);
    let config = QueueConfig::default();
    let worker = Running::start(builder(&store, config).state(Arc::new(Greeting("hello"))).handler(
        |_: Numbered, cx: JobContext| async move {
            let greeting = cx.state::<Greeting>()?;
            let missing: Result<Arc<String>, MissingState> = cx.state();
            Ok(Outcome::done_with(&(greeting.0, missing.unwrap_err().to_string())))
        },
    ));
    until("it has ended", || !store.ends().is_empty()).await;
    worker.stop().await;
    let end = format!("{:?}", store.ends());
    assert!(end.contains("hello") && end.contains("the worker has no state of type alloc::string::String"), "{end}");
}

/// A future that is `Send` and not `Sync` is enough.
#[tokio::test(start_paused = true)]
async fn handler_futures_need_not_be_sync() {
    let store = FakeStore::new();
    store.put_numbered(1);
    let worker = Running::start(builder(&store, QueueConfig::default()).handler(|_: Numbered, _: JobContext| async {
        let cell = std::cell::Cell::new(1);
        tokio::task::yield_now().await;
        cell.set(2);
        Ok(Outcome::Done)
    }));
    until("it completes", || store.completed() == 1).await;
    worker.stop().await;
}
