//! Ends that meet the move of their attempt out of the ring, numbers that are drawn in turns, and priorities by which jobs
//! were claimed: nothing of how an attempt came about may decide where it is looked for when it ends.

use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::job::RunAt;
use awa_core::store::{ClaimRequest, ClaimShape, Consumer, Maintainer, Operator, Producer};
use awa_core::unique::{Unique, UniqueBy};
use awa_core::{AttemptEnd, ClaimedJob, Closure, ClosureAnswer, JobId, NewJob, Priority};
use awa_tests::halt::{Halt, complaint, replace_in};
use awa_tests::shapes::{MINUTE, Shape, UNPIN, every_end, pinned, slots_kept};
use awa_tests::stage::{Stage, run};

const CLOSED: ClosureAnswer = ClosureAnswer::Closed;
const ENTRY: &str = "IF current_setting('synchronous_commit')";
const LOOKED: &str = "WITH written AS (";
/// The shapes that are in the ring of claims.
const IN_THE_RING: [Shape; 3] = [Shape::Single, Shape::Wide, Shape::RowLocal];

/// Ends what is left, and tells how many slots are kept then.
async fn swept(stage: &Stage) -> usize {
    let left: Vec<JobId> = stage.places().await.into_keys().collect();
    stage.store().cancel(&left, &ErrorText::new("done with it")).await.unwrap();
    slots_kept(stage).await;
    slots_kept(stage).await
}

/// What [`an_end_that_stood_still_while_its_attempt_was_moved_finds_it`] shows, of one place.
async fn ends_meet_a_move(stage: &Stage, functions: &str, place: &str, shapes: &[Shape]) {
    let mut halt = Halt::before(stage, functions, place).await;
    if place == LOOKED {
        halt.also_before(stage, "close_one_[0-9]+", "INSERT INTO").await;
    }
    for shape in shapes {
        for (way, state) in every_end() {
            let jobs = pinned(stage, *shape).await;
            let (store, end) = (stage.store().clone(), Closure { receipt: jobs[0].receipt, end: way.clone() });
            halt.arm(1).await;
            let ending = tokio::spawn(async move { store.close(&[end]).await.unwrap()[0] });
            halt.until_reached(1).await;
            let moved = stage.store().unpin(&UNPIN).await.unwrap();
            assert_eq!(moved.evicted, jobs.len(), "{shape:?}: {moved:?}");
            halt.release().await;
            assert_eq!(ending.await.unwrap(), CLOSED, "{shape:?} {way:?}: it runs, and was told that it does not");
            assert_eq!(stage.place(jobs[0].receipt.job).await, state, "{shape:?} {way:?}");
            assert_eq!(stage.end(&jobs[..1], way.clone()).await, [ClosureAnswer::Stale], "{shape:?} {way:?}");
            stage.complete(&jobs[1..]).await;
            assert_eq!(swept(stage).await, 0, "{shape:?} {way:?}");
        }
    }
}

/// Bug class 30: an attempt is moved out of the ring while its end stands still, before it looks or behind its look. It ends
/// as what it is now, and every slot that it was in can be reclaimed.
#[tokio::test]
async fn an_end_that_stood_still_while_its_attempt_was_moved_finds_it() {
    let entries = "end_attempts|complete_attempts|park_attempts";
    ends_meet_a_move(&Stage::new().await, entries, ENTRY, &IN_THE_RING).await;
    ends_meet_a_move(&Stage::new().await, "close_receipts_[0-9]+", LOOKED, &IN_THE_RING[..2]).await;
}

/// The same where an end does not look among the leases.
#[tokio::test]
async fn an_end_that_knows_one_shape_is_noticed() {
    let stage = Stage::new().await;
    replace_in(&stage, "take_leases", "WHERE w.o = ANY (p_tags) ORDER BY", "WHERE false ORDER BY").await;
    replace_in(&stage, "take_leases", "EXIT WHEN NOT FOUND", "EXIT").await;
    let mutant =
        tokio::spawn(async move { ends_meet_a_move(&stage, "complete_attempts", ENTRY, &[Shape::Single]).await });
    assert!(complaint(mutant.await).contains("it runs, and was told that it does not"));
}

/// Bug class 30, the other way around: the move stands still, the attempt ends, and there is nothing to move any more.
#[tokio::test]
async fn a_move_that_stood_still_while_its_attempt_ended_moves_nothing() {
    for (functions, place, shapes) in [
        ("materialize_attempts", "FOR v_want IN", &IN_THE_RING[..]),
        ("close_receipts_[0-9]+", LOOKED, &IN_THE_RING[..2]),
    ] {
        let stage = Stage::new().await;
        let mut halt = Halt::before(&stage, functions, place).await;
        for shape in shapes {
            for (way, state) in every_end() {
                if matches!(way, AttemptEnd::Park { .. }) {
                    // A park is a move itself, and waits as a lease.
                    continue;
                }
                let jobs = pinned(&stage, *shape).await;
                let store = stage.store().clone();
                halt.arm(1).await;
                let moving = tokio::spawn(async move { store.unpin(&UNPIN).await.unwrap() });
                halt.until_reached(1).await;
                assert_eq!(stage.end(&jobs, way.clone()).await, vec![CLOSED; jobs.len()], "{shape:?} {way:?}");
                halt.release().await;
                moving.await.unwrap();
                assert_eq!(stage.number("SELECT count(*) FROM awa.leases").await, 0, "{shape:?} {way:?}");
                assert_eq!(stage.place(jobs[0].receipt.job).await, state, "{shape:?} {way:?}");
                assert_eq!(swept(&stage).await, 0, "{shape:?} {way:?}");
            }
        }
    }
}

/// What makes a job one of a way in, by its number.
type Change = fn(usize, NewJob) -> NewJob;

/// Jobs that carry their own number.
fn numbered(stage: &Stage, name: &str, change: Change) -> Vec<NewJob> {
    (0..6).map(|number| change(number, stage.job(&format!("\"{name} {number}\"")))).collect()
}

/// Bug class 29: a producer stands still in the middle of drawing its ids, and another one draws all of its own. Both are told
/// the ids under which their jobs are stored, on every way in.
#[tokio::test]
async fn ids_that_two_producers_drew_in_turns_name_the_right_jobs() {
    let stage = Stage::new().await;
    let draw = "CREATE FUNCTION awa.draw(p_turn bigint) RETURNS bigint LANGUAGE plpgsql AS $$
        BEGIN IF p_turn = 3 THEN NULL; END IF; RETURN nextval('awa.job_id_seq'); END $$";
    run(&mut stage.connect().await, draw).await;
    let (from, to) =
        ("SELECT nextval('\"awa\".job_id_seq') FROM generate_series(", "SELECT awa.draw(g) FROM generate_series(");
    replace_in(&stage, "enqueue_jobs", from, to).await;
    replace_in(&stage, "enqueue_jobs", "generate_series(1, v_count)", "generate_series(1, v_count) AS g").await;
    replace_in(&stage, "enqueue_unique_jobs", from, to).await;
    let all = "generate_series(1, cardinality(p_args))";
    replace_in(&stage, "enqueue_unique_jobs", all, &format!("{all} AS g")).await;
    let mut halt = Halt::before(&stage, "draw", "NULL; END IF").await;
    let ways: [(&str, Change); 4] = [
        ("plain", |_, job| job),
        ("lanes", |number, job| job.with_priority(if number % 2 == 0 { Priority::URGENT } else { Priority::BULK })),
        ("delayed", |number, job| if number % 3 == 0 { job } else { job.with_run_at(RunAt::After(MINUTE)) }),
        ("unique", |number, job| {
            let key = UniqueBy::text(format!("{:?} {number}", job.args())).key_of(&job).unwrap();
            job.with_unique(Unique::new(key))
        }),
    ];
    for (way, change) in ways {
        let (first, second) = (numbered(&stage, "first", change), numbered(&stage, "second", change));
        let (store, jobs) = (stage.store().clone(), first.clone());
        halt.arm(1).await;
        let standing = tokio::spawn(async move { store.enqueue(&jobs).await.unwrap() });
        halt.until_reached(1).await;
        let between = stage.store().enqueue(&second).await.unwrap();
        halt.release().await;
        let around = standing.await.unwrap();
        let ids: Vec<JobId> = around.iter().map(|answer| answer.id()).collect();
        assert!(ids[1].get() < between[0].id().get() && between[5].id().get() < ids[2].get(), "{way}: {ids:?}");
        for (job, answer) in first.iter().chain(&second).zip(around.iter().chain(&between)) {
            let view = stage.store().get(answer.id()).await.unwrap().expect("it is stored");
            assert_eq!(&view.args, job.args(), "{way}");
        }
    }
}

/// The two jobs of a race, of which the less urgent one is claimed before the other because it is old.
async fn aged(stage: &Stage, shape: Shape) -> Vec<ClaimedJob> {
    let of = |priority: Priority| stage.job("1").with_priority(priority);
    stage.store().enqueue(&[of(Priority::BULK)]).await.unwrap();
    stage.fresh.clock.advance(Duration::from_hours(1));
    stage.store().enqueue(&[of(Priority::URGENT)]).await.unwrap();
    let claim = async || {
        let shape = if shape == Shape::RowLocal { ClaimShape::RowLocal } else { ClaimShape::Compact };
        let request = ClaimRequest { aging: Some(MINUTE), shape, ..stage.request(2) };
        stage.store().claim(&request).await.unwrap().jobs
    };
    let jobs = claim().await;
    if shape != Shape::Lease {
        return jobs;
    }
    stage.end(&jobs, AttemptEnd::Release { delay: Duration::ZERO }).await;
    claim().await
}

/// Bug class 33: an old job of low priority, aged to the rank of an urgent one, and an urgent one, each the first of its lane,
/// end in every way and shape. Both are where they should be, under the priorities that they were enqueued with, and each
/// end is told of its own.
#[tokio::test]
async fn aged_jobs_keep_their_priority_whatever_becomes_of_them() {
    for shape in [Shape::Single, Shape::RowLocal, Shape::Lease] {
        let stage = Stage::with_manual_clock().await;
        for (way, state) in every_end() {
            let jobs = aged(&stage, shape).await;
            let mut priorities: Vec<Priority> = jobs.iter().map(|job| job.priority).collect();
            priorities.sort_unstable();
            assert_eq!(priorities, [Priority::URGENT, Priority::BULK], "{shape:?}");
            assert_eq!(stage.end(&jobs, way.clone()).await, [CLOSED; 2], "{shape:?} {way:?}");
            for job in &jobs {
                let view = stage.store().get(job.receipt.job).await.unwrap().unwrap();
                assert_eq!((view.priority, view.state.as_str()), (job.priority, state), "{shape:?} {way:?}");
            }
            stage.fresh.clock.advance(Duration::from_hours(2));
            stage.store().promote(10).await.unwrap();
            let again = stage.claim(10).await;
            let is_one = |one: &ClaimedJob| {
                jobs.iter().any(|job| (job.receipt.job, job.priority) == (one.receipt.job, one.priority))
            };
            assert!(again.iter().all(is_one), "{shape:?} {way:?}: {again:?}");
            let left: Vec<JobId> = stage.places().await.into_keys().collect();
            stage.store().cancel(&left, &ErrorText::new("done with it")).await.unwrap();
        }
        assert_eq!(swept(&stage).await, 0, "{shape:?}");
    }
}
