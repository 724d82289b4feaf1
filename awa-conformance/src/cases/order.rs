//! The order in which jobs are handed out.

use std::time::Duration;

use awa_core::store::ClaimRequest;
use awa_core::{AttemptEnd, JobId, Priority, RunAt};

use crate::Subject;
use crate::scene::{Scene, done, ids, job, labels, retry_after};

/// C6: jobs of one transaction come in enqueue order, over several calls, whatever commits in between.
pub async fn jobs_of_one_transaction_come_in_enqueue_order(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let (mut transaction, mut all) = scene.begin_with("email", &["a", "b"]).await;
    scene.enqueue_each("email", &["other"]).await;
    let more = transaction.enqueue(&[job("email", "c"), job("email", "d")]).await.expect("enqueue");
    all.extend(more.iter().map(|answer| answer.id()));
    scene.commit(transaction, &all).await;
    assert_eq!(labels(&scene.claim("email", 10).await), ["a", "b", "c", "d", "other"]);
}

/// C6: transactions come by the order in which they began to write, not in which they committed.
pub async fn transactions_come_in_the_order_in_which_they_began_to_write(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let (first, first_ids) = scene.begin_with("email", &["first"]).await;
    let (second, second_ids) = scene.begin_with("email", &["second"]).await;
    let (third, third_ids) = scene.begin_with("email", &["third"]).await;
    scene.commit(third, &third_ids).await;
    scene.commit(first, &first_ids).await;
    scene.commit(second, &second_ids).await;
    assert_eq!(labels(&scene.claim("email", 10).await), ["first", "second", "third"]);
}

/// C9, C6: a commit that comes late is taken by the very next claim, before a backlog that began to write later, and
/// also in the middle of a large transaction. Guards against cursors that pass a gap or wait behind it (bug class 28).
pub async fn a_late_commit_is_taken_by_the_very_next_claim(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let (early, early_ids) = scene.begin_with("email", &["early"]).await;
    let backlog: Vec<_> = (0..300).map(|n| job("email", &format!("backlog {n}"))).collect();
    scene.enqueue(&backlog).await;
    let (late, late_ids) = scene.begin_with("email", &["late"]).await;
    scene.enqueue_each("email", &["tail"]).await;
    assert_eq!(labels(&scene.claim("email", 3).await), ["backlog 0", "backlog 1", "backlog 2"]);
    scene.commit(early, &early_ids).await;
    assert_eq!(labels(&scene.claim_next("email", 2).await), ["early", "backlog 3"]);
    assert_eq!(scene.claim("email", 296).await.len(), 296);
    assert_eq!(labels(&scene.claim("email", 1).await), ["tail"], "an open transaction delays nobody behind it");
    scene.commit(late, &late_ids).await;
    assert_eq!(labels(&scene.claim_next("email", 2).await), ["late"]);
}

/// C9, C6: several late commits are taken in order, also one job at a time: none of them is passed when the claim stops
/// at one before it (bug class 28).
pub async fn late_commits_are_taken_in_order_one_by_one(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let (first, first_ids) = scene.begin_with("email", &["1a", "1b"]).await;
    let (second, second_ids) = scene.begin_with("email", &["2a", "2b"]).await;
    let (third, third_ids) = scene.begin_with("email", &["3a"]).await;
    scene.enqueue_each("email", &["x", "y"]).await;
    assert_eq!(labels(&scene.claim("email", 1).await), ["x"]);
    scene.commit(third, &third_ids).await;
    scene.commit(second, &second_ids).await;
    assert_eq!(labels(&scene.claim_next("email", 1).await), ["2a"]);
    scene.commit(first, &first_ids).await;
    for label in ["1a", "1b", "2b", "3a", "y"] {
        assert_eq!(labels(&scene.claim_next("email", 1).await), [label]);
    }
    assert_eq!(scene.claim("email", 1).await, []);
}

/// C9, C2: many transactions that overlap and commit in another order are handed out once each, and all of them
/// (bug class 28).
pub async fn overlapping_transactions_lose_nothing_and_repeat_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let (mut open, mut expected, mut taken) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..48_usize {
        let label = format!("job {round}");
        open.push(scene.begin_with("email", &[&label, &label]).await);
        if open.len() > 5 {
            let (transaction, jobs) = open.remove(round * 7 % open.len());
            if round % 5 == 0 {
                transaction.rollback().await.expect("rollback");
            } else {
                scene.commit(transaction, &jobs).await;
                expected.extend(jobs);
            }
        }
        taken.extend(ids(&scene.claim("email", round % 4 + 1).await));
    }
    for (transaction, jobs) in open {
        scene.commit(transaction, &jobs).await;
        expected.extend(jobs);
    }
    taken.extend(ids(&scene.claim("email", 100).await));
    taken.sort_unstable();
    expected.sort_unstable();
    assert_eq!(taken, expected);
}

/// C6: each claim is an exact prefix of what is eligible, whatever the sizes of claims and transactions.
pub async fn claims_of_any_size_take_an_exact_prefix(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let mut expected = Vec::new();
    for size in [1, 7, 2, 19, 1, 11] {
        let jobs: Vec<_> = (0..size).map(|n| job("email", &format!("{size}.{n}"))).collect();
        expected.extend(scene.enqueue(&jobs).await);
    }
    let mut taken: Vec<JobId> = Vec::new();
    for size in [2, 1, 9, 1, 1, 17, 4, 30] {
        let jobs = scene.claim("email", size).await;
        let wanted = size.min(expected.len() - taken.len());
        assert_eq!(jobs.len(), wanted, "a claim stops only at its limit or at the end");
        taken.extend(ids(&jobs));
        assert_eq!(taken[..], expected[..taken.len()]);
    }
}

/// C6: the more urgent lane goes first, and inside a lane the older transaction (bug class 76).
pub async fn the_more_urgent_lane_goes_first(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    for (label, priority) in [("4a", 4), ("2a", 2), ("1a", 1), ("3a", 3), ("1b", 1), ("4b", 4), ("2b", 2)] {
        let priority = Priority::new(priority).expect("1 to 4");
        scene.enqueue(&[job("email", label).with_priority(priority)]).await;
    }
    assert_eq!(labels(&scene.claim("email", 3).await), ["1a", "1b", "2a"]);
    scene.enqueue(&[job("email", "1c").with_priority(Priority::URGENT)]).await;
    assert_eq!(labels(&scene.claim("email", 10).await), ["1c", "2b", "3a", "4a", "4b"]);
}

/// C6: a claim takes jobs of its queue only.
pub async fn queues_do_not_mix(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email", "video", "email2"]).await;
    scene.enqueue(&[job("video", "v"), job("email", "e"), job("email2", "e2")]).await;
    assert_eq!(labels(&scene.claim("email", 10).await), ["e"]);
    assert_eq!(labels(&scene.claim("video", 10).await), ["v"]);
    assert_eq!(labels(&scene.claim("email2", 10).await), ["e2"]);
    assert_eq!(scene.claim("unheard.of", 10).await, []);
}

/// C6: a job that is retried joins the tail, so that one that fails fast delays nobody (bug classes 84, 171).
pub async fn a_retried_job_joins_the_tail(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    scene.enqueue_each("email", &["failing", "a", "b"]).await;
    let failing = scene.claim_one("email").await;
    scene.close_one(&failing, retry_after(Duration::ZERO)).await;
    scene.pass(Duration::from_secs(1)).await;
    scene.promote().await;
    scene.enqueue_each("email", &["c"]).await;
    assert_eq!(labels(&scene.claim("email", 10).await), ["a", "b", "failing", "c"]);
}

/// C6: a scheduled job joins the tail when its time comes, and so does one that an operator retries.
pub async fn promoted_and_resurrected_jobs_join_the_tail(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let minute = RunAt::after(Duration::from_mins(1)).expect("allowed");
    scene.enqueue(&[job("email", "scheduled").with_run_at(minute)]).await;
    let dead = scene.enqueue(&[job("email", "dead")]).await[0];
    let attempt = scene.claim_one("email").await;
    scene.close_one(&attempt, AttemptEnd::Fail { error: awa_core::attempt::ErrorText::new("boom") }).await;
    scene.enqueue_each("email", &["a"]).await;
    scene.pass(Duration::from_secs(61)).await;
    scene.promote().await;
    scene.enqueue_each("email", &["b"]).await;
    assert_eq!(scene.retry(&[dead]).await, [done(awa_core::JobState::Dead)]);
    scene.enqueue_each("email", &["c"]).await;
    assert_eq!(labels(&scene.claim("email", 10).await), ["a", "scheduled", "b", "dead", "c"]);
}

/// A claim stops after the job whose arguments reach the limit of bytes, and hands out at least one (bug class 136).
pub async fn a_claim_stops_at_its_limit_of_bytes(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let text = "x".repeat(98);
    scene.enqueue_each("email", &[&text, &text, &text, &text]).await;
    let limited = |max_bytes| ClaimRequest { max_bytes, ..scene.request("email", 10) };
    let first = scene.claim_once(&limited(101)).await;
    assert_eq!(first.jobs.len(), 2, "the first has 100 bytes, the second reaches 101");
    assert!(first.more, "jobs remain");
    assert_eq!(scene.claim_once(&limited(1)).await.jobs.len(), 1);
    assert_eq!(scene.claim_once(&limited(100)).await.jobs.len(), 1);
}

/// C6: with aging, a job that waits long enough gets its turn although urgent work never ends; without, it does not
/// (bug class 75). Its stored priority stays what it was (bug class 33).
pub async fn a_job_that_waits_ages_into_a_more_urgent_lane(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let minute = Duration::from_mins(1);
    let bulk = scene.enqueue(&[job("email", "bulk").with_priority(Priority::BULK)]).await[0];
    let urgent = || job("email", "urgent").with_priority(Priority::URGENT);
    scene.pass(minute * 2).await;
    scene.enqueue(&[urgent()]).await;
    let aging = ClaimRequest { aging: Some(minute), ..scene.request("email", 1) };
    assert_eq!(labels(&scene.claim_like(&aging).await), ["urgent"], "two intervals make 2 of 4");
    scene.pass(minute + Duration::from_secs(1)).await;
    for _ in 0..4 {
        scene.enqueue(&[urgent()]).await;
    }
    scene.pass(minute * 60).await;
    assert_eq!(labels(&scene.claim("email", 1).await), ["urgent"], "without aging nothing changes");
    let mut taken = Vec::new();
    for _ in 0..2 {
        taken.extend(scene.claim_like(&aging).await);
    }
    let found = taken.iter().find(|job| job.receipt.job == bulk);
    let found = found.expect("equally urgent lanes take turns, so the second claim at the latest takes the old job");
    assert_eq!(found.priority, Priority::BULK);
    scene.complete(std::slice::from_ref(found)).await;
    assert_eq!(scene.view(bulk).await.priority, Priority::BULK);
}

/// C6, C11: jobs in older partitions come first, in the same order as if the ring had not turned (bug class 35).
pub async fn a_turn_of_the_ring_does_not_change_the_order(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    scene.enqueue_each("email", &["a", "b"]).await;
    scene.seal_queue_slot().await;
    scene.enqueue_each("email", &["c"]).await;
    scene.seal_queue_slot().await;
    scene.enqueue_each("email", &["d", "e"]).await;
    assert_eq!(labels(&scene.claim("email", 2).await), ["a", "b"]);
    assert_eq!(labels(&scene.claim("email", 2).await), ["c", "d"]);
    assert_eq!(labels(&scene.claim("email", 2).await), ["e"]);
}

/// C5: jobs claimed at once by several workers are handed out once each (bug class 15).
pub async fn concurrent_claims_never_share_a_job(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let jobs: Vec<_> = (0..60).map(|n| job("email", &n.to_string())).collect();
    let mut expected = scene.enqueue(&jobs).await;
    let workers = (0..6).map(|_| scene.claim("email", 60));
    let taken = futures::future::join_all(workers).await;
    let mut taken: Vec<_> = taken.iter().flat_map(|jobs| ids(jobs)).collect();
    taken.sort_unstable();
    expected.sort_unstable();
    assert_eq!(taken, expected);
}
