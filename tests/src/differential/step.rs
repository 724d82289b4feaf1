//! The steps of a history.

use std::time::Duration;

use awa_core::attempt::{AttemptEnd, ErrorText};
use awa_core::json::JsonText;
use awa_core::ring::RingKind;
use awa_core::store::{ClaimShape, PurgeScope};

/// How many queues a history uses.
pub(super) const QUEUES: u8 = 3;
/// The queue of several priorities and shards. The jobs of each other queue are in one lane: between lanes a claim may stop at
/// a limit of its own, and where it does is no promise, so that of this queue claims take all there is.
pub(super) const OF_LANES: u8 = 2;
/// So many kinds of jobs that queue has, by priority and ordering key.
pub(super) const LANES: u8 = 8;
/// How many transactions may be open at once.
pub(super) const TRANSACTIONS: usize = 3;
/// The processes that claim.
pub(super) const INSTANCES: std::ops::RangeInclusive<i64> = 1..=3;

/// One of those that came before, counted from the latest; it means something in every history with at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick(pub u8);

impl Pick {
    /// What it means among these.
    pub fn of<T>(self, all: &[T]) -> Option<&T> {
        let back = usize::from(self.0).checked_rem(all.len())?;
        all.get(all.len() - 1 - back)
    }
}

/// How an attempt ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Well.
    Complete,
    /// Well, with a result.
    CompleteWith,
    /// Badly, to be tried again at once.
    RetryNow,
    /// Badly, to be tried again later.
    RetryLater,
    /// To be run again later, uncharged.
    Snooze,
    /// Badly and for good.
    Fail,
    /// On demand.
    Cancel,
    /// Handed back, to run next.
    ReleaseNow,
    /// Handed back for a while.
    ReleaseLater,
    /// Until a callback comes.
    Park,
}

impl End {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Complete,
        Self::CompleteWith,
        Self::RetryNow,
        Self::RetryLater,
        Self::Snooze,
        Self::Fail,
        Self::Cancel,
        Self::ReleaseNow,
        Self::ReleaseLater,
        Self::Park,
    ];

    /// As a store takes it.
    ///
    /// # Panics
    ///
    /// Never: the texts are good.
    pub fn attempt_end(self) -> AttemptEnd {
        let soon = Duration::from_secs(10);
        let text = || ErrorText::new("so it ended");
        match self {
            Self::Complete => AttemptEnd::Complete,
            Self::CompleteWith => {
                AttemptEnd::CompleteWith { result: JsonText::new("result", "[1]").expect("the text is JSON") }
            }
            Self::RetryNow => AttemptEnd::Retry { delay: Duration::ZERO, error: text() },
            Self::RetryLater => AttemptEnd::Retry { delay: soon, error: text() },
            Self::Snooze => AttemptEnd::Snooze { delay: soon },
            Self::Fail => AttemptEnd::Fail { error: text() },
            Self::Cancel => AttemptEnd::Cancel { reason: text() },
            Self::ReleaseNow => AttemptEnd::Release { delay: Duration::ZERO },
            Self::ReleaseLater => AttemptEnd::Release { delay: soon },
            Self::Park => AttemptEnd::Park { timeout: 2 * soon },
        }
    }
}

/// One job to be enqueued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewStep {
    /// After so many seconds, or at once.
    pub delay: Option<u64>,
    /// The key, if it is unique.
    pub key: Option<u8>,
    /// The budget of attempts.
    pub max_attempts: i64,
    /// Its priority and ordering key in the queue that has several.
    pub lane: u8,
}

/// One call, or a few that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields say what they are")]
pub enum Step {
    /// Jobs in a transaction of their own.
    Enqueue { queue: u8, jobs: Vec<NewStep> },
    /// An application opens a transaction, or goes on with the one in this place, and enqueues.
    EnqueueIn { transaction: usize, queue: u8, jobs: Vec<NewStep> },
    /// It cancels jobs, but for those that an open transaction cancels already: for another one it would wait.
    CancelIn { transaction: usize, jobs: Vec<Pick> },
    /// It ends, if there is one.
    EndTransaction { transaction: usize, commit: bool },
    /// A worker claims so many jobs, or all there are.
    Claim { queue: u8, instance: i64, jobs: usize, deadline: bool, shape: ClaimShape },
    /// Attempts end, also such as have ended before.
    Close { attempts: Vec<(Pick, End)> },
    /// An attempt notes how far it has come, or that it is alive, or asks for a token.
    Note { attempt: Pick, progress: Option<u8>, callback: bool },
    /// Somebody calls back.
    Resume { token: Pick },
    /// A process shows that it lives.
    Beat { instance: i64 },
    /// A process says goodbye.
    Retire { instance: i64 },
    /// Time passes, through which one process beats without a pause, and ends what others left open.
    Rescue,
    /// Time passes.
    Pass { seconds: u64 },
    /// Due jobs become ready.
    Promote { limit: usize },
    /// An operator cancels jobs.
    Cancel { jobs: Vec<Pick> },
    /// An operator retries jobs.
    Retry { jobs: Vec<Pick> },
    /// An operator deletes jobs.
    Delete { jobs: Vec<Pick> },
    /// An operator moves jobs into a queue, but none out of the one with several lanes.
    Move { jobs: Vec<Pick>, queue: u8, lane: u8 },
    /// An operator removes what waits in a queue.
    Purge { queue: u8, scope: PurgeScope },
    /// An operator holds a queue back, or lets it go on.
    Pause { queue: u8, paused: bool },
    /// An operator gives a ring one slot more.
    Grow { ring: RingKind },
    /// A ring moves on.
    Rotate { ring: RingKind },
    /// Slots are marked, emptied of what little keeps them, reclaimed.
    Reclaim { drain: bool, unpin: bool, prune: Option<RingKind>, patient: bool },
    /// What is left over is put in order.
    Tidy,
}
