//! Races between producers and claimers, stepped by hand on real PostgreSQL: nobody waits for a producer, and nothing that
//! commits is passed over, however late it commits.

use awa_core::attempt::ErrorText;
use awa_core::store::{Acted, Consumer, Maintainer, Operator, Producer, Refusal};
use awa_core::{AttemptEnd, ClaimedJob, JobId, JobState, NewJob, Priority, QueueName};
use awa_tests::stage::{Stage, pid, run, sqlstate, texts, try_run};
use sqlx::{AssertSqlSafe, PgConnection, Row};

/// Any wait for a lock fails the statement at once.
const NEVER_WAIT: &str = "SET lock_timeout = '1ms'";
const CLAIM: &str = "SELECT unnest(c.job_ids)::text FROM awa.claim_jobs('races', 7, 7, 100, 1000000) AS c";

fn ids(jobs: &[ClaimedJob]) -> Vec<JobId> {
    jobs.iter().map(|job| job.receipt.job).collect()
}

/// F1: a transaction that claims, and then appends to the lane that it claimed from. Its own transaction looks finished in
/// its own snapshot as soon as a later one has finished, and a cursor that believed so would lose the row for ever.
#[tokio::test]
async fn a_transaction_that_claims_and_then_enqueues_loses_nothing() {
    let stage = Stage::new().await;
    stage.enqueue(3).await;
    let mut both = stage.connect().await;
    run(&mut both, "BEGIN").await;
    // The claim gives the transaction its number; others begin and finish behind it.
    assert_eq!(texts(&mut both, CLAIM).await.len(), 3);
    stage.enqueue(1).await;
    let own = stage.enqueue_in(&mut both, 2).await;
    let others = stage.enqueue(1).await;
    run(&mut both, "COMMIT").await;
    let taken = ids(&stage.claim(10).await);
    assert!(own.iter().chain(&others).all(|id| taken.contains(id)) && taken.len() == 4, "{taken:?}");
}

/// F1, through maintenance: draining moves cursors over tombstones in a transaction of its own.
#[tokio::test]
async fn a_cursor_that_draining_moved_passes_no_row_that_is_still_to_come() {
    let stage = Stage::new().await;
    let mut late = stage.connect().await;
    run(&mut late, "BEGIN").await;
    let slow = stage.enqueue_in(&mut late, 1).await;
    let cancelled = stage.enqueue(2).await;
    stage.store().cancel(&cancelled, &ErrorText::new("no")).await.unwrap();
    stage.rotate(awa_core::ring::RingKind::Queue).await;
    assert_eq!(stage.drain().await.slots, [], "a writer is in flight");
    run(&mut late, "COMMIT").await;
    assert_eq!(stage.drain().await.slots, [], "a job waits");
    assert_eq!(ids(&stage.claim(5).await), slow);
    assert_eq!(stage.drain().await.slots.len(), 1);
}

/// F3: a claim inside somebody's transaction would hold its lanes for the life of that transaction, and with an old
/// snapshot it would read an old cursor.
#[tokio::test]
async fn a_claim_inside_a_transaction_is_refused() {
    let stage = Stage::new().await;
    stage.enqueue(2).await;
    let mut user = stage.connect().await;
    for begin in [
        "BEGIN ISOLATION LEVEL REPEATABLE READ",
        "BEGIN ISOLATION LEVEL SERIALIZABLE",
        "BEGIN; SELECT pg_current_xact_id()",
        "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM awa.jobs",
    ] {
        run(&mut user, begin).await;
        let error = try_run(&mut user, CLAIM).await.expect_err(begin);
        assert_eq!(sqlstate(&error), "AW003", "{begin}");
        run(&mut user, "ROLLBACK").await;
    }
    assert_eq!(stage.claim(5).await.len(), 2, "nothing was taken");
}

/// F3, defence in depth: two claimers that both read the same cursor. The chain of cursors admits one.
#[tokio::test]
async fn the_chain_of_cursors_refuses_a_second_claim_from_one_state() {
    let stage = Stage::new().await;
    stage.enqueue(2).await;
    stage.claim(1).await;
    let mut stale = stage.connect().await;
    let again = "INSERT INTO awa.ready_claim_attempt_batches SELECT * FROM awa.ready_claim_attempt_batches";
    assert_eq!(sqlstate(&try_run(&mut stale, again).await.expect_err("the sequence exists")), "23505");
}

/// A worker without a free place asks for no job at all. With a cancelled job in the slot, the cursor then ran over all
/// others without handing them out.
#[tokio::test]
async fn a_claim_of_no_jobs_passes_none() {
    let stage = Stage::new().await;
    let jobs = stage.enqueue(3).await;
    stage.store().cancel(&jobs[..1], &ErrorText::new("no")).await.unwrap();
    let mut other = stage.connect().await;
    for (max, bytes) in [("0", "1000"), ("-1", "1000"), ("NULL", "1000"), ("1024", "1000"), ("10", "0"), ("10", "NULL")]
    {
        let claim = format!("SELECT count(*) FROM awa.claim_jobs('races', 7, 7, {max}, {bytes})");
        let error = try_run(&mut other, &claim).await.expect_err(&claim);
        assert_eq!(sqlstate(&error), "AW003", "{claim}");
    }
    assert_eq!(ids(&stage.claim(5).await), jobs[1..]);
}

/// I7: with a transaction that enqueued and stays open, sixteen others of the same queue commit without a wait, a claim
/// takes theirs at once, and the late one is in the very next claim after its commit.
#[tokio::test]
async fn an_open_producer_delays_no_other_producer_and_no_claim() {
    let stage = Stage::new().await;
    let mut open = stage.connect().await;
    run(&mut open, "BEGIN").await;
    let late = stage.enqueue_in(&mut open, 3).await;
    let mut committed = Vec::new();
    for _ in 0..16 {
        let mut other = stage.connect().await;
        run(&mut other, NEVER_WAIT).await;
        run(&mut other, "BEGIN").await;
        committed.extend(stage.enqueue_in(&mut other, 2).await);
        run(&mut other, "COMMIT").await;
    }
    assert_eq!(ids(&stage.claim_once(100).await.jobs), committed);
    assert_eq!(stage.claim_once(100).await.jobs, []);
    run(&mut open, "COMMIT").await;
    assert_eq!(ids(&stage.claim_once(100).await.jobs), late);
}

/// F9: the first use of two new queues in opposite order, in two open transactions. Nobody waits, and one may roll back.
#[tokio::test]
async fn the_first_use_of_queues_in_opposite_order_waits_for_nobody() {
    let stage = Stage::new().await;
    let on = |name: &str| stage.job("1").with_queue(QueueName::new(name).unwrap());
    let (mut one, mut two) = (stage.connect().await, stage.connect().await);
    for connection in [&mut one, &mut two] {
        run(connection, NEVER_WAIT).await;
        run(connection, "BEGIN").await;
    }
    let store = stage.store();
    store.enqueue_in(&mut one, &[on("new.a")]).await.unwrap();
    store.enqueue_in(&mut two, &[on("new.b")]).await.unwrap();
    store.enqueue_in(&mut one, &[on("new.b")]).await.unwrap();
    store.enqueue_in(&mut two, &[on("new.a")]).await.unwrap();
    // A worker that opens the queue meanwhile waits for nobody either, and maintenance makes the lanes of what committed.
    store.open_queue(&QueueName::new("new.a").unwrap()).await.unwrap();
    run(&mut one, "COMMIT").await;
    run(&mut two, "ROLLBACK").await;
    store.tidy().await.unwrap();
    assert_eq!(stage.number("SELECT count(*) FROM awa.lane_hints").await, 0);
    for name in ["new.a", "new.b"] {
        let mut request = stage.request(10);
        request.queue = QueueName::new(name).unwrap();
        assert_eq!(store.claim(&request).await.unwrap().jobs.len(), 1, "{name}");
    }
}

/// F9: twenty workers start at the same moment and open the same new queue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_workers_open_one_new_queue_at_once() {
    let stage = Stage::new().await;
    let mut connections = Vec::new();
    for _ in 0..20 {
        connections.push(stage.connect().await);
    }
    for round in 0..25 {
        let mut opening = Vec::new();
        for mut connection in connections.drain(..) {
            let sql = format!("SELECT awa.open_queue('fleet.{round}')");
            opening.push(tokio::spawn(async move { try_run(&mut connection, &sql).await.map(|()| connection) }));
        }
        for worker in opening {
            connections.push(worker.await.unwrap().unwrap_or_else(|error| panic!("round {round}: {error}")));
        }
        assert_eq!(
            stage.number(&format!("SELECT count(*) FROM awa.queue_lanes WHERE queue = 'fleet.{round}'")).await,
            4
        );
    }
}

/// F11, I8: a transaction that commits late under a backlog of 20,000 jobs is in the very next claim, before the backlog.
#[tokio::test]
async fn a_late_commit_under_a_deep_backlog_is_taken_next() {
    let stage = Stage::new().await;
    let mut open = stage.connect().await;
    run(&mut open, "BEGIN").await;
    let late = stage.enqueue_in(&mut open, 2).await;
    let backlog = stage.enqueue(20_000).await;
    assert_eq!(ids(&stage.claim_once(100).await.jobs), backlog[..100]);
    run(&mut open, "COMMIT").await;
    let next = ids(&stage.claim_once(100).await.jobs);
    assert_eq!(next[..2], late[..]);
    assert_eq!(next[2..], backlog[100..198]);
}

/// Bug class 28: fifty interleaved transactions, of which each third rolls back, with claims in between. Each claim takes
/// exactly what has committed, in the order in which the transactions began to write.
#[tokio::test]
async fn fifty_interleaved_transactions_lose_nothing_and_keep_their_order() {
    let stage = Stage::new().await;
    let mut open = Vec::new();
    for _ in 0..50 {
        let mut connection = stage.connect().await;
        run(&mut connection, "BEGIN").await;
        let jobs = stage.enqueue_in(&mut connection, 2).await;
        open.push((connection, jobs));
    }
    // They end in an order of their own, five at a time.
    let mut order: Vec<usize> = (0..50).map(|number| number * 17 % 50).collect();
    while !order.is_empty() {
        let mut ended: Vec<usize> = order.drain(..5).collect();
        for number in &ended {
            run(&mut open[*number].0, if number % 3 == 0 { "ROLLBACK" } else { "COMMIT" }).await;
        }
        ended.sort_unstable();
        let expected: Vec<JobId> =
            ended.iter().filter(|number| *number % 3 != 0).flat_map(|number| open[*number].1.clone()).collect();
        assert_eq!(ids(&stage.claim(100).await), expected);
    }
}

/// Bug class 27: a claimer that dies before its commit has neither moved the cursor nor taken anything.
#[tokio::test]
async fn a_claim_that_is_rolled_back_repeats_all_and_skips_none() {
    let stage = Stage::new().await;
    let all = stage.enqueue(130).await;
    for batch in [1, 128] {
        let mut dying = stage.connect().await;
        run(&mut dying, "BEGIN").await;
        let claim = format!("SELECT unnest(c.job_ids)::text FROM awa.claim_jobs('races', 7, 7, {batch}, 1000000) AS c");
        assert_eq!(texts(&mut dying, &claim).await.len(), batch);
        // Others are told that the lane is held, not that there is nothing.
        let meanwhile = stage.claim_once(10).await;
        assert!(meanwhile.jobs.is_empty() && meanwhile.contended);
        let victim = pid(&mut dying).await;
        stage.number(&format!("SELECT pg_terminate_backend({victim}, 10000)::int::bigint")).await;
        assert!(try_run(&mut dying, "SELECT 1").await.is_err());
    }
    assert_eq!(ids(&stage.claim(1_000).await), all);
}

/// Bug class 29: sixteen producers with batches of 500 at once. Ids are unique and rise within each batch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_bulk_producers_never_share_an_id() {
    let stage = Stage::new().await;
    let mut producers = Vec::new();
    for _ in 0..16 {
        let (store, jobs) = (stage.store().clone(), stage.jobs(500));
        producers.push(tokio::spawn(async move { store.enqueue(&jobs).await.unwrap() }));
    }
    let mut all = Vec::new();
    for producer in producers {
        let batch: Vec<JobId> = producer.await.unwrap().iter().map(|answer| answer.id()).collect();
        assert!(batch.is_sorted());
        all.extend(batch);
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 8_000);
    let mut claimed = ids(&stage.claim(8_000).await);
    claimed.sort_unstable();
    assert_eq!(claimed, all);
}

/// F12: beside a large uncommitted load, an empty claim looks at a handful of pages; the same once it was rolled back and
/// a later claim has gone over it.
#[tokio::test]
async fn an_empty_claim_does_not_walk_through_an_uncommitted_load() {
    let stage = Stage::new().await;
    let mut load = stage.connect().await;
    run(&mut load, "BEGIN").await;
    stage.enqueue_in(&mut load, 50_000).await;
    for _ in 0..3 {
        stage.enqueue(1).await;
        assert_eq!(stage.claim(5).await.len(), 1);
    }
    let pages = empty_claim_pages(&stage).await;
    println!("{pages} pages beside 50,000 uncommitted rows");
    assert!(pages < 150, "an empty claim looked at {pages} pages");
    run(&mut load, "ROLLBACK").await;
    println!("{} pages after the rollback", empty_claim_pages(&stage).await);
    stage.enqueue(1).await;
    assert_eq!(stage.claim(5).await.len(), 1);
    let pages = empty_claim_pages(&stage).await;
    println!("{pages} pages after the next claim");
    assert!(pages < 150, "an empty claim looked at {pages} pages");
}

/// What one empty claim reads, of pages in memory or not, in a session that has its plans ready.
async fn empty_claim_pages(stage: &Stage) -> i64 {
    let mut session = stage.connect().await;
    let claim = "SELECT * FROM awa.claim_jobs('races', 7, 7, 100, 1000000)";
    let mut pages = 0;
    for _ in 0..3 {
        let plan = texts(&mut session, &format!("EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) {claim}")).await;
        let line = plan.iter().flatten().find(|line| line.contains("Buffers:")).cloned().unwrap_or_default();
        pages = line.split(['=', ' ']).filter_map(|word| word.parse::<i64>().ok()).sum();
    }
    pages
}

/// F14: a claim and a cancel of the same ready jobs. Exactly one of them has each job.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_and_a_cancel_never_both_have_a_ready_job() {
    let stage = Stage::new().await;
    let (mut taken, mut cancelled) = (0, 0);
    for round in 0..60 {
        let jobs = stage.enqueue(4).await;
        let reason = ErrorText::new("no");
        let (claimed, acted) = tokio::join!(stage.claim_once(2 + round % 3), stage.store().cancel(&jobs, &reason));
        let (claimed, acted) = (ids(&claimed.jobs), acted.unwrap());
        for (job, acted) in jobs.iter().zip(acted) {
            let state = stage.store().get(*job).await.unwrap().expect("it is kept").state;
            let expected: &[JobState] = match acted {
                Acted::Done { from: JobState::Ready } => {
                    assert!(!claimed.contains(job), "round {round}: {job} was handed out and cancelled as ready");
                    cancelled += 1;
                    &[JobState::Cancelled]
                }
                Acted::Done { .. } => &[JobState::Cancelled],
                Acted::Refused(Refusal::Contended) => &[JobState::Running, JobState::Ready],
                other => panic!("round {round}: {other:?}"),
            };
            taken += usize::from(claimed.contains(job));
            assert!(expected.contains(&state), "round {round}: {acted:?} and the job is {state}");
        }
        let rest = stage.claim(10).await;
        stage.end(&rest, AttemptEnd::Complete).await;
        let running = stage.store().open_attempts(awa_tests::stage::ME, 100).await.unwrap();
        for receipt in running {
            let closure = awa_core::Closure { receipt, end: AttemptEnd::Complete };
            stage.store().close(&[closure]).await.unwrap();
        }
    }
    println!("{taken} were handed out, {cancelled} cancelled before");
    assert!(stage.places().await.values().all(|places| places.len() == 1));
}

/// F14, stepped: whoever comes second is told that the lane is held, and looks again.
#[tokio::test]
async fn a_claim_and_a_cancel_step_aside_for_each_other() {
    let stage = Stage::new().await;
    let job = stage.enqueue(1).await;
    let reason = ErrorText::new("no");
    let mut claimer = stage.connect().await;
    run(&mut claimer, "BEGIN").await;
    assert_eq!(texts(&mut claimer, CLAIM).await.len(), 1);
    assert_eq!(stage.store().cancel(&job, &reason).await.unwrap(), [Acted::Refused(Refusal::Contended)]);
    run(&mut claimer, "ROLLBACK").await;

    let mut canceller = stage.connect().await;
    run(&mut canceller, "BEGIN").await;
    let cancel = format!("SELECT c.answer FROM awa.cancel_jobs('{{{}}}', 'no') AS c", job[0]);
    assert_eq!(texts(&mut canceller, &cancel).await, [Some("ready".to_owned())]);
    let meanwhile = stage.claim_once(5).await;
    assert!(meanwhile.jobs.is_empty() && meanwhile.contended);
    run(&mut canceller, "COMMIT").await;
    let after = stage.claim_once(5).await;
    assert!(after.jobs.is_empty() && !after.contended, "{after:?}");
    assert_eq!(stage.place(job[0]).await, "cancelled");
}

/// A clock that was set back makes the head of a lane younger than now; with a short aging interval the claim failed.
#[tokio::test]
async fn a_clock_that_was_set_back_does_not_stop_aging_claims() {
    let stage = Stage::new().await;
    stage.enqueue(1).await;
    let mut session = stage.connect().await;
    let claim =
        "SELECT unnest(c.job_ids)::text FROM awa.claim_jobs('races', 7, 7, 9, 1000, NULL, 1000, '2001-01-01') AS c";
    assert_eq!(texts(&mut session, claim).await.len(), 1);
}

/// Bug class 33: an old job of low priority, aged to the urgent lane's rank, and a job of that lane, claimed, completed
/// and shown under their own priorities.
#[tokio::test]
async fn aged_jobs_keep_the_priority_they_were_enqueued_with() {
    let stage = Stage::with_manual_clock().await;
    let of = |priority: Priority| -> NewJob { stage.job("1").with_priority(priority) };
    stage.store().enqueue(&[of(Priority::BULK)]).await.unwrap();
    stage.fresh.clock.advance(std::time::Duration::from_hours(1));
    stage.store().enqueue(&[of(Priority::URGENT)]).await.unwrap();
    let mut request = stage.request(10);
    request.aging = Some(std::time::Duration::from_mins(1));
    let jobs = stage.store().claim(&request).await.unwrap().jobs;
    stage.complete(&jobs).await;
    let mut session: PgConnection = stage.connect().await;
    let rows = sqlx::query(AssertSqlSafe("SELECT priority FROM awa.terminal_jobs ORDER BY priority".to_owned()));
    let priorities: Vec<i16> = rows.fetch_all(&mut session).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(priorities, [1, 4]);
}

/// `enqueue_jobs` may be called from any language. A job that was given both a moment and a delay was stored nowhere, and
/// its id was returned.
#[tokio::test]
async fn enqueue_in_sql_stores_every_job_whose_id_it_returns() {
    let stage = Stage::new().await;
    let mut sql = stage.connect().await;
    let times = ["NULL", "'2001-01-01'", "'2101-01-01'"];
    let delays = ["NULL", "-5", "0", "3600000000"];
    let mut count = 0;
    for at in times {
        for delay in delays {
            let enqueue = format!(
                "SELECT unnest(awa.enqueue_jobs('{{races}}', '{{2}}', '{{0}}', NULL, '{{test}}', ARRAY['1'::json, '2'], '{{25}}',
                 NULL, ARRAY[{at}, NULL]::timestamptz[], ARRAY[{delay}, NULL]::bigint[]))::text"
            );
            assert_eq!(texts(&mut sql, &enqueue).await.len(), 2);
            count += 2;
            assert_eq!(stage.number("SELECT count(*) FROM awa.jobs").await, count, "moment {at}, delay {delay}");
        }
    }
}

/// What does not fit is refused before anything is stored, and cannot stand in the way of other queues.
#[tokio::test]
async fn enqueue_in_sql_refuses_what_does_not_fit() {
    let stage = Stage::new().await;
    let mut sql = stage.connect().await;
    let long = format!("'{{{}}}'", "q".repeat(201));
    for (queues, priorities, lanes, kinds, budgets) in [
        ("'{\"\"}'", "'{2}'", "NULL", "'{k}'", "'{25}'"),
        (long.as_str(), "'{2}'", "NULL", "'{k}'", "'{25}'"),
        ("'{new}'", "'{0}'", "NULL", "'{k}'", "'{25}'"),
        ("'{new}'", "'{5}'", "NULL", "'{k}'", "'{25}'"),
        ("'{NULL}'", "'{2}'", "NULL", "'{k}'", "'{25}'"),
        ("'{a,b}'", "'{2}'", "'{1,2}'", "'{k}'", "'{25}'"),
        ("'{races}'", "'{2}'", "'{1,2}'", "'{k}'", "'{25}'"),
        ("'{races}'", "'{2}'", "'{0,1}'", "'{k}'", "'{25}'"),
        ("'{races}'", "'{2}'", "'{1}'", "'{k}'", "'{25}'"),
        ("'{races}'", "'{2}'", "NULL", "'{k,k,k}'", "'{25}'"),
        ("'{races}'", "'{2}'", "NULL", "'{k}'", "'{25,25,25}'"),
    ] {
        let shards = if queues == "'{a,b}'" { "'{0,0}'" } else { "'{0}'" };
        let enqueue = format!(
            "SELECT awa.enqueue_jobs({queues}, {priorities}, {shards}, {lanes}, {kinds}, ARRAY['1'::json, '2'], {budgets},
             NULL, NULL, NULL)"
        );
        let error = try_run(&mut sql, &enqueue).await.expect_err(&enqueue);
        assert_eq!(sqlstate(&error), "AW003", "{enqueue}: {error}");
    }
    assert_eq!(stage.number("SELECT count(*) FROM awa.jobs").await, 0);
    assert_eq!(stage.number("SELECT count(*) FROM awa.lane_hints").await, 0);
    // Without an index of lanes, all jobs are in the first lane.
    let all_in_first = "SELECT awa.enqueue_jobs('{races,other}', '{2,2}', '{0,0}', NULL, '{k}', ARRAY['1'::json, '2'], '{25}', NULL, NULL, NULL)";
    run(&mut sql, all_in_first).await;
    assert_eq!(stage.claim(5).await.len(), 2);
}
