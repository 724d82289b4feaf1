//! How much of everything.

use std::time::Duration;

/// The sizes of all measurements of a run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Jobs of a bulk enqueue, a drain and a saturation.
    pub jobs: u64,
    /// Jobs of one call of a bulk enqueue.
    pub batch: usize,
    /// Producers of a bulk enqueue and of a saturation, a connection each.
    pub producers: usize,
    /// How long single enqueues and steady loads are measured.
    pub length: Duration,
    /// How long a measurement may go on without any progress before it is given up.
    pub patience: Duration,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            jobs: 200_000,
            batch: 1_000,
            producers: 2,
            length: Duration::from_secs(4),
            patience: Duration::from_secs(30),
        }
    }
}
