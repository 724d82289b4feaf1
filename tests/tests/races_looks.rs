//! Looks at jobs that stand still, or wait, while what they have not read yet is reclaimed. TRUNCATE is not subject to
//! snapshots: whoever reads with an older one finds the old place empty and does not see the new one.

use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::store::{Accuracy, Acted, JobFilter, Operator};
use awa_core::{AttemptEnd, JobId, JobState};
use awa_store_sqlx::SqlxStore;
use awa_tests::halt::Halt;
use awa_tests::shapes::{Shape, every_end, slots_kept};
use awa_tests::stage::{Stage, run};

/// The ends behind which a job is still somewhere, with the state in which it is.
fn ends_of_the_living() -> impl Iterator<Item = (AttemptEnd, &'static str)> {
    every_end().into_iter().filter(|(_, state)| !matches!(*state, "completed" | "cancelled"))
}

/// Bug class 31: a look at one job stands still between any two of its statements; the job ends its attempt, goes elsewhere,
/// and the slots that it was in are reclaimed. The look finds it all the same, before it moved or after.
#[tokio::test]
async fn a_look_that_stood_still_while_the_slots_of_its_job_were_reclaimed_finds_it() {
    let places = ["SELECT n.ready_slot", "SELECT p.seq", "SELECT o.claimed_at"];
    for place in places {
        let stage = Stage::new().await;
        let mut halt = Halt::before(&stage, "look_for_job", place).await;
        for shape in [Shape::Single, Shape::Wide, Shape::RowLocal] {
            for (way, state) in ends_of_the_living() {
                let jobs = shape.claim(&stage, None).await;
                let job = jobs[0].receipt.job;
                halt.arm(1).await;
                let store = stage.store().clone();
                let look = tokio::spawn(async move { store.get(job).await.unwrap() });
                halt.until_reached(1).await;
                let answers = stage.end(&jobs, way.clone()).await;
                assert!(answers.iter().all(|answer| *answer == awa_core::ClosureAnswer::Closed));
                slots_kept(&stage).await;
                halt.release().await;
                let seen = look.await.unwrap().map(|view| view.state);
                let seen = seen.unwrap_or_else(|| panic!("halted before {place:?}: a {state} job was not found"));
                assert!([state, "running"].contains(&seen.as_str()), "{shape:?} {way:?}: {seen}");
                let ids: Vec<JobId> = jobs.iter().map(|job| job.receipt.job).collect();
                stage.store().cancel(&ids, &ErrorText::new("done with it")).await.unwrap();
                assert_eq!(slots_kept(&stage).await, 0, "{shape:?} {way:?}");
            }
        }
    }
}

/// F31, bug class 31: lists, counts and the census have begun and stand still before they have read anything; jobs go on
/// elsewhere meanwhile, and the slots that they were in are reclaimed. Every job is counted, once.
#[tokio::test]
async fn a_census_that_stood_still_counts_every_job_whose_slot_was_reclaimed_meanwhile() {
    let looks = [
        ("census", "count_states"),
        ("list", "list_jobs"),
        ("queues", "list_queues"),
        ("counts", "count_jobs"),
        ("estimate", "estimate_jobs"),
    ];
    let stage = Stage::new().await;
    for (look, function) in looks {
        let mut halt = Halt::before(&stage, function, "RETURN QUERY").await;
        let jobs = Shape::Wide.claim(&stage, None).await;
        halt.arm(1).await;
        let store = stage.store().clone();
        let counted = tokio::spawn(async move { count(&store, look).await });
        halt.until_reached(1).await;
        stage.end(&jobs, AttemptEnd::Snooze { delay: Duration::from_hours(1) }).await;
        assert_eq!(slots_kept(&stage).await, 0);
        halt.release().await;
        assert_eq!(counted.await.unwrap(), jobs.len() as u64, "{look}");
        let ids: Vec<JobId> = jobs.iter().map(|job| job.receipt.job).collect();
        let cancelled = stage.store().cancel(&ids, &ErrorText::new("done with it")).await.unwrap();
        assert_eq!(cancelled, vec![Acted::Done { from: JobState::Deferred }; ids.len()]);
        assert_eq!(slots_kept(&stage).await, 0);
    }
}

/// The same with a function that reads by the snapshot of whoever calls it.
#[tokio::test]
async fn a_census_by_an_older_snapshot_is_noticed() {
    let stage = Stage::new().await;
    let mut connection = stage.connect().await;
    run(&mut connection, "ALTER FUNCTION awa.count_states() STABLE").await;
    let mut halt = Halt::before(&stage, "count_states", "RETURN QUERY").await;
    let jobs = Shape::Wide.claim(&stage, None).await;
    halt.arm(1).await;
    let store = stage.store().clone();
    let counted = tokio::spawn(async move { count(&store, "census").await });
    halt.until_reached(1).await;
    stage.end(&jobs, AttemptEnd::Snooze { delay: Duration::from_hours(1) }).await;
    slots_kept(&stage).await;
    halt.release().await;
    assert_eq!(counted.await.unwrap(), 0);
}

/// How many jobs are there that live, as one way to look at all of them has it.
async fn count(store: &SqlxStore, look: &str) -> u64 {
    let living = [JobState::Running, JobState::Deferred];
    let count = |counted: &[awa_core::store::CensusCount]| -> u64 {
        counted.iter().filter(|one| living.contains(&one.state)).map(|one| one.jobs).sum()
    };
    match look {
        "census" => count(&store.census().await.unwrap()),
        "list" => {
            let all = JobFilter { limit: JobFilter::MAX_LIMIT, ..JobFilter::default() };
            let jobs = store.list(&all).await.unwrap();
            jobs.iter().filter(|view| living.contains(&view.state)).count() as u64
        }
        "queues" => store.queues().await.unwrap().iter().map(|queue| queue.running + queue.deferred).sum(),
        _ => {
            let accuracy = if look == "counts" { Accuracy::Exact } else { Accuracy::Estimate };
            store.counts(accuracy).await.unwrap().queues.iter().map(|queue| count(&queue.jobs)).sum()
        }
    }
}
