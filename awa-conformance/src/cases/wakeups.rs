//! Hints that work exists.

use std::time::Duration;

use awa_core::store::{Claimed, SleepTicket, Wakeups, Woken};

use crate::Subject;
use crate::scene::{ME, OTHER, Scene, labels, queue};

/// Long enough for a hint that comes.
const SOON: Duration = Duration::from_secs(20);
/// Long enough to see that no hint comes.
const QUIET: Duration = Duration::from_millis(150);
/// Looks at a horizon that others in the same database may hold back for a moment.
const LOOKS: usize = 500;

impl Scene<'_> {
    fn wakeups(&self) -> &dyn Wakeups {
        self.store().wakeups().expect("the subject declares wake-ups")
    }

    async fn announce(&self) -> SleepTicket {
        let ticket = self.wakeups().announce(ME, &[queue("email")]).await.expect("announce");
        assert!(ticket.announced, "the subject declares wake-ups");
        ticket
    }

    async fn hint_within(&self, at_most: Duration) -> bool {
        match self.wakeups().wait(ME, at_most).await.expect("wait") {
            Woken::Nothing => false,
            woken => {
                assert_eq!(woken, Woken::Queues(vec![queue("email")]), "only what was announced");
                true
            }
        }
    }

    async fn look(&self) -> Claimed {
        self.claim_once(&self.request("email", 10)).await
    }

    /// Looks until an empty claim proves that sleep is sound.
    async fn fall_asleep(&self, ticket: SleepTicket) {
        for _ in 0..LOOKS {
            let claimed = self.look().await;
            assert_eq!(claimed.jobs, [], "there is nothing to do");
            if claimed.horizon >= ticket.sound_from {
                return;
            }
            self.hint_within(Duration::from_millis(10)).await;
        }
        panic!("the horizon does not reach {ticket:?}");
    }
}

/// C13: a sleeper whose sleep is sound is woken by the next commit, and not before it (bug classes 23, 104).
pub async fn a_commit_wakes_a_sleeper(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let ticket = scene.announce().await;
    scene.fall_asleep(ticket).await;
    let (transaction, ids) = scene.begin_with("email", &["a"]).await;
    assert!(!scene.hint_within(QUIET).await, "nothing is committed yet");
    scene.commit(transaction, &ids).await;
    assert!(scene.hint_within(SOON).await);
    assert_eq!(labels(&scene.claim("email", 10).await), ["a"]);
    scene.wakeups().withdraw(ME, &[queue("email")]).await.expect("withdraw");
}

/// C13: a wake-up that comes before anybody waits for it is kept for the next wait.
pub async fn a_wake_up_before_the_wait_is_kept(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let ticket = scene.announce().await;
    scene.fall_asleep(ticket).await;
    scene.enqueue_each("email", &["a"]).await;
    assert!(scene.hint_within(SOON).await);
}

/// C13, C9: a rollback wakes nobody.
pub async fn a_rollback_wakes_nobody(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let ticket = scene.announce().await;
    scene.fall_asleep(ticket).await;
    let (transaction, _) = scene.begin_with("email", &["never"]).await;
    transaction.rollback().await.expect("rollback");
    assert!(!scene.hint_within(QUIET).await);
    scene.enqueue_each("email", &["a"]).await;
    assert!(scene.hint_within(SOON).await, "and takes nothing from the next commit");
}

/// C13: a transaction that wrote before the announcement may commit without a hint; until it has ended, no claim says
/// that sleep is sound.
pub async fn sleep_is_not_sound_while_an_older_writer_is_open(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let (transaction, ids) = scene.begin_with("email", &["a"]).await;
    let ticket = scene.announce().await;
    for _ in 0..3 {
        let claimed = scene.look().await;
        assert_eq!(claimed.jobs, []);
        assert!(claimed.horizon < ticket.sound_from, "a writer is open that did not hear the announcement");
    }
    scene.commit(transaction, &ids).await;
    assert_eq!(labels(&scene.claim("email", 10).await), ["a"], "a poll finds what no hint told");
    scene.fall_asleep(ticket).await;
}

/// C13: horizons grow, so that a dispatcher that polls falls asleep in the end, and again after each wake-up.
pub async fn a_dispatcher_falls_asleep_again_and_again(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let mut last = None;
    for round in 0..5 {
        let ticket = scene.announce().await;
        assert!(last.is_none_or(|last| ticket.sound_from > last), "tickets grow");
        last = Some(ticket.sound_from);
        scene.fall_asleep(ticket).await;
        let label = round.to_string();
        scene.enqueue_each("email", &[&label]).await;
        assert!(scene.hint_within(SOON).await, "round {round}");
        scene.wakeups().withdraw(ME, &[queue("email")]).await.expect("withdraw");
        assert_eq!(labels(&scene.claim("email", 10).await), [label]);
    }
}

/// C13: who withdrew is not missed: a commit goes through, and the job is there for the next claim.
pub async fn a_withdrawn_dispatcher_finds_its_jobs_by_asking(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    scene.announce().await;
    scene.wakeups().withdraw(ME, &[queue("email")]).await.expect("withdraw");
    scene.wakeups().withdraw(ME, &[queue("email")]).await.expect("a second withdrawal is harmless");
    scene.enqueue_each("email", &["a"]).await;
    assert_eq!(labels(&scene.claim_next("email", 10).await), ["a"]);
}

/// C13: one announcement for many queues wakes for each of them; a look at all of them proves the sleep of each as a claim
/// does.
pub async fn a_process_sleeps_over_many_queues_at_once(subject: &dyn Subject) {
    let names: Vec<_> = (0..100).map(|number| queue(&format!("q{number}"))).collect();
    let scene = Scene::open(subject, &["q0", "q7", "q99"]).await;
    let ticket = scene.wakeups().announce(ME, &names).await.expect("announce");
    assert!(ticket.announced);
    let mut sound = false;
    for _ in 0..LOOKS {
        let peeked = scene.store().peek(&names).await.expect("peek");
        assert_eq!(peeked.waiting, vec![false; names.len()]);
        sound = peeked.horizon >= ticket.sound_from;
        if sound {
            break;
        }
        scene.wakeups().wait(ME, Duration::from_millis(10)).await.expect("wait");
    }
    assert!(sound, "the horizon does not reach {ticket:?}");
    for name in ["q99", "q0", "q7"] {
        scene.enqueue_each(name, &["a"]).await;
        let woken = scene.wakeups().wait(ME, SOON).await.expect("wait");
        let Woken::Queues(queues) = woken else { panic!("{woken:?}") };
        assert!(queues.contains(&queue(name)), "{name} among {queues:?}");
        assert_eq!(labels(&scene.claim(name, 10).await), ["a"]);
    }
    scene.wakeups().withdraw(ME, &names).await.expect("withdraw");
}

/// C13: processes on one store hear and withdraw each for itself.
pub async fn processes_sleep_each_for_itself(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email", "video"]).await;
    let both = [queue("email"), queue("video")];
    scene.wakeups().announce(OTHER, &both).await.expect("announce");
    let ticket = scene.announce().await;
    scene.fall_asleep(ticket).await;
    scene.wakeups().withdraw(OTHER, &both).await.expect("withdraw");
    scene.enqueue_each("email", &["a"]).await;
    assert!(scene.hint_within(SOON).await, "another one's withdrawal takes nothing away");
    let woken = scene.wakeups().wait(OTHER, QUIET).await.expect("wait");
    assert_eq!(woken, Woken::Nothing, "who withdrew hears nothing");
}
