//! A faulty store fails exactly when told, before or after its work.

use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::id::Nonce;
use awa_core::retry::RetryPolicy;
use awa_core::ring::{RingKind, RotationPolicy};
use awa_core::store::{
    Accuracy, BatchLimit, ClaimRequest, ClaimShape, Consumer, JobFilter, Maintainer, MoveTo, Operator, Producer,
    PurgeScope, RescueRequest, RetentionPolicy, Task, Wakeups,
};
use awa_core::{
    AttemptEnd, Closure, ClosureAnswer, InstanceId, JobId, JobKind, JobState, JsonText, NewJob, QueueName,
    QueueSettings, Store, StoreError, StoreErrorKind,
};
use awa_store_mem::{Fault, FaultyStore, MemStore, Operation};

const ME: InstanceId = InstanceId(1);

fn queue() -> QueueName {
    QueueName::new("email").unwrap()
}

fn job() -> NewJob {
    NewJob::new(queue(), JobKind::new("test").unwrap(), JsonText::new("args", "1").unwrap())
}

fn request() -> ClaimRequest {
    ClaimRequest {
        queue: queue(),
        instance: ME,
        nonce: Nonce(7),
        max_jobs: BatchLimit::MAX,
        max_bytes: u64::MAX,
        deadline: None,
        aging: None,
        shape: ClaimShape::Compact,
    }
}

fn store() -> FaultyStore<MemStore> {
    FaultyStore::new(MemStore::new())
}

#[tokio::test]
async fn a_fault_before_the_work_leaves_nothing_done() {
    let store = store();
    store.script(Operation::Enqueue, Fault::Before(StoreErrorKind::Unavailable));
    let error = store.enqueue(&[job()]).await.unwrap_err();
    assert_eq!((error.kind(), error.operation()), (StoreErrorKind::Unavailable, "enqueue"));
    assert!(store.list(&JobFilter { limit: 10, ..JobFilter::default() }).await.unwrap().is_empty());
    assert_eq!(store.enqueue(&[job()]).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_fault_after_the_work_loses_only_the_answer() {
    let store = store();
    store.enqueue(&[job()]).await.unwrap();
    store.script(Operation::Claim, Fault::After(StoreErrorKind::Unavailable));
    assert!(store.claim(&request()).await.unwrap_err().is_transient());
    let held = store.open_attempts(ME, 10).await.unwrap();
    assert_eq!(held.len(), 1, "the claim took place");
    store.script(Operation::Close, Fault::After(StoreErrorKind::Contended));
    let closure = Closure { receipt: held[0], end: AttemptEnd::Complete };
    let error = store.close(std::slice::from_ref(&closure)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Contended);
    assert_eq!(store.close(&[closure]).await.unwrap(), [ClosureAnswer::Stale], "a repeat converges");
    assert_eq!(store.get(held[0].job).await.unwrap().unwrap().state, JobState::Completed);
}

#[tokio::test]
async fn faults_of_one_operation_come_in_order_and_touch_no_other() {
    let store = store();
    store.script(Operation::Get, Fault::Before(StoreErrorKind::Denied));
    store.script(Operation::Get, Fault::Before(StoreErrorKind::Corrupt));
    assert!(store.census().await.is_ok());
    assert_eq!(store.unmet(), 2);
    assert_eq!(store.get(JobId(1)).await.unwrap_err().kind(), StoreErrorKind::Denied);
    assert_eq!(store.get(JobId(1)).await.unwrap_err().kind(), StoreErrorKind::Corrupt);
    assert_eq!(store.get(JobId(1)).await.unwrap(), None);
    assert_eq!((store.unmet(), store.calls(Operation::Get), store.calls(Operation::Census)), (0, 3, 1));
}

#[tokio::test]
async fn a_delayed_call_does_its_work_when_the_signal_comes() {
    let store = store();
    let (signal, wait) = tokio::sync::oneshot::channel::<()>();
    let signalled = async { wait.await.unwrap_or_default() };
    store.script(Operation::Enqueue, Fault::delay(signalled));
    store.script(Operation::Enqueue, Fault::After(StoreErrorKind::Unavailable));
    let delayed = tokio::spawn({
        let store = store.clone();
        async move { store.enqueue(&[job()]).await }
    });
    // The task has met its first fault once it has been polled; whatever it does after that, it does after the signal.
    while store.unmet() == 2 {
        tokio::task::yield_now().await;
    }
    let ready = || async { store.inside().queues().await.unwrap().iter().map(|queue| queue.ready).sum::<u64>() };
    assert_eq!(ready().await, 0);
    signal.send(()).unwrap();
    assert!(delayed.await.unwrap().is_err(), "the second fault of the script comes behind the delay");
    assert_eq!(ready().await, 1);
}

#[tokio::test]
async fn a_broken_down_store_fails_every_call_until_it_is_healed() {
    let store = store();
    let id = store.enqueue(&[job()]).await.unwrap()[0].id();
    store.script(Operation::Get, Fault::Before(StoreErrorKind::Denied));
    store.break_down(StoreErrorKind::Unavailable);
    let failed: Vec<(&str, StoreErrorKind)> = every_call(&store).await;
    assert_eq!(failed.len(), 35);
    assert!(failed.iter().all(|(_, kind)| *kind == StoreErrorKind::Unavailable), "{failed:?}");
    store.heal();
    assert_eq!(store.get(id).await.unwrap_err().kind(), StoreErrorKind::Denied, "the script waited");
    assert_eq!(store.get(id).await.unwrap().unwrap().state, JobState::Ready, "nothing was done meanwhile");
    assert_eq!(every_call(&store).await, [], "every call reaches the store inside");
}

/// Calls every method once, and gives the operations that failed.
async fn every_call(store: &FaultyStore<MemStore>) -> Vec<(&'static str, StoreErrorKind)> {
    let every = Duration::from_secs(1);
    let rotation = RotationPolicy { min_age: every, max_bytes: 1 };
    let rescue = RescueRequest { rescuer: ME, staleness: every, page: 1 };
    let outcomes: [Result<(), StoreError>; 35] = [
        store.enqueue(&[]).await.map(drop),
        store.claim(&ClaimRequest { queue: QueueName::new("empty").unwrap(), ..request() }).await.map(drop),
        store.close(&[]).await.map(drop),
        store.beat(ME, every).await,
        store.retire(ME).await,
        store.open_attempts(ME, 1).await.map(drop),
        store.are_open(&[]).await.map(drop),
        store.peek(&[queue()]).await.map(drop),
        store.try_tick(Task::Tidy, every).await.map(drop),
        store.promote(1).await.map(drop),
        store.rescue(&rescue, &RetryPolicy::default()).await.map(drop),
        store.rotate(RingKind::Lease, &rotation).await.map(drop),
        store.drain().await.map(drop),
        store.prune(RingKind::Lease, &RetentionPolicy::default()).await.map(drop),
        store.tidy().await,
        store.open_queue(&queue()).await,
        store.forget_dead(every, 1).await.map(drop),
        store.open_queues(&[queue()]).await,
        store.get(JobId(0)).await.map(drop),
        store.list(&JobFilter::default()).await.map(drop),
        store.queues().await.map(drop),
        store.census().await.map(drop),
        store.cancel(&[], &ErrorText::default()).await.map(drop),
        store.retry(&[]).await.map(drop),
        store.set_paused(&queue(), false).await,
        store.configure_queue(&queue(), &QueueSettings::default()).await,
        store.queue_settings(&queue()).await.map(drop),
        store.move_jobs(&[], &MoveTo::queue(queue())).await.map(drop),
        store.purge_queue(&QueueName::new("empty").unwrap(), PurgeScope::Ready).await.map(drop),
        store.delete(&[]).await.map(drop),
        store.grow_ring(RingKind::Queue, 1).await.map(drop),
        store.counts(Accuracy::Exact).await.map(drop),
        store.announce(ME, &[queue()]).await.map(drop),
        store.withdraw(ME, &[queue()]).await,
        store.wait(ME, Duration::ZERO).await.map(drop),
    ];
    outcomes.into_iter().filter_map(Result::err).map(|error| (error.operation(), error.kind())).collect()
}

#[tokio::test]
async fn a_faulty_store_names_itself_and_is_as_durable_as_what_is_inside() {
    let store = store();
    assert!(store.describe().contains("memory") && store.describe().contains("faults"), "{}", store.describe());
    assert!(!store.is_durable() && store.wakeups().is_some());
    assert!(MemStore::new().describe().contains("not durable"));
}
