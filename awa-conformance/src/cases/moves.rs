//! Jobs that wait change their queue or their priority.

use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::store::{Acted, MoveTo, Refusal};
use awa_core::unique::KeyStates;
use awa_core::{
    AttemptEnd, Enqueued, JobId, JobState, NewJob, OrderingKey, Priority, QueueSettings, RunAt, ShardCount, Unique,
    UniqueBy,
};

use crate::Subject;
use crate::scene::{Scene, done, ids, job, labels, queue};

impl Scene<'_> {
    async fn move_jobs(&self, jobs: &[JobId], to: &MoveTo) -> Vec<Acted> {
        self.store().move_jobs(jobs, to).await.expect("move_jobs")
    }
}

fn into(name: &str) -> MoveTo {
    MoveTo::queue(queue(name))
}

fn to(priority: i16) -> MoveTo {
    MoveTo::priority(Priority::new(priority).expect("1 to 4"))
}

/// C2, C6: a ready job that is moved joins the tail of its new lane, is in one place at every look, and is handed out once;
/// those that it leaves keep their order.
pub async fn a_ready_job_joins_the_tail_of_its_new_lane(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email", "video"]).await;
    let jobs = scene.enqueue_each("email", &["a", "b", "c", "d"]).await;
    scene.enqueue_each("video", &["v"]).await;
    assert_eq!(scene.move_jobs(&jobs[1..3], &into("video")).await, [done(JobState::Ready); 2]);
    let view = scene.view(jobs[1]).await;
    assert_eq!((view.queue.as_str(), view.priority, view.attempt), ("video", Priority::default(), 0));
    scene.expect(&jobs.iter().map(|job| (*job, JobState::Ready)).collect::<Vec<_>>()).await;
    scene.enqueue_each("video", &["w"]).await;
    assert_eq!(scene.move_jobs(&[jobs[3]], &to(1)).await, [done(JobState::Ready)]);
    assert_eq!(labels(&scene.claim("email", 10).await), ["d", "a"]);
    let taken = scene.claim("video", 10).await;
    assert_eq!(labels(&taken), ["v", "b", "c", "w"]);
    assert_eq!(ids(&taken)[1..3], jobs[1..3]);
    scene.complete(&taken).await;
    scene.expect(&[(jobs[1], JobState::Completed), (jobs[2], JobState::Completed), (jobs[0], JobState::Running)]).await;
}

/// C2, C5: a job may be moved away and back again and again, within one slot; it stays one job, with one row that counts.
pub async fn a_job_may_be_moved_back(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email", "video"]).await;
    let jobs = scene.enqueue_each("email", &["a", "b"]).await;
    let mut lease = scene.view(jobs[0]).await.run_lease;
    for name in ["video", "email", "video", "email"] {
        assert_eq!(scene.move_jobs(&jobs[..1], &into(name)).await, [done(JobState::Ready)]);
        let view = scene.view(jobs[0]).await;
        assert_eq!(view.queue, queue(name));
        assert!(view.run_lease > lease, "an id and a lease name one row");
        lease = view.run_lease;
        scene.expect(&[(jobs[0], JobState::Ready), (jobs[1], JobState::Ready)]).await;
    }
    assert_eq!(scene.claim("video", 5).await, []);
    let taken = scene.claim("email", 5).await;
    assert_eq!(labels(&taken), ["b", "a"]);
    assert_eq!(taken[1].receipt.run_lease.get(), lease.get() + 1);
    assert_eq!((taken[1].attempt, taken[0].attempt), (1, 1));
    scene.complete(&taken).await;
    scene.expect(&[(jobs[0], JobState::Completed), (jobs[1], JobState::Completed)]).await;
    scene.expect_all_reclaimed().await;
}

/// Moving works on ready and deferred jobs, is refused with the state in every other, and changes nothing then (bug class 95).
pub async fn move_in_every_state(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["elsewhere"]).await;
    for state in scene.reachable_states() {
        let id = scene.job_in(state).await;
        let before = scene.view(id).await;
        let answer = scene.move_jobs(&[id], &into("elsewhere").and_priority(Priority::BULK)).await;
        if matches!(state, JobState::Ready | JobState::Deferred) {
            assert_eq!(answer, [done(state)]);
            let view = scene.view(id).await;
            assert_eq!((view.queue, view.priority), (queue("elsewhere"), Priority::BULK), "{state}");
            assert_eq!((view.state, &view.args, view.run_at), (state, &before.args, before.run_at));
            assert_eq!(scene.claim(before.queue.as_str(), 1).await, []);
        } else {
            assert_eq!(answer, [Acted::Refused(Refusal::WrongState(state))]);
            assert_eq!(scene.view(id).await, before, "{state}");
        }
        scene.expect(&[(id, state)]).await;
    }
    let wishes = [JobId(i64::MAX), JobId(0), JobId(-1)];
    assert_eq!(scene.move_jobs(&wishes, &to(1)).await, [Acted::Refused(Refusal::NotFound); 3]);
    assert_eq!(scene.move_jobs(&[], &to(1)).await, []);
}

/// C6: a job that is where it is told to go keeps its place, also when it is named twice.
pub async fn a_job_that_is_there_already_keeps_its_place(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let jobs = scene.enqueue_each("email", &["a", "b", "c"]).await;
    let lease = scene.view(jobs[0]).await.run_lease;
    assert_eq!(scene.move_jobs(&[jobs[0], jobs[0]], &into("email")).await, [done(JobState::Ready); 2]);
    assert_eq!(scene.move_jobs(&jobs[1..2], &to(2)).await, [done(JobState::Ready)]);
    assert_eq!(scene.view(jobs[0]).await.run_lease, lease);
    assert_eq!(labels(&scene.claim("email", 5).await), ["a", "b", "c"]);
}

/// C6: a deferred job goes where it was moved when its time comes, also into a queue that nobody has used.
pub async fn a_deferred_job_goes_where_it_was_moved(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let minute = RunAt::after(Duration::from_mins(1)).expect("allowed");
    let id = scene.enqueue(&[job("email", "later").with_run_at(minute)]).await[0];
    let move_to = into("new").and_priority(Priority::URGENT);
    assert_eq!(scene.move_jobs(&[id], &move_to).await, [done(JobState::Deferred)]);
    scene.expect(&[(id, JobState::Deferred)]).await;
    scene.pass(Duration::from_secs(61)).await;
    scene.promote().await;
    scene.store().tidy().await.expect("tidy");
    assert_eq!(scene.claim("email", 1).await, []);
    let attempt = scene.claim_one("new").await;
    assert_eq!((attempt.receipt.job, attempt.priority), (id, Priority::URGENT));
}

/// C6: a job that was handed back, and runs next in its lane, can be moved too, and joins the tail like any other.
pub async fn a_job_that_was_handed_back_can_be_moved(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email", "video"]).await;
    let id = scene.enqueue_each("email", &["a"]).await[0];
    scene.enqueue_each("video", &["v"]).await;
    let attempt = scene.claim_one("email").await;
    scene.close_one(&attempt, AttemptEnd::Release { delay: Duration::ZERO }).await;
    assert_eq!(scene.move_jobs(&[id], &to(2)).await, [done(JobState::Ready)], "it stays where it is");
    assert_eq!(scene.move_jobs(&[id], &into("video")).await, [done(JobState::Ready)]);
    scene.expect(&[(id, JobState::Ready)]).await;
    assert_eq!(scene.claim("email", 1).await, []);
    let taken = scene.claim("video", 5).await;
    assert_eq!(labels(&taken), ["v", "a"]);
    assert_eq!(taken[1].attempt, 1, "handing back is not charged");
    scene.complete(&taken).await;
}

/// C14: a moved job keeps its key, whichever states it holds it in.
pub async fn a_moved_job_keeps_its_key(subject: &dyn Subject) {
    for states in [KeyStates::UNFINISHED, KeyStates::UNTIL_CLAIMED, KeyStates::UNTIL_RESOLVED] {
        let scene = Scene::open(subject, &["email", "video"]).await;
        let unique = |name: &str| {
            let new = job(name, "u");
            let key = UniqueBy::text(format!("{states:?}")).key_of(&new).expect("the text is good");
            new.with_unique(Unique::new(key).while_in(states))
        };
        let ask = async |new: NewJob| scene.store().enqueue(&[new]).await.expect("enqueue")[0];
        let id = scene.enqueue(&[unique("email")]).await[0];
        assert_eq!(scene.move_jobs(&[id], &into("video").and_priority(Priority::BULK)).await, [done(JobState::Ready)]);
        assert_eq!(ask(unique("email")).await, Enqueued::Duplicate(id), "{states:?}");
        let attempt = scene.claim_one("video").await;
        assert_eq!(attempt.receipt.job, id);
        scene.complete(&[attempt]).await;
        let next = ask(unique("email")).await;
        assert!(next.is_inserted(), "{states:?}");
        assert_eq!(scene.cancel(&[next.id()]).await, [done(JobState::Ready)]);
    }
}

/// C6: a job keeps its shard, so that those of one ordering key that are moved together stay in order.
pub async fn moved_jobs_of_one_ordering_key_stay_in_order(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email", "video"]).await;
    let eight = QueueSettings::default().with_enqueue_shards(ShardCount::new(8).expect("good"));
    scene.store().configure_queue(&queue("email"), &eight).await.expect("configure_queue");
    let new = |number: usize| {
        let key = OrderingKey::new(format!("customer {}", number % 5)).expect("good");
        job("email", &format!("{}.{}", number % 5, number / 5)).with_ordering_key(key)
    };
    let jobs = scene.enqueue(&(0..25).map(new).collect::<Vec<_>>()).await;
    assert_eq!(scene.move_jobs(&jobs, &into("video")).await, vec![done(JobState::Ready); 25]);
    let taken = labels(&scene.claim("video", 25).await);
    for key in 0..5 {
        let of_key: Vec<_> = taken.iter().filter(|label| label.starts_with(&format!("{key}."))).collect();
        assert!(of_key.len() == 5 && of_key.is_sorted(), "{taken:?}");
    }
}

/// C3, C4: a job that is moved and cancelled at once ends in one way that both agree on; after either it can be cancelled.
pub async fn a_moved_job_can_be_cancelled(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email", "video"]).await;
    let jobs = scene.enqueue_each("email", &["a", "b"]).await;
    scene.move_jobs(&jobs[..1], &into("video")).await;
    assert_eq!(scene.cancel(&jobs).await, [done(JobState::Ready); 2]);
    let wrong = Acted::Refused(Refusal::WrongState(JobState::Cancelled));
    assert_eq!(scene.move_jobs(&jobs, &into("video")).await, [wrong; 2]);
    scene.expect(&[(jobs[0], JobState::Cancelled), (jobs[1], JobState::Cancelled)]).await;
    assert_eq!(scene.view(jobs[0]).await.error, Some(ErrorText::new("no longer wanted")));
    assert_eq!((scene.claim("email", 5).await, scene.claim("video", 5).await), (vec![], vec![]));
}
