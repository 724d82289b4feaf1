//! What is set per queue: how its jobs are spread over lanes, and whether it has a dead-letter queue.

use std::collections::BTreeMap;
use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::job::MaxAttempts;
use awa_core::store::{Acted, Refusal};
use awa_core::{
    AttemptEnd, ClaimedJob, Enqueued, JobId, JobState, NewJob, OrderingKey, Priority, QueueSettings, RunAt, ShardCount,
    Unique, UniqueBy,
};

use crate::Subject;
use crate::scene::{ME, Scene, done, ids, job, labels, queue, retry_after};

impl Scene<'_> {
    /// Spreads new jobs of a queue over so many shards.
    async fn spread(&self, name: &str, shards: i64) {
        let shards = ShardCount::new(shards).expect("1 to 64");
        let settings = self.store().queue_settings(&queue(name)).await.expect("queue_settings");
        let settings = settings.with_enqueue_shards(shards);
        self.store().configure_queue(&queue(name), &settings).await.expect("configure_queue");
    }

    /// Claims until nothing is eligible, in calls of changing sizes.
    async fn drain_queue(&self, name: &str) -> Vec<ClaimedJob> {
        let mut jobs = Vec::new();
        for size in [1, 7, 2, 30, 3].into_iter().cycle() {
            let taken = self.claim(name, size).await;
            if taken.is_empty() {
                return jobs;
            }
            jobs.extend(taken);
        }
        jobs
    }
}

/// A job of the ordering key `key`, whose label is `key.number`.
fn ordered(name: &str, key: &str, number: usize) -> NewJob {
    job(name, &format!("{key}.{number}")).with_ordering_key(OrderingKey::new(key).expect("a case uses good keys"))
}

/// The numbers of the claimed jobs of each key, in the order in which they were handed out.
fn by_key(jobs: &[ClaimedJob]) -> BTreeMap<String, Vec<usize>> {
    let mut numbers: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for label in labels(jobs) {
        let (key, number) = label.rsplit_once('.').expect("a label has a key and a number");
        numbers.entry(key.to_owned()).or_default().push(number.parse().expect("a number"));
    }
    numbers
}

/// A queue for which nothing was set has the defaults; what is set is read back, for each queue its own, and may be set
/// before the first use of the queue.
pub async fn settings_are_kept_and_have_defaults(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let read = async |name: &str| scene.store().queue_settings(&queue(name)).await.expect("queue_settings");
    assert_eq!(read("email").await, QueueSettings::default());
    let settings = QueueSettings::default().with_enqueue_shards(ShardCount::MAX).with_dead_letter(false);
    for _ in 0..2 {
        scene.store().configure_queue(&queue("new"), &settings).await.expect("configure_queue");
        assert_eq!((read("new").await, read("email").await), (settings, QueueSettings::default()));
    }
    scene.spread("new", 1).await;
    assert_eq!(read("new").await, QueueSettings::default().with_dead_letter(false));
}

/// C6: jobs of one ordering key come in their order over however many shards, whether they were enqueued one by one, many in
/// one call, or for later, and whatever the sizes of claims (bug classes 34, 84).
pub async fn jobs_of_one_ordering_key_keep_their_order(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["q1", "q4", "q64"]).await;
    for (name, shards) in [("q1", 1), ("q4", 4), ("q64", 64)] {
        scene.spread(name, shards).await;
        let keys: Vec<String> = (0..9).map(|key| format!("customer {key}")).collect();
        let round = |number: usize| keys.iter().map(move |key| ordered(name, key, number)).collect::<Vec<_>>();
        for job in round(0) {
            scene.enqueue(&[job]).await;
        }
        scene.enqueue(&[round(1), round(2), round(3)].concat()).await;
        scene.enqueue(&(0..20).map(|n| job(name, &format!("any.{n}"))).collect::<Vec<_>>()).await;
        for job in round(4) {
            scene.enqueue(&[job]).await;
        }
        let taken = scene.drain_queue(name).await;
        assert_eq!(taken.len(), 9 * 5 + 20, "{shards} shards");
        let mut numbers = by_key(&taken);
        let mut any = numbers.remove("any").expect("jobs without a key are handed out as well");
        any.sort_unstable();
        assert_eq!(any, (0..20).collect::<Vec<_>>());
        for (key, numbers) in numbers {
            assert_eq!(numbers, [0, 1, 2, 3, 4], "{key} over {shards} shards");
        }
    }
}

/// C6: an ordered job stays in its lane: one that waits for its time, is retried or handed back comes behind, or again before,
/// the others of its key, never beside them (bug class 84).
pub async fn an_ordered_job_stays_in_its_lane(subject: &dyn Subject) {
    for shards in [1, 8] {
        let scene = Scene::open(subject, &["email"]).await;
        scene.spread("email", shards).await;
        let (minute, second) = (Duration::from_mins(1), Duration::from_secs(1));
        let later = ordered("email", "k", 9).with_run_at(RunAt::after(minute).expect("allowed"));
        scene.enqueue(&[later]).await;
        scene.enqueue(&(0..5).map(|number| ordered("email", "k", number)).collect::<Vec<_>>()).await;
        let first = scene.claim_one("email").await;
        scene.close_one(&first, retry_after(second)).await;
        let second_one = scene.claim_one("email").await;
        scene.close_one(&second_one, AttemptEnd::Release { delay: Duration::ZERO }).await;
        scene.pass(second * 2).await;
        scene.promote().await;
        scene.pass(minute).await;
        scene.promote().await;
        scene.enqueue(&[ordered("email", "k", 5)]).await;
        let taken = scene.drain_queue("email").await;
        assert_eq!(by_key(&taken)["k"], [1, 2, 3, 4, 0, 9, 5], "{shards} shards");
        scene.complete(&taken).await;
    }
}

/// C2, C6: a change of the number of shards strands nothing in either direction, and keys that do not move keep their order
/// through it (bug class 35).
pub async fn a_change_of_the_shards_strands_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let keys: Vec<String> = (0..24).map(|key| format!("customer {key}")).collect();
    let mut count = 0;
    for (number, shards) in [8, 2, 3, 1, 6].into_iter().enumerate() {
        scene.spread("email", shards).await;
        scene.enqueue(&keys.iter().map(|key| ordered("email", key, number)).collect::<Vec<_>>()).await;
        scene.enqueue_each("email", &["any.0", "any.1", "any.2"]).await;
        count += keys.len() + 3;
    }
    let taken = scene.drain_queue("email").await;
    assert_eq!(taken.len(), count);
    let numbers = by_key(&taken);
    let shard = |key: &str, shards| OrderingKey::new(key).expect("good").shard(ShardCount::new(shards).expect("good"));
    let stays = |key: &&String| [8, 2, 3, 6].iter().all(|shards| shard(key, *shards) == shard(key, 1));
    assert!(keys.iter().any(|key| stays(&key)), "some keys stay in the first shard");
    for key in keys.iter().filter(stays) {
        assert_eq!(numbers[key], [0, 1, 2, 3, 4], "{key}");
    }
}

/// C6: the priority goes before the shard: whatever is more urgent comes first from every shard (bug class 76).
pub async fn priorities_go_before_shards(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    scene.spread("email", 5).await;
    let new = |priority: i16| {
        let priority = Priority::new(priority).expect("1 to 4");
        (0..10).map(move |_| job("email", &priority.to_string()).with_priority(priority))
    };
    scene.enqueue(&new(3).chain(new(1)).chain(new(2)).collect::<Vec<_>>()).await;
    let taken = labels(&scene.drain_queue("email").await);
    assert!(taken.is_sorted() && taken.len() == 30, "{taken:?}");
}

/// C2: in a queue without a dead-letter queue a job that fails for good, by a fatal error or because its attempts are used
/// up, ends as failed, with its error; a change of the setting holds for jobs that fail from then on.
pub async fn a_queue_without_a_dead_letter_queue_files_what_failed(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    scene.set_dead_letter("email", false).await;
    let once = MaxAttempts::new(1).expect("one attempt");
    let jobs = scene.enqueue(&[job("email", "fatal"), job("email", "spent").with_max_attempts(once)]).await;
    let attempts = scene.claim("email", 2).await;
    scene.close_one(&attempts[0], AttemptEnd::Fail { error: ErrorText::new("fatal") }).await;
    scene.close_one(&attempts[1], retry_after(Duration::from_secs(1))).await;
    scene.expect(&[(jobs[0], JobState::Failed), (jobs[1], JobState::Failed)]).await;
    assert_eq!(scene.view(jobs[0]).await.error, Some(ErrorText::new("fatal")));
    let spent = scene.view(jobs[1]).await;
    assert_eq!((spent.error, spent.attempt), (Some(ErrorText::new("boom")), 1));
    let filed = scene.job_in_queue("email", "later").await;
    scene.set_dead_letter("email", true).await;
    scene.close_one(&filed, AttemptEnd::Fail { error: ErrorText::new("boom") }).await;
    let expected = [(jobs[0], JobState::Failed), (filed.receipt.job, JobState::Dead)];
    scene.expect(&expected).await;
}

/// C2: rescue goes the same way, from a slot and from a lease.
pub async fn rescued_jobs_are_filed_where_their_queue_says(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    scene.set_dead_letter("email", false).await;
    let once = MaxAttempts::new(1).expect("one attempt");
    let jobs =
        scene.enqueue(&[job("email", "a").with_max_attempts(once), job("email", "b").with_max_attempts(once)]).await;
    // The second is handed back, so that its next claim is a lease.
    let attempts = scene.claim("email", 2).await;
    scene.close_one(&attempts[1], AttemptEnd::Release { delay: Duration::ZERO }).await;
    assert_eq!(ids(&scene.claim("email", 2).await), jobs[1..]);
    let rescued = scene.rescue_after_silence(&[]).await;
    assert_eq!(rescued.attempts.iter().filter(|attempt| attempt.exhausted).count(), 2);
    scene.expect(&[(jobs[0], JobState::Failed), (jobs[1], JobState::Failed)]).await;
    scene.beat(ME).await;
}

/// A failed job that is retried has all its attempts again, is shown once, and may fail and be retried again.
pub async fn a_failed_job_can_be_tried_again(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    scene.set_dead_letter("email", false).await;
    let id = scene.enqueue_each("email", &["a"]).await[0];
    for round in 1..=3 {
        let attempt = scene.claim_one("email").await;
        assert_eq!((attempt.receipt.job, attempt.attempt, attempt.receipt.run_lease.get()), (id, 1, round));
        scene.close_one(&attempt, AttemptEnd::Fail { error: ErrorText::new("boom") }).await;
        scene.expect(&[(id, JobState::Failed)]).await;
        assert_eq!(scene.retry(&[id]).await, [done(JobState::Failed)]);
        scene.expect(&[(id, JobState::Ready)]).await;
        assert_eq!(scene.retry(&[id]).await, [Acted::Refused(Refusal::WrongState(JobState::Ready))]);
    }
    let attempt = scene.claim_one("email").await;
    scene.complete(&[attempt]).await;
    scene.expect(&[(id, JobState::Completed)]).await;
}

/// C4: of many retries of one failed job at once, one is carried out.
pub async fn a_failed_job_is_retried_once(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let id = scene.job_in(JobState::Failed).await;
    let jobs = [id];
    let answers = futures::future::join_all((0..6).map(|_| scene.retry(&jobs))).await;
    let carried_out = answers.iter().filter(|answers| answers[..] == [done(JobState::Failed)]).count();
    assert_eq!(carried_out, 1, "{answers:?}");
    scene.expect(&[(id, JobState::Ready)]).await;
}

/// C14: a failed job gives its key back and takes it again when it is retried, unless another holds it.
pub async fn a_failed_job_takes_its_key_again(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    scene.set_dead_letter("email", false).await;
    let unique = |label: &str| {
        let job = job("email", label);
        let key = UniqueBy::text("k").key_of(&job).expect("the text is good");
        job.with_unique(Unique::new(key))
    };
    let ask = async |label: &str| scene.store().enqueue(&[unique(label)]).await.expect("enqueue")[0];
    let failed = scene.enqueue(&[unique("failed")]).await[0];
    let fail = async || {
        let attempt = scene.claim_one("email").await;
        scene.close_one(&attempt, AttemptEnd::Fail { error: ErrorText::new("boom") }).await;
        attempt.receipt.job
    };
    assert_eq!(fail().await, failed);
    let next = ask("next").await;
    assert!(next.is_inserted(), "a failed job holds no key");
    assert_eq!(scene.retry(&[failed]).await, [Acted::Refused(Refusal::KeyTaken(next.id()))]);
    scene.expect(&[(failed, JobState::Failed), (next.id(), JobState::Ready)]).await;
    assert_eq!(fail().await, next.id());
    assert_eq!(scene.retry(&[failed]).await, [done(JobState::Failed)]);
    assert_eq!(ask("late").await, Enqueued::Duplicate(failed));
    let attempt = scene.claim_one("email").await;
    assert_eq!(attempt.receipt.job, failed);
    scene.complete(&[attempt]).await;
    assert!(ask("free").await.is_inserted());
    let both: [(JobId, JobState); 2] = [(failed, JobState::Completed), (next.id(), JobState::Failed)];
    scene.expect(&both).await;
}
