//! Queues with several shards, and without a dead-letter queue, on real PostgreSQL.

use std::collections::BTreeSet;

use awa_core::attempt::ErrorText;
use awa_core::id::JobId;
use awa_core::queue::{OrderingKey, QueueSettings, Shard, ShardCount};
use awa_core::store::{Acted, Maintainer, Operator, Producer, Refusal};
use awa_core::{AttemptEnd, JobState, NewJob, Unique, UniqueBy};
use awa_tests::seed::Seed;
use awa_tests::stage::{Stage, run, sqlstate, texts, try_run};

/// Any wait for a lock fails the statement at once.
const NEVER_WAIT: &str = "SET lock_timeout = '1ms'";

fn shards(count: i64) -> QueueSettings {
    QueueSettings::default().with_enqueue_shards(ShardCount::new(count).unwrap())
}

async fn configured(settings: &QueueSettings) -> Stage {
    let stage = Stage::new().await;
    stage.store().configure_queue(&stage.queue, settings).await.unwrap();
    stage
}

/// The shard of a key in SQL is that of `awa-core`, which the memory store uses.
#[tokio::test]
async fn a_key_has_the_same_shard_in_sql() {
    let stage = Stage::new().await;
    let mut sql = stage.connect().await;
    let mut seed = Seed::announced();
    let keys: Vec<OrderingKey> =
        (0..300).map(|_| OrderingKey::new(seed.below(u64::MAX).to_string()).unwrap()).collect();
    let numbers: Vec<String> = keys.iter().map(|key| key.number().to_string()).collect();
    let query = format!(
        "SELECT awa.shard_of_key(n, c::smallint)::text FROM unnest('{{{}}}'::integer[]) WITH ORDINALITY AS k (n, o),
         generate_series(1, 64) AS c ORDER BY o, c",
        numbers.join(",")
    );
    let in_sql: Vec<String> = texts(&mut sql, &query).await.into_iter().map(Option::unwrap).collect();
    let counts = || (1..=64).map(|count| ShardCount::new(count).unwrap());
    let in_core: Vec<String> =
        keys.iter().flat_map(|key| counts().map(|count| key.shard(count).get().to_string())).collect();
    assert_eq!(in_sql, in_core);
    for bad in ["0", "-1", "2147483647"] {
        let query = format!("SELECT awa.shard_of_key({bad}, 4::smallint)");
        assert_eq!(sqlstate(&try_run(&mut sql, &query).await.expect_err(bad)), "AW003");
    }
}

/// Jobs go where the rule of `awa-core` says: those with a key by the key, the others in turn; at once, for later, and when
/// some of the call are duplicates.
#[tokio::test]
async fn jobs_lie_in_the_shards_that_the_rule_names() {
    let stage = configured(&shards(5)).await;
    let five = ShardCount::new(5).unwrap();
    let unique = |job: NewJob, text: &str| {
        let key = UniqueBy::text(text).key_of(&job).unwrap();
        job.with_unique(Unique::new(key))
    };
    let mut new = Vec::new();
    for number in 0..40 {
        let job = match number % 4 {
            0 => unique(stage.job("{}"), &format!("k{}", number % 3)),
            1 => stage.job("{}").with_run_at(awa_core::RunAt::after(std::time::Duration::from_hours(1)).unwrap()),
            _ => stage.job("{}"),
        };
        let key = OrderingKey::new(format!("order {number}")).unwrap();
        new.push(if number % 3 == 0 { job.with_ordering_key(key) } else { job });
    }
    let answers = stage.store().enqueue(&new).await.unwrap();
    let mut seen = BTreeSet::new();
    for (job, answer) in new.iter().zip(&answers).filter(|(_, answer)| answer.is_inserted()) {
        let expected = job.ordering_key().map_or(Shard::of_unordered(answer.id(), five), |key| key.shard(five));
        let query = format!(
            "SELECT l.shard::bigint FROM awa.ready_entries AS r JOIN awa.queue_lanes AS l USING (lane_id) WHERE r.job_id = {id}
             UNION ALL SELECT d.shard::bigint FROM awa.deferred_jobs AS d WHERE d.job_id = {id}",
            id = answer.id()
        );
        assert_eq!(stage.number(&query).await, i64::from(expected.get()), "{job:?}");
        seen.insert(expected);
    }
    assert_eq!(seen.len(), 5);
    assert_eq!(stage.number("SELECT count(*) FROM awa.lane_hints").await, 0, "the lanes were made with the setting");
}

/// A claimer that holds one lane keeps the others from one shard only.
#[tokio::test]
async fn a_lane_that_is_held_leaves_the_other_shards() {
    let stage = configured(&shards(4)).await;
    stage.enqueue(40).await;
    let mut holder = stage.connect().await;
    run(&mut holder, "BEGIN").await;
    let lane = "SELECT pg_advisory_xact_lock(awa.lane_key(awa.lane_id('races', 2::smallint, 1::smallint)))";
    run(&mut holder, lane).await;
    let claimed = stage.claim_once(100).await;
    assert_eq!((claimed.jobs.len(), claimed.contended), (30, true));
    run(&mut holder, "ROLLBACK").await;
    assert_eq!(stage.claim_once(100).await.jobs.len(), 10);
}

/// I7: the first use of a queue with several shards inside an open transaction waits for nobody, and the lanes of all
/// shards are found when a worker or maintenance comes.
#[tokio::test]
async fn shards_of_a_queue_that_nobody_opened_are_found() {
    let stage = configured(&shards(3)).await;
    run(&mut stage.connect().await, "DELETE FROM awa.queue_lanes").await;
    let mut open = stage.connect().await;
    run(&mut open, "BEGIN").await;
    stage.enqueue_in(&mut open, 6).await;
    let mut other = stage.connect().await;
    run(&mut other, NEVER_WAIT).await;
    run(&mut other, "BEGIN").await;
    stage.enqueue_in(&mut other, 6).await;
    stage.store().open_queue(&stage.queue).await.unwrap();
    run(&mut other, "COMMIT").await;
    assert_eq!(stage.claim(100).await.len(), 6);
    run(&mut stage.connect().await, "DELETE FROM awa.queue_lanes").await;
    run(&mut open, "COMMIT").await;
    stage.store().tidy().await.unwrap();
    assert_eq!(stage.claim(100).await.len(), 6);
    assert_eq!(stage.number("SELECT count(*) FROM awa.queue_lanes").await, 12);
}

/// What other languages may ask for by mistake is refused, and nothing is set.
#[tokio::test]
async fn settings_out_of_their_range_are_refused_in_sql() {
    let stage = Stage::new().await;
    let mut sql = stage.connect().await;
    for arguments in ["'races', 0, true", "'races', 65, true", "'', 1, true", "'races', 1, NULL", "NULL, 1, true"] {
        let (queue, rest) = arguments.split_once(", ").unwrap();
        let (count, switch) = rest.split_once(", ").unwrap();
        let set = format!("SELECT awa.configure_queue({queue}, {count}::smallint, {switch})");
        let state = sqlstate(&try_run(&mut sql, &set).await.expect_err(arguments));
        assert!(state.starts_with("23"), "{arguments}: {state}");
    }
    assert_eq!(stage.store().queue_settings(&stage.queue).await.unwrap(), QueueSettings::default());
}

/// A retry and a delete of one failed job, stepped by hand: whoever comes second is told to ask again, and the key is held
/// only by a job that exists.
#[tokio::test]
async fn a_failed_job_is_retried_or_deleted() {
    let stage = configured(&QueueSettings::default().with_dead_letter(false)).await;
    for (first, place, held) in [("retry_jobs", Some("ready"), 1), ("delete_jobs", None, 0)] {
        let job = stage.job("{}");
        let key = UniqueBy::text(first).key_of(&job).unwrap();
        let id = stage.store().enqueue(&[job.with_unique(Unique::new(key))]).await.unwrap()[0].id();
        let attempts = stage.claim(1).await;
        stage.end(&attempts, AttemptEnd::Fail { error: ErrorText::new("boom") }).await;
        let mut user = stage.connect().await;
        run(&mut user, "BEGIN").await;
        let act = format!("SELECT answer FROM awa.{first}('{{{id}}}')");
        assert_eq!(texts(&mut user, &act).await, [Some("failed".to_owned())]);
        let contended = [Acted::Refused(Refusal::Contended)];
        if first == "retry_jobs" {
            assert_eq!(stage.store().delete(&[id]).await.unwrap(), contended);
        } else {
            assert_eq!(stage.store().retry(&[id]).await.unwrap(), contended);
        }
        run(&mut user, "COMMIT").await;
        assert_eq!(stage.places().await.get(&id).map(|places| places[0].as_str()), place, "{first}");
        assert_eq!(stage.number("SELECT count(*) FROM awa.unique_claims").await, held, "{first}");
        stage.complete(&stage.claim(1).await).await;
        assert_eq!(stage.number("SELECT count(*) FROM awa.unique_claims").await, 0, "{first}");
    }
}

/// Two retries of one failed job, stepped by hand: the second finds it held, or gone, and its key is taken once.
#[tokio::test]
async fn of_two_retries_of_a_failed_job_one_is_carried_out() {
    let stage = configured(&QueueSettings::default().with_dead_letter(false)).await;
    let job = stage.job("{}");
    let key = UniqueBy::text("k").key_of(&job).unwrap();
    let id = stage.store().enqueue(&[job.with_unique(Unique::new(key))]).await.unwrap()[0].id();
    let attempts = stage.claim(1).await;
    stage.end(&attempts, AttemptEnd::Fail { error: ErrorText::new("boom") }).await;
    assert_eq!(stage.place(id).await, "failed");
    for commit in [false, true] {
        let mut first = stage.connect().await;
        run(&mut first, "BEGIN").await;
        let retry = format!("SELECT answer FROM awa.retry_jobs('{{{id}}}')");
        assert_eq!(texts(&mut first, &retry).await, [Some("failed".to_owned())]);
        let second = stage.store().retry(&[id]).await.unwrap();
        assert_eq!(second, [Acted::Refused(Refusal::Contended)]);
        run(&mut first, if commit { "COMMIT" } else { "ROLLBACK" }).await;
        assert_eq!(stage.place(id).await, if commit { "ready" } else { "failed" });
        let held = stage.number("SELECT count(*) FROM awa.unique_claims").await;
        assert_eq!(held, i64::from(commit));
    }
    let third = stage.store().retry(&[id]).await.unwrap();
    assert_eq!(third, [Acted::Refused(Refusal::WrongState(JobState::Ready))]);
    stage.complete(&stage.claim(1).await).await;
    assert_eq!(stage.number("SELECT count(*) FROM awa.unique_claims").await, 0);
    assert_eq!(stage.place(id).await, "completed");
    let unknown = stage.store().retry(&[JobId(i64::MAX)]).await.unwrap();
    assert_eq!(unknown, [Acted::Refused(Refusal::NotFound)]);
}
