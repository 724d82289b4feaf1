//! Operators look at jobs and intervene.

use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::store::{Accuracy, Acted, JobFilter, Refusal};
use awa_core::{AttemptEnd, JobId, JobKind, JobState, NewJob};

use crate::Subject;
use crate::scene::{Scene, done, ids, job, json, labels, queue, retry_after};

/// What an operation answers for a job in each state: `accepts` it, or refuses it by the name of the state.
fn answer(state: JobState, accepts: &[JobState]) -> Acted {
    if accepts.contains(&state) { done(state) } else { Acted::Refused(Refusal::WrongState(state)) }
}

/// C2: after every step of a job's life, all ways to look at it agree (bug classes 31, 38, 161).
pub async fn all_views_agree_at_every_step(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let mut expected = Vec::new();
    assert!(scene.agree().await.is_empty());
    for state in scene.reachable_states() {
        for _ in 0..2 {
            expected.push((scene.job_in(state).await, state));
        }
        scene.expect(&expected).await;
    }
}

/// C2: the whole life of one job, looked at after every step; an older attempt never shadows a newer state (bug class
/// 31).
pub async fn an_older_attempt_never_shadows_a_newer_state(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let id = scene.enqueue_each("email", &["a"]).await[0];
    scene.expect(&[(id, JobState::Ready)]).await;
    for _ in 0..2 {
        let attempt = scene.claim_one("email").await;
        scene.expect(&[(id, JobState::Running)]).await;
        scene.close_one(&attempt, retry_after(Duration::from_mins(1))).await;
        scene.expect(&[(id, JobState::Deferred)]).await;
        assert_eq!(scene.retry(&[id]).await, [done(JobState::Deferred)]);
        scene.expect(&[(id, JobState::Ready)]).await;
    }
    let attempt = scene.claim_one("email").await;
    scene.close_one(&attempt, AttemptEnd::Fail { error: ErrorText::new("boom") }).await;
    scene.expect(&[(id, JobState::Dead)]).await;
    scene.retry(&[id]).await;
    scene.expect(&[(id, JobState::Ready)]).await;
    let attempt = scene.claim_one("email").await;
    assert_eq!((attempt.attempt, attempt.receipt.run_lease.get()), (1, 4));
    scene.expect(&[(id, JobState::Running)]).await;
    scene.complete(&[attempt]).await;
    scene.expect(&[(id, JobState::Completed)]).await;
}

/// Cancelling works in every state in which a job has not ended, is refused with the state in every other, and shows
/// the reason (bug class 95).
pub async fn cancel_in_every_state(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    for state in scene.reachable_states() {
        let id = scene.job_in(state).await;
        let before = scene.view(id).await;
        let expected = answer(state, &[JobState::Ready, JobState::Running, JobState::Deferred, JobState::Waiting]);
        assert_eq!(scene.cancel(&[id]).await, [expected], "{state}");
        if expected == done(state) {
            scene.expect(&[(id, JobState::Cancelled)]).await;
            let view = scene.view(id).await;
            assert_eq!(view.error, Some(ErrorText::new("no longer wanted")), "{state}");
            assert_eq!((view.args, view.attempt), (before.args, before.attempt), "{state}");
            let again = scene.cancel(&[id]).await;
            assert_eq!(again, [Acted::Refused(Refusal::WrongState(JobState::Cancelled))], "{state}");
        } else {
            assert_eq!(scene.view(id).await, before, "{state}");
        }
        assert_eq!(scene.claim(before.queue.as_str(), 1).await, [], "{state}");
    }
}

/// Retrying works on dead, failed and deferred jobs and is refused with the state in every other (bug class 95).
pub async fn retry_in_every_state(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    for state in scene.reachable_states() {
        let id = scene.job_in(state).await;
        let before = scene.view(id).await;
        let expected = answer(state, &[JobState::Deferred, JobState::Dead, JobState::Failed]);
        assert_eq!(scene.retry(&[id]).await, [expected], "{state}");
        if expected == done(state) {
            scene.expect(&[(id, JobState::Ready)]).await;
            let attempt = scene.claim_one(before.queue.as_str()).await;
            assert_eq!((attempt.receipt.job, &attempt.args), (id, &before.args), "{state}");
            scene.complete(&[attempt]).await;
        } else {
            assert_eq!(scene.view(id).await, before, "{state}");
        }
    }
}

/// Deleting works on jobs that have ended, which are then gone from every view, and is refused with the state in every
/// other (bug class 95). It leaves nothing that keeps a slot.
pub async fn delete_in_every_state(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let ended = [JobState::Completed, JobState::Failed, JobState::Cancelled, JobState::Dead];
    for state in scene.reachable_states() {
        let id = scene.job_in(state).await;
        let before = scene.view(id).await;
        let expected = answer(state, &ended);
        assert_eq!(scene.delete(&[id]).await, [expected], "{state}");
        if expected == done(state) {
            assert!(!scene.agree().await.contains_key(&id), "{state}");
            let gone = [Acted::Refused(Refusal::NotFound)];
            assert_eq!(
                (scene.delete(&[id]).await, scene.retry(&[id]).await),
                (gone.to_vec(), gone.to_vec()),
                "{state}"
            );
        } else {
            assert_eq!(scene.view(id).await, before, "{state}");
            scene.expect(&[(id, state)]).await;
            scene.cancel(&[id]).await;
        }
    }
    scene.expect_all_reclaimed().await;
}

/// C8: jobs that ended in the compact form, one by one and in batches, and jobs that were cancelled before they ran or
/// without a slot, are deleted each on its own; those beside them stay.
pub async fn a_deleted_job_hides_no_other(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let jobs = scene.enqueue_each("email", &["a", "b", "c", "d", "e", "f"]).await;
    scene.cancel(&jobs[5..]).await;
    let attempts = scene.claim("email", 4).await;
    scene.complete(&attempts[..3]).await;
    scene.close_one(&attempts[3], AttemptEnd::Release { delay: Duration::ZERO }).await;
    let last = scene.claim("email", 2).await;
    assert_eq!(labels(&last), ["d", "e"]);
    scene.complete(&last).await;
    let completed = done(JobState::Completed);
    let wishes = [jobs[1], JobId(i64::MAX), jobs[1], jobs[3], jobs[5]];
    let missing = Acted::Refused(Refusal::NotFound);
    assert_eq!(scene.delete(&wishes).await, [completed, missing, missing, completed, done(JobState::Cancelled)]);
    let left = scene.agree().await;
    assert_eq!(left.into_keys().collect::<Vec<_>>(), [jobs[0], jobs[2], jobs[4]]);
    assert_eq!(scene.delete(&[jobs[0], jobs[2], jobs[4]]).await, [completed; 3]);
    assert!(scene.agree().await.is_empty());
    assert_eq!(scene.delete(&[]).await, []);
    scene.expect_all_reclaimed().await;
}

/// A dead job that is retried has all its attempts again, a deferred one only those that were left.
pub async fn a_retry_of_a_dead_job_counts_from_zero(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let thrice = awa_core::job::MaxAttempts::new(3).expect("three attempts");
    let id = scene.enqueue(&[job("email", "a").with_max_attempts(thrice)]).await[0];
    let end = || retry_after(Duration::from_hours(1));
    for round in 0..2 {
        for number in 1..=3 {
            let attempt = scene.claim_one("email").await;
            assert_eq!(attempt.attempt, number, "round {round}");
            scene.close_one(&attempt, end()).await;
            assert_eq!(scene.retry(&[id]).await, [done(if number == 3 { JobState::Dead } else { JobState::Deferred })]);
        }
    }
    let attempt = scene.claim_one("email").await;
    assert_eq!((attempt.attempt, attempt.receipt.run_lease.get()), (1, 7));
}

/// C8: wishes about many jobs are answered one by one in input order, unknown ids, repeated ids and jobs of open
/// transactions included (bug class 166).
pub async fn wishes_are_answered_one_by_one(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let jobs = scene.enqueue_each("email", &["a", "b", "c"]).await;
    let attempt = scene.claim_one("email").await;
    scene.complete(&[attempt]).await;
    let (open, hidden) = scene.begin_with("email", &["hidden"]).await;
    let not_found = Acted::Refused(Refusal::NotFound);
    let wrong = |state| Acted::Refused(Refusal::WrongState(state));
    let wishes = [jobs[1], JobId(i64::MAX), jobs[0], jobs[1], hidden[0], JobId(0), JobId(-1), jobs[2]];
    let ready = done(JobState::Ready);
    let (completed, cancelled) = (wrong(JobState::Completed), wrong(JobState::Cancelled));
    let answers = scene.cancel(&wishes).await;
    assert_eq!(answers, [ready, not_found, completed, cancelled, not_found, not_found, not_found, ready]);
    let answers = scene.retry(&wishes).await;
    assert_eq!(answers, [cancelled, not_found, completed, cancelled, not_found, not_found, not_found, cancelled]);
    scene.commit(open, &hidden).await;
    scene.expect(&[(hidden[0], JobState::Ready)]).await;
    assert_eq!((scene.cancel(&[]).await, scene.retry(&[]).await), (vec![], vec![]));
}

/// C6: a ready job that is cancelled is never handed out, and those around it keep their order.
pub async fn a_cancelled_ready_job_is_never_handed_out(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let new: Vec<_> = (0..12).map(|n| job("email", &n.to_string())).collect();
    let jobs = scene.enqueue(&new).await;
    scene.cancel(&[jobs[0], jobs[1], jobs[5], jobs[11]]).await;
    assert_eq!(labels(&scene.claim("email", 4).await), ["2", "3", "4", "6"]);
    scene.cancel(&jobs[8..10]).await;
    assert_eq!(labels(&scene.claim("email", 20).await), ["7", "10"]);
    let cancelled = [0, 1, 5, 8, 9, 11].map(|n| (jobs[n], JobState::Cancelled));
    scene.expect(&cancelled).await;
}

/// C3: a retry that was cancelled before it became ready does not come back (bug class 93).
pub async fn a_cancelled_deferred_job_does_not_come_back(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let id = scene.job_in(JobState::Deferred).await;
    scene.cancel(&[id]).await;
    scene.pass(Duration::from_hours(168)).await;
    assert_eq!(scene.promote().await, 0);
    scene.expect(&[(id, JobState::Cancelled)]).await;
}

/// C4: a cancel and a completion that race have one winner, and both hear who it was (bug class 93).
pub async fn a_cancel_and_a_completion_agree_who_won(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    for round in 0..8 {
        let id = scene.enqueue_each("email", &["a"]).await[0];
        let attempt = scene.claim_one("email").await;
        let cancel = async {
            loop {
                let answer = scene.cancel(&[id]).await[0];
                if answer != Acted::Refused(Refusal::Contended) {
                    return answer;
                }
            }
        };
        let complete = scene.close_patiently(&attempt, AttemptEnd::Complete);
        let (cancelled, closed) =
            if round % 2 == 0 { futures::join!(cancel, complete) } else { flip(futures::join!(complete, cancel)) };
        let state = scene.state(id).await;
        if closed == awa_core::ClosureAnswer::Closed {
            assert_eq!(state, Some(JobState::Completed));
            assert_eq!(cancelled, Acted::Refused(Refusal::WrongState(JobState::Completed)));
        } else {
            assert_eq!((state, cancelled), (Some(JobState::Cancelled), done(JobState::Running)));
        }
    }
}

fn flip<A, B>((a, b): (A, B)) -> (B, A) {
    (b, a)
}

/// C2: lists filter by queue, state and kind together.
pub async fn lists_filter_by_all_conditions_at_once(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email", "video"]).await;
    let kind = |name: &str| JobKind::new(name).expect("a good name");
    let new = |queue_name: &str, kind_name| NewJob::new(queue(queue_name), kind(kind_name), json("1"));
    let all = scene.enqueue(&[new("email", "send"), new("email", "sort"), new("video", "send")]).await;
    scene.cancel(&all[..1]).await;
    let more = scene.enqueue(&[new("email", "send")]).await;
    let email = Some(queue("email"));
    let views = scene.list_all(&JobFilter { queue: email.clone(), ..JobFilter::default() }).await;
    assert_eq!(views.iter().map(|view| view.id).collect::<Vec<_>>(), [more[0], all[1], all[0]]);
    let send = Some(kind("send"));
    let filter = JobFilter { queue: email, kind: send.clone(), state: Some(JobState::Ready), ..JobFilter::default() };
    let views = scene.list_all(&filter).await;
    assert_eq!(views.iter().map(|view| view.id).collect::<Vec<_>>(), more);
    let views = scene.list_all(&JobFilter { kind: send, ..JobFilter::default() }).await;
    assert_eq!(views.iter().map(|view| view.id).collect::<Vec<_>>(), [more[0], all[2], all[0]]);
    let nobody = JobFilter { queue: Some(queue("nobody")), ..JobFilter::default() };
    assert_eq!(scene.list_all(&nobody).await, []);
}

/// C2: paging shows each job that was there at the start once, while others come in (bug class 161).
pub async fn pages_do_not_shift_while_jobs_come_in(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let new: Vec<_> = (0..23).map(|n| job("email", &n.to_string())).collect();
    let mut expected = scene.enqueue(&new).await;
    expected.reverse();
    let (mut seen, mut before) = (Vec::new(), None);
    for _ in 0..10 {
        let filter = JobFilter { before, limit: 5, ..JobFilter::default() };
        let page = scene.store().list(&filter).await.expect("list");
        seen.extend(page.iter().map(|view| view.id));
        before = seen.last().copied();
        scene.enqueue(&[job("email", "newer"), job("email", "newer")]).await;
    }
    assert_eq!(seen, expected);
}

/// A page is never longer than the limit of the interface.
pub async fn a_page_has_a_longest_length(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let new: Vec<_> = (0..JobFilter::MAX_LIMIT + 5).map(|_| job("email", "x")).collect();
    let jobs = scene.enqueue(&new).await;
    let filter = JobFilter { limit: usize::MAX, ..JobFilter::default() };
    let page = scene.store().list(&filter).await.expect("list");
    assert_eq!(page.len(), JobFilter::MAX_LIMIT);
    assert_eq!(page[0].id, *jobs.last().expect("there are jobs"));
}

/// What has ended is counted for good: when its history is reclaimed, and when it is deleted.
pub async fn what_has_ended_is_counted_for_good(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let mut expected = [0, 0];
    for round in 1..=3 {
        let jobs = scene.enqueue_each("email", &["a", "b", "c", "d"]).await;
        let attempts = scene.claim("email", 3).await;
        scene.complete(&attempts[..1]).await;
        scene.close_one(&attempts[1], AttemptEnd::CompleteWith { result: json("1") }).await;
        scene.close_one(&attempts[2], AttemptEnd::Cancel { reason: ErrorText::new("no longer wanted") }).await;
        scene.cancel(&jobs[3..]).await;
        scene.delete(&[jobs[round % 4]]).await;
        expected = expected.map(|count| count + 2);
        for _ in 0..2 {
            for accuracy in [Accuracy::Exact, Accuracy::Estimate] {
                let counts = scene.store().counts(accuracy).await.expect("counts");
                let email = counts.queues.iter().find(|line| line.queue == queue("email")).expect("the queue is known");
                let ever = [JobState::Completed, JobState::Cancelled].map(|state| email.ever_in(&[state]));
                assert_eq!(ever, expected, "{accuracy:?} in round {round}");
            }
            scene.expect_all_reclaimed().await;
            scene.store().tidy().await.expect("tidy");
            scene.agree().await;
        }
    }
}

/// A queue is listed from its first use on, opened by a worker or by its first job, and counts exactly.
pub async fn queues_are_listed_from_their_first_use(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["opened"]).await;
    scene.enqueue(&[job("first.job", "a"), job("first.job", "b")]).await;
    scene.store().open_queue(&queue("opened")).await.expect("open_queue twice is harmless");
    scene.store().tidy().await.expect("tidy");
    assert_eq!(ids(&scene.claim("first.job", 1).await).len(), 1, "a queue needs no worker before its first job");
    let queues = scene.store().queues().await.expect("queues");
    let seen: Vec<_> = queues.iter().map(|q| (q.queue.as_str(), q.ready, q.running, q.paused)).collect();
    assert_eq!(seen, [("first.job", 1, 1, false), ("opened", 0, 0, false)]);
    scene.agree().await;
}
