//! Whoever decided to end an attempt and then stood still changes nothing of what became of it meanwhile. Each actor is
//! halted between its look and its write on real PostgreSQL, in each shape an attempt can have.

use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::store::{Acted, Consumer, Maintainer, Operator, Rescued};
use awa_core::{AttemptEnd, ClaimedJob, ClosureAnswer, JobId};
use awa_tests::halt::{Halt, complaint, replace_in};
use awa_tests::shapes::{Shape, every_end, slots_kept};
use awa_tests::stage::{ME, RESCUER, STALENESS, Stage, run, steady_retry};
use tokio::task::JoinHandle;

const CLOSED: ClosureAnswer = ClosureAnswer::Closed;
const STALE: ClosureAnswer = ClosureAnswer::Stale;
/// The first statement of each call that writes down ends.
const ENTRY: &str = "IF current_setting('synchronous_commit')";
/// In a closer: behind its look at what is open.
const LOOKED: &str = "WITH written AS (";

/// A pass of rescue, beside the test.
fn rescue(stage: &Stage) -> JoinHandle<Rescued> {
    let store = stage.store().clone();
    tokio::spawn(async move { store.rescue(&Stage::rescue_request(), &steady_retry()).await.unwrap() })
}

/// A cancel of one job, beside the test.
fn cancel(stage: &Stage, job: JobId) -> JoinHandle<Acted> {
    let store = stage.store().clone();
    tokio::spawn(async move { store.cancel(&[job], &ErrorText::new("no longer wanted")).await.unwrap()[0] })
}

/// The end of one attempt by its worker, beside the test.
fn end(stage: &Stage, job: &ClaimedJob, end: &AttemptEnd) -> JoinHandle<ClosureAnswer> {
    let (store, closure) = (stage.store().clone(), awa_core::Closure { receipt: job.receipt, end: end.clone() });
    tokio::spawn(async move { store.close(&[closure]).await.unwrap()[0] })
}

/// For how long attempts may run that are to be rescued for their deadline: they are over it when [`overrun`] returns.
const DEADLINE: Duration = Duration::from_secs(5);

/// Lets attempts run over their deadline, whose worker lives.
async fn overrun(stage: &Stage) {
    for _ in 0..6 {
        for living in [ME, RESCUER] {
            stage.store().beat(living, STALENESS).await.unwrap();
        }
        stage.fresh.clock.advance(STALENESS / 4);
    }
    for living in [ME, RESCUER] {
        stage.store().beat(living, STALENESS).await.unwrap();
    }
}

/// What [`a_rescuer_that_stood_still_takes_nothing_from_who_has_ended`] shows, of one shape and cause.
async fn a_rescuer_stands_still(stage: &Stage, halt: &mut Halt, shape: Shape, is_silent: bool) {
    for (way, state) in every_end() {
        let jobs = shape.claim(stage, (!is_silent).then_some(DEADLINE)).await;
        if is_silent {
            stage.outlive().await;
        } else {
            overrun(stage).await;
        }
        halt.arm(1).await;
        let rescuer = rescue(stage);
        halt.until_reached(1).await;
        assert_eq!(stage.end(&jobs[..1], way.clone()).await, [CLOSED], "{shape:?} {way:?}");
        let before = stage.store().get(jobs[0].receipt.job).await.unwrap();
        halt.release().await;
        let rescued: Vec<JobId> = rescuer.await.unwrap().attempts.iter().map(|attempt| attempt.job).collect();
        let others: Vec<JobId> = jobs[1..].iter().map(|job| job.receipt.job).collect();
        assert_eq!(rescued, others, "{shape:?} {way:?}: what had ended was rescued, or its neighbours were not");
        let after = stage.store().get(jobs[0].receipt.job).await.unwrap();
        assert_eq!(after, before, "{shape:?} {way:?}");
        assert_eq!(stage.place(jobs[0].receipt.job).await, state, "{shape:?} {way:?}");
        let ids: Vec<JobId> = jobs.iter().map(|job| job.receipt.job).collect();
        stage.store().cancel(&ids, &ErrorText::new("done with it")).await.unwrap();
    }
    assert_eq!(slots_kept(stage).await, 0, "{shape:?}");
}

/// Bug class 1: a rescuer has found attempts that are to be ended, for silence or for their deadline, and stands still; one of
/// them ends, in every way. It is not rescued and stays as it ended; its neighbours in the same batch are.
#[tokio::test]
async fn a_rescuer_that_stood_still_takes_nothing_from_who_has_ended() {
    for is_silent in [true, false] {
        let stage = Stage::with_manual_clock().await;
        let mut halt = Halt::before(&stage, "end_attempts", ENTRY).await;
        for shape in Shape::ALL {
            a_rescuer_stands_still(&stage, &mut halt, shape, is_silent).await;
        }
    }
}

/// The same with a closer that believes what it wants: the constraints and its own look are gone.
#[tokio::test]
async fn a_rescuer_that_does_not_look_again_is_noticed() {
    let stage = Stage::with_manual_clock().await;
    let mut halt = Halt::before(&stage, "end_attempts", ENTRY).await;
    believe_what_is_asked(&stage).await;
    let mutant = tokio::spawn(async move { a_rescuer_stands_still(&stage, &mut halt, Shape::Single, true).await });
    assert!(complaint(mutant.await).contains("what had ended was rescued"));
}

/// Closes whatever it is asked to close.
async fn believe_what_is_asked(stage: &Stage) {
    let drop = "DO $$ DECLARE c record; BEGIN
        FOR c IN SELECT conrelid::regclass AS child, conname FROM pg_constraint
                 WHERE contype IN ('x', 'u') AND connamespace = 'awa'::regnamespace
                   AND conrelid::regclass::text ~ 'closure_batches_[0-9]+$' LOOP
            EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.child, c.conname);
        END LOOP; END $$";
    run(&mut stage.connect().await, drop).await;
    let indexes = "DO $$ DECLARE c record; BEGIN
        FOR c IN SELECT i.indexrelid::regclass AS name FROM pg_index AS i
                 WHERE i.indisunique AND i.indrelid::regclass::text ~ 'closure_batches_[0-9]+$' LOOP
            EXECUTE format('DROP INDEX %s', c.name);
        END LOOP; END $$";
    run(&mut stage.connect().await, indexes).await;
    replace_in(stage, "close_receipts_[0-9]+", "WHEN EXISTS (", "WHEN false AND EXISTS (").await;
}

/// What [`a_worker_that_stood_still_ends_nothing_of_the_next_attempt`] shows, of one shape.
async fn a_worker_stands_still(stage: &Stage, halt: &mut Halt, shape: Shape) {
    for (way, _) in every_end() {
        let old = shape.claim(stage, None).await;
        stage.outlive().await;
        halt.arm(1).await;
        let worker = end(stage, &old[0], &way);
        halt.until_reached(1).await;
        let rescued = rescue(stage).await.unwrap().attempts.len();
        assert_eq!(rescued, old.len(), "{shape:?} {way:?}");
        stage.fresh.clock.advance(Duration::from_secs(2));
        stage.store().promote(10).await.unwrap();
        stage.store().beat(ME, STALENESS).await.unwrap();
        let new = stage.claim(10).await;
        assert_eq!(new.len(), old.len(), "{shape:?} {way:?}");
        halt.release().await;
        assert_eq!(worker.await.unwrap(), STALE, "{shape:?} {way:?}: the old attempt ended something");
        let open: Vec<_> = new.iter().map(|job| job.receipt).collect();
        assert_eq!(stage.store().are_open(&open).await.unwrap(), vec![true; new.len()], "{shape:?} {way:?}");
        stage.complete(&new).await;
        assert_eq!(stage.place(old[0].receipt.job).await, "completed", "{shape:?} {way:?}");
    }
    assert_eq!(slots_kept(stage).await, 0, "{shape:?}");
}

/// Bug class 2: a worker is about to end its attempt and stands still, before it looks or behind its look; the attempt is
/// rescued, and another worker has the job. The first one is told so, whatever it wanted, and the second one completes.
#[tokio::test]
async fn a_worker_that_stood_still_ends_nothing_of_the_next_attempt() {
    let stage = Stage::with_manual_clock().await;
    let mut halt = Halt::before(&stage, "end_attempts|complete_attempts|park_attempts", ENTRY).await;
    for shape in Shape::ALL {
        a_worker_stands_still(&stage, &mut halt, shape).await;
    }
    let stage = Stage::with_manual_clock().await;
    let mut halt = Halt::before(&stage, "close_receipts_[0-9]+", LOOKED).await;
    halt.also_before(&stage, "close_one_[0-9]+", "INSERT INTO").await;
    for shape in [Shape::Single, Shape::Wide] {
        a_worker_stands_still(&stage, &mut halt, shape).await;
    }
}

/// The same where the number of a claim is enough to end it.
#[tokio::test]
async fn a_worker_whose_old_attempt_is_believed_is_noticed() {
    let stage = Stage::with_manual_clock().await;
    let mut halt = Halt::before(&stage, "end_attempts|complete_attempts|park_attempts", ENTRY).await;
    believe_what_is_asked(&stage).await;
    let mutant = tokio::spawn(async move { a_worker_stands_still(&stage, &mut halt, Shape::Single).await });
    assert!(complaint(mutant.await).contains("the old attempt ended something"));
}

/// Bug class 13: two rescuers have found the same attempts, both for silence, both for their deadline, or one for each, and
/// stand still before they end them, or behind their look at what is open. One of them ends each, and it is charged once.
#[tokio::test]
async fn rescuers_that_found_the_same_attempts_charge_each_once() {
    for (functions, place) in [("end_attempts", ENTRY), ("close_receipts_[0-9]+", LOOKED)] {
        let stage = Stage::with_manual_clock().await;
        let mut halt = Halt::before(&stage, functions, place).await;
        for shape in Shape::ALL {
            if place == LOOKED && matches!(shape, Shape::RowLocal | Shape::Lease) {
                // These are ended by the statement that looks.
                continue;
            }
            for (first_is_silent, second_is_silent) in [(true, true), (false, false), (false, true)] {
                let jobs = shape.claim(&stage, (!first_is_silent).then_some(DEADLINE)).await;
                if first_is_silent {
                    stage.outlive().await;
                } else {
                    overrun(&stage).await;
                }
                halt.arm(2).await;
                let first = rescue(&stage);
                halt.until_reached(1).await;
                if second_is_silent && !first_is_silent {
                    stage.outlive().await;
                }
                let second = rescue(&stage);
                halt.until_reached(2).await;
                halt.release().await;
                let (first, second) = (first.await.unwrap(), second.await.unwrap());
                let mut rescued: Vec<_> =
                    first.attempts.iter().chain(&second.attempts).map(|attempt| attempt.job).collect();
                rescued.sort_unstable();
                let ids: Vec<JobId> = jobs.iter().map(|job| job.receipt.job).collect();
                assert_eq!(rescued, ids, "{shape:?}: {first:?} {second:?}");
                assert!(jobs.iter().all(|job| job.attempt == 1));
                let charged = "SELECT count(*) FROM awa.deferred_jobs WHERE attempt = 1";
                assert_eq!(stage.number(charged).await, i64::try_from(ids.len()).unwrap(), "{shape:?}");
                stage.store().cancel(&ids, &ErrorText::new("done with it")).await.unwrap();
            }
            assert_eq!(slots_kept(&stage).await, 0, "{shape:?}");
        }
    }
}

/// Bug class 93: a cancel has found a job that runs and stands still, and its worker ends the attempt, in every way; and the
/// other way around. Whoever wrote first has won, both are told so, and what was cancelled does not come back.
#[tokio::test]
async fn a_cancel_and_an_end_of_which_one_stood_still_agree() {
    let stage = Stage::with_manual_clock().await;
    let mut found = Halt::before(&stage, "cancel_in_ring|cancel_lease", "PERFORM FROM \"awa\".end_attempts(").await;
    let mut asked = Halt::before(&stage, "end_attempts|complete_attempts|park_attempts", ENTRY).await;
    for shape in Shape::ALL {
        for (way, state) in every_end() {
            let jobs = shape.claim(&stage, None).await;
            let job = jobs[0].receipt.job;
            found.arm(1).await;
            let canceller = cancel(&stage, job);
            found.until_reached(1).await;
            assert_eq!(stage.end(&jobs[..1], way.clone()).await, [CLOSED], "{shape:?} {way:?}");
            found.release().await;
            let acted = canceller.await.unwrap();
            assert!(matches!(acted, Acted::Refused(_)), "{shape:?} {way:?}: {acted:?}");
            assert_eq!(stage.place(job).await, state, "{shape:?} {way:?}");

            let jobs = if jobs.len() > 1 { jobs[1..].to_vec() } else { shape_again(&stage, shape, job).await };
            let job = jobs[0].receipt.job;
            asked.arm(1).await;
            let worker = end(&stage, &jobs[0], &way);
            asked.until_reached(1).await;
            let acted = cancel(&stage, job).await.unwrap();
            assert!(matches!(acted, Acted::Done { .. }), "{shape:?} {way:?}: {acted:?}");
            asked.release().await;
            assert_eq!(worker.await.unwrap(), STALE, "{shape:?} {way:?}");
            stage.fresh.clock.advance(Duration::from_hours(2));
            stage.store().promote(100).await.unwrap();
            assert_eq!(stage.place(job).await, "cancelled", "{shape:?} {way:?}");
            // What was put off, or ran beside them, goes.
            let left: Vec<JobId> = stage.places().await.into_keys().collect();
            stage.store().cancel(&left, &ErrorText::new("done with it")).await.unwrap();
        }
        assert_eq!(slots_kept(&stage).await, 0, "{shape:?}");
    }
}

/// Another attempt of this shape, at a new job, once `job` waits no more.
async fn shape_again(stage: &Stage, shape: Shape, job: JobId) -> Vec<ClaimedJob> {
    stage.store().cancel(&[job], &ErrorText::new("done with it")).await.unwrap();
    shape.claim(stage, None).await
}
