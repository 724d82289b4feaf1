//! A row of a cursor that was changed by hand: claims of its lane stop with an error that names it, and nothing is guessed.

use std::time::Duration;

use awa_core::StoreErrorKind;
use awa_core::doctor::Severity;
use awa_core::ring::RotationPolicy;
use awa_core::store::{Consumer, Maintainer, Producer, RetentionPolicy};
use awa_core::{JobKind, JsonText, NewJob, QueueName};
use awa_store_sqlx::DoctorOptions;
use awa_tests::stage::{Stage, run, texts};

/// What is done to the ledger of a lane that has two rows, and what the error says of it.
const DAMAGES: [(&str, &str, &str); 7] = [
    ("a snapshot of the future", "UPDATE %t SET seen = '1:99999999999:' WHERE %l AND seq = 2", "have not begun"),
    ("lost parts", "UPDATE %t SET part_jobs = '{}' WHERE %l AND seq = 2", "part_xids and part_jobs differ in length"),
    ("no parts", "UPDATE %t SET part_xids = NULL WHERE %l AND seq = 2", "part_xids and part_jobs differ in length"),
    (
        "leases of others",
        "UPDATE %t SET run_leases = ARRAY[0, 0, 0] WHERE %l AND seq = 2",
        "job_ids and run_leases differ",
    ),
    ("a batch without jobs", "UPDATE %t SET job_ids = NULL WHERE %l AND seq = 2", "it has a batch and not its jobs"),
    ("a gap", "DELETE FROM %t WHERE %l AND seq = 1", "the row before it is missing"),
    ("a jump", "UPDATE %t SET seq = 7 WHERE %l AND seq = 2", "the row before it is seq 1"),
];

#[tokio::test]
async fn claims_stop_at_a_damaged_cursor_and_name_it() {
    let stage = Stage::new().await;
    let other = QueueName::new("other").unwrap();
    stage.store().open_queue(&other).await.unwrap();
    for _ in 0..2 {
        stage.enqueue(3).await;
        assert_eq!(stage.claim_once(2).await.jobs.len(), 2);
    }
    let ledger = "awa.ready_claim_attempt_batches_0";
    let lane = stage.number("SELECT awa.lane_id('races', 2::smallint, 0::smallint)").await;
    assert_eq!(stage.number(&format!("SELECT max(seq) FROM {ledger} WHERE lane_id = {lane}")).await, 2);
    let of_lane = format!("lane_id = {lane}");
    let mut hand = stage.connect().await;
    for (name, damage, fault) in DAMAGES {
        run(
            &mut hand,
            &format!(
                "CREATE TABLE kept AS SELECT * FROM {ledger}; {}",
                damage.replace("%t", ledger).replace("%l", &of_lane)
            ),
        )
        .await;
        let seq = if name == "a jump" { 7 } else { 2 };
        let error = stage.store().claim(&stage.request(10)).await.expect_err(name);
        assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{name}: {error}");
        let place = format!("the cursor of lane {lane} in queue slot 0 is damaged at seq {seq}");
        let text = error.to_string();
        assert!(text.contains(&place) && text.contains(fault), "{name}: {text}");
        // Other queues go on, and nothing was written for this one.
        let job = NewJob::new(other.clone(), JobKind::new("test").unwrap(), JsonText::new("args", "{}").unwrap());
        stage.store().enqueue(&[job]).await.unwrap();
        let request = awa_core::store::ClaimRequest { queue: other.clone(), ..stage.request(10) };
        assert_eq!(stage.store().claim(&request).await.unwrap().jobs.len(), 1, "{name}");
        let written = format!("SELECT count(*)::text FROM {ledger} WHERE lane_id = {lane} AND seq NOT IN (1, 2, 7)");
        assert_eq!(texts(&mut hand, &written).await, [Some("0".to_owned())], "{name}");
        let back = format!(
            "DELETE FROM {ledger} WHERE lane_id = {lane}; INSERT INTO {ledger} SELECT * FROM kept
                            WHERE lane_id = {lane}; DROP TABLE kept"
        );
        run(&mut hand, &back).await;
    }
    assert_eq!(stage.claim(10).await.len(), 2, "as it was, it goes on where it stood");
}

/// The newest row of a lane as a whole: no row is left that could tell a claim of it, but the claims and the history can.
#[tokio::test]
async fn the_doctor_misses_a_cursor_row_that_was_removed() {
    let options = DoctorOptions {
        queue_rotation: RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 },
        claim_rotation: RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 },
        lease_rotation: RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 },
        retention: RetentionPolicy::default(),
        wakeup_patience: Duration::from_secs(20),
    };
    for ends in [false, true] {
        let stage = Stage::new().await;
        stage.enqueue(3).await;
        for max_jobs in [1, 2] {
            let jobs = stage.claim_once(max_jobs).await.jobs;
            if ends {
                stage.complete(&jobs).await;
            }
        }
        let severity = async || {
            let report = stage.store().doctor(&options).await.unwrap();
            report
                .findings
                .into_iter()
                .find(|finding| finding.object == "cursors")
                .expect("they are looked at")
                .severity
        };
        assert_eq!(severity().await, Severity::Ok);
        let newest = "DELETE FROM awa.ready_claim_attempt_batches_0 WHERE seq = 2";
        run(&mut stage.connect().await, newest).await;
        assert_eq!(severity().await, Severity::Critical, "attempts that ended: {ends}");
    }
}
