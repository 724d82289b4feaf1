//! Which sealed slots a claim leaves out, stepped by hand on real PostgreSQL: those that hold nothing for it, and nothing else is
//! left out.

use awa_core::id::Slot;
use awa_core::ring::RingKind;
use awa_core::store::{Maintainer, Producer};
use awa_core::{JobId, NewJob, Priority, QueueName};
use awa_pg::RingSizes;
use awa_tests::halt::replace_in;
use awa_tests::stage::{Stage, run, texts};
use sqlx::PgConnection;

const LANES: &str = "SELECT coalesce(cardinality(lanes), -1)::bigint FROM awa.queue_ring_slots WHERE slot = ";
const LOOKED_AT: &str = "SELECT substring(relation::regclass::text FROM '[0-9]+$') FROM pg_locks \
    WHERE pid = pg_backend_pid() AND relation::regclass::text ~ '^awa\\.ready_entries_[0-9]+$' ORDER BY 1";

fn claim_of(queue: &str, jobs: usize) -> String {
    format!("SELECT unnest(c.job_ids)::text FROM awa.claim_jobs('{queue}', 7, 7, {jobs}, 1000000) AS c")
}

/// A job of another queue, which somebody has served before.
async fn job_of(stage: &Stage, queue: &str) -> NewJob {
    let queue = QueueName::new(queue).unwrap();
    stage.store().open_queue(&queue).await.unwrap();
    stage.job("{}").with_queue(queue)
}

/// Claims in a transaction that is kept, and says in which slots it looked.
async fn slots_looked_at(connection: &mut PgConnection, queue: &str, jobs: usize) -> (usize, Vec<String>) {
    run(connection, "BEGIN").await;
    let claimed = texts(connection, &claim_of(queue, jobs)).await.len();
    let slots = texts(connection, LOOKED_AT).await.into_iter().flatten().collect();
    run(connection, "COMMIT").await;
    (claimed, slots)
}

/// A slot whose writers have ended tells which lanes it has; before, anything may come.
#[tokio::test]
async fn the_lanes_of_a_slot_are_known_when_its_writers_have_ended() {
    let stage = Stage::new().await;
    stage.enqueue(1).await;
    let of_first = format!("{LANES}0");
    let (mut producer, mut worker) = (stage.connect().await, stage.connect().await);
    run(&mut producer, "BEGIN").await;
    let late = stage.store().enqueue_in(&mut producer, &[job_of(&stage, "late").await]).await.unwrap()[0].id();
    stage.drain().await;
    assert_eq!(stage.number(&of_first).await, -1, "it is open");
    stage.rotate(RingKind::Queue).await;
    stage.drain().await;
    assert_eq!(stage.number(&of_first).await, -1, "a writer is in it");
    run(&mut producer, "COMMIT").await;
    // Claims find what came late before maintenance has looked.
    assert_eq!(texts(&mut worker, &claim_of("late", 1)).await, [Some(late.to_string())]);
    stage.drain().await;
    assert_eq!(stage.number(&of_first).await, 2, "that of the queue, and the late one");
    assert_eq!(stage.claim(5).await.len(), 1);
}

/// What the lock is for: without it a lane that comes late is left out for ever.
#[tokio::test]
async fn without_the_lock_a_job_that_comes_late_is_lost() {
    async fn late_job_is_found(stage: &Stage) -> bool {
        stage.enqueue(1).await;
        let mut producer = stage.connect().await;
        run(&mut producer, "BEGIN").await;
        stage.store().enqueue_in(&mut producer, &[job_of(stage, "late").await]).await.unwrap();
        stage.rotate(RingKind::Queue).await;
        stage.drain().await;
        run(&mut producer, "COMMIT").await;
        stage.drain().await;
        texts(&mut stage.connect().await, &claim_of("late", 1)).await.len() == 1
    }
    assert!(late_job_is_found(&Stage::new().await).await, "the schema as it is");
    let stage = Stage::new().await;
    replace_in(&stage, "note_lanes", "IF NOT \"awa\".try_lock_queue_slot(p_slot, false) THEN", "IF false THEN").await;
    assert!(!late_job_is_found(&stage).await, "the mutant");
}

/// A claim locks the children it looks at. Of another queue's backlog it looks at the open slot alone.
#[tokio::test]
async fn a_claim_leaves_out_slots_that_hold_nothing_for_it() {
    let stage = Stage::new().await;
    let (mut worker, another) = (stage.connect().await, job_of(&stage, "another").await);
    for _ in 0..3 {
        stage.enqueue(2).await;
        stage.rotate(RingKind::Queue).await;
    }
    let all = ["0", "1", "2", "3"].map(str::to_owned);
    assert_eq!(slots_looked_at(&mut worker, "another", 5).await, (0, all.to_vec()), "nothing is known yet");
    stage.drain().await;
    assert_eq!(slots_looked_at(&mut worker, "another", 5).await, (0, vec!["3".to_owned()]));
    let another = stage.store().enqueue(&[another]).await.unwrap()[0].id();
    assert_eq!(texts(&mut worker, &claim_of("another", 5)).await, [Some(another.to_string())]);
    // Its own backlog: a claim takes from two slots, and looks into no more of those whose lanes are known.
    let (claimed, slots) = slots_looked_at(&mut worker, "races", 1).await;
    assert_eq!((claimed, slots), (1, ["0", "1", "3"].map(str::to_owned).to_vec()));
}

/// The lanes of one queue are looked for each by itself: one that was found twice is left out where the other is not known to be.
#[tokio::test]
async fn a_lane_that_was_found_twice_is_not_looked_for_again() {
    let stage = Stage::with_rings(RingSizes { queue: 8, claim: 3, lease: 3 }).await;
    let mut worker = stage.connect().await;
    let urgent = stage.job("{}").with_priority(Priority::new(1).unwrap());
    // The second lane is found for the second time in the third slot only.
    for has_urgent in [false, true, true, true, true] {
        stage.enqueue(1).await;
        if has_urgent {
            stage.store().enqueue(std::slice::from_ref(&urgent)).await.unwrap();
        }
        stage.rotate(RingKind::Queue).await;
        stage.drain().await;
    }
    let (claimed, slots) = slots_looked_at(&mut worker, "races", 1).await;
    assert_eq!((claimed, slots), (1, ["0", "1", "2", "5"].map(str::to_owned).to_vec()));
}

/// A slot of many lanes may have any, and is not looked at again.
#[tokio::test]
async fn the_lanes_of_a_slot_are_not_noted_when_they_are_many() {
    const QUEUES: usize = 65;
    let stage = Stage::new().await;
    let mut jobs = Vec::new();
    for number in 0..QUEUES {
        jobs.push(job_of(&stage, &format!("many_{number}")).await);
    }
    stage.store().enqueue(&jobs).await.unwrap();
    stage.rotate(RingKind::Queue).await;
    let looks = "SELECT count(*) FROM awa.queue_ring_slots WHERE has_noted_lanes AND lanes IS NULL";
    assert_eq!(stage.number(looks).await, 0);
    stage.drain().await;
    assert_eq!(stage.number(looks).await, 1);
    let of_slot =
        "SELECT awa.note_lanes(0::smallint, generation)::int::bigint FROM awa.queue_ring_slots WHERE slot = 0";
    assert_eq!(stage.number(of_slot).await, 0, "it was noted before");
    let last = format!("many_{}", QUEUES - 1);
    assert_eq!(texts(&mut stage.connect().await, &claim_of(&last, 5)).await.len(), 1);
}

/// However long the backlog, all of it comes, in its order, and no claim says that nothing is left before.
#[tokio::test]
async fn a_backlog_over_many_slots_comes_whole_and_in_order() {
    let stage = Stage::new().await;
    let mut ids: Vec<JobId> = Vec::new();
    for _ in 0..3 {
        ids.extend(stage.enqueue(3).await);
        stage.rotate(RingKind::Queue).await;
        stage.drain().await;
    }
    ids.extend(stage.enqueue(3).await);
    let mut claimed = Vec::new();
    loop {
        let answer = stage.claim_once(100).await;
        claimed.extend(answer.jobs.iter().map(|job| job.receipt.job));
        if !answer.more {
            break;
        }
        assert!(!answer.jobs.is_empty(), "more is said where nothing came");
    }
    assert_eq!(claimed, ids);
}

/// What is known of a slot ends with it: the next generation has other lanes.
#[tokio::test]
async fn nothing_is_known_of_a_slot_that_was_opened_again() {
    let stage = Stage::new().await;
    stage.enqueue(1).await;
    stage.rotate(RingKind::Queue).await;
    stage.drain().await;
    assert_eq!(stage.number(&format!("{LANES}0")).await, 1);
    let jobs = stage.claim(1).await;
    stage.complete(&jobs).await;
    stage.rotate(RingKind::Claim).await;
    assert_eq!(stage.drain().await.slots, [Slot(0)]);
    stage.outlive().await;
    stage.prune(RingKind::Claim).await;
    stage.prune(RingKind::Queue).await;
    while stage.number("SELECT last_value & 63 FROM awa.queue_ring_pointer").await != 0 {
        stage.store().enqueue(&[job_of(&stage, "filler").await]).await.unwrap();
        stage.rotate(RingKind::Queue).await;
    }
    assert_eq!(stage.number(&format!("{LANES}0")).await, -1);
}
