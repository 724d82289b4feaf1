//! Races of the statement by which programs store plain single jobs without a function, and of calls that share one, stepped by
//! hand on real PostgreSQL.

use std::sync::Arc;

use awa_core::JobId;
use awa_core::id::{Generation, Slot};
use awa_core::queue::{QueueSettings, ShardCount};
use awa_core::ring::RingKind;
use awa_core::store::{Operator, Producer, Rotated};
use awa_pg::{SchemaName, Sql};
use awa_tests::postgres::SMALL_RINGS;
use awa_tests::stage::{Stage, pid, run, texts};
use sqlx::{AssertSqlSafe, PgConnection, Row};

const POINTER: &str = "SELECT last_value FROM awa.queue_ring_pointer";
/// Locks of this database: others of the server have tables with the same numbers.
const HERE: &str = "database = (SELECT oid FROM pg_database WHERE datname = current_database())";
const SLEEP: &str = "SELECT pg_try_advisory_lock_shared(awa.wake_key(awa.wake_bucket('races')))::text";

/// A session that has been found at home.
async fn at_home(stage: &Stage) -> PgConnection {
    let mut connection = stage.connect().await;
    run(&mut connection, "SELECT awa.assert_same_cluster()").await;
    connection
}

/// The statement for a slot, as programs send it.
fn text_for(slot: u8) -> String {
    let sql = Sql::new(&SchemaName::default(), SMALL_RINGS);
    sql.statement_for_slot("enqueue/put_in_slot_0", slot).unwrap().text.to_string()
}

/// Sends the statement of the pointer's slot; the job, and whether sleepers were notified.
async fn put(connection: &mut PgConnection, pointer: i64) -> Option<(JobId, bool)> {
    put_by(&text_for(u8::try_from(pointer & 63).unwrap()), connection, pointer, "races").await
}

async fn put_by(text: &str, connection: &mut PgConnection, pointer: i64, queue: &str) -> Option<(JobId, bool)> {
    let statement = sqlx::query(AssertSqlSafe(text)).bind(queue).bind(2_i16).bind("test");
    let statement = statement.bind("{}").bind(3_i16).bind(None::<String>);
    let rows = statement.bind(pointer).bind(None::<String>).fetch_all(connection).await.unwrap();
    rows.first().map(|row| (JobId(row.get(0)), row.get(1)))
}

/// The statement waits for the lock of its child while the ring turns: it looks again behind the lock, and stores nothing where nobody
/// will look. The mutant does not look.
#[tokio::test]
async fn what_waits_while_the_ring_turns_is_stored_in_the_open_slot_or_not_at_all() {
    const LOOKS: &str = "(SELECT p.last_value FROM \"awa\".queue_ring_pointer AS p) = $7::bigint";
    for (looks, stored) in [(LOOKS, false), ("$7::bigint IS NOT NULL", true)] {
        let stage = Stage::new().await;
        // The slot is not empty, so that the ring turns.
        let first = stage.enqueue(1).await;
        let pointer = stage.number(POINTER).await;
        let (mut other, mut producer) = (stage.connect().await, at_home(&stage).await);
        run(&mut other, "BEGIN; LOCK TABLE awa.ready_entries_0 IN SHARE MODE").await;
        let waiting = pid(&mut producer).await;
        let text = text_for(0);
        assert!(text.contains(LOOKS), "{text}");
        let text = text.replace(LOOKS, looks);
        let call = tokio::spawn(async move { put_by(&text, &mut producer, pointer, "races").await });
        stage.until_blocked(waiting).await;
        assert!(matches!(stage.rotate(RingKind::Queue).await, Rotated::Opened(Slot(1), Generation(_))));
        run(&mut other, "COMMIT").await;
        assert_eq!(call.await.unwrap().is_some(), stored, "{looks}");
        let in_sealed = "SELECT count(*) FROM awa.ready_entries WHERE ready_slot = 0";
        assert_eq!(stage.number(in_sealed).await, if stored { 2 } else { 1 });
        assert_eq!(stage.claim(10).await.len(), if stored { 2 } else { first.len() });
    }
}

/// What is not committed yet keeps its slot from being drained, and what was drained cannot be written to.
#[tokio::test]
async fn a_slot_with_an_open_statement_is_not_drained() {
    let stage = Stage::new().await;
    let jobs = stage.enqueue(1).await;
    let pointer = stage.number(POINTER).await;
    let mut producer = at_home(&stage).await;
    run(&mut producer, "BEGIN").await;
    let (late, _) = put(&mut producer, pointer).await.unwrap();
    stage.rotate(RingKind::Queue).await;
    assert_eq!(stage.claim_once(10).await.jobs.len(), jobs.len());
    assert_eq!(stage.drain().await.slots, [], "a writer is in it");
    run(&mut producer, "COMMIT").await;
    assert_eq!(stage.drain().await.slots, [], "a job waits in it");
    let claimed = stage.claim_once(10).await.jobs;
    assert_eq!(claimed.iter().map(|job| job.receipt.job).collect::<Vec<_>>(), [late]);
    assert_eq!(stage.drain().await.slots, [Slot(0)]);
    assert_eq!(put(&mut producer, pointer).await, None, "nobody writes to it any more");
}

/// Whatever is not plain is left to the functions.
#[tokio::test]
async fn what_is_not_plain_is_left_to_the_functions() {
    let stage = Stage::new().await;
    let pointer = stage.number(POINTER).await;
    let mut producer = at_home(&stage).await;
    assert_eq!(put_by(&text_for(0), &mut producer, pointer, "new").await, None, "nobody has served the queue");
    assert!(put(&mut producer, pointer).await.is_some());
    assert_eq!(put(&mut producer, pointer + 64).await, None, "the ring stands elsewhere");
    assert_eq!(put(&mut stage.connect().await, pointer).await, None, "the session may be in another cluster");

    // The same prepared statement, before and behind changes that make its plan anew.
    let home = texts(&mut producer, "SELECT pg_get_functiondef('awa.home_cluster'::regproc)").await.remove(0).unwrap();
    run(
        &mut producer,
        "CREATE OR REPLACE FUNCTION awa.home_cluster() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 1::bigint'",
    )
    .await;
    assert_eq!(put(&mut producer, pointer).await, None, "the schema was carried into another cluster");
    run(&mut producer, &home).await;
    assert!(put(&mut producer, pointer).await.is_some());
    run(
        &mut producer,
        "CREATE OR REPLACE FUNCTION awa.ready_protocol() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 2'",
    )
    .await;
    assert_eq!(put(&mut producer, pointer).await, None, "a later version has its rows written otherwise");
    run(
        &mut producer,
        "CREATE OR REPLACE FUNCTION awa.ready_protocol() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 1'",
    )
    .await;
    assert!(put(&mut producer, pointer).await.is_some());

    let shards = QueueSettings::default().with_enqueue_shards(ShardCount::new(4).unwrap());
    stage.store().configure_queue(&stage.queue, &shards).await.unwrap();
    assert_eq!(put(&mut producer, pointer).await, None, "some queue has settings");
    assert_eq!(stage.claim(10).await.len(), 3);
}

/// As with the function: sleepers are told, and of calls that overlap one does it for all.
#[tokio::test]
async fn sleepers_are_told_once_by_statements_that_overlap() {
    let stage = Stage::new().await;
    let pointer = stage.number(POINTER).await;
    let (mut first, mut second, mut sleeper) = (at_home(&stage).await, at_home(&stage).await, stage.connect().await);
    assert!(!put(&mut first, pointer).await.unwrap().1, "nobody sleeps");
    assert_eq!(texts(&mut sleeper, SLEEP).await, [Some("true".to_owned())]);
    run(&mut first, "BEGIN").await;
    assert!(put(&mut first, pointer).await.unwrap().1);
    assert!(!put(&mut second, pointer).await.unwrap().1, "the first does it for both");
    run(&mut first, "COMMIT").await;
    assert!(put(&mut second, pointer).await.unwrap().1);
    run(&mut sleeper, "SELECT pg_advisory_unlock_all()").await;
    assert!(!put(&mut second, pointer).await.unwrap().1);
    let left = format!("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND {HERE}");
    assert_eq!(stage.number(&left).await, 0, "no lock is left behind");
}

/// The store uses the statement, follows the ring, and prepares one for each slot.
#[tokio::test]
async fn a_store_follows_the_ring() {
    let stage = Stage::new().await;
    let store = stage.fresh.another_pool(|options| options.max_connections(1)).await;
    let one = async || store.enqueue(&stage.jobs(1)).await.unwrap()[0].id();
    let mut ids = vec![one().await, one().await];
    for slot in 1..3_u8 {
        assert!(matches!(stage.rotate(RingKind::Queue).await, Rotated::Opened(open, _) if open == Slot(slot)));
        // The first finds that the ring has turned.
        ids.extend([one().await, one().await]);
    }
    let mut connection = store.pool().acquire().await.unwrap();
    let kept = texts(&mut connection, "SELECT statement FROM pg_prepared_statements").await;
    for slot in 0..3 {
        let times = kept.iter().flatten().filter(|text| **text == text_for(slot)).count();
        assert_eq!(times, 1, "slot {slot}");
    }
    let slots = texts(&mut connection, "SELECT ready_slot::text FROM awa.ready_entries ORDER BY job_id").await;
    assert_eq!(slots.iter().flatten().map(String::as_str).collect::<Vec<_>>(), ["0", "0", "1", "1", "2", "2"]);
    let claimed: Vec<_> = stage.claim(10).await.iter().map(|job| job.receipt.job).collect();
    assert_eq!(claimed, ids);
}

/// Calls that come while two like them are on their way share a transaction, and each has an answer of its own.
#[tokio::test]
async fn calls_that_overlap_share_a_transaction() {
    const CALLS: usize = 20;
    let stage = Arc::new(Stage::new().await);
    let mut other = stage.connect().await;
    run(&mut other, "BEGIN; LOCK TABLE awa.ready_entries IN SHARE MODE").await;
    let mut calls = Vec::new();
    for _ in 0..CALLS {
        let stage = Arc::clone(&stage);
        calls.push(tokio::spawn(async move { stage.enqueue(1).await[0] }));
    }
    let blocked = format!(
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'awa.ready_entries_0'::regclass AND {HERE}"
    );
    while stage.number(&blocked).await < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(stage.number(&blocked).await, 2, "the others wait in the program");
    run(&mut other, "COMMIT").await;
    let mut ids = Vec::new();
    for call in calls {
        ids.push(call.await.unwrap());
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), CALLS);
    let transactions = stage.number("SELECT count(DISTINCT xid) FROM awa.ready_entries").await;
    assert!((3..=4).contains(&transactions), "{transactions} transactions");
    assert_eq!(stage.claim(CALLS).await.len(), CALLS);
}
