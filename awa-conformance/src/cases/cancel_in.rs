//! Jobs are cancelled in a transaction of an application.

use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::job::MaxAttempts;
use awa_core::store::{Acted, ClaimRequest, Refusal};
use awa_core::{AttemptEnd, ClosureAnswer, JobId, JobState, NewJob, Unique, UniqueBy};

use crate::scene::{OTHER, Scene, done, job, labels, retry_after};
use crate::{Subject, SubjectTransaction};

fn reason() -> ErrorText {
    ErrorText::new("order withdrawn")
}

fn asked(from: JobState) -> Acted {
    Acted::Asked { from }
}

async fn cancel_in(transaction: &mut Box<dyn SubjectTransaction>, jobs: &[JobId]) -> Vec<Acted> {
    transaction.cancel(jobs, &reason()).await.expect("cancel in a transaction")
}

/// C9: a cancel counts from the commit of its transaction on; until then, and after a rollback, nothing has happened, and
/// the job is handed out in its order.
pub async fn a_cancel_counts_from_its_commit_on(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let jobs = scene.enqueue_each("email", &["a", "b", "c", "d"]).await;
    for commit in [false, true] {
        let mut transaction = scene.begin().await;
        assert_eq!(cancel_in(&mut transaction, &jobs[1..3]).await, [asked(JobState::Ready); 2]);
        scene.expect(&jobs.iter().map(|job| (*job, JobState::Ready)).collect::<Vec<_>>()).await;
        if commit {
            transaction.commit().await.expect("commit");
        } else {
            transaction.rollback().await.expect("rollback");
        }
    }
    let cancelled = [(jobs[1], JobState::Cancelled), (jobs[2], JobState::Cancelled)];
    scene.expect(&cancelled).await;
    assert_eq!(scene.view(jobs[1]).await.error, Some(reason()));
    assert_eq!(labels(&scene.claim("email", 10).await), ["a", "d"]);
    scene.store().tidy().await.expect("tidy");
    scene.expect(&cancelled).await;
}

/// In every state in which a job has not ended it can be cancelled in a transaction, by the next tidy tick at the latest; in
/// every other that is refused with the state (bug class 95).
pub async fn cancel_in_every_state_in_a_transaction(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    for state in scene.reachable_states() {
        let id = scene.job_in(state).await;
        let before = scene.view(id).await;
        let mut transaction = scene.begin().await;
        let answer = cancel_in(&mut transaction, &[id]).await;
        let again = cancel_in(&mut transaction, &[JobId(i64::MAX), JobId(0)]).await;
        assert_eq!(again, [Acted::Refused(Refusal::NotFound); 2]);
        transaction.commit().await.expect("commit");
        scene.store().tidy().await.expect("tidy");
        if state.is_terminal() {
            assert_eq!(answer, [Acted::Refused(Refusal::WrongState(state))]);
            assert_eq!(scene.view(id).await, before, "{state}");
        } else {
            assert_eq!(answer, [if state == JobState::Deferred { done(state) } else { asked(state) }]);
            scene.expect(&[(id, JobState::Cancelled)]).await;
            assert_eq!(scene.view(id).await.error, Some(reason()), "{state}");
        }
        assert_eq!(scene.claim(before.queue.as_str(), 1).await, [], "{state}");
    }
    scene.expect_all_reclaimed().await;
}

/// C10: an open transaction that cancels delays nobody: claims go on, may hand the job out, and its attempt may end as it
/// likes; the cancel then finds it where it is.
pub async fn an_open_cancel_delays_nobody(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let jobs = scene.enqueue_each("email", &["a", "b", "c", "d"]).await;
    let mut transaction = scene.begin().await;
    assert_eq!(cancel_in(&mut transaction, &jobs).await, [asked(JobState::Ready); 4]);
    scene.enqueue_each("email", &["e"]).await;
    let taken = scene.claim_next("email", 10).await;
    assert_eq!(labels(&taken), ["a", "b", "c", "d", "e"], "nobody waits for a transaction that may roll back");
    scene.complete(&taken[..1]).await;
    assert_eq!(scene.close_one(&taken[1], retry_after(Duration::from_hours(1))).await, ClosureAnswer::Closed);
    assert_eq!(scene.close_one(&taken[2], AttemptEnd::Release { delay: Duration::ZERO }).await, ClosureAnswer::Closed);
    transaction.commit().await.expect("commit");
    scene.store().tidy().await.expect("tidy");
    let cancelled = |job| (job, JobState::Cancelled);
    scene.expect(&[(jobs[0], JobState::Completed), cancelled(jobs[1]), cancelled(jobs[2]), cancelled(jobs[3])]).await;
    assert_eq!(scene.close_one(&taken[3], AttemptEnd::Complete).await, ClosureAnswer::Stale);
    assert_eq!(scene.claim("email", 10).await, []);
}

/// C10: an open cancel holds the row in which it found the job, which is not promoted meanwhile, and none in which the job
/// comes back later.
pub async fn an_open_cancel_holds_only_what_it_found(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let soon = awa_core::RunAt::after(Duration::from_secs(10)).expect("allowed");
    let jobs = scene.enqueue(&[job("email", "returns"), job("email", "waits").with_run_at(soon)]).await;
    let mut transaction = scene.begin().await;
    assert_eq!(cancel_in(&mut transaction, &jobs).await, [asked(JobState::Ready), done(JobState::Deferred)]);
    let taken = scene.claim("email", 1).await;
    assert_eq!(scene.close_one(&taken[0], retry_after(Duration::ZERO)).await, ClosureAnswer::Closed);
    scene.pass(Duration::from_mins(1)).await;
    assert_eq!(scene.promote().await, 1, "the other is as good as cancelled");
    let again = scene.claim("email", 10).await;
    assert_eq!(labels(&again), ["returns"]);
    scene.complete(&again).await;
    transaction.rollback().await.expect("rollback");
    assert_eq!(scene.promote().await, 1);
    assert_eq!(labels(&scene.claim("email", 10).await), ["waits"]);
}

/// C3: a job that runs when its cancel is committed, and whose attempt then fails and was to be tried again, ends as cancelled;
/// an attempt that ends for good keeps its end.
pub async fn a_job_whose_cancel_was_asked_for_does_not_come_back(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let once = MaxAttempts::new(1).expect("one attempt");
    let mut new: Vec<NewJob> = ["retry", "hand back", "snooze"].iter().map(|label| job("email", label)).collect();
    new.push(job("email", "spent").with_max_attempts(once));
    let jobs = scene.enqueue(&new).await;
    let taken = scene.claim_as(OTHER, "email", 10).await;
    let mut transaction = scene.begin().await;
    assert_eq!(cancel_in(&mut transaction, &jobs).await, [asked(JobState::Running); 4]);
    transaction.commit().await.expect("commit");
    let ends = [
        retry_after(Duration::ZERO),
        AttemptEnd::Release { delay: Duration::ZERO },
        AttemptEnd::Snooze { delay: Duration::ZERO },
        retry_after(Duration::ZERO),
    ];
    for (attempt, end) in taken.iter().zip(ends) {
        // A store may have ended the attempt with the commit already.
        scene.close_one(attempt, end).await;
    }
    assert_eq!(scene.claim("email", 10).await, []);
    scene.pass(Duration::from_mins(1)).await;
    scene.promote().await;
    assert_eq!(scene.claim("email", 10).await, []);
    scene.store().tidy().await.expect("tidy");
    let states = scene.agree().await;
    assert!(jobs[..3].iter().all(|job| states[job] == JobState::Cancelled), "{states:?}");
    assert!(matches!(states[&jobs[3]], JobState::Cancelled | JobState::Dead), "{states:?}");
    scene.expect_all_reclaimed().await;
}

/// C14: the key of a job that was cancelled in a transaction is free when that has committed and maintenance had its turn, and
/// held after a rollback.
pub async fn a_cancel_in_a_transaction_frees_the_key(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let unique = |key: &str| {
        let new = job("email", key);
        let key = UniqueBy::text(key).key_of(&new).expect("the text is good");
        new.with_unique(Unique::new(key))
    };
    let minute = awa_core::RunAt::after(Duration::from_mins(1)).expect("allowed");
    let jobs = scene.enqueue(&[unique("runs"), unique("waits"), unique("later").with_run_at(minute)]).await;
    assert_eq!(labels(&scene.claim("email", 1).await), ["runs"]);
    for commit in [false, true] {
        let mut transaction = scene.begin().await;
        let answers = cancel_in(&mut transaction, &jobs).await;
        assert_eq!(answers, [asked(JobState::Running), asked(JobState::Ready), done(JobState::Deferred)]);
        if commit {
            transaction.commit().await.expect("commit");
        } else {
            transaction.rollback().await.expect("rollback");
        }
        scene.store().tidy().await.expect("tidy");
        for (key, id) in ["runs", "waits", "later"].iter().zip(&jobs) {
            let answer = scene.store().enqueue(&[unique(key)]).await.expect("enqueue")[0];
            assert_eq!(answer.is_inserted(), commit, "{key}: {answer:?}");
            assert!(commit || answer.id() == *id);
        }
    }
}

/// C14: a transaction that cancels a job that waits for its time takes the key for another at once, which is how a job is put
/// off; after a rollback the first has it again.
pub async fn a_transaction_puts_another_job_in_the_place_of_a_deferred_one(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let unique = |minutes: u64| {
        let new = job("email", "reminder");
        let key = UniqueBy::text("reminder").key_of(&new).expect("the text is good");
        let later = awa_core::RunAt::after(Duration::from_mins(minutes)).expect("allowed");
        new.with_unique(Unique::new(key)).with_run_at(later)
    };
    let mut holder = scene.enqueue(&[unique(1)]).await[0];
    for commit in [false, true] {
        let mut transaction = scene.begin().await;
        assert_eq!(cancel_in(&mut transaction, &[holder]).await, [done(JobState::Deferred)]);
        let next = transaction.enqueue(&[unique(2)]).await.expect("enqueue in a transaction")[0];
        assert!(next.is_inserted(), "{next:?}");
        if commit {
            transaction.commit().await.expect("commit");
            scene.expect(&[(holder, JobState::Cancelled), (next.id(), JobState::Deferred)]).await;
            holder = next.id();
        } else {
            transaction.rollback().await.expect("rollback");
            scene.expect(&[(holder, JobState::Deferred)]).await;
        }
        let asked = scene.store().enqueue(&[unique(3)]).await.expect("enqueue")[0];
        assert_eq!((asked.is_inserted(), asked.id()), (false, holder), "{asked:?}");
    }
}

/// C14: a transaction that cancels a deferred job of its own takes its key for another at once; nobody else has it before the
/// commit, and after a rollback everybody may.
pub async fn a_transaction_takes_the_key_of_its_own_deferred_job_again(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let new = job("email", "reminder");
    let key = UniqueBy::text("reminder").key_of(&new).expect("the text is good");
    let later = awa_core::RunAt::after(Duration::from_mins(1)).expect("allowed");
    let new = new.with_unique(Unique::new(key)).with_run_at(later);
    for commit in [false, true] {
        let mut transaction = scene.begin().await;
        let first = transaction.enqueue(std::slice::from_ref(&new)).await.expect("enqueue in a transaction")[0];
        assert_eq!(cancel_in(&mut transaction, &[first.id()]).await, [done(JobState::Deferred)]);
        let second = transaction.enqueue(std::slice::from_ref(&new)).await.expect("enqueue in a transaction")[0];
        assert!(first.is_inserted() && second.is_inserted(), "{first:?}, {second:?}");
        if commit {
            transaction.commit().await.expect("commit");
            scene.expect(&[(second.id(), JobState::Deferred)]).await;
        } else {
            transaction.rollback().await.expect("rollback");
        }
        let asked = scene.store().enqueue(std::slice::from_ref(&new)).await.expect("enqueue")[0];
        assert_eq!(asked.is_inserted(), !commit, "{asked:?}");
        if commit {
            assert_eq!(asked.id(), second.id());
        } else {
            assert_eq!(scene.cancel(&[asked.id()]).await, [done(JobState::Deferred)]);
        }
    }
}

/// C9: a transaction may cancel what it has enqueued itself; a second cancel of the same job tells that it is cancelled.
pub async fn a_transaction_cancels_its_own_jobs(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let (mut transaction, jobs) = scene.begin_with("email", &["a", "b"]).await;
    assert_eq!(cancel_in(&mut transaction, &jobs[..1]).await, [asked(JobState::Ready)]);
    let again = cancel_in(&mut transaction, &jobs[..1]).await;
    assert_eq!(again, [Acted::Refused(Refusal::WrongState(JobState::Cancelled))]);
    assert_eq!(cancel_in(&mut transaction, &[]).await, []);
    scene.commit(transaction, &jobs).await;
    scene.store().tidy().await.expect("tidy");
    scene.expect(&[(jobs[0], JobState::Cancelled), (jobs[1], JobState::Ready)]).await;
    let request = ClaimRequest { instance: OTHER, ..scene.request("email", 10) };
    assert_eq!(labels(&scene.claim_like(&request).await), ["b"]);
}
