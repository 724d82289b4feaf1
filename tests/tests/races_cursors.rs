//! Whoever moves a cursor and dies before its commit has moved nothing; and what commits behind a cursor that went on is
//! found, by the sweeps of rescue as well.

use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::ring::RingKind;
use awa_core::store::{Consumer, Maintainer, MoveTo, Operator, Producer, PurgeScope};
use awa_core::{AttemptEnd, ClaimedJob, JobId, Priority};
use awa_tests::halt::{Halt, complaint, replace_in};
use awa_tests::shapes::{Shape, UNPIN, slots_kept};
use awa_tests::stage::{RESCUER, STALENESS, Stage, pid, run, steady_retry, texts, try_run};

fn ids(jobs: &[ClaimedJob]) -> Vec<JobId> {
    jobs.iter().map(|job| job.receipt.job).collect()
}

/// Ends the session that stands at a halt.
async fn kill_at(stage: &Stage, halt: &mut Halt, victim: i32) {
    halt.until_reached(1).await;
    assert_eq!(stage.number(&format!("SELECT pg_terminate_backend({victim}, 10000)::int::bigint")).await, 1);
    halt.release().await;
}

/// What [`a_claimer_that_dies_anywhere_has_taken_nothing_and_moved_nothing`] shows, of one place.
async fn a_claimer_dies(stage: &Stage, functions: &str, place: &str) {
    let mut halt = Halt::before(stage, functions, place).await;
    let all = stage.enqueue(6).await;
    if functions.starts_with("claim_carried") {
        let first = stage.claim(6).await;
        stage.end(&first, AttemptEnd::Release { delay: Duration::ZERO }).await;
    }
    let is_row_local = functions.starts_with("record_row");
    for members in [1, 4] {
        let mut dying = stage.connect().await;
        let victim = pid(&mut dying).await;
        halt.arm(1).await;
        let claim = format!(
            "SELECT count(*) FROM awa.claim_jobs('races', 7, 7, {members}, 99999, p_row_local => {is_row_local})"
        );
        let claiming = tokio::spawn(async move { try_run(&mut dying, &claim).await.is_err() });
        kill_at(stage, &mut halt, victim).await;
        assert!(claiming.await.unwrap(), "{functions}");
    }
    assert_eq!(ids(&stage.claim(3).await), all[..3], "{functions}: what the dead had moved stays moved");
    assert_eq!(ids(&stage.claim(9).await), all[3..], "{functions}");
}

/// Bug class 27: a claimer is killed behind its new cursor and before its claim is written, of each shape, or behind both.
/// Cursor and claim are of one transaction: the next claim repeats nothing and skips nothing.
#[tokio::test]
async fn a_claimer_that_dies_anywhere_has_taken_nothing_and_moved_nothing() {
    for (functions, place) in [
        ("claim_lane_[0-9]+", "INSERT INTO"),
        ("record_claim_in_[0-9]+", "INSERT INTO"),
        ("record_row_claims_in_[0-9]+", "INSERT INTO"),
        ("claim_carried", "batch_id := nextval"),
        ("claim_jobs", "horizon := pg_snapshot_xmin"),
    ] {
        a_claimer_dies(&Stage::new().await, functions, place).await;
    }
}

/// The same with cursors that outlive the transaction that moved them.
#[tokio::test]
async fn a_cursor_that_outlives_its_claim_is_noticed() {
    let stage = Stage::new().await;
    let outlive = "CREATE SEQUENCE public.taken MINVALUE 0 START 0;
         CREATE FUNCTION public.take(p_members integer) RETURNS boolean LANGUAGE sql
         AS $$ SELECT setval('public.taken', p_members) IS NOT NULL $$";
    run(&mut stage.connect().await, outlive).await;
    let probes = "ORDER BY r.xid, r.job_id LIMIT p_limit) AS t";
    let skipping = "ORDER BY r.xid, r.job_id LIMIT p_limit
                    OFFSET (SELECT last_value FROM public.taken)) AS t";
    replace_in(&stage, "claim_lane_[0-9]+", probes, skipping).await;
    let taken = "IF members > 0 THEN";
    replace_in(&stage, "claim_lane_[0-9]+", taken, &format!("PERFORM public.take(members); {taken}")).await;
    let mutant = tokio::spawn(async move { a_claimer_dies(&stage, "record_claim_in_[0-9]+", "INSERT INTO").await });
    assert!(complaint(mutant.await).contains("what the dead had moved stays moved"));
}

/// Bug class 27, of everybody else who moves cursors: draining over cancelled jobs, carrying over, moving to another lane,
/// purging. Each is killed behind its last statement, and nothing has happened.
#[tokio::test]
async fn whoever_moves_a_cursor_and_dies_has_moved_nothing() {
    for (functions, place) in [
        ("pass_tombstones_[0-9]+", "RETURN true"),
        ("carry_slot", "RETURN CASE"),
        ("move_in_ring", "RETURN 'ready'"),
        ("purge_lane_[0-9]+", "RETURN v_gone"),
    ] {
        let stage = Stage::new().await;
        let mut halt = Halt::before(&stage, functions, place).await;
        let all = stage.enqueue(4).await;
        let gone = &all[..2];
        stage.store().cancel(gone, &ErrorText::new("no")).await.unwrap();
        let waiting = if functions.starts_with("pass") {
            stage.store().cancel(&all[2..], &ErrorText::new("no")).await.unwrap();
            Vec::new()
        } else {
            all[2..].to_vec()
        };
        for _ in 0..3 {
            stage.rotate(RingKind::Queue).await;
            stage.enqueue(1).await;
        }
        let before = stage.places().await;
        let store = stage.store().clone();
        let (queue, job) = (stage.queue.clone(), all[2]);
        halt.arm(1).await;
        let which = functions.to_owned();
        let dying = tokio::spawn(async move {
            if which.starts_with("pass") {
                store.drain().await.is_err()
            } else if which.starts_with("carry") {
                store.unpin(&UNPIN).await.is_err()
            } else if which.starts_with("move") {
                store.move_jobs(&[job], &MoveTo::priority(Priority::URGENT)).await.is_err()
            } else {
                store.purge_queue(&queue, PurgeScope::Ready).await.is_err()
            }
        });
        halt.until_reached(1).await;
        let standing = "SELECT a.pid::bigint FROM pg_stat_activity AS a WHERE a.wait_event = 'advisory'
                        AND a.datname = current_database()";
        let victim = i32::try_from(stage.number(standing).await).unwrap();
        kill_at(&stage, &mut halt, victim).await;
        assert!(dying.await.unwrap(), "{functions}: the call of the dead has an answer");
        assert_eq!(stage.places().await, before, "{functions}");
        let claimed = ids(&stage.claim(9).await);
        assert_eq!(claimed[..waiting.len()], waiting, "{functions}");
        assert_eq!(claimed.len(), waiting.len() + 3, "{functions}");
    }
}

/// What [`a_claim_that_commits_behind_the_sweeps_is_rescued`] shows, of one shape and cause.
async fn a_claim_commits_behind_the_sweep(stage: &Stage, shape: Shape, is_silent: bool) {
    let deadline = (!is_silent).then_some(Duration::from_secs(5));
    let late = stage.enqueue(1).await[0];
    let mut claimer = stage.connect().await;
    run(&mut claimer, "BEGIN").await;
    let limit = deadline.map_or_else(|| "NULL".to_owned(), |limit| limit.as_micros().to_string());
    let is_row_local = shape == Shape::RowLocal;
    let claim = format!(
        "SELECT unnest(c.job_ids)::text FROM awa.claim_jobs('races', 7, 7, 1, 99999, {limit}, NULL, NULL, {is_row_local}) AS c"
    );
    assert_eq!(texts(&mut claimer, &claim).await, [Some(late.to_string())]);
    // Others are claimed after it, from other lanes, are rescued, and take the cursors of the sweeps along.
    for _ in 0..3 {
        stage.store().enqueue(&[stage.job("{}").with_priority(Priority::URGENT)]).await.unwrap();
        let mut request = stage.request(1);
        request.deadline = deadline;
        if shape == Shape::RowLocal {
            request.shape = awa_core::store::ClaimShape::RowLocal;
        }
        assert_eq!(stage.store().claim(&request).await.unwrap().jobs.len(), 1, "{shape:?}");
        stage.outlive().await;
        let rescued = stage.store().rescue(&Stage::rescue_request(), &steady_retry()).await.unwrap();
        assert_eq!(rescued.attempts.len(), 1, "{shape:?}");
    }
    run(&mut claimer, "COMMIT").await;
    let mut passes = 0;
    while stage.place(late).await == "running" {
        passes += 1;
        assert!(passes <= 3, "{shape:?}, silent {is_silent}: the sweeps do not come back");
        stage.store().beat(RESCUER, STALENESS).await.unwrap();
        stage.store().rescue(&Stage::rescue_request(), &steady_retry()).await.unwrap();
    }
}

/// Bug class 28, of rescue: a claim that stays open for longer than the staleness time commits behind cursors that have gone
/// over younger claims. The sweeps come back to it within three passes.
#[tokio::test]
async fn a_claim_that_commits_behind_the_sweeps_is_rescued() {
    for shape in [Shape::Single, Shape::RowLocal] {
        for is_silent in [true, false] {
            let stage = Stage::with_manual_clock().await;
            a_claim_commits_behind_the_sweep(&stage, shape, is_silent).await;
            let left: Vec<JobId> = stage.places().await.into_keys().collect();
            stage.store().cancel(&left, &ErrorText::new("done with it")).await.unwrap();
            assert_eq!(slots_kept(&stage).await, 0);
        }
    }
}
