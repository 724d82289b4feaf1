//! Turns of maintenance, and promotion in bounded steps.

use std::time::Duration;

use awa_core::store::{Promoted, Task};
use awa_core::{JobState, RunAt};

use crate::Subject;
use crate::scene::{Scene, job, labels};

/// C12: of many who ask, one per interval gets the turn of a task, and tasks do not share turns (bug classes 60, 61).
pub async fn one_caller_per_interval_gets_the_turn(subject: &dyn Subject) {
    let scene = Scene::open(subject, &[]).await;
    let every = Duration::from_mins(1);
    let ask = |task| async move { scene_turn(subject, task, every).await };
    let (first, second, third) = futures::join!(ask(Task::Promote), ask(Task::Promote), ask(Task::Promote));
    assert_eq!([first, second, third].into_iter().filter(|turn| *turn).count(), 1);
    for task in Task::ALL {
        assert_eq!(ask(task).await, task != Task::Promote, "{task:?}");
        assert!(!ask(task).await, "{task:?}");
    }
    scene.pass(Duration::from_secs(30)).await;
    assert!(!ask(Task::Rings).await, "half the interval is over");
    scene.pass(Duration::from_secs(31)).await;
    assert!(ask(Task::Rings).await);
    assert!(!ask(Task::Rings).await);
    scene.pass(Duration::from_mins(10)).await;
    assert!(ask(Task::Rings).await, "turns that nobody asked for");
    assert!(!ask(Task::Rings).await, "do not pile up");
}

async fn scene_turn(subject: &dyn Subject, task: Task, every: Duration) -> bool {
    subject.store().try_tick(task, every).await.expect("try_tick")
}

/// Promotion is bounded, says when there is more, and takes what is due longest first (bug class 144).
pub async fn promotion_is_bounded_and_says_when_there_is_more(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let after = |seconds| RunAt::after(Duration::from_secs(seconds)).expect("allowed");
    let new: Vec<_> = (0..7).rev().map(|n| job("email", &n.to_string()).with_run_at(after(60 + n * 60))).collect();
    scene.enqueue(&new).await;
    let late = scene.enqueue(&[job("email", "late").with_run_at(after(100_000))]).await[0];
    scene.pass(Duration::from_mins(8)).await;
    let promote = || async { scene.store().promote(3).await.expect("promote") };
    assert_eq!(promote().await, Promoted { jobs: 3, more: true });
    let mut taken = labels(&scene.claim("email", 10).await);
    taken.sort_unstable();
    assert_eq!(taken, ["0", "1", "2"]);
    assert_eq!(promote().await, Promoted { jobs: 3, more: true });
    assert_eq!(promote().await, Promoted { jobs: 1, more: false });
    assert_eq!(promote().await, Promoted { jobs: 0, more: false });
    scene.expect(&[(late, JobState::Deferred)]).await;
}

/// C5, C8: promotions at once move each job once (bug class 61).
pub async fn promotions_at_once_move_each_job_once(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let soon = RunAt::after(Duration::from_secs(1)).expect("allowed");
    let new: Vec<_> = (0..30).map(|n| job("email", &n.to_string()).with_run_at(soon)).collect();
    let mut expected = scene.enqueue(&new).await;
    scene.pass(Duration::from_secs(2)).await;
    let (one, two, three) = futures::join!(scene.promote(), scene.promote(), scene.promote());
    let rest = scene.promote().await;
    assert_eq!(one + two + three + rest, 30);
    let mut taken = crate::scene::ids(&scene.claim("email", 100).await);
    taken.sort_unstable();
    expected.sort_unstable();
    assert_eq!(taken, expected);
}

/// Dead jobs go when their time is over, longest dead first, in bounded steps; their keys are free, and no other job goes
/// with them (bug class 152).
pub async fn dead_jobs_go_when_their_time_is_over(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let hour = Duration::from_hours(1);
    let mut dead = Vec::new();
    for _ in 0..3 {
        dead.push((scene.job_in(JobState::Dead).await, JobState::Dead));
        scene.pass(Duration::from_mins(1)).await;
    }
    let others = [JobState::Ready, JobState::Running, JobState::Deferred, JobState::Completed, JobState::Cancelled];
    let mut kept = Vec::new();
    for state in others {
        kept.push((scene.job_in(state).await, state));
    }
    let forget = async |limit| scene.store().forget_dead(hour, limit).await.expect("forget_dead");
    assert_eq!(forget(10).await, 0, "they are too young");
    scene.pass(hour).await;
    kept.push((scene.job_in(JobState::Dead).await, JobState::Dead));
    assert_eq!(forget(2).await, 2);
    scene.expect(&[&dead[2..], &kept[..]].concat()).await;
    assert_eq!((scene.state(dead[0].0).await, scene.state(dead[1].0).await), (None, None));
    assert_eq!((forget(2).await, forget(2).await), (1, 0));
    let left = scene.expect(&kept).await;
    assert_eq!(left.len(), kept.len());
}
