//! The shapes that an attempt can have, and the ways in which it can end: what races over attempts go through.

use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::ring::RingKind;
use awa_core::store::{ClaimRequest, ClaimShape, Consumer};
use awa_core::unpin::UnpinPolicy;
use awa_core::{AttemptEnd, ClaimedJob, JsonText};

use crate::stage::Stage;

/// A minute.
pub const MINUTE: Duration = Duration::from_mins(1);
/// Frees as many slots as may be.
pub const UNPIN: UnpinPolicy = UnpinPolicy { min_free: u8::MAX, max_rows: 500, max_attempts: 100 };

/// How the attempts of a race are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A compact claim of one member, which is closed by a unique key.
    Single,
    /// A compact claim of three members, which is closed by ranges.
    Wide,
    /// Three row-local claims.
    RowLocal,
    /// Three leases, claimed from what was handed back.
    Lease,
}

impl Shape {
    /// All shapes.
    pub const ALL: [Self; 4] = [Self::Single, Self::Wide, Self::RowLocal, Self::Lease];

    /// How many attempts [`claim`](Self::claim) makes.
    pub const fn members(self) -> usize {
        if matches!(self, Self::Single) { 1 } else { 3 }
    }

    /// New jobs, claimed in this shape.
    ///
    /// # Panics
    /// When something else waits in the queue.
    pub async fn claim(self, stage: &Stage, deadline: Option<Duration>) -> Vec<ClaimedJob> {
        let ids = stage.enqueue(self.members()).await;
        if self == Self::Lease {
            let first = stage.claim(ids.len()).await;
            stage.end(&first, AttemptEnd::Release { delay: Duration::ZERO }).await;
        }
        let shape = if self == Self::RowLocal { ClaimShape::RowLocal } else { ClaimShape::Compact };
        let request = ClaimRequest { deadline, shape, ..stage.request(ids.len()) };
        let jobs = stage.store().claim(&request).await.expect("claim").jobs;
        assert_eq!(jobs.iter().map(|job| job.receipt.job).collect::<Vec<_>>(), ids, "{self:?}");
        jobs
    }
}

/// Every way in which a worker ends an attempt, and the state in which its job is then. What is put off stays so for an hour.
pub fn every_end() -> Vec<(AttemptEnd, &'static str)> {
    let hour = Duration::from_hours(1);
    let error = || ErrorText::new("boom");
    let result = JsonText::new("result", "1").expect("a test uses good JSON");
    vec![
        (AttemptEnd::Complete, "completed"),
        (AttemptEnd::CompleteWith { result }, "completed"),
        (AttemptEnd::Retry { delay: hour, error: error() }, "deferred"),
        (AttemptEnd::Snooze { delay: hour }, "deferred"),
        (AttemptEnd::Fail { error: error() }, "dead"),
        (AttemptEnd::Cancel { reason: error() }, "cancelled"),
        (AttemptEnd::Release { delay: hour }, "deferred"),
        (AttemptEnd::Release { delay: Duration::ZERO }, "ready"),
        (AttemptEnd::Park { timeout: hour }, "waiting"),
    ]
}

/// Attempts of this shape that keep the oldest slot of each ring, when no slot is free any more: the next unpinning moves them.
///
/// # Panics
/// When something waits in the queue that goes before the jobs that take the rings around.
pub async fn pinned(stage: &Stage, shape: Shape) -> Vec<ClaimedJob> {
    let running = shape.claim(stage, None).await;
    for _ in 0..3 {
        let passing = Shape::Single.claim(stage, None).await;
        stage.complete(&passing).await;
        for ring in [RingKind::Queue, RingKind::Claim] {
            stage.rotate(ring).await;
        }
    }
    running
}

/// Turns the rings, and tells how many slots beside the open ones are in use then.
pub async fn slots_kept(stage: &Stage) -> usize {
    stage.rotate(RingKind::Queue).await;
    stage.rotate(RingKind::Claim).await;
    stage.drain().await;
    let mut kept = 0;
    for ring in [RingKind::Claim, RingKind::Queue, RingKind::Claim, RingKind::Queue] {
        kept = stage.prune(ring).await.iter().filter(|report| report.kept.is_some()).count();
    }
    kept
}
