//! Races over the end of an attempt, stepped by hand on real PostgreSQL: one winner, whoever it is, and nobody waits for a
//! neighbour.

use awa_core::attempt::ErrorText;
use awa_core::store::{Acted, Consumer, Maintainer, Operator, Refusal};
use awa_core::{AttemptEnd, ClaimedJob, Closure, ClosureAnswer, JobState, Nonce};
use awa_tests::stage::{ME, STALENESS, Stage, complete_sql, pid, run, sqlstate, steady_retry, texts, try_run};
use sqlx::{AssertSqlSafe, Row};
use std::time::Duration;

const CLOSED: ClosureAnswer = ClosureAnswer::Closed;
const STALE: ClosureAnswer = ClosureAnswer::Stale;
const CONTENDED: ClosureAnswer = ClosureAnswer::Contended;

fn reason() -> ErrorText {
    ErrorText::new("no longer wanted")
}

/// F2, F7: the closer of one receipt sits in an open transaction. Neighbours of the same batch do not wait, the same
/// receipt is answered `Contended`, and when the winner rolls back the next closer wins.
#[tokio::test]
async fn an_open_closer_delays_its_own_receipt_and_no_neighbour() {
    let stage = Stage::new().await;
    stage.enqueue(12).await;
    let jobs = stage.claim(12).await;
    let mut user = stage.connect().await;
    run(&mut user, "BEGIN").await;
    assert_eq!(texts(&mut user, &complete_sql(&jobs[..1])).await.len(), 1);

    // Each of these would end in `Contended` if it waited, because the user's transaction stays open.
    assert_eq!(stage.end(&jobs[1..4], AttemptEnd::Complete).await, [CLOSED; 3]);
    let retry = AttemptEnd::Retry { delay: Duration::from_mins(1), error: ErrorText::new("boom") };
    assert_eq!(stage.end(&jobs[4..6], retry).await, [CLOSED; 2]);
    for end in [AttemptEnd::Complete, AttemptEnd::Fail { error: ErrorText::new("boom") }] {
        assert_eq!(stage.end(&jobs[..1], end).await, [CONTENDED]);
    }
    // A flush with one such member keeps no other back.
    assert_eq!(stage.end(&jobs[..9], AttemptEnd::Complete).await[6..], [CLOSED; 3]);

    run(&mut user, "ROLLBACK").await;
    assert_eq!(stage.end(&jobs[..1], AttemptEnd::Complete).await, [CLOSED]);
    assert_eq!(stage.end(&jobs[..1], AttemptEnd::Complete).await, [STALE]);
}

/// F2: the second closer read that the receipt is open, then waited for the first. It must not close it again.
#[tokio::test]
async fn a_closer_that_waited_for_the_winner_closes_nothing() {
    let stage = Stage::new().await;
    for members in [1, 5] {
        stage.enqueue(members).await;
        let jobs = stage.claim(members).await;
        let (mut first, mut second) = (stage.connect().await, stage.connect().await);
        run(&mut first, "BEGIN").await;
        assert_eq!(texts(&mut first, &complete_sql(&jobs[..1])).await.len(), 1);
        let pid = pid(&mut second).await;
        let wanted = complete_sql(&jobs);
        let waiting = tokio::spawn(async move {
            let rows = sqlx::query(AssertSqlSafe(wanted)).fetch_all(&mut second).await;
            rows.map(|rows| rows.iter().map(|row| row.get::<String, _>(0)).collect::<Vec<_>>())
        });
        stage.until_blocked(pid).await;
        run(&mut first, "COMMIT").await;
        match waiting.await.unwrap() {
            // The neighbours are closed, the first is not.
            Ok(closed) => assert_eq!(closed.len(), usize::from(members > 1), "{closed:?}"),
            Err(error) => assert_eq!(sqlstate(&error), "55P03", "only a machine too slow for the 100 ms gives up"),
        }
        let twice = "SELECT count(*) - count(DISTINCT r) FROM awa.closed_receipts AS c,
                     LATERAL (SELECT generate_series(lower(x), upper(x) - 1) FROM unnest(c.receipts) AS x) AS s (r)";
        assert_eq!(stage.number(twice).await, 0, "no receipt is closed twice");
        stage.end(&jobs, AttemptEnd::Complete).await;
        assert_eq!(stage.number("SELECT count(*) - count(DISTINCT job_id) FROM awa.terminal_jobs").await, 0);
    }
}

/// F7: two transactions close receipts of two batches in opposite order. They may wait, but only for each other's very
/// receipts: with different receipts of the same batches there is no wait and so no deadlock.
#[tokio::test]
async fn closers_of_different_receipts_in_opposite_order_never_wait() {
    let stage = Stage::new().await;
    stage.enqueue(8).await;
    let (a, b) = (stage.claim(4).await, stage.claim(4).await);
    let (mut one, mut two) = (stage.connect().await, stage.connect().await);
    for connection in [&mut one, &mut two] {
        run(connection, "BEGIN; SET LOCAL deadlock_timeout = '10ms'").await;
    }
    assert_eq!(texts(&mut one, &complete_sql(&a[..1])).await.len(), 1);
    assert_eq!(texts(&mut two, &complete_sql(&b[..1])).await.len(), 1);
    assert_eq!(texts(&mut one, &complete_sql(&b[1..2])).await.len(), 1);
    assert_eq!(texts(&mut two, &complete_sql(&a[1..2])).await.len(), 1);
    run(&mut one, "COMMIT").await;
    run(&mut two, "COMMIT").await;
    assert_eq!(stage.number("SELECT count(*) FROM awa.terminal_jobs").await, 4);
}

/// A flush of a batch whose members are being closed by many others, one after the other: each refusal makes it read
/// again, and however often that is, what nobody else closed is not stale.
#[tokio::test]
async fn a_flush_that_is_refused_many_times_takes_no_open_attempt_for_stale() {
    let stage = Stage::new().await;
    stage.enqueue(14).await;
    let jobs = stage.claim(14).await;
    let mut others = Vec::new();
    for job in &jobs[..12] {
        let mut connection = stage.connect().await;
        run(&mut connection, "BEGIN").await;
        assert_eq!(texts(&mut connection, &complete_sql(std::slice::from_ref(job))).await.len(), 1);
        others.push((pid(&mut connection).await, connection));
    }
    let (store, wanted) = (stage.store().clone(), jobs.clone());
    let flush = tokio::spawn(async move {
        let closures: Vec<_> =
            wanted.iter().map(|job| Closure { receipt: job.receipt, end: AttemptEnd::Complete }).collect();
        store.close(&closures).await.unwrap()
    });
    // Whoever the flush waits for commits.
    let blocker = "SELECT (pg_blocking_pids(a.pid))[1] FROM pg_stat_activity AS a
                   WHERE a.datname = current_database() AND cardinality(pg_blocking_pids(a.pid)) > 0 LIMIT 1";
    let mut looking = stage.connect().await;
    while !flush.is_finished() {
        if let Some(row) = sqlx::query(blocker).fetch_optional(&mut looking).await.unwrap() {
            let blocker: i32 = row.get(0);
            if let Some((_, connection)) = others.iter_mut().find(|(pid, _)| *pid == blocker) {
                run(connection, "COMMIT").await;
            }
        }
        tokio::task::yield_now().await;
    }
    let answers = flush.await.unwrap();
    assert!(!answers[12..].contains(&STALE), "nobody else closed the last two: {answers:?}");
    for (_, connection) in &mut others {
        run(connection, "COMMIT").await;
    }
    stage.end(&jobs, AttemptEnd::Complete).await;
    assert_eq!(stage.number("SELECT count(*) FROM awa.terminal_jobs WHERE state = 'completed'").await, 14);
}

/// F3: a closer inside REPEATABLE READ or SERIALIZABLE that lost is told to run its transaction again, never `Stale`.
#[tokio::test]
async fn a_repeatable_read_closer_that_lost_gets_a_serialization_failure() {
    let stage = Stage::new().await;
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        for members in [1, 3] {
            stage.enqueue(members).await;
            let jobs = stage.claim(members).await;
            let mut user = stage.connect().await;
            run(&mut user, &format!("BEGIN ISOLATION LEVEL {level}; SELECT count(*) FROM awa.jobs")).await;
            stage.complete(&jobs[..1]).await;
            let error = try_run(&mut user, &complete_sql(&jobs[..1])).await.expect_err("the receipt is closed");
            assert_eq!(sqlstate(&error), "40001", "{level}, {members} members");
            run(&mut user, "ROLLBACK").await;
            stage.end(&jobs, AttemptEnd::Complete).await;
        }
    }
    assert_eq!(stage.number("SELECT count(*) - count(DISTINCT job_id) FROM awa.terminal_jobs").await, 0);
}

/// M6: TRUNCATE is not subject to snapshots. A closer with an old snapshot whose claim slot was reclaimed cannot tell what
/// became of its attempt, and must not be told that it is stale.
#[tokio::test]
async fn a_repeatable_read_closer_whose_slot_was_reclaimed_is_not_told_that_it_is_stale() {
    use awa_core::ring::RingKind;
    let stage = Stage::new().await;
    stage.enqueue(2).await;
    let jobs = stage.claim(2).await;
    let mut user = stage.connect().await;
    run(&mut user, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await;
    stage.complete(&jobs).await;
    stage.rotate(RingKind::Claim).await;
    assert!(stage.prune(RingKind::Claim).await.iter().all(|report| report.kept.is_none()));
    let error = try_run(&mut user, &complete_sql(&jobs)).await.expect_err("the claim is gone");
    assert_eq!(sqlstate(&error), "40001");
}

/// A claim that an asynchronous failover lost leaves a worker with a receipt whose number is handed out again. When both
/// come in one flush, the lost one must not take the living one with it.
#[tokio::test]
async fn a_lost_claim_with_the_same_number_does_not_hide_the_living_one() {
    let stage = Stage::new().await;
    for end in [AttemptEnd::Complete, AttemptEnd::Fail { error: ErrorText::new("boom") }] {
        for lost_first in [true, false] {
            stage.enqueue(1).await;
            let living = stage.claim(1).await[0].receipt;
            let lost = awa_core::attempt::Receipt { nonce: Nonce(living.nonce.0 ^ 0x5EED), ..living };
            let receipts = if lost_first { [lost, living] } else { [living, lost] };
            let closures = receipts.map(|receipt| Closure { receipt, end: end.clone() });
            let answers = stage.store().close(&closures).await.unwrap();
            assert_eq!(answers, if lost_first { [STALE, CLOSED] } else { [CLOSED, STALE] }, "lost first: {lost_first}");
        }
    }
}

/// C8: cancelling many jobs, of which one is just being ended in somebody's open transaction.
#[tokio::test]
async fn a_job_that_is_being_ended_does_not_keep_others_from_being_cancelled() {
    let stage = Stage::new().await;
    let ids = stage.enqueue(5).await;
    let jobs = stage.claim(3).await;
    let mut user = stage.connect().await;
    run(&mut user, "BEGIN").await;
    assert_eq!(texts(&mut user, &complete_sql(&jobs[1..2])).await.len(), 1);
    let answers = stage.store().cancel(&ids, &reason()).await.expect("each job has an answer of its own");
    let (running, ready) = (Acted::Done { from: JobState::Running }, Acted::Done { from: JobState::Ready });
    assert_eq!(answers, [running, Acted::Refused(Refusal::Contended), running, ready, ready]);
    run(&mut user, "ROLLBACK").await;
    assert_eq!(stage.store().cancel(&ids[1..2], &reason()).await.unwrap(), [running]);
}

/// Bug class 93: cancel against every end of the worker, at the same moment: one of them wins, both are told so, and a
/// cancelled job does not come back.
#[tokio::test]
async fn a_cancel_and_an_end_at_once_leave_one_terminal_state() {
    const RACES: usize = 200;
    let stage = Stage::new().await;
    stage.enqueue(RACES).await;
    let jobs = stage.claim(RACES).await;
    let minute = Duration::from_mins(1);
    let ends = [
        (AttemptEnd::Complete, "completed"),
        (AttemptEnd::Fail { error: ErrorText::new("boom") }, "dead"),
        (AttemptEnd::Retry { delay: minute, error: ErrorText::new("boom") }, "deferred"),
        (AttemptEnd::Snooze { delay: minute }, "deferred"),
    ];
    let mut outcomes = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        let end = ends[number % ends.len()].0.clone();
        let cancel = async {
            if number % 3 == 0 {
                tokio::task::yield_now().await;
            }
            cancel_patiently(&stage, job).await
        };
        let (answers, acted) = tokio::join!(stage.end(std::slice::from_ref(job), end), cancel);
        outcomes.push((answers[0], acted));
    }
    let (places, mut cancelled) = (stage.places().await, 0);
    for (number, (job, outcome)) in jobs.iter().zip(outcomes).enumerate() {
        let (place, now) = (ends[number % ends.len()].1, &places[&job.receipt.job]);
        match outcome {
            (CLOSED, Acted::Refused(_)) => assert_eq!(*now, [place]),
            // The job was put off first, and cancelled there.
            (CLOSED, Acted::Done { from: JobState::Deferred }) => assert!(place == "deferred" && *now == ["cancelled"]),
            (STALE | CONTENDED, Acted::Done { from: JobState::Running }) => {
                assert_eq!(*now, ["cancelled"]);
                cancelled += 1;
            }
            other => panic!("race {number}: {other:?} and the job is {now:?}"),
        }
    }
    println!("{cancelled} of {RACES} races were won by the cancel");
}

async fn cancel_patiently(stage: &Stage, job: &ClaimedJob) -> Acted {
    for _ in 0..100 {
        let acted = stage.store().cancel(&[job.receipt.job], &reason()).await.unwrap()[0];
        if acted != Acted::Refused(Refusal::Contended) {
            return acted;
        }
    }
    panic!("a cancel was contended 100 times");
}

/// Bug classes 1, 13 and 97: two rescuers, for silence and for the deadline at once, a cancel and the worker itself. One
/// of them ends each attempt, and it is charged once.
#[tokio::test]
async fn rescuers_a_cancel_and_the_worker_at_once_end_an_attempt_once() {
    const JOBS: usize = 60;
    let stage = Stage::with_manual_clock().await;
    for round in 0..6 {
        let ids = stage.enqueue(JOBS).await;
        let mut request = stage.request(JOBS);
        request.deadline = Some(Duration::from_secs(5));
        let jobs = stage.store().claim(&request).await.unwrap().jobs;
        assert_eq!(jobs.len(), JOBS);
        stage.outlive().await;
        let (asked, retry, reason) = (Stage::rescue_request(), steady_retry(), reason());
        let (one, two, answers, acted) = tokio::join!(
            stage.store().rescue(&asked, &retry),
            stage.store().rescue(&asked, &retry),
            stage.end(&jobs[..JOBS / 2], AttemptEnd::Complete),
            stage.store().cancel(&ids[JOBS / 4..], &reason),
        );
        let rescued: Vec<_> = [one.unwrap(), two.unwrap()].into_iter().flat_map(|rescued| rescued.attempts).collect();
        let acted = acted.unwrap();
        let places = stage.places().await;
        for (index, id) in ids.iter().enumerate() {
            let completed = usize::from(answers.get(index) == Some(&CLOSED));
            let by_rescue = rescued.iter().filter(|attempt| attempt.job == *id).count();
            let cancel = index.checked_sub(JOBS / 4).map(|at| acted[at]);
            let running = usize::from(cancel == Some(Acted::Done { from: JobState::Running }));
            assert!(
                completed + by_rescue + running <= 1,
                "round {round}, job {id}: {completed} {by_rescue} {cancel:?}"
            );
            assert_eq!(places[id].len(), 1, "round {round}, job {id} is in {:?}", places[id]);
        }
        // What is left (contended on all sides) is ended by the next pass.
        stage.store().rescue(&asked, &retry).await.unwrap();
        assert!(stage.places().await.values().all(|places| places.len() == 1 && places[0] != "running"));
        let charged = "SELECT max(attempt) FROM (SELECT attempt::bigint FROM awa.jobs) AS j";
        assert_eq!(stage.number(charged).await, 1, "round {round}");
    }
}

/// Bug class 2: a worker whose attempt was rescued and given to another one is refused whatever it tries.
#[tokio::test]
async fn a_stale_worker_changes_nothing_of_the_next_attempt() {
    let stage = Stage::with_manual_clock().await;
    stage.enqueue(1).await;
    let old = stage.claim(1).await;
    stage.outlive().await;
    assert_eq!(stage.store().rescue(&Stage::rescue_request(), &steady_retry()).await.unwrap().attempts.len(), 1);
    stage.fresh.clock.advance(Duration::from_secs(2));
    assert_eq!(stage.store().promote(10).await.unwrap().jobs, 1);
    stage.store().beat(ME, STALENESS).await.unwrap();
    let new = stage.claim(1).await;
    assert_eq!((new[0].receipt.job, new[0].receipt.run_lease.0), (old[0].receipt.job, old[0].receipt.run_lease.0 + 1));
    let zero = Duration::ZERO;
    for end in [
        AttemptEnd::Complete,
        AttemptEnd::Fail { error: ErrorText::new("late") },
        AttemptEnd::Retry { delay: zero, error: ErrorText::new("late") },
        AttemptEnd::Snooze { delay: zero },
        AttemptEnd::Release { delay: zero },
        AttemptEnd::Cancel { reason: reason() },
    ] {
        assert_eq!(stage.end(&old, end).await, [STALE]);
    }
    assert_eq!(stage.store().are_open(&[old[0].receipt, new[0].receipt]).await.unwrap(), [false, true]);
    stage.complete(&new).await;
    assert_eq!(stage.place(new[0].receipt.job).await, "completed");
}

/// A deferred job that dies between two looks of a retry gave its key back: it is not taken out of the dead-letter queue
/// as if it were deferred still, but asked for again, and then its key goes first.
#[tokio::test]
async fn a_retry_takes_a_job_only_in_the_state_in_which_it_saw_it() {
    let stage = Stage::new().await;
    let id = stage.enqueue(1).await[0];
    let jobs = stage.claim(1).await;
    assert_eq!(stage.end(&jobs, AttemptEnd::Fail { error: reason() }).await, [CLOSED]);
    let mut hand = stage.connect().await;
    for (seen, is_taken) in [("deferred", false), ("ready", false), ("dead", true), ("dead", false)] {
        let taken = format!("SELECT (h.job_id IS NOT NULL)::text FROM awa.take_held_job({id}, '{seen}') AS h");
        assert_eq!(texts(&mut hand, &taken).await, [Some(is_taken.to_string())], "seen {seen}");
    }
}
