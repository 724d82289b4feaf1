//! Unique jobs on real PostgreSQL: who waits for whom, what each isolation level answers, and what is left behind.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::job::MaxAttempts;
use awa_core::ring::RingKind;
use awa_core::store::{Acted, Maintainer, Operator, Producer, Refusal};
use awa_core::unique::{KeyStates, OnConflict, Unique, UniqueBy};
use awa_core::{
    AttemptEnd, ClosureAnswer, Enqueued, JobId, JobState, JsonText, NewJob, RunAt, StoreError, StoreErrorKind,
    Timestamp,
};
use awa_store_mem::MemStore;
use awa_store_sqlx::{RingSizes, SqlxStore};
use awa_tests::stage::{Stage, pid, run, steady_retry};
use sqlx::{PgConnection, Row};
use tokio::task::JoinHandle;

const CLOSED: ClosureAnswer = ClosureAnswer::Closed;

fn keyed(stage: &Stage, key: &str) -> NewJob {
    held(stage, key, KeyStates::default())
}

fn held(stage: &Stage, key: &str, states: KeyStates) -> NewJob {
    let job = stage.job("{}");
    let key = UniqueBy::text(key).key_of(&job).unwrap();
    job.with_unique(Unique::new(key).while_in(states))
}

async fn ask(stage: &Stage, key: &str) -> Enqueued {
    stage.store().enqueue(&[keyed(stage, key)]).await.unwrap()[0]
}

async fn ask_in(stage: &Stage, connection: &mut PgConnection, key: &str) -> Result<Enqueued, StoreError> {
    stage.store().enqueue_in(connection, &[keyed(stage, key)]).await.map(|answers| answers[0])
}

async fn nothing_is_left(stage: &Stage) {
    assert_eq!(stage.number("SELECT count(*) FROM awa.unique_claims").await, 0, "keys are left");
    assert_eq!(stage.number("SELECT count(*) FROM awa.unique_releases").await, 0, "leftovers are left");
}

/// An asker on a connection of its own, in an open transaction, that waits for somebody.
struct Asker {
    asks: JoinHandle<(Result<Vec<Enqueued>, StoreError>, PgConnection)>,
}

impl Asker {
    /// Begins to ask, and returns when the server says that it waits.
    async fn waiting(stage: &Stage, jobs: Vec<NewJob>) -> Self {
        let mut connection = stage.connect().await;
        run(&mut connection, "BEGIN").await;
        let session = pid(&mut connection).await;
        let store: SqlxStore = stage.store().clone();
        let asks = tokio::spawn(async move { (store.enqueue_in(&mut connection, &jobs).await, connection) });
        stage.until_blocked(session).await;
        Self { asks }
    }

    async fn answer(self) -> (Vec<Enqueued>, PgConnection) {
        let (answers, connection) = self.asks.await.unwrap();
        (answers.unwrap(), connection)
    }
}

/// F26, bug class 45: the second waits for the first and inserts when that one rolls back.
#[tokio::test]
async fn a_waiter_inserts_when_the_winner_rolls_back() {
    let stage = Stage::new().await;
    let mut winner = stage.connect().await;
    run(&mut winner, "BEGIN").await;
    assert!(ask_in(&stage, &mut winner, "k").await.unwrap().is_inserted());
    let waiter = Asker::waiting(&stage, vec![keyed(&stage, "k")]).await;
    run(&mut winner, "ROLLBACK").await;
    let (answers, mut waiter) = waiter.answer().await;
    assert!(answers[0].is_inserted());
    run(&mut waiter, "COMMIT").await;
    assert_eq!(stage.place(answers[0].id()).await, "ready");
    assert_eq!(stage.places().await.len(), 1);
}

/// Bug class 45: five want one key and four of them roll back, one after the other. The fifth has it, whoever that is.
#[tokio::test]
async fn of_five_the_one_that_does_not_roll_back_has_the_key() {
    let stage = Stage::new().await;
    let mut holder = stage.connect().await;
    run(&mut holder, "BEGIN").await;
    assert!(ask_in(&stage, &mut holder, "k").await.unwrap().is_inserted());
    let mut waiters = Vec::new();
    for _ in 0..4 {
        waiters.push(Asker::waiting(&stage, vec![keyed(&stage, "k")]).await.asks);
    }
    for _ in 0..4 {
        run(&mut holder, "ROLLBACK").await;
        let (done, _, rest) = futures::future::select_all(waiters).await;
        let (answers, next) = done.unwrap();
        assert!(answers.unwrap()[0].is_inserted(), "nobody holds the key, and somebody is told of a duplicate");
        (holder, waiters) = (next, rest);
    }
    run(&mut holder, "COMMIT").await;
    let places = stage.places().await;
    assert_eq!(places.values().collect::<Vec<_>>(), [&["ready"]]);
    assert_eq!(ask(&stage, "k").await, Enqueued::Duplicate(*places.keys().next().unwrap()));
}

/// Only who asks for the same key waits: the queue, other keys and every other call go on (I7).
#[tokio::test]
async fn an_uncommitted_key_delays_only_who_asks_for_it() {
    let stage = Stage::new().await;
    let mut open = stage.connect().await;
    run(&mut open, "BEGIN").await;
    assert!(ask_in(&stage, &mut open, "k").await.unwrap().is_inserted());
    // None of these would return if it waited, because the transaction stays open.
    let other = ask(&stage, "l").await.id();
    stage.enqueue(3).await;
    let jobs = stage.claim(10).await;
    assert_eq!(jobs.len(), 4);
    assert_eq!(stage.end(&jobs[..2], AttemptEnd::Fail { error: ErrorText::new("boom") }).await, [CLOSED; 2]);
    stage.complete(&jobs[2..]).await;
    assert_eq!(stage.store().retry(&[other]).await.unwrap(), [Acted::Done { from: JobState::Dead }]);
    assert_eq!(stage.store().cancel(&[other], &ErrorText::new("x")).await.unwrap().len(), 1);
    stage.store().promote(10).await.unwrap();
    stage.store().tidy().await.unwrap();
    run(&mut open, "COMMIT").await;
    assert_eq!(stage.claim(10).await.len(), 1);
}

/// Bug class 46: an older snapshot does not see the holder. It is told so as a serialization failure, and the transaction,
/// run again, is answered.
#[tokio::test]
async fn a_key_taken_after_the_snapshot_is_a_serialization_failure() {
    let stage = Stage::new().await;
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        let begin = format!("BEGIN ISOLATION LEVEL {level}; SELECT count(*) FROM awa.queue_lanes");
        let mut old = stage.connect().await;
        run(&mut old, &begin).await;
        let holder = ask(&stage, level).await.id();
        let error = ask_in(&stage, &mut old, level).await.unwrap_err();
        assert_eq!((error.kind(), error.is_transient()), (StoreErrorKind::Contended, true), "{level}: {error}");
        run(&mut old, &format!("ROLLBACK; {begin}")).await;
        assert_eq!(ask_in(&stage, &mut old, level).await.unwrap(), Enqueued::Duplicate(holder), "{level}");
        // The transaction is usable after a duplicate.
        let beside = ask_in(&stage, &mut old, &format!("{level} beside")).await.unwrap();
        assert_eq!(
            ask_in(&stage, &mut old, &format!("{level} beside")).await.unwrap(),
            Enqueued::Duplicate(beside.id())
        );
        run(&mut old, "COMMIT").await;
        assert_eq!(stage.place(beside.id()).await, "ready");
    }
}

/// Bug class 46: a key that was given back after the snapshot is free, though the snapshot still shows its holder.
#[tokio::test]
async fn a_key_given_back_after_the_snapshot_is_free() {
    let stage = Stage::new().await;
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        ask(&stage, level).await;
        let jobs = stage.claim(1).await;
        let mut old = stage.connect().await;
        run(&mut old, &format!("BEGIN ISOLATION LEVEL {level}; SELECT count(*) FROM awa.queue_lanes")).await;
        stage.complete(&jobs).await;
        let answer = ask_in(&stage, &mut old, level).await.unwrap();
        assert!(answer.is_inserted(), "{level}: {answer:?}");
        run(&mut old, "COMMIT").await;
        let next = stage.claim(1).await;
        assert_eq!(next[0].receipt.job, answer.id());
        stage.complete(&next).await;
    }
    nothing_is_left(&stage).await;
}

/// F26: two bulk calls with the same keys in opposite order, both held up in the middle, do not wait for each other.
#[tokio::test]
async fn bulk_calls_in_opposite_order_do_not_deadlock() {
    let stage = Stage::new().await;
    let jobs: Vec<NewJob> = (0..200).map(|number| keyed(&stage, &format!("k{number}"))).collect();
    let backwards: Vec<NewJob> = jobs.iter().rev().cloned().collect();
    let mut open = stage.connect().await;
    run(&mut open, "BEGIN").await;
    assert!(ask_in(&stage, &mut open, "k100").await.unwrap().is_inserted());
    let forth = Asker::waiting(&stage, jobs.clone()).await;
    let back = Asker::waiting(&stage, backwards).await;
    run(&mut open, "ROLLBACK").await;
    let finish = async |asker: Asker| {
        let (answers, mut connection) = asker.answer().await;
        run(&mut connection, "COMMIT").await;
        answers
    };
    let (mut forth, back) = tokio::join!(finish(forth), finish(back));
    forth.reverse();
    for (one, other) in forth.iter().zip(&back) {
        assert_eq!(one.id(), other.id());
        assert!(one.is_inserted() != other.is_inserted(), "{one:?} and {other:?}");
    }
    assert_eq!(stage.places().await.len(), 200);
}

/// Bug class 47: of fifty at once one inserts, and each other one is told the id of that job.
#[tokio::test]
async fn of_fifty_at_once_one_inserts_and_the_others_are_told_its_id() {
    let stage = Stage::new().await;
    let store = Arc::new(stage.fresh.another_pool(|options| options.max_connections(25)).await);
    let asked = (0..50).map(|_| {
        let (store, job) = (Arc::clone(&store), keyed(&stage, "k"));
        tokio::spawn(async move { store.enqueue(&[job]).await.unwrap()[0] })
    });
    let answers: Vec<Enqueued> = futures::future::join_all(asked).await.into_iter().map(Result::unwrap).collect();
    let winner = *answers.iter().find(|answer| answer.is_inserted()).unwrap();
    let duplicates = answers.iter().filter(|answer| **answer == Enqueued::Duplicate(winner.id())).count();
    assert_eq!((duplicates, stage.places().await.len()), (49, 1), "{answers:?}");
}

/// F14: a completion does not wait for somebody who has the row of the key locked. The key is left to a tick, and until
/// then nobody is told of a job that does not exist.
#[tokio::test]
async fn an_end_leaves_a_locked_key_to_the_tick() {
    let stage = Stage::new().await;
    let tidy = async || stage.store().tidy().await.unwrap();
    let ends = [AttemptEnd::Complete, AttemptEnd::Fail { error: ErrorText::new("boom") }];
    for (end, place) in ends.into_iter().zip(["completed", "dead"]) {
        let holder = ask(&stage, place).await.id();
        let jobs = stage.claim(1).await;
        let mut locker = stage.connect().await;
        run(&mut locker, "BEGIN; SELECT key FROM awa.unique_claims FOR UPDATE").await;
        // It would not return if it waited, because the lock is held until the answer is there.
        assert_eq!(stage.end(&jobs, end).await, [CLOSED]);
        assert_eq!(stage.place(holder).await, place);
        tidy().await;
        assert_eq!(ask(&stage, place).await, Enqueued::Duplicate(holder), "the key is still there");
        run(&mut locker, "COMMIT").await;
        tidy().await;
        let next = ask(&stage, place).await;
        assert!(next.is_inserted());
        stage.store().cancel(&[next.id()], &ErrorText::new("x")).await.unwrap();
        nothing_is_left(&stage).await;
    }
}

/// A dead job that is retried before the tick came keeps the key that it could not give back.
#[tokio::test]
async fn a_tick_takes_no_key_from_a_job_that_lives_again() {
    let stage = Stage::new().await;
    let holder = ask(&stage, "k").await.id();
    let jobs = stage.claim(1).await;
    let mut locker = stage.connect().await;
    run(&mut locker, "BEGIN; SELECT key FROM awa.unique_claims FOR UPDATE").await;
    assert_eq!(stage.end(&jobs, AttemptEnd::Fail { error: ErrorText::new("boom") }).await, [CLOSED]);
    run(&mut locker, "COMMIT").await;
    assert_eq!(stage.store().retry(&[holder]).await.unwrap(), [Acted::Done { from: JobState::Dead }]);
    stage.store().tidy().await.unwrap();
    assert_eq!(ask(&stage, "k").await, Enqueued::Duplicate(holder));
    let jobs = stage.claim(1).await;
    stage.complete(&jobs).await;
    nothing_is_left(&stage).await;
}

/// A retry of a dead job whose key is in doubt is told to ask again, and keeps no other back (C8).
#[tokio::test]
async fn a_retry_whose_key_is_in_doubt_is_contended() {
    let stage = Stage::new().await;
    let dead = [ask(&stage, "k").await.id(), ask(&stage, "l").await.id()];
    let jobs = stage.claim(2).await;
    assert_eq!(stage.end(&jobs, AttemptEnd::Fail { error: ErrorText::new("boom") }).await, [CLOSED; 2]);
    let mut open = stage.connect().await;
    run(&mut open, "BEGIN").await;
    let next = ask_in(&stage, &mut open, "k").await.unwrap();
    assert!(next.is_inserted());
    let answers = stage.store().retry(&dead).await.unwrap();
    assert_eq!(answers, [Acted::Refused(Refusal::Contended), Acted::Done { from: JobState::Dead }]);
    run(&mut open, "COMMIT").await;
    assert_eq!(stage.store().retry(&dead[..1]).await.unwrap(), [Acted::Refused(Refusal::KeyTaken(next.id()))]);
    assert_eq!(stage.place(dead[0]).await, "dead");
}

/// Two operators retry the same dead job at once: it lives once, and has its key.
#[tokio::test]
async fn a_dead_job_retried_twice_at_once_lives_once() {
    let stage = Stage::new().await;
    for round in 0..10 {
        let key = format!("k{round}");
        let id = ask(&stage, &key).await.id();
        let jobs = stage.claim(1).await;
        stage.end(&jobs, AttemptEnd::Fail { error: ErrorText::new("boom") }).await;
        let ids = [id];
        let (one, other) = tokio::join!(stage.store().retry(&ids), stage.store().retry(&ids));
        let done = [one.unwrap()[0], other.unwrap()[0]].iter().filter(|a| matches!(a, Acted::Done { .. })).count();
        assert_eq!((done, ask(&stage, &key).await), (1, Enqueued::Duplicate(id)));
        let jobs = stage.claim(2).await;
        assert_eq!(jobs.len(), 1);
        stage.complete(&jobs).await;
    }
    nothing_is_left(&stage).await;
}

/// I11, bug class 56: however a job ends, no key and no leftover stays behind; as long as it goes on, its key does.
#[tokio::test]
async fn every_end_gives_the_key_back() {
    let stage = Stage::with_manual_clock().await;
    let minute = Duration::from_mins(1);
    let error = || ErrorText::new("boom");
    let result = JsonText::new("result", "{}").unwrap();
    let once = |job: NewJob| job.with_max_attempts(MaxAttempts::new(1).unwrap());
    let ends = [
        ("complete", AttemptEnd::Complete, false),
        ("with a result", AttemptEnd::CompleteWith { result }, false),
        ("failed", AttemptEnd::Fail { error: error() }, false),
        ("exhausted", AttemptEnd::Retry { delay: minute, error: error() }, false),
        ("cancelled", AttemptEnd::Cancel { reason: error() }, false),
        ("retried", AttemptEnd::Retry { delay: minute, error: error() }, true),
        ("snoozed", AttemptEnd::Snooze { delay: minute }, true),
        ("released", AttemptEnd::Release { delay: minute }, true),
    ];
    for (name, end, goes_on) in ends {
        let job = keyed(&stage, name);
        let job = if name == "exhausted" { once(job) } else { job };
        let id = stage.store().enqueue(&[job]).await.unwrap()[0].id();
        assert_eq!(stage.end(&stage.claim(1).await, end).await, [CLOSED], "{name}");
        if goes_on {
            assert_eq!(ask(&stage, name).await, Enqueued::Duplicate(id), "{name}");
            stage.store().cancel(&[id], &error()).await.unwrap();
        }
        nothing_is_left(&stage).await;
    }
    let ready = ask(&stage, "ready").await.id();
    stage.store().cancel(&[ready], &error()).await.unwrap();
    nothing_is_left(&stage).await;
    let later = keyed(&stage, "later").with_run_at(RunAt::after(minute).unwrap());
    let deferred = stage.store().enqueue(&[later]).await.unwrap()[0].id();
    stage.store().cancel(&[deferred], &error()).await.unwrap();
    nothing_is_left(&stage).await;
    let running = ask(&stage, "running").await.id();
    stage.claim(1).await;
    stage.store().cancel(&[running], &error()).await.unwrap();
    nothing_is_left(&stage).await;
    stage.store().enqueue(&[once(keyed(&stage, "rescued"))]).await.unwrap();
    stage.claim(1).await;
    stage.outlive().await;
    let rescued = stage.store().rescue(&Stage::rescue_request(), &steady_retry()).await.unwrap();
    assert!(rescued.attempts[0].exhausted);
    nothing_is_left(&stage).await;
}

/// Bug class 49: a sweep over many dead attempts is not wedged by one whose key somebody else has taken meanwhile.
#[tokio::test]
async fn one_lost_key_wedges_no_rescue() {
    let stage = Stage::with_manual_clock().await;
    let first = stage.store().enqueue(&[held(&stage, "k", KeyStates::UNTIL_CLAIMED)]).await.unwrap()[0].id();
    stage.enqueue(99).await;
    assert_eq!(stage.claim(100).await.len(), 100);
    let second = ask(&stage, "k").await;
    assert!(second.is_inserted(), "the key is free from the claim on");
    stage.outlive().await;
    let rescued = stage.store().rescue(&Stage::rescue_request(), &steady_retry()).await.unwrap();
    assert_eq!(rescued.attempts.len(), 100);
    stage.fresh.clock.advance(Duration::from_secs(2));
    assert_eq!(stage.store().promote(1_000).await.unwrap().jobs, 100);
    let jobs = stage.claim(200).await;
    assert_eq!((jobs[0].receipt.job, jobs.len()), (second.id(), 101));
    assert!(jobs.iter().any(|job| job.receipt.job == first));
    stage.complete(&jobs).await;
    nothing_is_left(&stage).await;
}

/// Bug class 53: the bytes of a key are the core's, with the period of the server's clock; PostgreSQL itself makes the same
/// from the documented text; and the memory store tells the same jobs apart.
#[tokio::test]
async fn keys_have_the_same_bytes_everywhere() {
    let stage = Stage::with_manual_clock().await;
    let all = |args: &str| UniqueBy::kind().and_args().key_of(&stage.job(args)).unwrap();
    let hour = Duration::from_hours(1);
    let cases = [
        (UniqueBy::text("order 7").key_of(&stage.job("{}")).unwrap(), r#"{"text":"order 7"}"#),
        (all("{}"), r#"{"args":{},"kind":"test"}"#),
        (all(r#"{"a":1}"#), r#"{"args":{"a":1},"kind":"test"}"#),
        (
            all(r#"{"b":{"y":2.50,"x":null},"a":[1.0,"\u00e9"]}"#),
            r#"{"args":{"a":[1,"é"],"b":{"x":null,"y":25e-1}},"kind":"test"}"#,
        ),
        (
            all(r#"{"b":{"x":null,"y":25e-1},"a":[1,"é"]}"#),
            r#"{"args":{"a":[1,"é"],"b":{"x":null,"y":25e-1}},"kind":"test"}"#,
        ),
        (
            UniqueBy::kind().and_queue().per(hour).key_of(&stage.job("{}")).unwrap(),
            r#"{"kind":"test","period_us":36e8,"queue":"races"}"#,
        ),
    ];
    let jobs: Vec<NewJob> = cases.iter().map(|(key, _)| stage.job("{}").with_unique(Unique::new(*key))).collect();
    let memory = MemStore::new();
    let in_memory = memory.enqueue(&jobs).await.unwrap();
    let answers = stage.store().enqueue(&jobs).await.unwrap();
    let first_of = |answers: &[Enqueued]| -> Vec<usize> {
        answers.iter().map(|answer| answers.iter().position(|other| other.id() == answer.id()).unwrap()).collect()
    };
    assert_eq!((first_of(&answers), first_of(&in_memory)), (vec![0, 1, 2, 3, 3, 5], vec![0, 1, 2, 3, 3, 5]));
    for ((key, document), answer) in cases.iter().zip(&answers) {
        let sql = "SELECT u.key, sha256(convert_to($2, 'UTF8')), (extract(epoch FROM r.created_at) * 1000000)::bigint
                   FROM awa.unique_claims AS u JOIN awa.jobs AS r USING (job_id) WHERE u.job_id = $1";
        let row = sqlx::query(sql).bind(answer.id().0).bind(*document).fetch_one(stage.store().pool()).await.unwrap();
        let (stored, digest, created): (Vec<u8>, Vec<u8>, i64) = (row.get(0), row.get(1), row.get(2));
        assert_eq!(stored, key.at(Timestamp::from_micros(created)).as_bytes(), "{document}");
        assert_eq!(&digest[..], key.digest(), "{document}");
    }
}

/// A schema of before the keys takes them in without losing a job, and calls of the old function still mean one function.
#[tokio::test]
async fn a_schema_of_before_is_brought_up_to_date() {
    let stage = Stage::new().await;
    let before = stage.enqueue(2).await;
    let dead = stage.claim(1).await;
    stage.end(&dead, AttemptEnd::Fail { error: ErrorText::new("boom") }).await;
    let mut owner = stage.connect().await;
    let old = "text[], smallint[], smallint[], smallint[], text[], json[], smallint[], json[], timestamptz[], bigint[], boolean, \
               timestamptz";
    let undo = format!(
        "DROP TABLE awa.unique_claims, awa.unique_releases;
         ALTER TABLE awa.dlq_entries DROP COLUMN unique_key, DROP COLUMN unique_states;
         DROP FUNCTION awa.enqueue_jobs({old}, bigint[], integer[]);
         CREATE FUNCTION awa.enqueue_jobs({old}) RETURNS bigint[] LANGUAGE sql AS 'SELECT NULL::bigint[]';
         DELETE FROM awa.objects WHERE name = 'enqueue_jobs';
         DELETE FROM awa.migrations WHERE version = 2;
         UPDATE awa.installation SET version = 1, fingerprint = 'old'"
    );
    run(&mut owner, &undo).await;
    let store = stage.fresh.another_pool(|options| options.rings(RingSizes { queue: 4, claim: 3, lease: 3 })).await;
    let prepared = store.prepare_schema().await.unwrap();
    assert_eq!(prepared.migrations, ["unique_claims"]);
    let answers = store.enqueue(&[stage.job("{}"), keyed(&stage, "k"), keyed(&stage, "k")]).await.unwrap();
    assert_eq!(answers[2], Enqueued::Duplicate(answers[1].id()));
    assert_eq!(store.retry(&[before[0]]).await.unwrap(), [Acted::Done { from: JobState::Dead }]);
    let ids: Vec<JobId> = stage.claim(10).await.iter().map(|job| job.receipt.job).collect();
    assert_eq!(ids, [before[1], answers[0].id(), answers[1].id(), before[0]]);
}

/// In a batch that mixes them, each unique job gives back its own key, and those that still run keep theirs.
#[tokio::test]
async fn a_batch_gives_back_the_keys_of_those_that_ended() {
    let stage = Stage::new().await;
    let first = ask(&stage, "first").await.id();
    let unique: Vec<NewJob> = (0..50).map(|number| keyed(&stage, &format!("k{number}"))).collect();
    stage.store().enqueue(&unique).await.unwrap();
    stage.enqueue(300).await;
    let last = ask(&stage, "last").await.id();
    let is_kept = |job: &awa_core::ClaimedJob| [first, last].contains(&job.receipt.job);
    let (kept, jobs): (Vec<_>, Vec<_>) = stage.claim(352).await.into_iter().partition(is_kept);
    assert_eq!((kept.len(), jobs.len()), (2, 350));
    stage.complete(&jobs).await;
    assert_eq!(stage.number("SELECT count(*) FROM awa.unique_claims").await, 2);
    assert_eq!(ask(&stage, "first").await, Enqueued::Duplicate(first));
    assert_eq!(ask(&stage, "last").await, Enqueued::Duplicate(last));
    stage.complete(&kept).await;
    nothing_is_left(&stage).await;
}

fn newest(stage: &Stage, key: &str) -> NewJob {
    let new = keyed(stage, key);
    let unique = new.unique().unwrap().on_conflict(OnConflict::Replace);
    new.with_unique(unique)
}

/// F14, I7: a replacement in a transaction that stays open delays no claim of the lane, no end, no other producer, and keeps
/// no slot but those in which jobs wait.
#[tokio::test]
async fn an_open_replacement_delays_nobody() {
    let stage = Stage::new().await;
    // History in a slot of its own, that nobody waits in any more.
    stage.enqueue(1).await;
    stage.complete(&stage.claim(1).await).await;
    stage.rotate(RingKind::Queue).await;
    stage.drain().await;
    let running = ask(&stage, "r").await.id();
    let runs = stage.claim(1).await;
    let old = ask(&stage, "k").await.id();
    let mut open = stage.connect().await;
    run(&mut open, "BEGIN").await;
    let answers = stage.store().enqueue_in(&mut open, &[newest(&stage, "k")]).await.unwrap();
    assert_eq!(answers[0], Enqueued::Replaced { new: answers[0].id(), old });
    let more = stage.enqueue(2).await;
    // Its holder runs, so that it is looked for wherever jobs may wait.
    assert_eq!(
        stage.store().enqueue_in(&mut open, &[newest(&stage, "r")]).await.unwrap(),
        [Enqueued::Duplicate(running)]
    );
    assert!(stage.prune(RingKind::Queue).await.iter().any(|report| report.kept.is_none()), "the old slot is reclaimed");
    let jobs = stage.claim(10).await;
    assert_eq!(jobs.iter().map(|job| job.receipt.job).collect::<Vec<_>>(), [&[old], &more[..]].concat());
    stage.complete(&jobs).await;
    run(&mut open, "COMMIT").await;
    stage.store().tidy().await.unwrap();
    assert_eq!(stage.place(old).await, "completed");
    assert_eq!(ask(&stage, "k").await, Enqueued::Duplicate(answers[0].id()), "the tick takes no key from the new one");
    stage.complete(&stage.claim(10).await).await;
    stage.complete(&runs).await;
    nothing_is_left(&stage).await;
}

/// Two replace the same job: the second waits for the first, and then replaces what that one has left.
#[tokio::test]
async fn a_second_replacement_waits_for_the_first() {
    let stage = Stage::new().await;
    for (end, key) in [("COMMIT", "a"), ("ROLLBACK", "b")] {
        let old = ask(&stage, key).await.id();
        let mut first = stage.connect().await;
        run(&mut first, "BEGIN").await;
        let answers = stage.store().enqueue_in(&mut first, &[newest(&stage, key)]).await.unwrap();
        let second = Asker::waiting(&stage, vec![newest(&stage, key)]).await;
        run(&mut first, end).await;
        let (found, mut second) = second.answer().await;
        let left = if end == "COMMIT" { answers[0].id() } else { old };
        assert_eq!(found[0], Enqueued::Replaced { new: found[0].id(), old: left }, "after {end}");
        run(&mut second, "COMMIT").await;
        let jobs = stage.claim(10).await;
        assert_eq!(jobs.iter().map(|job| job.receipt.job).collect::<Vec<_>>(), [found[0].id()]);
        stage.complete(&jobs).await;
    }
    nothing_is_left(&stage).await;
}

/// A replacement that meets a promotion waits for it, and replaces the job where it has come to.
#[tokio::test]
async fn a_replacement_finds_the_job_that_is_being_promoted() {
    let stage = Stage::with_manual_clock().await;
    let soon = keyed(&stage, "k").with_run_at(RunAt::after(Duration::from_secs(1)).unwrap());
    let old = stage.store().enqueue(&[soon]).await.unwrap()[0].id();
    let mut promoter = stage.connect().await;
    run(&mut promoter, "BEGIN; SELECT awa.promote_due(10, p_now => now() + interval '1 day')").await;
    let asker = Asker::waiting(&stage, vec![newest(&stage, "k")]).await;
    run(&mut promoter, "COMMIT").await;
    let (answers, mut connection) = asker.answer().await;
    assert_eq!(answers[0], Enqueued::Replaced { new: answers[0].id(), old });
    run(&mut connection, "COMMIT").await;
    assert_eq!(stage.place(old).await, "cancelled");
    let jobs = stage.claim(10).await;
    assert_eq!(jobs.iter().map(|job| job.receipt.job).collect::<Vec<_>>(), [answers[0].id()]);
    stage.complete(&jobs).await;
    nothing_is_left(&stage).await;
}

/// A holder that ends between the two statements by which a key is taken and read: the key is asked for again.
#[tokio::test]
async fn a_key_that_comes_free_while_it_is_asked_for_is_taken() {
    let stage = Stage::new().await;
    ask(&stage, "k").await;
    let jobs = stage.claim(1).await;
    let mut stopper = stage.connect().await;
    // The asker stops at the end of the statement that could not take the key.
    run(
        &mut stopper,
        "CREATE FUNCTION awa.stop() RETURNS trigger LANGUAGE plpgsql AS
             'BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END';
         CREATE TRIGGER stop AFTER INSERT ON awa.unique_claims FOR EACH STATEMENT EXECUTE FUNCTION awa.stop();
         SELECT pg_advisory_lock(7)",
    )
    .await;
    let asker = Asker::waiting(&stage, vec![keyed(&stage, "k")]).await;
    stage.complete(&jobs).await;
    run(&mut stopper, "SELECT pg_advisory_unlock(7)").await;
    let (answers, mut connection) = asker.answer().await;
    assert!(answers[0].is_inserted(), "{answers:?}");
    run(&mut connection, "COMMIT").await;
    assert_eq!(stage.claim(10).await[0].receipt.job, answers[0].id());
}

/// Everything at once on two keys: producers that skip and that replace, a worker that ends jobs in many ways, and the ticks.
/// No call fails, no job is lost or in two places, and in the end no key is left.
#[tokio::test]
async fn keys_change_hands_under_load_without_a_trace() {
    let stage = Stage::new().await;
    let producers = (0..4).map(|number| {
        let store = stage.store().clone();
        let jobs = [keyed(&stage, "a"), newest(&stage, "a"), newest(&stage, "b"), stage.job("{}")];
        tokio::spawn(async move {
            let mut told = Vec::new();
            for round in 0..150 {
                let batch = [jobs[(round + number) % 4].clone(), jobs[(round / 4 + number) % 4].clone()];
                told.extend(store.enqueue(&batch).await.unwrap());
            }
            told
        })
    });
    let mut producing = futures::future::join_all(producers);
    let mut rounds = 0_usize;
    let told = loop {
        let ends = [
            AttemptEnd::Complete,
            AttemptEnd::Release { delay: Duration::ZERO },
            AttemptEnd::Fail { error: ErrorText::new("boom") },
            AttemptEnd::Cancel { reason: ErrorText::new("no") },
        ];
        for job in stage.claim_once(3).await.jobs {
            rounds += 1;
            assert_eq!(stage.end(&[job], ends[rounds % 4].clone()).await, [CLOSED]);
        }
        stage.store().promote(10).await.unwrap();
        stage.store().tidy().await.unwrap();
        if let Poll::Ready(told) = futures::poll!(&mut producing) {
            break told;
        }
    };
    for _ in 0..50 {
        stage.store().promote(1_000).await.unwrap();
        let jobs = stage.claim(1_000).await;
        if jobs.is_empty() {
            break;
        }
        stage.complete(&jobs).await;
    }
    stage.store().tidy().await.unwrap();
    nothing_is_left(&stage).await;
    let places = stage.places().await;
    for answer in told.into_iter().flat_map(Result::unwrap) {
        let place = places.get(&answer.id()).unwrap_or_else(|| panic!("{answer:?} names a job that does not exist"));
        assert!(
            place.len() == 1 && ["completed", "cancelled", "dead"].contains(&place[0].as_str()),
            "{answer:?}: {place:?}"
        );
    }
}
