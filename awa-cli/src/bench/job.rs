//! The job that is measured: it says when it was due, and does nothing.

use awa_runtime::Job;
use serde::{Deserialize, Serialize};

/// A moment of a run: microseconds since its epoch.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[serde(transparent)]
pub(super) struct Moment(pub(super) u64);

/// The first moment of a run. With thirteen digits from here on, arguments keep their length for longer than any run.
pub(super) const EPOCH: Moment = Moment(1_000_000_000_000);

/// The arguments: as long as asked for.
#[derive(Serialize, Deserialize, Clone, Debug, Job)]
#[job(kind = "noop", queue = "bench")]
pub(super) struct Noop {
    /// When it was due to be enqueued.
    pub(super) due: Moment,
    /// What fills the arguments up to their length.
    pub(super) pad: String,
}

/// The length of the arguments without padding: `{"due":1000000000000,"pad":""}`.
const BARE: usize = 30;

/// What fills arguments up to `bytes`.
pub(super) fn padding(bytes: u32) -> String {
    "x".repeat((bytes as usize).saturating_sub(BARE))
}

#[cfg(test)]
mod tests {
    use awa_runtime::IntoNewJob;

    use super::*;

    #[test]
    fn arguments_are_as_long_as_asked_for() {
        for bytes in [31, 60, 1_000] {
            let job = Noop { due: EPOCH, pad: padding(bytes) }.into_new_job().unwrap();
            assert_eq!(job.args().as_str().len(), bytes as usize);
        }
    }
}
