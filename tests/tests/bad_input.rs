//! Bad input, odd names, odd roles and odd settings: refused with a sentence that helps, or no difference at all.

use std::sync::Arc;
use std::time::Duration;

use awa_core::error::{BadInput, StoreErrorKind};
use awa_core::job::{MaxAttempts, RunAt};
use awa_core::store::{Consumer, Maintainer, Producer};
use awa_core::time::Timestamp;
use awa_core::{JobKind, JsonText, NewJob, Priority, QueueName, StoreError};
use awa_pg::SchemaName;
use awa_pg::cluster::{Cluster, ClusterOptions, Durability, TestServer};
use awa_store_sqlx::SqlxStore;
use awa_tests::life::whole_life;
use awa_tests::postgres::SMALL_RINGS;
use awa_tests::stage::{Stage, run, texts};
use sqlx::{Connection, PgConnection, Row};

/// A hostile input of one field.
fn job_with(field: &str, hostile: &str) -> Result<NewJob, BadInput> {
    let queue = QueueName::new(if field == "queue" { hostile } else { "races" })?;
    let kind = JobKind::new(if field == "kind" { hostile } else { "test" })?;
    let args = JsonText::new("args", if field == "args" { hostile } else { "{}" })?;
    let mut job = NewJob::new(queue, kind, args);
    match field {
        "priority" => job = job.with_priority(Priority::new(hostile.parse().unwrap())?),
        "max_attempts" => job = job.with_max_attempts(MaxAttempts::new(hostile.parse().unwrap())?),
        "run_at" => job = job.with_run_at(RunAt::at(Timestamp::from_micros(hostile.parse().unwrap()))?),
        "metadata" => job = job.with_metadata(JsonText::new("metadata", hostile)?),
        _ => {}
    }
    Ok(job)
}

/// Each is refused before a byte is sent, with its field named; the rest of the batch goes on in the same transaction of
/// the caller's, which commits.
#[tokio::test]
async fn bad_input_is_refused_with_its_field_and_leaves_the_transaction_usable() {
    let stage = Stage::new().await;
    let (long, huge) = ("q".repeat(201), format!("\"{}\"", "x".repeat(1 << 20)));
    let deep = format!("{}{}", "[".repeat(600), "]".repeat(600));
    let mut cases: Vec<(&str, &str)> = Vec::new();
    for name in ["", "'; drop table x; --", "a\"b", "a\nb", "🦀", "nul\0", long.as_str()] {
        cases.extend([("queue", name), ("kind", name)]);
    }
    for text in
        ["", "{", "{\"a\":}", "\"\\u0000\"", "\"a\0b\"", "\"\\ud800\"", "{} {}", "NaN", huge.as_str(), deep.as_str()]
    {
        cases.extend([("args", text), ("metadata", text)]);
    }
    cases.extend([("priority", "0"), ("priority", "5"), ("priority", "-32768")]);
    cases.extend([("max_attempts", "0"), ("max_attempts", "32768")]);
    cases.extend([("run_at", "-1"), ("run_at", "9223372036854775807"), ("run_at", "-9223372036854775808")]);
    let mut user = stage.connect().await;
    run(&mut user, "BEGIN; CREATE TABLE orders (id bigint)").await;
    let mut stored = 0;
    for (field, hostile) in cases {
        let error = job_with(field, hostile).expect_err(field);
        assert_eq!(error.field, field, "{hostile:?}");
        assert!(error.to_string().starts_with(field) && error.to_string().len() < 400, "{error}");
        run(&mut user, "INSERT INTO orders VALUES (1)").await;
        stored += stage.enqueue_in(&mut user, 2).await.len();
    }
    run(&mut user, "COMMIT").await;
    assert_eq!(stage.claim(1_000).await.len(), stored);
    assert_eq!(stage.number("SELECT count(*) FROM orders").await * 2, stored as i64);
}

/// What is odd but allowed comes back to the byte.
#[tokio::test]
async fn odd_but_good_input_comes_back_to_the_byte() {
    let stage = Stage::new().await;
    let largest = format!("\"{}\"", "x".repeat((1 << 20) - 2));
    let deep = format!("{}1{}", "[".repeat(512), "]".repeat(512));
    let texts = [
        " [1e400, -0.0, 9223372036854775808, 1.10] ",
        "{\"b\":1,\"a\":2,\"a\":3}",
        "\"\\ud83e\\udd80 \\u00e9 é 🦀 \\\\u0000 \\/\"",
        "\"NULL\"",
        "null",
        "\"{}, \\\" ,\"",
        largest.as_str(),
        deep.as_str(),
    ];
    let jobs: Vec<NewJob> =
        texts.iter().map(|text| stage.job(text).with_metadata(JsonText::new("metadata", *text).unwrap())).collect();
    stage.store().enqueue(&jobs).await.unwrap();
    let claimed = stage.claim(texts.len()).await;
    for (job, text) in claimed.iter().zip(texts) {
        assert_eq!(job.args.as_str(), text);
        assert_eq!(job.metadata.as_ref().map(JsonText::as_str), Some(text));
    }
    stage.complete(&claimed).await;
}

/// Schema names whose characters are dangerous somewhere in SQL, of the longest length, in any script: every call works in
/// each, wake-ups too, and two of them in one database do not meet.
#[tokio::test]
async fn a_job_lives_in_a_schema_of_any_name() {
    let server = TestServer::shared().unwrap();
    let database = server.empty_database().unwrap();
    let long = "ü".repeat(31) + "x";
    for name in ["Awa", "it's \"one\" \\ $awa$ */ /* -- %I %s", &long, "日本語.🦀", "select", "awa, public"] {
        let options = SqlxStore::options().schema(SchemaName::new(name).unwrap()).rings(SMALL_RINGS).max_connections(4);
        let store = options.connect(&database.url()).await.unwrap();
        assert!(store.prepare_schema().await.unwrap().created, "{name}");
        assert!(!store.prepare_schema().await.unwrap().created, "{name}");
        whole_life(&store, "life").await;
        store.pool().close().await;
    }
}

/// A database role and what its settings do to every session.
async fn life_of_role(cluster: &Arc<Cluster>, role: &str, settings: &[&str]) {
    println!("{role}: {settings:?}");
    let script = format!("CREATE ROLE {role} LOGIN; CREATE DATABASE {role}; ALTER DATABASE {role} OWNER TO {role};");
    let mut admin = PgConnection::connect(&cluster.url("postgres")).await.unwrap();
    for statement in script.split_inclusive(';') {
        run(&mut admin, statement).await;
    }
    for setting in settings {
        run(&mut admin, &format!("ALTER ROLE {role} SET {setting}")).await;
    }
    let url = cluster.url(role).replace("postgres@", &format!("{role}@"));
    let store = SqlxStore::options().rings(SMALL_RINGS).max_connections(4).connect(&url).await.unwrap();
    store.prepare_schema().await.unwrap_or_else(|error| panic!("{settings:?}: {error}"));
    whole_life(&store, "life").await;
    let mut user = store.pool().begin().await.unwrap();
    let is_superuser: String = sqlx::query("SHOW is_superuser").fetch_one(&mut *user).await.unwrap().get(0);
    assert_eq!(is_superuser, "off");
    user.rollback().await.unwrap();
    store.pool().close().await;
}

async fn own_cluster(settings: &[(&str, &str)]) -> Arc<Cluster> {
    let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let start = move || Cluster::start(ClusterOptions { durability: Durability::Relaxed, settings });
    Arc::new(tokio::task::spawn_blocking(start).await.unwrap().expect("PostgreSQL can be started"))
}

/// The whole life under the settings that operators give to roles, with an owner who is no superuser.
#[tokio::test]
async fn the_settings_of_a_role_make_no_difference() {
    let cluster = own_cluster(&[]).await;
    life_of_role(&cluster, "plain", &[]).await;
    life_of_role(&cluster, "hasty", &["statement_timeout = '1s'", "lock_timeout = '100ms'"]).await;
    life_of_role(&cluster, "strict", &["default_transaction_isolation = 'serializable'"]).await;
    life_of_role(&cluster, "repeatable", &["default_transaction_isolation = 'repeatable read'"]).await;
    life_of_role(&cluster, "lax", &["synchronous_commit = off"]).await;
    life_of_role(&cluster, "pathless", &["search_path = ''"]).await;
    let odd = [
        "standard_conforming_strings = off",
        "bytea_output = 'escape'",
        "DateStyle = 'German, DMY'",
        "IntervalStyle = 'sql_standard'",
        "TimeZone = 'Pacific/Apia'",
        "extra_float_digits = -15",
        "client_encoding = 'LATIN1'",
        "plan_cache_mode = 'force_custom_plan'",
        "default_transaction_deferrable = on",
        "xmloption = 'document'",
        "enable_indexscan = off",
        "jit_above_cost = 0",
    ];
    life_of_role(&cluster, "odd", &odd).await;
}

/// Where the role lowered `synchronous_commit`, what is acknowledged as durable is committed durably all the same.
#[tokio::test]
async fn acknowledged_ends_are_durable_whatever_the_role_says() {
    let stage = Stage::new().await;
    let ids = stage.enqueue(6).await;
    let jobs = stage.claim(2).await;
    stage.end(&jobs[1..], awa_core::AttemptEnd::Fail { error: awa_core::attempt::ErrorText::new("boom") }).await;
    let end = format!(
        "SELECT count(*)::text FROM awa.end_attempts('{{{}}}', '{{{}}}', '{{{}}}', '{{4}}', '{{dead}}', '{{NULL}}', '{{x}}', NULL)",
        jobs[0].receipt.claim_slot, jobs[0].receipt.nonce, jobs[0].receipt.id
    );
    let complete = awa_tests::stage::complete_sql(&jobs[..1]);
    let cancel = format!("SELECT c.answer FROM awa.cancel_jobs('{{{}}}', 'no') AS c", ids[4]);
    let retry = format!("SELECT r.answer FROM awa.retry_jobs('{{{}}}') AS r", jobs[1].receipt.job);
    let claim = "SELECT count(*)::text FROM awa.claim_jobs('races', 1, 1, 1, 1000)".to_owned();
    let mut session = stage.connect().await;
    for lowered in ["off", "local"] {
        run(&mut session, &format!("SET synchronous_commit = {lowered}")).await;
        for call in [&claim, &complete, &end, &cancel, &retry] {
            run(&mut session, "BEGIN").await;
            assert!(texts(&mut session, call).await[0].is_some(), "{call}");
            assert_eq!(texts(&mut session, "SHOW synchronous_commit").await, [Some("on".to_owned())], "{call}");
            run(&mut session, "ROLLBACK").await;
            assert_eq!(texts(&mut session, "SHOW synchronous_commit").await, [Some(lowered.to_owned())]);
        }
    }
    // A stronger setting is never lowered.
    run(&mut session, "SET synchronous_commit = remote_apply; BEGIN").await;
    texts(&mut session, &claim).await;
    assert_eq!(texts(&mut session, "SHOW synchronous_commit").await, [Some("remote_apply".to_owned())]);
}

/// Programs in other languages call the functions as well.
#[tokio::test]
async fn a_completion_of_nothing_known_closes_nothing() {
    let stage = Stage::new().await;
    stage.enqueue(3).await;
    let mut session = stage.connect().await;
    // A batch of one, and one of several.
    for jobs in [stage.claim_once(1).await.jobs, stage.claim_once(2).await.jobs] {
        let first = jobs[0].receipt;
        let call = |nonce: &str, receipts: &str| {
            let (slot, batch) = (first.claim_slot, first.id.batch());
            format!(
                "SELECT c.closed FROM awa.complete_attempts('{{{slot}}}', '{{{batch}}}', '{{{nonce}}}', {receipts}) AS c"
            )
        };
        let nonce = first.nonce.to_string();
        for (nonce, receipts) in [(&*nonce, "ARRAY[NULL]::text[]"), (&nonce, "ARRAY['{}']"), ("NULL", "ARRAY['{(,)}']")]
        {
            assert_eq!(texts(&mut session, &call(nonce, receipts)).await, [], "{nonce} {receipts}");
        }
        assert_eq!(
            stage
                .number(
                    "SELECT count(*) FROM awa.lease_claim_closure_batches WHERE receipts IS NULL AND receipt IS NULL"
                )
                .await,
            0
        );
        stage.complete(&jobs).await;
    }
}

/// Twenty processes start for the first time at the same moment, each with a pool of one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_first_starts_at_once_install_the_schema_once() {
    let server = TestServer::shared().unwrap();
    let database = server.empty_database().unwrap();
    let mut starting = Vec::new();
    for _ in 0..20 {
        let url = database.url();
        starting.push(tokio::spawn(async move {
            let options = SqlxStore::options().rings(SMALL_RINGS).max_connections(1).wakeups(false);
            let store = options.acquire_timeout(Duration::from_mins(1)).connect(&url).await?;
            let prepared = store.prepare_schema().await?;
            store.check_ready().await?;
            store.open_queue(&QueueName::new("q").unwrap()).await?;
            store.pool().close().await;
            Ok::<_, StoreError>(prepared.created)
        }));
    }
    let mut created = 0;
    for start in starting {
        created += usize::from(start.await.unwrap().unwrap());
    }
    assert_eq!(created, 1);
}

/// What every refusal to start must look like: one sentence, which says what to do, without a password.
fn one_sentence(error: &StoreError, kind: StoreErrorKind, helps: &str) {
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}");
    assert!(text.contains(helps), "{text:?} does not say {helps:?}");
    assert!(!text.contains('\n') && text.len() < 400 && !text.ends_with('.'), "{text:?}");
    let everything = format!("{text} {error:?} {:?}", std::error::Error::source(error).map(ToString::to_string));
    assert!(!everything.contains("s3cret") && !everything.contains("guessed"), "{everything}");
}

#[tokio::test]
async fn a_schema_of_another_version_is_refused_with_what_helps() {
    let stage = Stage::new().await;
    let fresh = async || {
        let error = stage.fresh.another_pool(|options| options.wakeups(false)).await.check_ready().await;
        error.expect_err("the schema does not fit")
    };
    let mut admin = stage.connect().await;
    run(&mut admin, "UPDATE awa.installation SET version = version + 1, program = '99.0.0'").await;
    let error = fresh().await;
    one_sentence(&error, StoreErrorKind::NotReady, "update this program");
    assert!(error.to_string().contains("99.0.0"), "{error}");
    run(&mut admin, "UPDATE awa.installation SET version = version - 1, fingerprint = 'older'").await;
    one_sentence(&fresh().await, StoreErrorKind::NotReady, "awa migrate");
    // Half an installation is none.
    run(&mut admin, "DELETE FROM awa.installation").await;
    one_sentence(&fresh().await, StoreErrorKind::NotReady, "awa migrate");
    // Migrations of a newer program are not undone.
    run(&mut admin, "INSERT INTO awa.migrations (version, title, hash) VALUES (9999, 'later', 'x')").await;
    let store = stage.fresh.another_pool(|options| options.wakeups(false)).await;
    one_sentence(
        &store.prepare_schema().await.expect_err("it is newer"),
        StoreErrorKind::NotReady,
        "update this program",
    );
}

#[tokio::test]
async fn a_missing_schema_is_named_by_every_call() {
    let server = TestServer::shared().unwrap();
    let database = server.empty_database().unwrap();
    let store = SqlxStore::options().wakeups(false).connect(&database.url()).await.unwrap();
    one_sentence(&store.check_ready().await.unwrap_err(), StoreErrorKind::NotReady, "awa migrate");
    let job = job_with("none", "").unwrap();
    one_sentence(&store.enqueue(&[job]).await.unwrap_err(), StoreErrorKind::NotReady, "awa migrate");
    one_sentence(&store.drain().await.unwrap_err(), StoreErrorKind::NotReady, "awa migrate");
    let beat = store.beat(awa_core::InstanceId(1), Duration::from_secs(1)).await.unwrap_err();
    one_sentence(&beat, StoreErrorKind::NotReady, "awa migrate");
}

#[tokio::test]
async fn a_server_that_cannot_be_used_is_told_in_one_sentence_without_the_password() {
    let cluster = own_cluster(&[("password_encryption", "scram-sha-256")]).await;
    let mut admin = PgConnection::connect(&cluster.url("postgres")).await.unwrap();
    run(&mut admin, "CREATE ROLE careful LOGIN PASSWORD 's3cret'").await;
    let hba: String = sqlx::query("SHOW hba_file").fetch_one(&mut admin).await.unwrap().get(0);
    let copy = format!(
        "COPY (SELECT 'host all careful 127.0.0.1/32 scram-sha-256' UNION ALL SELECT 'host all all 127.0.0.1/32 trust') TO '{hba}'"
    );
    run(&mut admin, &copy).await;
    run(&mut admin, "SELECT pg_reload_conf()").await;
    let port = cluster.port();
    let url = |user: &str, database: &str| format!("postgres://{user}@127.0.0.1:{port}/{database}");
    let connect = async |url: &str| SqlxStore::options().acquire_timeout(Duration::from_secs(5)).connect(url).await;
    let failure = async |url: &str| connect(url).await.expect_err("it cannot be used");
    // The server reads the file when it has time to.
    let wrong = url("careful:guessed", "postgres");
    while connect(&wrong).await.is_ok() {
        tokio::task::yield_now().await;
    }
    one_sentence(&failure(&wrong).await, StoreErrorKind::Denied, "password");
    one_sentence(&failure(&url("careful", "postgres")).await, StoreErrorKind::Denied, "password");
    one_sentence(&failure(&url("nobody:guessed", "postgres")).await, StoreErrorKind::Denied, "role");
    one_sentence(&failure(&url("careful:s3cret", "nowhere")).await, StoreErrorKind::NotReady, "create the database");
    assert!(connect(&url("careful:s3cret", "postgres")).await.is_ok());
    // Without the privilege to create a schema.
    let store = connect(&url("careful:s3cret", "postgres")).await.unwrap();
    one_sentence(&store.prepare_schema().await.unwrap_err(), StoreErrorKind::Denied, "grant");
    // A port on which nobody listens, an address that is none, and text that is no URL.
    let closed = url("careful:s3cret", "postgres").replace(&port.to_string(), "1");
    one_sentence(&failure(&closed).await, StoreErrorKind::Unavailable, "address");
    one_sentence(&failure("postgres://careful:s3cret@/").await, StoreErrorKind::Refused, "postgres://");
    one_sentence(&failure("mysql://careful:s3cret@localhost/x").await, StoreErrorKind::Refused, "postgres://");
    one_sentence(&failure("postgres://careful:s3cret@127.0.0.1:port/x").await, StoreErrorKind::Refused, "postgres://");
}

/// Anybody who may create functions in a schema of the search path can make ones that fit an argument better than
/// PostgreSQL's own, which are chosen then although `pg_catalog` comes first. They must not run with the rights of a worker.
#[tokio::test]
async fn look_alike_functions_in_the_search_path_are_not_called() {
    let stage = Stage::new().await;
    let mut evil = stage.connect().await;
    let traps = [
        "nextval(text) RETURNS bigint",
        "setval(text, bigint) RETURNS bigint",
        "pg_relation_size(text) RETURNS bigint",
        "brin_desummarize_range(text, bigint) RETURNS void",
        "cardinality(text[]) RETURNS integer",
        "cardinality(json[]) RETURNS integer",
        "cardinality(bigint[]) RETURNS integer",
        "cardinality(smallint[]) RETURNS integer",
        "array_position(xid8[], xid8) RETURNS integer",
        "array_position(bigint[], bigint) RETURNS integer",
        "array_remove(bigint[], bigint) RETURNS bigint[]",
        "unnest(bigint[]) RETURNS SETOF bigint",
        "unnest(text[]) RETURNS SETOF text",
        "unnest(smallint[]) RETURNS SETOF smallint",
        "unnest(int8multirange) RETURNS SETOF int8range",
        "lower(int8multirange) RETURNS bigint",
        "upper(int8range) RETURNS bigint",
        "lower(int8range) RETURNS bigint",
        "isempty(int8multirange) RETURNS boolean",
        "generate_series(integer, integer) RETURNS SETOF integer",
        "pg_notify(text, text) RETURNS void",
        "set_config(text, text, boolean) RETURNS text",
        "hashtextextended(text, integer) RETURNS bigint",
        "concat_ws(text, text, text) RETURNS text",
        "age(xid) RETURNS integer",
    ];
    for trap in traps {
        let body = "LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked'; END $$";
        run(&mut evil, &format!("CREATE FUNCTION public.{trap} {body}")).await;
    }
    for (operator, left, right, result) in [
        ("@>", "int8multirange", "bigint", "boolean"),
        ("&&", "int8multirange", "int8multirange", "boolean"),
        ("-", "int8multirange", "int8multirange", "int8multirange"),
        ("*", "int8multirange", "int8multirange", "int8multirange"),
    ] {
        let function = format!("trap_{left}_{right}_{result}");
        let script = format!(
            "CREATE OR REPLACE FUNCTION public.{function}({left}, {right}) RETURNS {result} LANGUAGE plpgsql
                 AS $$ BEGIN RAISE EXCEPTION 'hijacked'; END $$;
             CREATE OPERATOR public.{operator} (LEFTARG = {left}, RIGHTARG = {right}, FUNCTION = public.{function})"
        );
        run(&mut evil, &script).await;
    }
    let store = stage.fresh.another_pool(|options| options).await;
    whole_life(&store, "life").await;
    let (policy, patience) =
        (awa_core::ring::RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 }, Duration::from_secs(20));
    let options = awa_store_sqlx::DoctorOptions {
        queue_rotation: policy,
        claim_rotation: policy,
        lease_rotation: policy,
        retention: awa_core::store::RetentionPolicy::default(),
        wakeup_patience: patience,
    };
    let report = store.doctor(&options).await.unwrap();
    assert!(report.to_string().contains("wake-ups: announced, sent and heard"), "{report}");
}
