//! What only the diesel store can get wrong: statements that are prepared twice, transactions of its two kinds of connection,
//! and errors whose SQLSTATE diesel hides.

use std::time::Duration;

use awa_core::doctor::Severity;
use awa_core::ring::RotationPolicy;
use awa_core::store::{
    BatchLimit, ClaimRequest, ClaimShape, Consumer, JobFilter, Maintainer, Operator, Producer, RetentionPolicy, Task,
};
use awa_core::{
    AttemptEnd, Closure, Enqueued, InstanceId, JobId, JobKind, JsonText, NewJob, Nonce, OnConflict, QueueName,
    StoreError, StoreErrorKind, Unique, UniqueBy,
};
use awa_pg::Sql;
use awa_pg::cluster::TestServer;
use awa_store_diesel::{Clock, DieselStore, DoctorOptions, RingSizes, SchemaName};
use awa_tests::diesel_store::FreshDieselStore;
use awa_tests::life::whole_life;
use awa_tests::stage;
use diesel::sql_types::{BigInt, Text};
use diesel::{Connection as _, QueryableByName};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use sqlx::{Connection as _, PgConnection};

const ME: InstanceId = InstanceId(0xD1);
/// How often it is looked for what happens soon; each look is a round trip.
const LOOKS: usize = 20_000;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

fn queue() -> QueueName {
    QueueName::new("diesel").unwrap()
}

fn job() -> NewJob {
    NewJob::new(queue(), JobKind::new("test").unwrap(), JsonText::new("args", "{}").unwrap())
}

fn unique_job() -> NewJob {
    let key = UniqueBy::text("one").key_of(&job()).unwrap();
    job().with_unique(Unique::new(key).on_conflict(OnConflict::Error))
}

async fn on_server_clock() -> FreshDieselStore {
    FreshDieselStore::new(RingSizes::default(), Clock::Server).await
}

#[derive(QueryableByName, Debug, Clone, PartialEq, Eq)]
struct Prepared {
    #[diesel(sql_type = Text)]
    statement: String,
    #[diesel(sql_type = Text)]
    prepared_at: String,
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    rows: i64,
}

const PREPARED: &str = "SELECT p.statement, p.prepare_time::text AS prepared_at FROM pg_prepared_statements AS p
     WHERE p.statement !~ 'pg_prepared_statements' ORDER BY p.statement, p.name";

/// The statements of the only connection of a store.
async fn prepared(store: &DieselStore) -> Vec<Prepared> {
    let mut connection = store.pool().get().await.unwrap();
    let statements: Vec<Prepared> = diesel::sql_query(PREPARED).load(&mut connection).await.unwrap();
    let twice = statements.windows(2).find(|pair| pair[0].statement == pair[1].statement);
    assert_eq!(twice, None, "a statement is prepared twice");
    statements
}

/// Each call of the hot paths once.
async fn hot_round(store: &DieselStore, round: i64) {
    store.beat(ME, Duration::from_mins(1)).await.unwrap();
    store.enqueue(&vec![job(); 3]).await.unwrap();
    let request = ClaimRequest {
        queue: queue(),
        instance: ME,
        nonce: Nonce(round),
        max_jobs: BatchLimit::new(3).unwrap(),
        max_bytes: 1 << 20,
        deadline: None,
        aging: None,
        shape: ClaimShape::Compact,
    };
    let jobs = store.claim(&request).await.unwrap().jobs;
    let ends = [AttemptEnd::Complete, AttemptEnd::Complete, AttemptEnd::Release { delay: Duration::ZERO }];
    let closures: Vec<_> = jobs.iter().zip(ends).map(|(job, end)| Closure { receipt: job.receipt, end }).collect();
    assert_eq!(closures.len(), 3);
    store.close(&closures).await.unwrap();
    store.are_open(&[jobs[0].receipt]).await.unwrap();
    store.try_tick(Task::Promote, Duration::from_secs(1)).await.unwrap();
    store.promote(10).await.unwrap();
    store.list(&JobFilter { limit: 10, ..JobFilter::default() }).await.unwrap();
}

#[tokio::test]
async fn no_statement_is_prepared_twice_on_a_connection() {
    let fresh = on_server_clock().await;
    let store = fresh.another_pool(|options| options.max_connections(1)).await;
    whole_life(&store, "life").await;
    let of_a_life = prepared(&store).await;
    store.open_queue(&queue()).await.unwrap();
    hot_round(&store, 0).await;
    let after_one_round = prepared(&store).await;
    for round in 1..20 {
        hot_round(&store, round).await;
    }
    assert_eq!(prepared(&store).await, after_one_round, "a statement was prepared again");
    let sql = Sql::new(&SchemaName::default(), RingSizes::default());
    for name in ["enqueue/enqueue", "claims/claim", "claims/complete", "claims/end", "claims/beat", "ticks/promote"] {
        let text = &*sql.statement(name).text;
        assert!(after_one_round.iter().any(|kept| kept.statement == text), "{name} is not kept");
    }
    assert!(of_a_life.len() > 40, "only {} statements are kept", of_a_life.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_connection_prepares_enqueue_once() {
    let fresh = on_server_clock().await;
    let producer = fresh.store.blocking();
    let mut connection = fresh.connect_blocking().await;
    let statements = tokio::task::spawn_blocking(move || {
        for _ in 0..5 {
            producer.enqueue_in(&mut connection, &[job(), job()]).unwrap();
        }
        let statements = diesel::RunQueryDsl::load::<Prepared>(diesel::sql_query(PREPARED), &mut connection).unwrap();
        drop(connection);
        statements
    });
    let statements = statements.await.unwrap();
    let sql = Sql::new(&SchemaName::default(), RingSizes::default());
    let texts: Vec<_> = statements.iter().map(|kept| kept.statement.as_str()).collect();
    assert_eq!(texts, [&*sql.statement("enqueue/enqueue_at_once").text]);
    assert_eq!(fresh.store.list(&JobFilter { limit: 100, ..JobFilter::default() }).await.unwrap().len(), 10);
}

async fn users(store: &DieselStore) -> i64 {
    let mut connection = store.pool().get().await.unwrap();
    let count: Count =
        diesel::sql_query("SELECT count(*) AS rows FROM users").get_result(&mut connection).await.unwrap();
    count.rows
}

async fn jobs(store: &DieselStore) -> usize {
    store.list(&JobFilter { limit: 1_000, ..JobFilter::default() }).await.unwrap().len()
}

async fn with_users() -> FreshDieselStore {
    let fresh = on_server_clock().await;
    fresh.database.psql("CREATE TABLE users (name text NOT NULL)").unwrap();
    fresh
}

const ADA: &str = "INSERT INTO users (name) VALUES ('Ada')";

#[tokio::test]
async fn jobs_of_an_async_transaction_share_the_fate_of_its_rows() {
    let fresh = with_users().await;
    let store = &fresh.store;
    let mut connection = store.pool().get().await.unwrap();
    let sign_up = async |connection: &mut AsyncPgConnection, fails: bool| {
        diesel::sql_query(ADA).execute(connection).await?;
        let enqueued = store.enqueue_in(connection, &[job(), job()]).await?;
        assert!(enqueued.iter().all(|answer| answer.is_inserted()));
        // Others see neither the row nor the jobs, and do not wait.
        assert_eq!((users(store).await, jobs(store).await), if fails { (1, 2) } else { (0, 0) });
        if fails { Err(AnyError::from("changed my mind")) } else { Ok(()) }
    };
    connection.transaction(async |connection| sign_up(connection, false).await).await.unwrap();
    assert_eq!((users(store).await, jobs(store).await), (1, 2));
    connection.transaction(async |connection| sign_up(connection, true).await).await.unwrap_err();
    assert_eq!((users(store).await, jobs(store).await), (1, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_a_blocking_transaction_share_the_fate_of_its_rows() {
    let fresh = with_users().await;
    let (store, producer) = (&fresh.store, fresh.store.blocking());
    let mut connection = fresh.connect_blocking().await;
    let connection = tokio::task::spawn_blocking(move || {
        let mut sign_up = |fails: bool| {
            connection.transaction(|connection| {
                diesel::RunQueryDsl::execute(diesel::sql_query(ADA), connection)?;
                producer.enqueue_in(connection, &[job(), job()])?;
                if fails { Err(AnyError::from("changed my mind")) } else { Ok(()) }
            })
        };
        sign_up(false).unwrap();
        sign_up(true).unwrap_err();
        connection
    });
    drop(connection.await.unwrap());
    assert_eq!((users(store).await, jobs(store).await), (1, 2));
}

#[tokio::test]
async fn a_refused_enqueue_leaves_the_transaction_usable() {
    let fresh = with_users().await;
    let store = &fresh.store;
    let nowhere = DieselStore::options().schema(SchemaName::new("nowhere").unwrap()).on_pool(store.pool().clone());
    let held = store.enqueue(&[unique_job()]).await.unwrap()[0].id();
    let mut connection = store.pool().get().await.unwrap();
    let sign_up = connection.transaction(async |connection| {
        // What Awa refuses is refused before a byte is sent.
        QueueName::new("").unwrap_err();
        JsonText::new("args", "{").unwrap_err();
        // A conflict is an answer.
        let answers = store.enqueue_in(connection, &[unique_job(), job()]).await?;
        assert_eq!(answers[0], Enqueued::Refused(held));
        assert!(answers[1].is_inserted());
        // What the server refuses is undone by a savepoint, as for every statement of diesel.
        let refused = connection
            .transaction(async |connection| nowhere.enqueue_in(connection, &[job()]).await.map_err(AnyError::from));
        let refused = refused.await.unwrap_err().downcast::<StoreError>().unwrap();
        assert_eq!(refused.kind(), StoreErrorKind::NotReady, "{refused}");
        diesel::sql_query(ADA).execute(connection).await?;
        Ok::<_, AnyError>(())
    });
    sign_up.await.unwrap();
    assert_eq!((users(store).await, jobs(store).await), (1, 2));
}

/// Only a message that is one sentence, names what helps and has the right kind will do.
fn one_sentence(error: &StoreError, kind: StoreErrorKind, helps: &str) {
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}");
    assert!(text.contains(helps), "{text:?} does not say {helps:?}");
    let everything = format!("{text} {error:?}");
    assert!(!text.contains('\n') && text.len() < 400 && !everything.contains("s3cret"), "{everything}");
}

#[tokio::test]
async fn what_cannot_be_used_is_told_in_one_sentence_without_the_password() {
    let server = TestServer::shared().unwrap();
    let database = server.empty_database().unwrap();
    let url = database.url().replace("postgres@", "postgres:s3cret@");
    let connect = async |url: &str| DieselStore::options().acquire_timeout(Duration::from_secs(5)).connect(url).await;
    let failure = async |url: &str| connect(url).await.expect_err("it cannot be used");
    let elsewhere = url.replace(database.name(), "nowhere");
    one_sentence(&failure(&elsewhere).await, StoreErrorKind::NotReady, "create the database");
    let port = url.rsplit(':').next().and_then(|rest| rest.split('/').next()).unwrap();
    let closed = url.replace(&format!(":{port}/"), ":1/");
    one_sentence(&failure(&closed).await, StoreErrorKind::Unavailable, "address");
    let nobody = url.replace("postgres:s3cret@", "nobody:s3cret@");
    one_sentence(&failure(&nobody).await, StoreErrorKind::Denied, "role");
    for bad in
        ["mysql://me:s3cret@localhost/x", "host=localhost password=s3cret", "postgres://me:s3cret@127.0.0.1:port/x"]
    {
        one_sentence(&failure(bad).await, StoreErrorKind::Refused, "postgres://");
    }
    let store = connect(&url).await.unwrap();
    one_sentence(&store.check_ready().await.unwrap_err(), StoreErrorKind::NotReady, "awa migrate");
    one_sentence(&store.enqueue(&[job()]).await.unwrap_err(), StoreErrorKind::NotReady, "awa migrate");
    one_sentence(&store.drain().await.unwrap_err(), StoreErrorKind::NotReady, "awa migrate");
}

#[tokio::test]
async fn errors_of_the_server_have_their_kind_although_diesel_hides_the_sqlstate() {
    let fresh = on_server_clock().await;
    let store = &fresh.store;
    store.open_queue(&queue()).await.unwrap();
    let role = fresh.database.name().to_owned();
    let grants = format!("CREATE ROLE {role} LOGIN; GRANT CREATE ON DATABASE {role} TO {role}");
    fresh.database.psql(&grants).unwrap();
    let url = fresh.database.url().replace("postgres@", &format!("{role}@"));
    let stranger = DieselStore::options().connect(&url).await.unwrap();
    one_sentence(&stranger.enqueue(&[job()]).await.unwrap_err(), StoreErrorKind::Denied, "grant");

    fresh.database.psql(&format!("ALTER DATABASE {role} SET lock_timeout = '50ms'")).unwrap();
    let hasty = fresh.another_pool(|options| options).await;
    let mut holder = PgConnection::connect(&fresh.database.url()).await.unwrap();
    stage::run(&mut holder, "BEGIN; LOCK TABLE awa.queue_lanes IN ACCESS EXCLUSIVE MODE").await;
    one_sentence(&hasty.queues().await.unwrap_err(), StoreErrorKind::Contended, "try again");
    stage::run(&mut holder, "ROLLBACK").await;

    // An error of Awa's own: the data come from another cluster.
    let elsewhere =
        "CREATE OR REPLACE FUNCTION awa.home_cluster() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 1::bigint'";
    fresh.database.psql(elsewhere).unwrap();
    one_sentence(&store.enqueue(&[job()]).await.unwrap_err(), StoreErrorKind::NotReady, "awa repair");
    drop((stranger, hasty));
    fresh.database.psql(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).unwrap();
}

#[tokio::test]
async fn a_pool_survives_the_end_of_its_connections() {
    let fresh = on_server_clock().await;
    let store = fresh.another_pool(|options| options.max_connections(1).wakeups(false)).await;
    store.enqueue(&[job()]).await.unwrap();
    fresh
        .database
        .psql("SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity AS a WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()")
        .unwrap();
    let mut failures = Vec::new();
    for _ in 0..LOOKS {
        match store.enqueue(&[job()]).await {
            Ok(_) => {
                assert!(failures.len() <= 1, "{failures:?}");
                return;
            }
            Err(error) => {
                assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
                failures.push(error.to_string());
            }
        }
    }
    panic!("no call succeeds again: {:?}", failures.last());
}

#[tokio::test]
async fn a_call_that_is_dropped_inside_its_transaction_leaves_nothing_behind() {
    let fresh = on_server_clock().await;
    let store = fresh.another_pool(|options| options.max_connections(1).wakeups(false)).await;
    let mut holder = PgConnection::connect(&fresh.database.url()).await.unwrap();
    stage::run(&mut holder, "BEGIN; LOCK TABLE awa.queue_lanes IN ACCESS EXCLUSIVE MODE").await;
    // More jobs than one statement takes, so that the call is a transaction of several.
    let producer = store.clone();
    let call = tokio::spawn(async move { producer.enqueue(&vec![job(); 10_001]).await });
    let waits = "SELECT count(*)::text FROM pg_stat_activity AS a WHERE a.wait_event_type = 'Lock' AND a.datname = current_database()";
    // What is going on is read once per transaction, so that its holder would look at the same picture for ever.
    let mut observer = PgConnection::connect(&fresh.database.url()).await.unwrap();
    let mut is_waiting = false;
    for _ in 0..LOOKS {
        is_waiting = stage::texts(&mut observer, waits).await == [Some("1".to_owned())];
        if is_waiting {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert!(is_waiting, "the call does not wait");
    call.abort();
    call.await.unwrap_err();
    stage::run(&mut holder, "ROLLBACK").await;
    assert_eq!(jobs(&store).await, 0);
    let id = store.enqueue(&[job()]).await.unwrap()[0].id();
    assert!(store.get(id).await.unwrap().is_some() && store.get(JobId(id.0 - 1)).await.unwrap().is_none());
    assert_eq!(jobs(&store).await, 1);
}

#[tokio::test]
async fn the_schema_can_be_installed_through_diesel() {
    let database = TestServer::shared().unwrap().empty_database().unwrap();
    let store = DieselStore::connect(&database.url()).await.unwrap();
    assert!(store.prepare_schema().await.unwrap().created);
    assert!(!store.prepare_schema().await.unwrap().created);
    store.check_ready().await.unwrap();
    whole_life(&store, "life").await;
    let options = DoctorOptions {
        queue_rotation: RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 },
        claim_rotation: RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 },
        lease_rotation: RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 },
        retention: RetentionPolicy::default(),
        wakeup_patience: Duration::from_mins(1),
    };
    let report = store.doctor(&options).await.unwrap();
    assert!(report.severity < Severity::Critical, "{report:?}");
}
