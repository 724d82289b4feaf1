//! Publications: what somebody who has the whole database copied elsewhere does to a queue in it.

use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::ring::{RingKind, RotationPolicy};
use awa_core::store::{AttemptNote, Attempts, Consumer, Maintainer, NoteAnswer, Operator, Producer, PurgeScope};
use awa_core::unique::{Unique, UniqueBy};
use awa_core::{ClosureAnswer, InstanceId, JobId};
use awa_tests::shapes::{Shape, UNPIN, every_end, pinned, slots_kept};
use awa_tests::stage::{RESCUER, STALENESS, Stage, run, steady_retry, texts};

const PUBLISH: &str = "SET client_min_messages = error; CREATE PUBLICATION everything FOR ALL TABLES";
/// Tables whose rows are neither changed nor deleted one by one, so that they need no names.
const APPENDED: &str = "^(ready_|receipt_|done_|lease_claim)";

/// F36: PostgreSQL refuses to change or delete a row of a published table that has no name for its rows. Every table that is
/// not only appended to has one, in each slot, also in those that were added.
#[tokio::test]
async fn every_table_whose_rows_change_names_its_rows() {
    let stage = Stage::new().await;
    for ring in RingKind::ALL {
        stage.store().grow_ring(ring, 6).await.unwrap();
    }
    let nameless = format!(
        "SELECT c.relname::text FROM pg_class AS c
         WHERE c.relnamespace = 'awa'::regnamespace AND c.relkind = 'r' AND c.relname !~ '{APPENDED}'
           AND NOT (c.relreplident = 'f' OR EXISTS (
               SELECT FROM pg_index AS i WHERE i.indrelid = c.oid
                 AND CASE c.relreplident WHEN 'd' THEN i.indisprimary ELSE i.indisreplident END))
         ORDER BY 1"
    );
    assert_eq!(texts(&mut stage.connect().await, &nameless).await, []);
}

/// Everything that is done to jobs, in each shape, until nothing but history is left.
async fn lives(stage: &Stage) {
    let store = stage.store();
    let key = |name: &str| UniqueBy::text(name).key_of(&stage.job("{}")).unwrap();
    for shape in Shape::ALL {
        for (way, _) in every_end() {
            let jobs = shape.claim(stage, None).await;
            let note = store.note(&[AttemptNote::heartbeat(jobs[0].receipt)]).await.unwrap();
            assert_eq!(note, [NoteAnswer::Noted { callback: None }]);
            assert!(stage.end(&jobs, way).await.iter().all(|answer| *answer == ClosureAnswer::Closed));
            let ids: Vec<JobId> = jobs.iter().map(|job| job.receipt.job).collect();
            store.retry(&ids).await.unwrap();
            store.cancel(&ids, &ErrorText::new("done with it")).await.unwrap();
            store.delete(&ids).await.unwrap();
        }
    }
    let unique = stage.job("{}").with_unique(Unique::new(key("one")));
    store.enqueue(&[unique]).await.unwrap();
    let held = stage.claim(1).await;
    let mut locker = stage.connect().await;
    run(&mut locker, "BEGIN; SELECT key FROM awa.unique_claims FOR UPDATE").await;
    // The key is left to the next tick, and so is the lane of a queue that nobody has opened.
    stage.complete(&held).await;
    run(&mut locker, "COMMIT").await;
    let elsewhere = awa_core::QueueName::new("elsewhere").unwrap();
    store.enqueue(&[stage.job("{}").with_queue(elsewhere.clone())]).await.unwrap();
    let asked = stage.enqueue(1).await;
    let mut user = stage.connect().await;
    run(&mut user, "BEGIN").await;
    store.cancel_in(&mut user, &asked, &ErrorText::new("no")).await.unwrap();
    run(&mut user, "COMMIT").await;
    store.tidy().await.unwrap();
    store.purge_queue(&elsewhere, PurgeScope::ReadyAndDeferred).await.unwrap();
    store.tidy().await.unwrap();
    let silent = Shape::Wide.claim(stage, None).await;
    stage.outlive().await;
    assert_eq!(store.rescue(&Stage::rescue_request(), &steady_retry()).await.unwrap().attempts.len(), silent.len());
    let ids: Vec<JobId> = silent.iter().map(|job| job.receipt.job).collect();
    store.cancel(&ids, &ErrorText::new("done with it")).await.unwrap();
    store.beat(RESCUER, STALENESS).await.unwrap();
    store.retire(InstanceId(0xA0)).await.unwrap();
}

/// F36: the same life beside a publication of all tables: nothing is refused, rings turn and are emptied, running jobs are
/// moved out of old slots, and rings grow.
#[tokio::test]
async fn a_publication_of_all_tables_is_in_nobodys_way() {
    let stage = Stage::with_manual_clock().await;
    run(&mut stage.connect().await, PUBLISH).await;
    lives(&stage).await;
    slots_kept(&stage).await;
    let running = pinned(&stage, Shape::Wide).await;
    assert_eq!(stage.store().unpin(&UNPIN).await.unwrap().evicted, running.len());
    for _ in 0..2 {
        stage.rotate(RingKind::Lease).await;
        stage.store().unpin(&UNPIN).await.unwrap();
        stage.prune(RingKind::Lease).await;
    }
    for ring in RingKind::ALL {
        stage.store().grow_ring(ring, 5).await.unwrap();
    }
    stage.complete(&running).await;
    slots_kept(&stage).await;
    assert_eq!(slots_kept(&stage).await, 0);
    stage.fresh.clock.advance(Duration::from_hours(48));
    stage.store().tidy().await.unwrap();
    let turned = "SELECT count(*) FROM awa.queue_ring_rotations";
    assert!(stage.number(turned).await >= 4, "the ring has turned");
}

/// The same where the rows of the slots have no name: the ring cannot turn, which is what the names are for.
#[tokio::test]
async fn a_publication_stops_a_ring_whose_slots_have_no_name() {
    let stage = Stage::new().await;
    let mut owner = stage.connect().await;
    run(&mut owner, "ALTER TABLE awa.queue_ring_slots REPLICA IDENTITY DEFAULT").await;
    run(&mut owner, PUBLISH).await;
    stage.complete(&Shape::Single.claim(&stage, None).await).await;
    let at_once = RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 };
    assert!(stage.store().rotate(RingKind::Queue, &at_once).await.is_err());
}
