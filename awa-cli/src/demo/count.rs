//! How many jobs the workers have completed, as far as they have told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use awa_runtime::StatsHandle;

/// The count of one worker.
#[derive(Clone, Debug)]
pub(super) enum Count {
    /// Told through a pipe; what a killed worker did not come to tell is missing.
    Told(Arc<AtomicU64>),
    /// Read from a worker of this process.
    Read(StatsHandle),
}

impl Count {
    fn completed(&self) -> u64 {
        match self {
            Self::Told(count) => count.load(Ordering::Relaxed),
            Self::Read(stats) => stats.read().completed,
        }
    }
}

/// The counts of all workers.
#[derive(Clone, Debug)]
pub(super) struct Tally(pub(super) Arc<[Count]>);

impl Tally {
    /// Completed jobs, never more than there are: good for progress, not for proof.
    pub(super) fn completed(&self) -> u64 {
        self.0.iter().map(Count::completed).sum()
    }
}
