//! Schemas of before the rings: taken over when that is safe, refused with what helps when it is not.

use std::fmt::Write as _;
use std::time::Duration;

use awa_core::ring::{RingKind, RotationPolicy};
use awa_core::store::{BatchLimit, ClaimRequest, ClaimShape, Consumer, Maintainer, Producer, RetentionPolicy};
use awa_core::{InstanceId, JobId, JobKind, JsonText, NewJob, Nonce, QueueName, StoreErrorKind};
use awa_pg::cluster::{TestDatabase, TestServer};
use awa_pg::{SchemaName, Sql};
use awa_store_sqlx::{PreRing, RingSizes, SqlxStore};
use awa_tests::postgres::FreshStore;

/// The receipt tables of before the rings, in a schema that is given as an identifier.
fn pre_ring(schema: &str) -> String {
    format!(
        "CREATE SCHEMA {schema};
         CREATE TABLE {schema}.lease_claims (
             job_id bigint NOT NULL, run_lease bigint NOT NULL, claimed_at timestamptz NOT NULL DEFAULT now(),
             deadline_at timestamptz, materialized_at timestamptz, PRIMARY KEY (job_id, run_lease));
         CREATE TABLE {schema}.lease_claim_closures (
             job_id bigint NOT NULL, run_lease bigint NOT NULL, outcome text NOT NULL,
             closed_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (job_id, run_lease));
         CREATE TABLE {schema}.open_receipt_claims (job_id bigint NOT NULL PRIMARY KEY, run_lease bigint NOT NULL);
         INSERT INTO {schema}.lease_claims (job_id, run_lease, claimed_at, deadline_at) VALUES
             (41, 1, '2024-01-01 00:00:00Z', NULL), (42, 3, '2024-01-01 00:00:01Z', '2024-01-01 00:01:00Z'),
             (43, 1, '2024-01-01 00:00:02Z', NULL);
         INSERT INTO {schema}.lease_claim_closures (job_id, run_lease, outcome, closed_at) VALUES
             (41, 1, 'completed', '2024-01-01 00:00:05Z'), (42, 3, 'deadline_expired', '2024-01-01 00:02:00Z'),
             (17, 2, 'rescued', '2023-12-31 00:00:00Z');"
    )
}

fn database(script: &str) -> TestDatabase {
    let database = TestServer::shared().unwrap().empty_database().unwrap();
    database.psql(script).unwrap();
    database
}

async fn open(database: &TestDatabase, schema: &str) -> SqlxStore {
    let options = SqlxStore::options().schema(SchemaName::new(schema).unwrap()).wakeups(false).max_connections(1);
    options.connect(&database.url()).await.unwrap()
}

const TABLES: &str = "SELECT string_agg(c.relname, ' ' ORDER BY c.relname) FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = 'awa' AND c.relkind = 'r';";

fn job() -> NewJob {
    let queue = QueueName::new("email").unwrap();
    NewJob::new(queue, JobKind::new("send").unwrap(), JsonText::new("args", "{}").unwrap())
}

#[tokio::test]
async fn receipts_of_before_the_rings_are_rewritten_into_the_open_slot() {
    let database = database(&pre_ring("awa"));
    let store = open(&database, "awa").await;
    let check = store.check_ready().await.unwrap_err();
    assert!(check.to_string().contains("run `awa migrate`"), "{check}");
    let prepared = store.prepare_schema().await.unwrap();
    let expected = PreRing { claims: 3, closures: 3, closed_as_rescued: 1 };
    assert_eq!(prepared.pre_ring, Some(expected));
    assert!(
        prepared
            .to_string()
            .ends_with("3 claims and 3 closures of before the rings rewritten, 1 claims of them closed as rescued"),
        "{prepared}"
    );

    let claims = "SELECT string_agg(concat_ws(' ', job_id, run_lease, to_char(claimed_at AT TIME ZONE 'UTC', 'SS'), claim_slot,
        to_char(deadline_at AT TIME ZONE 'UTC', 'MI'), closed_at IS NOT NULL), ', ' ORDER BY receipt_id) FROM awa.lease_claims;";
    assert_eq!(database.psql(claims).unwrap(), "41 1 00 0 t, 42 3 01 0 01 t, 43 1 02 0 t");
    let closures = "SELECT string_agg(concat_ws(' ', c.job_id, c.run_lease, o.name, l.receipt_id IS NOT NULL), ', '
        ORDER BY c.job_id) FROM awa.lease_claim_closures AS c JOIN awa.attempt_outcomes AS o USING (outcome)
        LEFT JOIN awa.lease_claims AS l USING (claim_slot, receipt_id, job_id, run_lease);";
    let expected = "17 2 stale_rescued f, 41 1 completed t, 42 3 deadline_expired t, 43 1 stale_rescued t";
    assert_eq!(database.psql(closures).unwrap(), expected);
    let left = "SELECT count(*) FROM pg_class WHERE relname LIKE 'pre_ring%' OR relname = 'open_receipt_claims';";
    assert_eq!(database.psql(left).unwrap(), "0");
    let again = store.prepare_schema().await.unwrap();
    assert_eq!(again.to_string(), "schema \"awa\" is up to date");
}

#[tokio::test]
async fn an_upgraded_schema_works_and_forgets_the_old_receipts_with_their_slot() {
    let database = database(&pre_ring("awa"));
    let store = open(&database, "awa").await;
    store.prepare_schema().await.unwrap();
    let ids = store.enqueue(&[job()]).await.unwrap();
    assert!(ids[0].id() > JobId(43), "ids of before are not given out again: {ids:?}");
    let queue = QueueName::new("email").unwrap();
    store.open_queue(&queue).await.unwrap();
    let at_once = RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 };
    store.rotate(RingKind::Claim, &at_once).await.unwrap();
    let request = ClaimRequest {
        queue,
        instance: InstanceId(1),
        nonce: Nonce(1),
        max_jobs: BatchLimit::new(1).unwrap(),
        max_bytes: 1000,
        deadline: None,
        aging: None,
        shape: ClaimShape::Compact,
    };
    let claimed = store.claim(&request).await.unwrap().jobs;
    assert!(claimed[0].receipt.id.get() > 4 << 10, "receipts of before are not given out again");
    let pruned = store.prune(RingKind::Claim, &RetentionPolicy::default()).await.unwrap();
    assert_eq!(pruned.iter().map(|report| report.kept).collect::<Vec<_>>(), [None]);
    assert_eq!(database.psql("SELECT count(*) FROM awa.lease_claims;").unwrap(), "0");
}

#[tokio::test]
async fn attempts_that_run_in_the_old_version_are_not_upgraded_over() {
    let database =
        database(&format!("{} INSERT INTO awa.open_receipt_claims VALUES (43, 1), (44, 1);", pre_ring("awa")));
    let store = open(&database, "awa").await;
    let before = database.psql(TABLES).unwrap();
    let error = store.prepare_schema().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::NotReady);
    assert!(error.to_string().contains("open_receipt_claims still holds 2 rows"), "{error}");
    assert!(error.to_string().contains("let the workers of the older version finish"), "{error}");
    assert_eq!(database.psql(TABLES).unwrap(), before, "nothing was changed");
    database.psql("DELETE FROM awa.open_receipt_claims;").unwrap();
    assert!(store.prepare_schema().await.unwrap().pre_ring.is_some());
}

#[tokio::test]
async fn a_left_over_table_of_open_claims_is_dropped_from_a_schema_of_this_version_when_it_is_empty() {
    let fresh = FreshStore::with_server_clock().await;
    let (store, database) = (&fresh.store, &fresh.database);
    database
        .psql("CREATE TABLE awa.open_receipt_claims (job_id bigint); INSERT INTO awa.open_receipt_claims VALUES (1);")
        .unwrap();
    let error = store.prepare_schema().await.unwrap_err();
    assert!(error.to_string().contains("still holds 1 rows"), "{error}");
    store.check_ready().await.unwrap();
    database.psql("TRUNCATE awa.open_receipt_claims;").unwrap();
    assert_eq!(store.prepare_schema().await.unwrap().pre_ring, None);
    assert_eq!(database.psql("SELECT to_regclass('awa.open_receipt_claims') IS NULL;").unwrap(), "t");
}

#[tokio::test]
async fn what_cannot_be_taken_over_is_refused_by_name_and_nothing_is_changed() {
    let unknown = "INSERT INTO awa.lease_claim_closures (job_id, run_lease, outcome) VALUES (43, 1, 'odd');";
    let orphan = "CREATE TABLE awa.queue_lanes (n integer);";
    for (script, words) in [(unknown, "'odd'"), (orphan, "\"queue_lanes\" already exists")] {
        let database = database(&format!("{} {script}", pre_ring("awa")));
        let before = database.psql(TABLES).unwrap();
        let error = open(&database, "awa").await.prepare_schema().await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::NotReady, "{error}");
        assert!(error.to_string().contains(words) && error.to_string().contains("nothing was changed"), "{error}");
        assert_eq!(database.psql(TABLES).unwrap(), before);
    }
}

#[tokio::test]
async fn several_first_starts_upgrade_once_under_any_name_of_the_schema() {
    let name = "a\"'; $$ $awa$ \\ */ /* -- \n%s %";
    let database = database(&pre_ring(&SchemaName::new(name).unwrap().quoted()));
    let mut starts = tokio::task::JoinSet::new();
    for _ in 0..5 {
        let store = open(&database, name).await;
        starts.spawn(async move { store.prepare_schema().await.unwrap().pre_ring });
    }
    let outcomes = starts.join_all().await;
    let expected = PreRing { claims: 3, closures: 3, closed_as_rescued: 1 };
    assert_eq!(outcomes.into_iter().flatten().collect::<Vec<_>>(), [expected]);
}

#[tokio::test]
async fn the_way_back_is_refused_with_the_rows_that_an_older_version_cannot_read() {
    let fresh = FreshStore::with_server_clock().await;
    let store = &fresh.store;
    let refused = store.downgrade().await.unwrap_err();
    assert!(refused.to_string().contains("no claim is stored at the moment"), "{refused}");
    let queue = QueueName::new("email").unwrap();
    store.open_queue(&queue).await.unwrap();
    store.enqueue(&[job()]).await.unwrap();
    let request = ClaimRequest {
        queue,
        instance: InstanceId(1),
        nonce: Nonce(1),
        max_jobs: BatchLimit::new(1).unwrap(),
        max_bytes: 1000,
        deadline: None,
        aging: None,
        shape: ClaimShape::Compact,
    };
    assert_eq!(store.claim(&request).await.unwrap().jobs.len(), 1);
    let refused = store.downgrade().await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Refused);
    assert!(refused.to_string().contains("lease_claim_batches holds 1 rows"), "{refused}");
    assert!(refused.to_string().contains("docs/upgrade.md"), "{refused}");
}

/// Functions and views of the schema, each with its arguments.
const OBJECTS: &str = "SELECT string_agg(o.name, E'\\n' ORDER BY o.name) FROM (
    SELECT p.oid::regprocedure::text AS name FROM pg_proc AS p WHERE p.pronamespace = 'awa'::regnamespace
    UNION ALL SELECT c.relname FROM pg_class AS c WHERE c.relnamespace = 'awa'::regnamespace AND c.relkind = 'v') AS o;";

/// Functions of older versions: of the same names with other arguments, beside views that use them, and some that are gone.
fn older_objects(sql: &Sql) -> String {
    let of_file = |object: &awa_pg::sql::Object| {
        let line = object.text.lines().find(|line| line.starts_with("CREATE OR REPLACE FUNCTION"))?;
        Some(line.split("\"awa\".").nth(1)?.split('(').next()?.to_owned())
    };
    let mut script = String::new();
    for object in sql.objects() {
        if let Some(name) = of_file(object) {
            let instance = object.instance_name();
            write!(
                script,
                "CREATE FUNCTION awa.{name}(p_old point, p_other circle) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 1';
                 INSERT INTO awa.objects (name, hash) VALUES ('{instance}', 'older');"
            )
            .unwrap();
        }
    }
    script.push_str(
        "CREATE FUNCTION awa.of_no_file_any_more(integer) RETURNS integer LANGUAGE sql AS 'SELECT 1';
         CREATE FUNCTION awa.of_no_file_any_more() RETURNS integer LANGUAGE sql AS 'SELECT 1';
         CREATE FUNCTION awa.by_slot_2(integer) RETURNS integer LANGUAGE sql AS 'SELECT 1';
         CREATE VIEW awa.view_of_no_file AS SELECT awa.is_passed(point '(1,2)', circle '((1,2),3)') AS x;
         INSERT INTO awa.objects (name, hash) VALUES ('of_no_file_any_more', 'x'), ('by_slot_0 of slot 2', 'x'),
             ('view_of_no_file', 'x');
         CREATE FUNCTION awa.of_an_operator() RETURNS integer LANGUAGE sql AS 'SELECT 1';",
    );
    script
}

#[tokio::test]
async fn an_upgrade_from_any_version_leaves_exactly_the_functions_of_this_one() {
    let fresh = FreshStore::with_server_clock().await;
    let expected = fresh.database.psql(OBJECTS).unwrap();
    let sql = Sql::new(&SchemaName::default(), RingSizes::default());
    for level in 1..=sql.migrations().len() {
        let mut script = format!("CREATE SCHEMA awa; {};", sql.statement("install/bookkeeping").text);
        for migration in &sql.migrations()[..level] {
            let (version, title, hash) = (migration.version, migration.title, migration.hash);
            script.push_str(&migration.text);
            write!(
                script,
                ";\nINSERT INTO awa.migrations (version, title, hash) VALUES ({version}, '{title}', '{hash}');\n"
            )
            .unwrap();
        }
        script.push_str(&older_objects(&sql));
        let database = database(&script);
        let store = open(&database, "awa").await;
        let prepared = store.prepare_schema().await.unwrap();
        assert_eq!(prepared.migrations.len(), sql.migrations().len() - level);
        store.check_ready().await.unwrap();
        let left = database.psql(OBJECTS).unwrap();
        let extra: Vec<_> = left.lines().filter(|line| !expected.lines().any(|known| known == *line)).collect();
        assert_eq!(
            extra,
            ["awa.of_an_operator()"],
            "after {level} migrations; what is nobody's in the books is left alone"
        );
        assert_eq!(left.lines().count(), expected.lines().count() + 1, "after {level} migrations");
        assert_eq!(database.psql("SELECT count(*) FROM awa.objects WHERE hash IN ('x', 'older');").unwrap(), "0");
        store.enqueue(&[job()]).await.unwrap();
        assert_eq!(store.prepare_schema().await.unwrap().to_string(), "schema \"awa\" is up to date");
    }
}
