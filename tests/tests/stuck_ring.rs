//! A ring that cannot move on says so, and what keeps it.

use std::sync::Arc;
use std::time::Duration;

use awa_core::ring::{RingKind, RotationPolicy, StayReason};
use awa_core::store::RetentionPolicy;
use awa_runtime::{Maintenance, MaintenanceConfig, StuckRing};
use awa_tests::shapes::Shape;
use awa_tests::stage::Stage;

/// Ticks once, as if the turn of every task had come, behind a job that was done.
async fn turn(stage: &Stage, config: &MaintenanceConfig) -> Vec<StuckRing> {
    stage.complete(&Shape::Single.claim(stage, None).await).await;
    stage.fresh.clock.advance(Duration::from_mins(2));
    let maintenance = Maintenance::new(Arc::new(stage.store().clone()), config.clone()).unwrap();
    let report = maintenance.tick(Duration::from_secs(1)).await;
    assert!(report.failed.is_empty(), "{report:?}");
    report.stuck
}

/// F32: history is kept for longer than the ring takes to go around. The ring stands still, with all slots kept by history, and
/// maintenance reports it with their number; with a time that fits the ring turns for ever.
#[tokio::test]
async fn a_ring_whose_history_outlives_its_turn_is_reported() {
    let minute = Duration::from_mins(1);
    let mut config = MaintenanceConfig::default();
    config.queue_rotation = RotationPolicy { min_age: minute, max_bytes: u64::MAX };
    config.claim_rotation = config.queue_rotation;
    for (history, fits) in [(minute, true), (Duration::from_hours(24), false)] {
        let stage = Stage::with_manual_clock().await;
        config.retention =
            RetentionPolicy { completed: history, cancelled: history, max_bytes: u64::MAX, ..RetentionPolicy::NONE };
        let mut stuck = Vec::new();
        for _ in 0..8 {
            stuck = turn(&stage, &config).await;
            assert!(!fits || stuck.is_empty(), "{stuck:?}");
        }
        if !fits {
            let seen: Vec<_> = stuck.iter().map(|stuck| (stuck.ring, stuck.reason, stuck.retained)).collect();
            assert_eq!(seen, [(RingKind::Queue, StayReason::NoFreeSlot, 3)]);
        }
    }
}
