//! Races between producers and dispatchers that are asleep, stepped by hand on real PostgreSQL.

use std::time::{Duration, Instant};

use awa_core::store::{SleepTicket, Woken};
use awa_core::{ClaimedJob, JobId, Store};
use awa_tests::stage::{ME, Stage, run, texts};
use sqlx::PgConnection;
use sqlx::postgres::PgListener;

/// What a call that is a transaction of its own sends, so that it can be held open between its statement and its commit.
const ENQUEUE_ALONE: &str = "SELECT j::text FROM unnest(awa.enqueue_at_once('races', 2::smallint, 'test', ARRAY['{}'::json], 3::smallint, NULL, NULL, NULL)) AS j";
const SLEEP: &str = "SELECT pg_try_advisory_lock_shared(awa.wake_key(awa.wake_bucket('races')))::text";
const CHANNEL: &str = "SELECT awa.wake_channel()";
const PATIENCE: Duration = Duration::from_mins(1);

async fn enqueue_alone(connection: &mut PgConnection) -> Vec<JobId> {
    texts(connection, ENQUEUE_ALONE).await.into_iter().map(|id| JobId(id.unwrap().parse().unwrap())).collect()
}

/// Somebody who sleeps, and hears what is sent.
struct Sleeper {
    listener: PgListener,
    session: PgConnection,
    channel: String,
}

impl Sleeper {
    async fn on(stage: &Stage) -> Self {
        let mut session = stage.connect().await;
        assert_eq!(texts(&mut session, SLEEP).await, [Some("true".to_owned())]);
        let channel = texts(&mut session, CHANNEL).await.swap_remove(0).unwrap();
        let mut listener = PgListener::connect(&stage.fresh.database.url()).await.unwrap();
        listener.listen(&channel).await.unwrap();
        Self { listener, session, channel }
    }

    /// How many notifications were sent by now: they come in the order of their commits, and this sends one more.
    async fn heard(&mut self) -> usize {
        const END: &str = "end";
        run(&mut self.session, &format!("SELECT pg_notify('{}', '{END}')", self.channel)).await;
        let mut heard = 0;
        while self.listener.recv().await.unwrap().payload() != END {
            heard += 1;
        }
        heard
    }
}

/// Looks until the sleep is sound: other databases of the server have transactions as well.
async fn fall_asleep(stage: &Stage, ticket: SleepTicket) {
    let began = Instant::now();
    while stage.claim_once(10).await.horizon < ticket.sound_from {
        assert!(began.elapsed() < PATIENCE, "after {PATIENCE:?} the sleep is not sound");
    }
}

/// Transactions that notify commit one at a time. Of calls that overlap one does it for all.
#[tokio::test]
async fn of_calls_that_overlap_one_notifies() {
    let stage = Stage::new().await;
    let mut sleeper = Sleeper::on(&stage).await;
    let (mut first, mut second) = (stage.connect().await, stage.connect().await);
    run(&mut first, "BEGIN").await;
    enqueue_alone(&mut first).await;
    enqueue_alone(&mut second).await;
    assert_eq!(sleeper.heard().await, 0, "the second leaves it to the first");
    run(&mut first, "COMMIT").await;
    assert_eq!(sleeper.heard().await, 1, "once for both");
    assert_eq!(stage.claim(10).await.len(), 2);
    enqueue_alone(&mut second).await;
    assert_eq!(sleeper.heard().await, 1, "and again for the next");
    run(&mut second, "BEGIN").await;
    enqueue_alone(&mut second).await;
    run(&mut second, "ROLLBACK").await;
    assert_eq!(sleeper.heard().await, 0);
    enqueue_alone(&mut first).await;
    assert_eq!(sleeper.heard().await, 1, "who rolled back notifies for nobody, and keeps nobody from it");
}

/// In a transaction of the caller's anything may follow, so that nobody else can rely on its commit.
#[tokio::test]
async fn a_call_in_a_transaction_leaves_the_notification_to_nobody_and_takes_it_from_nobody() {
    let stage = Stage::new().await;
    let mut sleeper = Sleeper::on(&stage).await;
    let (mut first, mut second) = (stage.connect().await, stage.connect().await);
    run(&mut first, "BEGIN").await;
    stage.enqueue_in(&mut first, 1).await;
    enqueue_alone(&mut second).await;
    assert_eq!(sleeper.heard().await, 1, "a transaction that stays open keeps nobody from notifying");
    run(&mut second, "BEGIN").await;
    enqueue_alone(&mut second).await;
    run(&mut first, "COMMIT").await;
    assert_eq!(sleeper.heard().await, 1, "a transaction with more than one statement notifies itself");
    run(&mut second, "COMMIT").await;
    assert_eq!(sleeper.heard().await, 1);
}

/// A call left the notification to another and commits after it: who was woken must not fall asleep before.
#[tokio::test]
async fn who_was_woken_for_two_does_not_sleep_before_the_second_has_committed() {
    let stage = Stage::new().await;
    let wakeups = stage.store().wakeups().expect("the store has wake-ups");
    let queues = std::slice::from_ref(&stage.queue);
    let ticket = wakeups.announce(ME, queues).await.unwrap();
    assert!(ticket.announced);
    fall_asleep(&stage, ticket).await;
    let (mut first, mut second) = (stage.connect().await, stage.connect().await);
    run(&mut first, "BEGIN").await;
    let early = enqueue_alone(&mut first).await;
    run(&mut second, "BEGIN").await;
    let late = enqueue_alone(&mut second).await;
    run(&mut first, "COMMIT").await;
    let woken = wakeups.wait(ME, Duration::from_secs(10)).await.unwrap();
    assert_eq!(woken, Woken::Queues(vec![stage.queue.clone()]));
    let found = |jobs: Vec<ClaimedJob>| -> Vec<JobId> { jobs.iter().map(|job| job.receipt.job).collect() };
    assert_eq!(found(stage.claim(10).await), early);
    let ticket = wakeups.announce(ME, queues).await.unwrap();
    let look = stage.claim_once(10).await;
    assert_eq!(look.jobs, []);
    assert!(look.horizon < ticket.sound_from, "a writer is open that did not notify");
    run(&mut second, "COMMIT").await;
    assert_eq!(found(stage.claim(10).await), late);
}
