use serde::{Deserialize, Serialize};

/// Which jobs of a queue a purge removes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum PurgeScope {
    /// Those that are ready.
    #[default]
    Ready,
    /// Those that are ready and those that are deferred.
    ReadyAndDeferred,
}

/// What a purge did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Purged {
    /// Jobs that were removed.
    pub jobs: u64,
    /// Whether something was left because somebody else was changing it at that moment; ask again.
    pub contended: bool,
}
