//! At most one job at a time per key.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::job::MaxAttempts;
use awa_core::store::{Acted, Refusal};
use awa_core::unique::{KeyStates, OnConflict, Unique, UniqueBy};
use awa_core::{AttemptEnd, ClosureAnswer, Enqueued, JobId, JobState, NewJob, RunAt, StoreError};
use futures::future::join_all;

use crate::scene::{Scene, done, job, json, labels, retry_after};
use crate::{Subject, SubjectTransaction};

const MINUTE: Duration = Duration::from_mins(1);
/// How often a caller asks again who is told that a key is in doubt.
const ROUNDS: usize = 64;

/// A job of the queue `email` that holds the key `key` with the default rules.
fn unique(key: &str, label: &str) -> NewJob {
    held(key, label, KeyStates::default())
}

fn held(key: &str, label: &str, states: KeyStates) -> NewJob {
    let job = job("email", label);
    let key = UniqueBy::text(key).key_of(&job).expect("the text is good");
    job.with_unique(Unique::new(key).while_in(states))
}

fn refused_if_taken(key: &str, label: &str) -> NewJob {
    let new = unique(key, label);
    let unique = new.unique().expect("it was just made").on_conflict(OnConflict::Error);
    new.with_unique(unique)
}

fn newest(key: &str, label: &str, states: KeyStates) -> NewJob {
    let new = held(key, label, states);
    let unique = new.unique().expect("it was just made").on_conflict(OnConflict::Replace);
    new.with_unique(unique)
}

/// The one answer to one job.
async fn ask(scene: &Scene<'_>, job: NewJob) -> Enqueued {
    scene.store().enqueue(&[job]).await.expect("enqueue")[0]
}

/// Lets whatever else is joined go on.
async fn step_aside() {
    let mut asked = false;
    poll_fn(|context| {
        if std::mem::replace(&mut asked, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The answers of a transaction of an application that asks again while the store says that a key is in doubt.
async fn ask_patiently(transaction: &mut dyn SubjectTransaction, jobs: &[NewJob]) -> Vec<Enqueued> {
    for _ in 0..ROUNDS {
        match transaction.enqueue(jobs).await {
            Ok(answers) => return answers,
            Err(error) => wait_after(&error).await,
        }
    }
    panic!("a key was in doubt {ROUNDS} times");
}

async fn wait_after(error: &StoreError) {
    assert!(
        error.is_transient(),
        "a key that an open transaction has taken gives no error but a transient one: {error}"
    );
    step_aside().await;
}

/// Checks that `holder` stands in the way of a job with this key.
async fn expect_held(scene: &Scene<'_>, key: &str, holder: JobId, when: &str) {
    assert_eq!(ask(scene, unique(key, "another")).await, Enqueued::Duplicate(holder), "{when}");
}

/// Checks that nobody holds the key, and leaves it free.
async fn expect_free(scene: &Scene<'_>, key: &str, when: &str) {
    let answer = ask(scene, unique(key, "another")).await;
    assert!(answer.is_inserted(), "{when} the key is still held by {answer:?}");
    assert_eq!(scene.cancel(&[answer.id()]).await, [done(JobState::Ready)]);
}

/// C14: a job whose key is held is not stored, and the answer names the holder (bug class 47).
pub async fn a_second_job_is_answered_with_the_first(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let first = scene.enqueue(&[unique("k", "first")]).await[0];
    expect_held(&scene, "k", first, "while it is ready").await;
    assert!(ask(&scene, unique("l", "other key")).await.is_inserted());
    assert_eq!(labels(&scene.claim("email", 10).await), ["first", "other key"]);
    assert_eq!(scene.agree().await.len(), 2);
}

/// C14, C8: a batch with duplicates stores the rest, and says of each which job stands for it; the first of equals wins
/// (bug classes 49, 54).
pub async fn duplicates_touch_no_other_job_of_their_batch(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email", "video"]).await;
    let stored = scene.enqueue(&[unique("stored", "0")]).await[0];
    let later = RunAt::after(MINUTE).expect("a minute is allowed");
    let answers = scene
        .store()
        .enqueue(&[
            job("video", "a"),
            unique("new", "b"),
            unique("stored", "c"),
            unique("new", "d").with_metadata(json("{}")),
            job("email", "e").with_metadata(json("[5]")),
            refused_if_taken("new", "f"),
            unique("later", "g").with_run_at(later),
            unique("later", "h").with_run_at(later),
        ])
        .await
        .expect("enqueue");
    let id = |index: usize| answers[index].id();
    let inserted = |index: usize| Enqueued::Inserted(id(index));
    assert_eq!(answers[..3], [inserted(0), inserted(1), Enqueued::Duplicate(stored)]);
    assert_eq!(answers[3..6], [Enqueued::Duplicate(id(1)), inserted(4), Enqueued::Refused(id(1))]);
    assert_eq!(answers[6..], [inserted(6), Enqueued::Duplicate(id(6))]);
    assert_eq!(scene.view(id(6)).await.state, JobState::Deferred);
    assert_eq!(labels(&scene.claim("video", 10).await), ["a"]);
    let jobs = scene.claim("email", 10).await;
    assert_eq!(labels(&jobs), ["0", "b", "e"]);
    assert_eq!((&jobs[1].metadata, &jobs[2].metadata), (&None, &Some(json("[5]"))));
    assert_eq!(scene.agree().await.len(), 5);
}

/// C14: who calls a duplicate a mistake is told so, item by item, and nothing else differs.
pub async fn a_conflict_can_be_a_refusal(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let first = scene.enqueue(&[refused_if_taken("k", "first")]).await[0];
    assert_eq!(ask(&scene, refused_if_taken("k", "second")).await, Enqueued::Refused(first));
    assert_eq!(ask(&scene, unique("k", "third")).await, Enqueued::Duplicate(first));
    let attempt = scene.claim_one("email").await;
    scene.complete(&[attempt]).await;
    assert!(ask(&scene, refused_if_taken("k", "fourth")).await.is_inserted());
}

/// C14: a job gives its key back when it ends, however it ends, and keeps it as long as it goes on (bug class 56).
pub async fn every_end_of_an_attempt_settles_the_key(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    for (number, end) in scene.every_end().into_iter().enumerate() {
        let key = format!("k{number}");
        let id = scene.enqueue(&[unique(&key, "first")]).await[0];
        let attempt = scene.claim_one("email").await;
        expect_held(&scene, &key, id, "while it runs").await;
        assert_eq!(scene.close_one(&attempt, end.clone()).await, ClosureAnswer::Closed);
        if scene.view(id).await.state.is_terminal() {
            expect_free(&scene, &key, &format!("after {end:?}")).await;
        } else {
            expect_held(&scene, &key, id, &format!("after {end:?}")).await;
        }
    }
}

/// C14: of the members of one claim batch that end in one call, each gives back its own key.
pub async fn members_of_a_batch_settle_their_own_keys(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let ids = scene.enqueue(&[unique("a", "a"), job("email", "plain"), unique("b", "b"), unique("c", "c")]).await;
    let jobs = scene.claim("email", 10).await;
    scene.complete(&jobs[1..3]).await;
    expect_held(&scene, "a", ids[0], "while it runs").await;
    expect_held(&scene, "c", ids[3], "while it runs").await;
    expect_free(&scene, "b", "after its completion").await;
    scene.complete(&[jobs[0].clone(), jobs[3].clone()]).await;
    expect_free(&scene, "a", "after its completion").await;
    expect_free(&scene, "c", "after its completion").await;
}

/// C14: an operator's cancel gives the key back, wherever the job was.
pub async fn a_cancelled_job_gives_its_key_back(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let later = RunAt::after(MINUTE).expect("a minute is allowed");
    let running = scene.enqueue(&[unique("running", "r")]).await[0];
    scene.claim_one("email").await;
    let ready = scene.enqueue(&[unique("ready", "a")]).await[0];
    let deferred = scene.enqueue(&[unique("deferred", "d").with_run_at(later)]).await[0];
    expect_held(&scene, "deferred", deferred, "while it waits for its time").await;
    let answers = scene.cancel(&[ready, deferred, running]).await;
    assert_eq!(answers, [done(JobState::Ready), done(JobState::Deferred), done(JobState::Running)]);
    for key in ["ready", "deferred", "running"] {
        expect_free(&scene, key, "after its cancel").await;
    }
}

/// C14: a job never conflicts with itself: scheduled, it runs; failed, it is tried again; released, it comes back
/// (bug class 48).
pub async fn a_job_never_conflicts_with_itself(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let soon = RunAt::after(Duration::from_secs(1)).expect("a second is allowed");
    let id = scene.enqueue(&[unique("k", "a").with_run_at(soon)]).await[0];
    let second = Duration::from_secs(1);
    let ends = [
        retry_after(second),
        retry_after(second),
        AttemptEnd::Snooze { delay: second },
        AttemptEnd::Release { delay: second },
    ];
    for end in ends {
        scene.pass(second * 2).await;
        assert_eq!(scene.promote().await, 1, "before {end:?}");
        expect_held(&scene, "k", id, "after a promotion").await;
        let attempt = scene.claim_one("email").await;
        assert_eq!(attempt.receipt.job, id);
        assert_eq!(scene.close_one(&attempt, end).await, ClosureAnswer::Closed);
        expect_held(&scene, "k", id, "while it waits again").await;
    }
    assert_eq!(scene.retry(&[id]).await, [done(JobState::Deferred)]);
    let last = scene.claim_one("email").await;
    scene.complete(&[last]).await;
    expect_free(&scene, "k", "after its completion").await;
}

/// C14: attempts that are rescued keep the key, and give it back with the last (bug class 49).
pub async fn a_rescued_job_keeps_its_key_until_it_is_dead(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let twice = MaxAttempts::new(2).expect("two attempts");
    let id = scene.enqueue(&[unique("k", "a").with_max_attempts(twice)]).await[0];
    for expected in [JobState::Deferred, JobState::Dead] {
        scene.claim_one("email").await;
        assert_eq!(scene.rescue_after_silence(&[]).await.attempts.len(), 1);
        assert_eq!(scene.view(id).await.state, expected);
        if expected == JobState::Deferred {
            expect_held(&scene, "k", id, "between two attempts").await;
            scene.pass(MINUTE).await;
            assert_eq!(scene.promote().await, 1);
        }
    }
    expect_free(&scene, "k", "after the last attempt").await;
}

/// C14: a dead job that is retried takes its key again, and is refused with the holder named while another has it.
pub async fn a_dead_job_takes_its_key_again(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let dead = scene.enqueue(&[unique("k", "dead")]).await[0];
    let attempt = scene.claim_one("email").await;
    scene.close_one(&attempt, AttemptEnd::Fail { error: ErrorText::new("boom") }).await;
    let next = scene.enqueue(&[unique("k", "next")]).await[0];
    let plain = scene.job_in(JobState::Dead).await;
    let answers = scene.retry(&[dead, plain]).await;
    assert_eq!(answers, [Acted::Refused(Refusal::KeyTaken(next)), done(JobState::Dead)]);
    scene.expect(&[(dead, JobState::Dead), (next, JobState::Ready)]).await;
    let attempt = scene.claim_one("email").await;
    assert_eq!(attempt.receipt.job, next);
    scene.complete(&[attempt]).await;
    assert_eq!(scene.retry(&[dead]).await, [done(JobState::Dead)]);
    expect_held(&scene, "k", dead, "after its retry").await;
    let attempt = scene.claim_one("email").await;
    assert_eq!(attempt.receipt.job, dead);
    scene.complete(&[attempt]).await;
    expect_free(&scene, "k", "after its completion").await;
}

/// C14: held until claimed, a key lets exactly one job wait beside the one that runs, however often it is enqueued, and
/// whatever becomes of the one that runs (bug classes 49, 51).
pub async fn one_job_may_wait_beside_the_one_that_runs(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let next = |label: &str| held("k", label, KeyStates::UNTIL_CLAIMED);
    let first = scene.enqueue(&[next("first")]).await[0];
    assert_eq!(ask(&scene, next("early")).await, Enqueued::Duplicate(first));
    let running = scene.claim_one("email").await;
    let second = scene.enqueue(&[next("second")]).await[0];
    for _ in 0..4 {
        assert_eq!(ask(&scene, next("late")).await, Enqueued::Duplicate(second));
    }
    let answer = scene.close_one(&running, AttemptEnd::Release { delay: Duration::ZERO }).await;
    assert_eq!(answer, ClosureAnswer::Closed);
    assert_eq!(labels(&scene.claim("email", 10).await), ["first", "second"]);
    assert!(ask(&scene, next("third")).await.is_inserted());
}

/// C14: a job that gave its key back with its first claim goes on without it, through a retry and through the death of its
/// worker: it meets no other that has the key now, stops no neighbour of its sweep, and ends without touching that key
/// (bug class 49).
pub async fn a_job_goes_on_without_the_key_that_it_gave_back(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let next = |label: &str| held("k", label, KeyStates::UNTIL_CLAIMED);
    let first = scene.enqueue(&[next("first")]).await[0];
    let attempt = scene.claim_one("email").await;
    let second = scene.enqueue(&[next("second")]).await[0];
    let neighbours = scene.enqueue_each("email", &["a", "b", "c"]).await;
    scene.close_one(&attempt, retry_after(Duration::from_secs(1))).await;
    scene.pass(Duration::from_secs(2)).await;
    assert_eq!(scene.promote().await, 1);
    expect_held(&scene, "k", second, "while both wait").await;
    let attempts = scene.claim("email", 10).await;
    assert_eq!(labels(&attempts), ["second", "a", "b", "c", "first"]);
    let third = scene.enqueue(&[next("third")]).await[0];
    let rescued = scene.rescue_after_silence(&[]).await;
    assert_eq!(rescued.attempts.len(), 5, "one key stops nobody else");
    scene.pass(Duration::from_secs(2)).await;
    assert_eq!(scene.promote().await, 5);
    expect_held(&scene, "k", third, "while all wait").await;
    let attempts = scene.claim("email", 10).await;
    assert_eq!(attempts.len(), 6);
    let fourth = scene.enqueue(&[next("fourth")]).await[0];
    scene.complete(&attempts).await;
    expect_held(&scene, "k", fourth, "after the others have ended").await;
    let ended = [&[first, second, third], &neighbours[..]].concat();
    scene.expect(&ended.iter().map(|job| (*job, JobState::Completed)).collect::<Vec<_>>()).await;
}

/// C14: held until resolved, a key stays with a job in the dead-letter queue, and the job needs no other to be retried.
pub async fn a_dead_job_may_hold_its_key(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let id = scene.enqueue(&[held("k", "a", KeyStates::UNTIL_RESOLVED)]).await[0];
    let attempt = scene.claim_one("email").await;
    scene.close_one(&attempt, AttemptEnd::Fail { error: ErrorText::new("boom") }).await;
    expect_held(&scene, "k", id, "while it is dead").await;
    assert_eq!(scene.retry(&[id]).await, [done(JobState::Dead)]);
    expect_held(&scene, "k", id, "after its retry").await;
    let attempt = scene.claim_one("email").await;
    scene.complete(&[attempt]).await;
    expect_free(&scene, "k", "after its completion").await;
}

/// C14: a dead job that is deleted is resolved, and gives its key back.
pub async fn a_deleted_job_gives_its_key_back(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let id = scene.enqueue(&[held("k", "a", KeyStates::UNTIL_RESOLVED)]).await[0];
    let attempt = scene.claim_one("email").await;
    scene.close_one(&attempt, AttemptEnd::Fail { error: ErrorText::new("boom") }).await;
    expect_held(&scene, "k", id, "while it is dead").await;
    assert_eq!(scene.delete(&[id]).await, [done(JobState::Dead)]);
    expect_free(&scene, "k", "after it was deleted").await;
}

/// C14: a job that waits, ready, deferred or ready again, is replaced by a newer one, and ends as cancelled with the reason
/// (bug class 51).
pub async fn a_waiting_job_is_replaced_by_a_newer_one(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let states = KeyStates::default();
    let later = RunAt::after(MINUTE).expect("a minute is allowed");
    let mut old = ask(&scene, newest("k", "0", states)).await.id();
    for (number, run_at) in [(1, RunAt::Now), (2, later), (3, later), (4, RunAt::Now), (5, RunAt::Now)] {
        let answer = ask(&scene, newest("k", &number.to_string(), states).with_run_at(run_at)).await;
        assert_eq!(answer, Enqueued::Replaced { new: answer.id(), old }, "{number}");
        scene.expect(&[(old, JobState::Cancelled)]).await;
        let reason = scene.view(old).await.error.expect("a cancelled job shows why");
        assert!(reason.as_str().contains(&answer.id().to_string()), "{reason}");
        expect_held(&scene, "k", answer.id(), "after it took the key").await;
        old = answer.id();
    }
    let attempt = scene.claim_one("email").await;
    assert_eq!(labels(std::slice::from_ref(&attempt)), ["5"]);
    scene.close_one(&attempt, AttemptEnd::Snooze { delay: Duration::ZERO }).await;
    assert_eq!(scene.promote().await, 1);
    let last = ask(&scene, newest("k", "last", states)).await;
    assert_eq!(last, Enqueued::Replaced { new: last.id(), old });
    let attempt = scene.claim_one("email").await;
    assert_eq!((attempt.receipt.job, scene.claim("email", 10).await), (last.id(), vec![]));
    scene.complete(&[attempt]).await;
    expect_free(&scene, "k", "after its completion").await;
    assert_eq!(scene.promote().await, 0);
}

/// C14: a job that runs is not replaced, so that the two cannot overlap; held until claimed, a key lets the newest of many
/// wait beside the one that runs (bug classes 51, 52).
pub async fn a_running_job_is_not_replaced(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let running = ask(&scene, newest("k", "a", KeyStates::default())).await.id();
    let attempt = scene.claim_one("email").await;
    assert_eq!(ask(&scene, newest("k", "b", KeyStates::default())).await, Enqueued::Duplicate(running));
    scene.complete(&[attempt]).await;

    let next = |label: &str| newest("l", label, KeyStates::UNTIL_CLAIMED);
    ask(&scene, next("first")).await;
    let attempt = scene.claim_one("email").await;
    for number in 1..=5 {
        assert!(ask(&scene, next(&number.to_string())).await.is_inserted());
    }
    assert_eq!(labels(&scene.claim("email", 10).await), ["5"]);
    scene.complete(&[attempt]).await;
}

/// C14, C8: within one call the first of equals stays, and everybody is told of the job that stands for his own.
pub async fn a_call_replaces_others_but_not_its_own(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let old = scene.enqueue(&[unique("k", "old")]).await[0];
    let newest = |key, label| newest(key, label, KeyStates::default());
    let jobs =
        [unique("k", "a"), newest("k", "b"), newest("k", "c"), newest("l", "d"), newest("l", "e"), job("email", "f")];
    let answers = scene.store().enqueue(&jobs).await.expect("enqueue");
    let id = |index: usize| answers[index].id();
    let replaced = Enqueued::Replaced { new: id(1), old };
    assert_eq!(answers[..3], [Enqueued::Duplicate(id(1)), replaced, Enqueued::Duplicate(id(1))]);
    assert_eq!(answers[3..], [Enqueued::Inserted(id(3)), Enqueued::Duplicate(id(3)), Enqueued::Inserted(id(5))]);
    assert_eq!(labels(&scene.claim("email", 10).await), ["b", "d", "f"]);
}

/// C14, C9: a replacement counts from its commit on, and a rollback leaves everything as it was.
pub async fn a_replacement_counts_from_its_commit_on(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let newest = |label: &str| newest("k", label, KeyStates::default());
    let old = scene.enqueue(&[newest("old")]).await[0];
    let mut first = scene.begin().await;
    let answers = first.enqueue(&[newest("undone")]).await.expect("enqueue");
    assert_eq!(answers, [Enqueued::Replaced { new: answers[0].id(), old }]);
    first.rollback().await.expect("rollback");
    scene.expect(&[(old, JobState::Ready)]).await;
    expect_held(&scene, "k", old, "after the rollback").await;

    let mut second = scene.begin().await;
    let once = second.enqueue(&[newest("once")]).await.expect("enqueue")[0].id();
    let twice = second.enqueue(&[newest("twice")]).await.expect("enqueue")[0];
    assert_eq!(twice, Enqueued::Replaced { new: twice.id(), old: once });
    scene.expect(&[(old, JobState::Ready)]).await;
    scene.commit(second, &[once, twice.id()]).await;
    let cancelled = JobState::Cancelled;
    scene.expect(&[(old, cancelled), (once, cancelled), (twice.id(), JobState::Ready)]).await;
    assert_eq!(labels(&scene.claim("email", 10).await), ["twice"]);
}

/// C14, C10: an open replacement delays no claim. The job that was claimed runs as it was, the new one waits with the key,
/// and after a rollback the key is with the job that runs, or free when it has ended.
pub async fn an_open_replacement_delays_no_claim(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let newest = |label: &str| newest("k", label, KeyStates::default());
    let old = scene.enqueue(&[newest("old")]).await[0];
    for ends_before in [false, true] {
        let mut open = scene.begin().await;
        let answers = open.enqueue(&[newest("undone")]).await.expect("enqueue");
        assert_eq!(answers[0], Enqueued::Replaced { new: answers[0].id(), old });
        let attempt = scene.claim_one("email").await;
        assert_eq!(attempt.receipt.job, old);
        if ends_before {
            scene.complete(&[attempt]).await;
            open.rollback().await.expect("rollback");
            scene.store().tidy().await.expect("tidy");
            expect_free(&scene, "k", "after the rollback").await;
        } else {
            open.rollback().await.expect("rollback");
            expect_held(&scene, "k", old, "after the rollback").await;
            scene.close_one(&attempt, AttemptEnd::Snooze { delay: Duration::ZERO }).await;
            scene.promote().await;
        }
    }
    let old = scene.enqueue(&[newest("old")]).await[0];
    let mut open = scene.begin().await;
    let new = open.enqueue(&[newest("new")]).await.expect("enqueue")[0].id();
    let attempt = scene.claim_one("email").await;
    scene.commit(open, &[new]).await;
    scene.expect(&[(old, JobState::Running), (new, JobState::Ready)]).await;
    expect_held(&scene, "k", new, "after the commit").await;
    scene.complete(&[attempt]).await;
    expect_held(&scene, "k", new, "after the end of the old one").await;
    assert_eq!(labels(&scene.claim("email", 10).await), ["new"]);
}

/// C14, C12: a key with a period is another one in the next period of the store's clock (bug class 55).
pub async fn the_next_period_has_another_key(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let day = Duration::from_hours(24);
    let new = || {
        let job = job("email", "a");
        let key = UniqueBy::kind().per(day).key_of(&job).expect("a day is allowed");
        job.with_unique(Unique::new(key))
    };
    let first = scene.enqueue(&[new()]).await[0];
    // The first hour after a border of the period, so that the call below cannot lie beyond the next.
    let day_us = day.as_micros() as i64;
    let left = day_us - scene.view(first).await.created_at.as_micros().rem_euclid(day_us);
    scene.pass(Duration::from_micros(left.unsigned_abs()) + Duration::from_secs(1)).await;
    let second = scene.enqueue(&[new()]).await[0];
    assert_ne!(first, second, "another period, another job");
    scene.pass(Duration::from_hours(23)).await;
    assert_eq!(ask(&scene, new()).await, Enqueued::Duplicate(second));
    scene.pass(Duration::from_hours(1)).await;
    assert!(ask(&scene, new()).await.is_inserted());
}

/// C14, C9: when the transaction that took the key first rolls back, the next one inserts; nobody is told of a duplicate
/// that does not exist (bug class 45).
pub async fn a_winner_that_rolls_back_leaves_the_key_to_the_next(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let mut first = scene.begin().await;
    assert!(first.enqueue(&[unique("k", "first")]).await.expect("enqueue")[0].is_inserted());
    let mut second = scene.begin().await;
    let jobs = [unique("k", "second")];
    let (answers, ()) = futures::join!(ask_patiently(&mut *second, &jobs), async {
        step_aside().await;
        first.rollback().await.expect("rollback");
    });
    assert!(answers[0].is_inserted(), "{answers:?}");
    scene.commit(second, &[answers[0].id()]).await;
    assert_eq!(labels(&scene.claim("email", 10).await), ["second"]);
    assert_eq!(scene.agree().await.len(), 1);
}

/// C14, C9: when it commits, the next one is answered with its job.
pub async fn a_winner_that_commits_is_the_answer_to_the_next(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let mut first = scene.begin().await;
    let winner = first.enqueue(&[unique("k", "first")]).await.expect("enqueue")[0].id();
    let mut second = scene.begin().await;
    let jobs = [unique("k", "second"), job("email", "beside")];
    let (answers, ()) = futures::join!(ask_patiently(&mut *second, &jobs), async {
        step_aside().await;
        scene.commit(first, &[winner]).await;
    });
    assert_eq!((answers[0], answers[1].is_inserted()), (Enqueued::Duplicate(winner), true));
    scene.commit(second, &[answers[1].id()]).await;
    assert_eq!(labels(&scene.claim("email", 10).await), ["first", "beside"]);
}

/// C14: a transaction sees its own keys, and its rollback gives them back.
pub async fn a_transaction_is_held_to_its_own_keys(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let mut transaction = scene.begin().await;
    let first = transaction.enqueue(&[unique("k", "a")]).await.expect("enqueue")[0].id();
    let again = transaction.enqueue(&[unique("k", "b"), unique("l", "c")]).await.expect("enqueue");
    assert_eq!((again[0], again[1].is_inserted()), (Enqueued::Duplicate(first), true));
    transaction.rollback().await.expect("rollback");
    expect_free(&scene, "k", "after the rollback").await;
    expect_free(&scene, "l", "after the rollback").await;
}

/// C14, C10: an open transaction that asked for a key that is held delays neither the end of its holder nor the next
/// who asks.
pub async fn an_open_asker_delays_neither_the_holder_nor_the_next(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let holder = scene.enqueue(&[unique("k", "holder")]).await[0];
    let attempt = scene.claim_one("email").await;
    let mut open = scene.begin().await;
    let jobs = [unique("k", "asker"), unique("own", "own")];
    let answers = open.enqueue(&jobs).await.expect("enqueue");
    assert_eq!((answers[0], answers[1].is_inserted()), (Enqueued::Duplicate(holder), true));
    scene.complete(&[attempt]).await;
    let next = scene.enqueue(&[unique("k", "next")]).await[0];
    scene.commit(open, &[answers[1].id()]).await;
    scene.expect(&[(holder, JobState::Completed), (next, JobState::Ready), (answers[1].id(), JobState::Ready)]).await;
}

/// C14: of many who ask at once one gets the key, and all others are answered with its job (bug class 47).
pub async fn of_many_at_once_one_gets_the_key(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let asked = (0..20).map(|number| {
        let (store, job) = (subject.store(), unique("k", &number.to_string()));
        async move { store.enqueue(&[job]).await.expect("enqueue")[0] }
    });
    let answers = join_all(asked).await;
    let winners: Vec<_> = answers.iter().filter(|answer| answer.is_inserted()).collect();
    assert_eq!(winners.len(), 1, "{answers:?}");
    assert!(answers.iter().all(|answer| answer.id() == winners[0].id()), "{answers:?}");
    assert_eq!(scene.agree().await.len(), 1);
}
