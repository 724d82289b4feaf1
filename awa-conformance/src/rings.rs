//! Turning rings, for the cases.

use std::time::Duration;

use awa_core::JobState;
use awa_core::id::Slot;
use awa_core::prune::KeepReason;
use awa_core::ring::{RingKind, RotationPolicy};
use awa_core::store::{PruneReport, RetentionPolicy, Rotated, Unpinned};
use awa_core::unpin::UnpinPolicy;

use crate::scene::{Scene, job};

/// Every rotation that has something to seal is due.
pub(crate) const AT_ONCE: RotationPolicy = RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 };
/// History keeps no slot.
pub(crate) const NO_HISTORY: RetentionPolicy = RetentionPolicy::NONE;
/// History keeps its slot for a quarter of an hour, however large it is.
pub(crate) const QUARTER_HOUR: RetentionPolicy = RetentionPolicy::uniform(Duration::from_mins(15), u64::MAX);
/// The queue of the jobs that only make the rings turn.
const FILLER: &str = "filler";

impl Scene<'_> {
    /// One rotation of a ring, due at once.
    pub(crate) async fn rotate(&self, ring: RingKind) -> Rotated {
        self.store().rotate(ring, &AT_ONCE).await.expect("rotate")
    }

    /// Seals the open slot of the queue ring, which must not be empty, and opens the next.
    pub(crate) async fn seal_queue_slot(&self) {
        let rotated = self.rotate(RingKind::Queue).await;
        assert!(matches!(rotated, Rotated::Opened(..)), "{rotated:?}");
    }

    /// One pruning pass over a ring.
    pub(crate) async fn prune(&self, ring: RingKind, retention: &RetentionPolicy) -> Vec<PruneReport> {
        self.store().prune(ring, retention).await.expect("prune")
    }

    /// One pass of everything that reclaims.
    pub(crate) async fn reclaim(&self, retention: &RetentionPolicy) {
        self.store().drain().await.expect("drain");
        self.prune(RingKind::Queue, retention).await;
        self.prune(RingKind::Claim, retention).await;
        self.prune(RingKind::Lease, retention).await;
    }

    /// Moves out what little keeps the oldest slots.
    pub(crate) async fn unpin(&self) -> Unpinned {
        self.store().unpin(&UnpinPolicy::default()).await.expect("unpin")
    }

    /// Seals the open slot of the queue ring after a small job has come and gone in it.
    pub(crate) async fn seal_queue_slot_with(&self, label: &str) {
        self.store().open_queue(&crate::scene::queue(FILLER)).await.expect("open_queue");
        self.store().enqueue(&[job(FILLER, label)]).await.expect("enqueue");
        let fillers = self.claim(FILLER, 10).await;
        self.complete(&fillers).await;
        self.seal_queue_slot().await;
    }

    /// One small job comes and goes, both rings turn if they can, and what is spent is reclaimed.
    pub(crate) async fn turn(&self, retention: &RetentionPolicy) -> [Rotated; 2] {
        self.store().enqueue(&[job(FILLER, "filler")]).await.expect("enqueue");
        self.store().open_queue(&crate::scene::queue(FILLER)).await.expect("open_queue");
        let fillers = self.claim(FILLER, 10).await;
        self.complete(&fillers).await;
        let rotated = [self.rotate(RingKind::Queue).await, self.rotate(RingKind::Claim).await];
        self.rotate(RingKind::Lease).await;
        self.reclaim(retention).await;
        rotated
    }

    /// Turns until each ring could have gone around twice.
    pub(crate) async fn wrap_twice(&self, retention: &RetentionPolicy) {
        let slots = self.slots(RingKind::Queue).max(self.slots(RingKind::Claim));
        for _ in 0..2 * usize::from(slots) {
            self.turn(retention).await;
        }
    }

    /// The slots of a ring that a pass without retention keeps, with the reasons.
    pub(crate) async fn kept(&self, ring: RingKind) -> Vec<(Slot, KeepReason)> {
        self.store().drain().await.expect("drain");
        let reports = self.prune(ring, &NO_HISTORY).await;
        reports.into_iter().filter_map(|report| report.kept.map(|reason| (report.slot, reason))).collect()
    }

    /// Checks that both rings turn freely and that nothing keeps a slot but the open one.
    pub(crate) async fn expect_all_reclaimed(&self) {
        self.reclaim(&NO_HISTORY).await;
        for _ in 0..2 {
            let rotated = self.turn(&NO_HISTORY).await;
            assert!(rotated.iter().all(|rotated| matches!(rotated, Rotated::Opened(..))), "{rotated:?}");
        }
        let census = self.store().census().await.expect("census");
        let waiting: u64 = census.iter().filter(|count| count.state == JobState::Waiting).map(|count| count.jobs).sum();
        for ring in RingKind::ALL {
            let mut kept = self.kept(ring).await;
            if ring == RingKind::Lease {
                // A parked attempt keeps the slot of its lease until that is moved on.
                let mut left = waiting;
                kept.retain(|(_, reason)| {
                    let parked = if let KeepReason::Leases(leases) = reason { *leases } else { u64::MAX };
                    let is_parked = parked <= left;
                    left = left.saturating_sub(parked);
                    !is_parked
                });
            }
            assert_eq!(kept, [], "slots of the {ring} ring are not reclaimed");
        }
    }
}
