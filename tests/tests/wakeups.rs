//! The locks behind wake-ups: how many there are, and that nobody sleeps on those that are lost.

use std::time::Duration;

use awa_core::store::{Producer, Wakeups, Woken};
use awa_core::{InstanceId, JobKind, JsonText, NewJob, QueueName, Store};
use awa_store_sqlx::SqlxStore;
use awa_tests::postgres::FreshStore;
use sqlx::AssertSqlSafe;

const ME: InstanceId = InstanceId(1);
const OTHER: InstanceId = InstanceId(2);
const SOON: Duration = Duration::from_secs(20);

fn queues(count: usize) -> Vec<QueueName> {
    (0..count).map(|number| QueueName::new(format!("q{number}")).unwrap()).collect()
}

fn wakeups(store: &SqlxStore) -> &dyn Wakeups {
    store.wakeups().unwrap()
}

/// Announces until it is possible: the connection may be on its way.
async fn announce(store: &SqlxStore, instance: InstanceId, queues: &[QueueName]) {
    let announced = async {
        while !wakeups(store).announce(instance, queues).await.unwrap().announced {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, announced).await.expect("it can be announced");
}

async fn number(store: &SqlxStore, sql: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(store.pool()).await.unwrap()
}

/// The shared advisory locks in this database.
const HELD: &str = "SELECT count(*) FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
                    WHERE d.datname = current_database() AND l.locktype = 'advisory' AND l.mode = 'ShareLock'";

async fn until_held(store: &SqlxStore, locks: i64) {
    let held = async {
        while number(store, HELD).await != locks {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, held).await.unwrap_or_else(|_| panic!("there are not {locks} locks"));
}

async fn hear(store: &SqlxStore, instance: InstanceId) -> Woken {
    wakeups(store).wait(instance, SOON).await.unwrap()
}

async fn wakes(store: &SqlxStore, instance: InstanceId, queue: &QueueName) {
    let job = NewJob::new(queue.clone(), JobKind::new("test").unwrap(), JsonText::new("args", "1").unwrap());
    store.enqueue(&[job]).await.unwrap();
    let Woken::Queues(woken) = hear(store, instance).await else { panic!("no wake-up for {queue}") };
    assert!(woken.contains(queue), "{queue} among {woken:?}");
}

#[tokio::test]
async fn many_queues_of_many_processes_are_one_lock_per_bucket() {
    let fresh = FreshStore::with_server_clock().await;
    let (store, many) = (&fresh.store, queues(1_000));
    announce(store, ME, &many).await;
    until_held(store, 64).await;
    announce(store, OTHER, &many[..500]).await;
    until_held(store, 64).await;
    wakeups(store).withdraw(ME, &many).await.unwrap();
    wakes(store, OTHER, &many[123]).await;
    until_held(store, 64).await;
    wakeups(store).withdraw(OTHER, &many[1..500]).await.unwrap();
    until_held(store, 1).await;
    wakeups(store).withdraw(OTHER, &many[..1]).await.unwrap();
    until_held(store, 0).await;
}

/// Bug class: who sleeps on a lock that went with its connection is never woken.
#[tokio::test]
async fn a_lost_connection_voids_the_announcements_of_every_process() {
    let fresh = FreshStore::with_server_clock().await;
    let (store, many) = (&fresh.store, queues(100));
    announce(store, ME, &many).await;
    announce(store, OTHER, &many[..2]).await;
    let killed =
        "SELECT count(*) FROM (SELECT DISTINCT l.pid FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
                  WHERE d.datname = current_database() AND l.locktype = 'advisory' AND l.mode = 'ShareLock') AS l
                  WHERE pg_terminate_backend(l.pid)";
    assert_eq!(number(store, killed).await, 1);
    assert_eq!(hear(store, ME).await, Woken::Void);
    assert_eq!(hear(store, OTHER).await, Woken::Void);
    announce(store, OTHER, &many[..2]).await;
    wakes(store, OTHER, &many[1]).await;
    assert_eq!(wakeups(store).wait(ME, Duration::ZERO).await.unwrap(), Woken::Nothing, "it is not announced any more");
}

/// The connection is served on the runtime of whoever announced first; it goes with that one.
#[test]
fn a_runtime_that_ends_voids_the_announcements_of_others() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (first, second) = (runtime(), runtime());
    let many = queues(10);
    let fresh = second.block_on(FreshStore::with_server_clock());
    first.block_on(announce(&fresh.store, ME, &many));
    second.block_on(announce(&fresh.store, OTHER, &many));
    drop(first);
    second.block_on(async {
        // Connections of the pool that were opened there went with the first runtime as well.
        let usable = async { while sqlx::query("SELECT 1").execute(fresh.store.pool()).await.is_err() {} };
        tokio::time::timeout(SOON, usable).await.expect("the pool makes new ones");
        assert_eq!(hear(&fresh.store, OTHER).await, Woken::Void);
        announce(&fresh.store, OTHER, &many).await;
        wakes(&fresh.store, OTHER, &many[3]).await;
    });
}
