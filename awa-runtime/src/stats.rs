use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use awa_core::AttemptEnd;

/// What a worker has done since its start. Every end is counted when the store has confirmed it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct WorkerStats {
    /// Jobs handed out by claims.
    pub claimed: u64,
    /// Attempts that ended well.
    pub completed: u64,
    /// Attempts that failed for good: fatal, or the budget was used up.
    pub failed: u64,
    /// Attempts that failed and are tried again.
    pub retried: u64,
    /// Attempts handed back uncharged: at shutdown, of an unknown kind, or by the self-audit.
    pub released: u64,
    /// Attempts that asked to be run later.
    pub snoozed: u64,
    /// Attempts that wait for a callback, or went on at once because it had come.
    pub parked: u64,
    /// Attempts whose handler cancelled the job.
    pub cancelled: u64,
    /// Ends that the store refused, because somebody else had ended the attempt or because the answer to an earlier
    /// call was lost.
    pub stale: u64,
    /// Jobs claimed for whose kind there is no handler; they are released.
    pub unknown_kind: u64,
    /// Handlers that panicked; their attempts also count as failed or retried.
    pub panicked: u64,
    /// Attempts in the hands of this process now: waiting, running, or with an end that is not confirmed yet.
    pub in_flight: u64,
}

/// Reads the counters of a running worker. Cheap to clone.
#[derive(Clone, Debug)]
pub struct StatsHandle(pub(crate) Arc<Counters>);

impl StatsHandle {
    /// The counters now. They are read one by one, not at one instant.
    pub fn read(&self) -> WorkerStats {
        self.0.read()
    }
}

macro_rules! counters {
    ($($name:ident),*) => {
        /// The counters behind a [`StatsHandle`].
        #[derive(Debug, Default)]
        pub(crate) struct Counters { $($name: AtomicU64,)* gone: AtomicU64 }

        impl Counters {
            pub(crate) fn read(&self) -> WorkerStats {
                // What has gone is read first, so that what is in flight never comes out below zero.
                let gone = self.gone.load(Ordering::Acquire);
                let mut stats = WorkerStats { in_flight: 0, $($name: self.$name.load(Ordering::Acquire)),* };
                stats.in_flight = stats.claimed.saturating_sub(gone);
                stats
            }
        }
    };
}

counters!(claimed, completed, failed, retried, released, snoozed, parked, cancelled, stale, unknown_kind, panicked);

impl Counters {
    pub(crate) fn add_claimed(&self, jobs: usize) {
        self.claimed.fetch_add(jobs as u64, Ordering::AcqRel);
    }

    pub(crate) fn add_unknown_kind(&self) {
        self.unknown_kind.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_panicked(&self) {
        self.panicked.fetch_add(1, Ordering::Relaxed);
    }

    /// Attempts that left the hands of this process.
    pub(crate) fn add_gone(&self, attempts: usize) {
        self.gone.fetch_add(attempts as u64, Ordering::AcqRel);
    }

    /// An end that the store confirmed, or refused as stale.
    pub(crate) fn add_end(&self, end: &AttemptEnd, closed: bool) {
        let counter = match end {
            _ if !closed => &self.stale,
            AttemptEnd::Complete | AttemptEnd::CompleteWith { .. } => &self.completed,
            AttemptEnd::Retry { .. } => &self.retried,
            AttemptEnd::Snooze { .. } => &self.snoozed,
            AttemptEnd::Park { .. } => &self.parked,
            AttemptEnd::Cancel { .. } => &self.cancelled,
            AttemptEnd::Release { .. } => &self.released,
            // An end that a later core adds is counted where an operator looks first.
            _ => &self.failed,
        };
        counter.fetch_add(1, Ordering::AcqRel);
    }
}
