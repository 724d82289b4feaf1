//! The invariants I1 to I12 on real PostgreSQL, each beside a mutant: the check passes on the schema as it is, and fails on a
//! schema in which one thing is broken. A check that no mutant fails proves nothing.
//!
//! The checks are the smallest that tell; the suites that look for the same laws everywhere are named in `docs/correctness.md`.

use std::collections::BTreeSet;
use std::time::Duration;

use awa_core::attempt::Receipt;
use awa_core::ring::RingKind;
use awa_core::store::{ClaimRequest, Consumer, Maintainer, Producer, Rotated};
use awa_core::unpin::UnpinPolicy;
use awa_core::{AttemptEnd, ClaimedJob, ClosureAnswer, JsonText, Nonce, QueueName, Unique, UniqueBy};
use awa_tests::halt::replace_in;
use awa_tests::stage::{Stage, complete_sql, run, texts};
use tokio::time::timeout;

/// How a law was broken.
type Broken = Result<(), String>;

fn law(holds: bool, broken: &str) -> Broken {
    if holds { Ok(()) } else { Err(broken.to_owned()) }
}

/// The check passes as things are and fails, by this law, where `mutate` has been at work.
async fn a_mutant_fails<C: AsyncFn(&Stage) -> Broken, M: AsyncFn(&Stage)>(law: &str, check: C, mutate: M) {
    assert_eq!(check(&Stage::new().await).await, Ok(()), "the schema as it is");
    let stage = Stage::new().await;
    mutate(&stage).await;
    assert_eq!(check(&stage).await, Err(law.to_owned()), "the mutant");
}

/// The same of a mutant that is only met while no other transaction of the server runs, of whatever database.
async fn a_mutant_fails_at_last<C: AsyncFn(&Stage) -> Broken, M: AsyncFn(&Stage)>(law: &str, check: C, mutate: M) {
    const TRIES: usize = 30;
    assert_eq!(check(&Stage::new().await).await, Ok(()), "the schema as it is");
    for _ in 0..TRIES {
        let stage = Stage::new().await;
        mutate(&stage).await;
        match check(&stage).await {
            Ok(()) => {}
            Err(found) => return assert_eq!(found, law, "the mutant"),
        }
    }
    panic!("the mutant passes");
}

fn ids(jobs: &[ClaimedJob]) -> Vec<i64> {
    jobs.iter().map(|job| job.receipt.job.get()).collect()
}

/// One turn of both rings, with everything that reclaims; how many slots are still in use besides the open ones.
async fn slots_kept(stage: &Stage) -> usize {
    stage.rotate(RingKind::Queue).await;
    stage.rotate(RingKind::Claim).await;
    stage.drain().await;
    let mut kept = 0;
    for ring in [RingKind::Claim, RingKind::Queue, RingKind::Claim] {
        kept = stage.prune(ring).await.iter().filter(|report| report.kept.is_some()).count();
    }
    kept + stage.prune(RingKind::Queue).await.iter().filter(|report| report.kept.is_some()).count()
}

#[tokio::test]
async fn i1_a_job_that_is_to_be_retried_is_somewhere() {
    let broken = "a committed job is nowhere";
    let check = async |stage: &Stage| {
        let id = stage.enqueue(1).await[0];
        let jobs = stage.claim(1).await;
        stage.end(&jobs, AttemptEnd::Snooze { delay: Duration::from_mins(1) }).await;
        law(stage.places().await.contains_key(&id), broken)
    };
    let mutant = async |stage: &Stage| {
        replace_in(stage, "place_ended", "WHERE e.route = 'deferred'", "WHERE e.route = 'deferred' AND false").await;
    };
    a_mutant_fails(broken, check, mutant).await;
}

#[tokio::test]
async fn i2_a_job_is_handed_out_to_one_worker() {
    let broken = "two claims handed out the same job";
    // The cursor row is written, and stays where it was: in a claim that stops, in one that takes everything, and in one beside
    // a transaction that runs.
    for (limit, is_beside, moved, stays) in [
        (2, false, "part_jobs := ARRAY[p_stop_job]", "part_jobs := ARRAY[p_stop_job]; seen := p_seen"),
        (5, false, "seen := p_snapshot", "seen := p_seen"),
        (2, true, "seen := \"awa\".snapshot_of(v_xmax, v_running)", "seen := p_seen"),
    ] {
        let check = async |stage: &Stage| {
            let mut open = stage.connect().await;
            run(&mut open, "BEGIN").await;
            if is_beside {
                run(&mut open, "SELECT pg_current_xact_id()").await;
            }
            stage.enqueue(4).await;
            let mut jobs = ids(&stage.claim_once(limit).await.jobs);
            jobs.extend(ids(&stage.claim_once(limit).await.jobs));
            law(jobs.len() == 4 && jobs.iter().collect::<BTreeSet<_>>().len() == 4, broken)
        };
        let mutant = async |stage: &Stage| replace_in(stage, "frontier_after", moved, stays).await;
        a_mutant_fails_at_last(broken, check, mutant).await;
    }
}

#[tokio::test]
async fn i3_the_database_refuses_a_second_closure() {
    let broken = "an attempt is closed twice";
    let check = async |stage: &Stage| {
        stage.enqueue(2).await;
        let jobs = stage.claim(2).await;
        let mut first = stage.connect().await;
        run(&mut first, &format!("BEGIN; {}", complete_sql(&jobs))).await;
        stage.end(&jobs, AttemptEnd::Complete).await;
        run(&mut first, "COMMIT").await;
        let receipt = jobs[0].receipt.id.get();
        let sql = format!("SELECT count(*) FROM awa.closed_receipts AS c WHERE c.receipts @> {receipt}::bigint");
        law(stage.number(&sql).await == 1, broken)
    };
    let mutant = async |stage: &Stage| {
        let drop = "DO $$ DECLARE c record; BEGIN
            FOR c IN SELECT conrelid::regclass AS child, conname FROM pg_constraint
                     WHERE contype = 'x' AND connamespace = 'awa'::regnamespace LOOP
                EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.child, c.conname);
            END LOOP; END $$";
        run(&mut stage.connect().await, drop).await;
    };
    a_mutant_fails(broken, check, mutant).await;
}

#[tokio::test]
async fn i4_a_writer_with_a_lost_claim_changes_nothing() {
    let broken = "a nonce that is not the claim's closed it";
    // A few batches are closed one by one, more of them together.
    for (batches, functions, check_of_nonce) in
        [(1, "close_one_[0-9]+", "AND l.nonce = p_nonce"), (5, "close_receipts_[0-9]+", "AND l.nonce = w.nonce")]
    {
        let check = async |stage: &Stage| {
            stage.enqueue(2 * batches).await;
            let mut jobs = Vec::new();
            for _ in 0..batches {
                jobs.extend(stage.claim(2).await);
            }
            for job in &mut jobs {
                job.receipt = Receipt { nonce: Nonce(job.receipt.nonce.0 + 1), ..job.receipt };
            }
            let answers = stage.end(&jobs, AttemptEnd::Complete).await;
            law(answers == vec![ClosureAnswer::Stale; 2 * batches], broken)
        };
        let mutant = async |stage: &Stage| replace_in(stage, functions, check_of_nonce, "").await;
        a_mutant_fails(broken, check, mutant).await;
    }
}

#[tokio::test]
async fn i5_nothing_is_truncated_over_an_open_attempt() {
    let broken = "a running job is gone";
    let check = async |stage: &Stage| {
        let id = stage.enqueue(1).await[0];
        stage.claim(1).await;
        slots_kept(stage).await;
        law(stage.places().await.contains_key(&id), broken)
    };
    // The proof takes every claim for one without members.
    let mutant = async |stage: &Stage| {
        let blind = "CREATE OR REPLACE FUNCTION awa.batch_receipts(p_batch bigint, p_members smallint)
                     RETURNS int8multirange LANGUAGE sql IMMUTABLE AS $$ SELECT '{}'::int8multirange $$";
        run(&mut stage.connect().await, blind).await;
    };
    a_mutant_fails(broken, check, mutant).await;
}

#[tokio::test]
async fn i6_no_row_of_a_ring_is_changed_or_removed() {
    let broken = "a row of a ring table was changed";
    let check = async |stage: &Stage| {
        stage.enqueue(5).await;
        stage.complete(&stage.claim(5).await).await;
        let mut look = stage.connect().await;
        // A backend reports what it has counted when it ends.
        stage.store().pool().close().await;
        let others = "SELECT count(*)::text FROM pg_stat_activity
                      WHERE datname = current_database() AND pid <> pg_backend_pid()";
        let mut moments = tokio::time::interval(Duration::from_millis(5));
        while texts(&mut look, others).await != [Some("0".to_owned())] {
            moments.tick().await;
        }
        let changed = "SELECT sum(n_tup_upd + n_tup_del)::text FROM pg_stat_user_tables
                       WHERE schemaname = 'awa' AND relname ~ '^(ready|receipt|done|lease_claim).*_[0-9]+$'";
        law(texts(&mut look, changed).await == [Some("0".to_owned())], broken)
    };
    let mutant = async |stage: &Stage| {
        let update = "UPDATE awa.lease_claim_batches SET nonce = nonce; IF cardinality(p_batches)";
        replace_in(stage, "complete_attempts", "IF cardinality(p_batches)", update).await;
    };
    a_mutant_fails(broken, check, mutant).await;
}

#[tokio::test]
async fn i7_an_open_transaction_that_enqueued_delays_no_producer() {
    let broken = "a producer waits for another one's transaction";
    let check = async |stage: &Stage| {
        let mut open = stage.connect().await;
        run(&mut open, "BEGIN").await;
        stage.enqueue_in(&mut open, 1).await;
        let jobs = stage.jobs(1);
        let enqueued = timeout(Duration::from_secs(3), stage.store().enqueue(&jobs)).await;
        run(&mut open, "ROLLBACK").await;
        law(enqueued.is_ok(), broken)
    };
    // The lock of the queue, as it is held by systems that number their jobs in the order of commits.
    let mutant = async |stage: &Stage| {
        let lock = "PERFORM pg_advisory_xact_lock(42); CASE p_slot";
        replace_in(stage, "append_ready", "CASE p_slot", lock).await;
    };
    a_mutant_fails(broken, check, mutant).await;
}

#[tokio::test]
async fn i8_a_late_commit_is_taken_by_the_next_claim() {
    let broken = "a job that committed late is not handed out";
    let check = async |stage: &Stage| {
        let mut late = stage.connect().await;
        run(&mut late, "BEGIN").await;
        let id = stage.enqueue_in(&mut late, 1).await[0];
        stage.enqueue(1).await;
        stage.claim_once(1).await;
        run(&mut late, "COMMIT").await;
        law(ids(&stage.claim_once(5).await.jobs) == [id.get()], broken)
    };
    // Claims go on behind what they have seen, and never come back.
    let mutant = async |stage: &Stage| {
        let back = "IF pg_snapshot_xmin(p_seen) < v_from THEN";
        replace_in(stage, "frontier_probes", back, "IF false THEN").await;
    };
    a_mutant_fails(broken, check, mutant).await;
}

#[tokio::test]
async fn i9_the_jobs_of_a_transaction_come_in_their_order() {
    let broken = "jobs come out of order";
    let check = async |stage: &Stage| {
        let jobs = stage.enqueue(5).await;
        let expected: Vec<i64> = jobs.iter().map(|job| job.get()).collect();
        law(ids(&stage.claim_once(5).await.jobs) == expected, broken)
    };
    let mutant = async |stage: &Stage| {
        let (ascending, descending) = ("ORDER BY r.xid, r.job_id", "ORDER BY r.xid DESC, r.job_id DESC");
        replace_in(stage, "claim_lane_[0-9]+", ascending, descending).await;
    };
    a_mutant_fails(broken, check, mutant).await;
}

#[tokio::test]
async fn i10_a_key_is_held_by_one_job() {
    let broken = "two jobs hold one key";
    let check = async |stage: &Stage| {
        let key = UniqueBy::text("one").key_of(&stage.job("{}")).unwrap();
        let unique = stage.job("{}").with_unique(Unique::new(key));
        let mut inserted = 0;
        for _ in 0..2 {
            let answers = stage.store().enqueue(std::slice::from_ref(&unique)).await.unwrap();
            inserted += answers.iter().filter(|answer| answer.is_inserted()).count();
        }
        law(inserted == 1, broken)
    };
    // It asks whether the key is free, and does not take it.
    let mutant = async |stage: &Stage| {
        replace_in(stage, "take_unique_keys", "WHERE w.key IS NOT NULL", "WHERE false").await;
        let holder = "coalesce((SELECT max(c.job_id) FROM \"awa\".unique_claims AS c WHERE c.key = w.key), w.job)";
        let asked = "(SELECT max(c.job_id) FROM \"awa\".unique_claims AS c WHERE c.key = w.key)";
        replace_in(stage, "take_unique_keys", asked, holder).await;
    };
    a_mutant_fails(broken, check, mutant).await;
}

#[tokio::test]
async fn i11_every_end_leaves_the_slots_reclaimable() {
    let broken = "an end keeps the slots of its attempt";
    let check = async |stage: &Stage| {
        let result = JsonText::new("result", "1").unwrap();
        let error = || awa_core::attempt::ErrorText::new("boom");
        let minute = Duration::from_mins(1);
        let ends = [
            AttemptEnd::Complete,
            AttemptEnd::CompleteWith { result },
            AttemptEnd::Retry { delay: minute, error: error() },
            AttemptEnd::Snooze { delay: minute },
            AttemptEnd::Release { delay: minute },
            AttemptEnd::Fail { error: error() },
            AttemptEnd::Cancel { reason: error() },
        ];
        for end in ends {
            stage.enqueue(2).await;
            stage.end(&stage.claim(2).await, end).await;
        }
        law(slots_kept(stage).await == 0, broken)
    };
    // One way to end an attempt forgets the closure beside the claim.
    let mutant = async |stage: &Stage| {
        let forget = "CREATE FUNCTION awa.forget_snoozes() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN DELETE FROM awa.lease_claim_closure_batches WHERE outcome = 3; RETURN NULL; END $$;
            CREATE TRIGGER forget_snoozes AFTER INSERT ON awa.lease_claim_closure_batches
            FOR EACH ROW EXECUTE FUNCTION awa.forget_snoozes()";
        run(&mut stage.connect().await, forget).await;
    };
    a_mutant_fails(broken, check, mutant).await;
}

#[tokio::test]
async fn i12_a_job_per_slot_that_nobody_claims_does_not_stop_the_ring() {
    let broken = "jobs that nobody claims stop the ring";
    let check = async |stage: &Stage| {
        let filler = QueueName::new("filler").unwrap();
        stage.store().open_queue(&filler).await.unwrap();
        let mut opened = 0;
        for round in 0..16 {
            // One stays, one goes.
            stage.enqueue(1).await;
            let job = stage.job("{}");
            let passing = awa_core::NewJob::new(filler.clone(), job.kind().clone(), job.args().clone());
            stage.store().enqueue(&[passing]).await.unwrap();
            let request = ClaimRequest { queue: filler.clone(), ..stage.request(5) };
            let jobs = stage.store().claim(&request).await.unwrap().jobs;
            stage.complete(&jobs).await;
            let rotated = stage.rotate(RingKind::Queue).await;
            // The ring has gone around by then, and is full of them.
            opened += usize::from(round >= 8 && matches!(rotated, Rotated::Opened(..)));
            stage.rotate(RingKind::Claim).await;
            stage.drain().await;
            stage.store().unpin(&UnpinPolicy::default()).await.unwrap();
            stage.prune(RingKind::Claim).await;
            stage.prune(RingKind::Queue).await;
        }
        law(opened >= 4, broken)
    };
    let mutant = async |stage: &Stage| {
        let moved = "RETURN CASE WHEN v_moved > p_limit THEN -1 ELSE v_moved END";
        replace_in(stage, "carry_slot", moved, "RETURN -1").await;
    };
    a_mutant_fails(broken, check, mutant).await;
}
