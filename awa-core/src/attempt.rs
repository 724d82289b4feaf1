//! One attempt at a job: what a claim hands out, and how it ends.

use std::fmt;
use std::time::Duration;

use crate::id::{JobId, Nonce, ReceiptId, RunLease, Slot};
use crate::job::{MaxAttempts, Priority};
use crate::json::JsonText;
use crate::name::{JobKind, QueueName};
use crate::time::Timestamp;

/// What a worker must present to write anything about an attempt.
///
/// The first three are checked, and a receipt of which one does not fit the stored claim is stale: together they name one
/// attempt for ever, so that job and lease, which follow from them, are there for the reader.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Receipt {
    /// The attempt.
    pub id: ReceiptId,
    /// The claim-ring slot that holds the claim, or [`Slot::LEASED`]. A batch never changes its slot, and an attempt that
    /// goes on as a lease keeps its receipt.
    pub claim_slot: Slot,
    /// The random number of the claim call.
    pub nonce: Nonce,
    /// The job.
    pub job: JobId,
    /// The job's lease for this attempt.
    pub run_lease: RunLease,
}

/// A claimed job, as handed to a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedJob {
    /// What closes this attempt.
    pub receipt: Receipt,
    /// The queue it was claimed from.
    pub queue: QueueName,
    /// The kind.
    pub kind: JobKind,
    /// The arguments, byte for byte as enqueued.
    pub args: JsonText,
    /// The document attached at enqueue.
    pub metadata: Option<JsonText>,
    /// The priority it was enqueued with.
    pub priority: Priority,
    /// The number of this attempt, from 1; snoozes and releases are not counted.
    pub attempt: u32,
    /// The budget of attempts.
    pub max_attempts: MaxAttempts,
    /// When the job was enqueued.
    pub created_at: Timestamp,
    /// When this attempt was claimed, by the store's clock.
    pub claimed_at: Timestamp,
    /// When this attempt may be ended by the store, if it has a deadline.
    pub deadline_at: Option<Timestamp>,
}

/// The text of an error, cleaned and cut: no U+0000, at most [`Self::MAX_BYTES`] bytes.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct ErrorText(String);

impl ErrorText {
    /// The longest text that is kept, in bytes.
    pub const MAX_BYTES: usize = 8 * 1024;
    /// Stands at the end of a text that was cut.
    const CUT_MARK: &'static str = " [cut]";

    /// Keeps as much of `text` as a store can: U+0000 becomes U+FFFD, and what is beyond the limit is cut at a
    /// character boundary, visibly.
    pub fn new(text: impl AsRef<str>) -> Self {
        let text = text.as_ref();
        let mut kept = String::with_capacity(text.len().min(Self::MAX_BYTES));
        let limit = Self::MAX_BYTES - Self::CUT_MARK.len();
        let mut chars = text.chars().map(|c| if c == '\0' { char::REPLACEMENT_CHARACTER } else { c }).peekable();
        while let Some(c) = chars.next_if(|c| kept.len() + c.len_utf8() <= limit) {
            kept.push(c);
        }
        let rest: String = chars.by_ref().take(Self::CUT_MARK.len() + 1).collect();
        if kept.len() + rest.len() <= Self::MAX_BYTES && chars.next().is_none() {
            kept.push_str(&rest);
        } else {
            kept.push_str(Self::CUT_MARK);
        }
        Self(kept)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ErrorText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for ErrorText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How an attempt ends, and where the job goes.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AttemptEnd {
    /// Well, with nothing to keep: the job is `completed`.
    Complete,
    /// Well, with a result to keep: the job is `completed`.
    CompleteWith {
        /// The result.
        result: JsonText,
    },
    /// Badly, to be tried again after `delay`: the job is `deferred`.
    Retry {
        /// From now.
        delay: Duration,
        /// Why.
        error: ErrorText,
    },
    /// Neither well nor badly, to be run again after `delay`, uncharged: the job is `deferred`.
    Snooze {
        /// From now.
        delay: Duration,
    },
    /// Badly and for good: the job is `dead`, or `failed` where the queue has no dead-letter queue.
    Fail {
        /// Why.
        error: ErrorText,
    },
    /// On demand: the job is `cancelled`.
    Cancel {
        /// Why, as given by whoever asked.
        reason: ErrorText,
    },
    /// Handed back unstarted or unfinished, uncharged: the job is `deferred` for `delay`.
    Release {
        /// From now. Zero: the job is `ready` at once, before all others of its lane.
        delay: Duration,
    },
    /// Not yet: it waits for a callback, and no worker holds it meanwhile. The job is `waiting`; `ready` at once when the
    /// callback came already. When its time runs out, it has failed.
    Park {
        /// From now.
        timeout: Duration,
    },
}

impl AttemptEnd {
    /// Whether the attempt counts against the budget. One that is parked counts only if its time runs out.
    pub const fn is_charged(&self) -> bool {
        !matches!(self, Self::Snooze { .. } | Self::Release { .. } | Self::Park { .. })
    }
}

/// A wish to end one attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Closure {
    /// The attempt.
    pub receipt: Receipt,
    /// How it ends.
    pub end: AttemptEnd,
}

/// The answer to one [`Closure`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ClosureAnswer {
    /// It ended the attempt, durably.
    Closed,
    /// The attempt had ended before, or never existed: nothing was changed.
    Stale,
    /// Somebody else's open transaction is about to end it; ask again.
    Contended,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_text_is_cleaned_and_cut() {
        assert_eq!(ErrorText::new("a\0b").as_str(), "a\u{fffd}b");
        let exact = "x".repeat(ErrorText::MAX_BYTES);
        assert_eq!(ErrorText::new(&exact).as_str(), exact);
        for long in [format!("{exact}y"), "ü".repeat(5_000_000), "\0".repeat(100_000)] {
            let cut = ErrorText::new(long);
            assert!(cut.as_str().len() <= ErrorText::MAX_BYTES && cut.as_str().ends_with(" [cut]"));
        }
    }
}
