//! One attempt in the hands of this process: the claimed job, and the switches that others may turn while it runs.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::Waker;
use std::time::Duration;

use awa_core::ClaimedJob;
use futures::task::AtomicWaker;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Why an attempt is asked to stop.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum CancelCause {
    /// Somebody else ended the attempt: an operator cancelled the job, or the store took this process for dead.
    /// Whatever the handler returns is refused.
    EndedElsewhere,
    /// The deadline of the attempt is over. It has been ended as a failure.
    Deadline,
    /// The worker shuts down. Until its grace period ends, the handler may finish and its result counts.
    Shutdown,
}

impl CancelCause {
    const fn code(self) -> u8 {
        match self {
            Self::EndedElsewhere => 1,
            Self::Deadline => 2,
            Self::Shutdown => 3,
        }
    }

    const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::EndedElsewhere),
            2 => Some(Self::Deadline),
            3 => Some(Self::Shutdown),
            _ => None,
        }
    }
}

impl fmt::Display for CancelCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EndedElsewhere => "ended elsewhere",
            Self::Deadline => "deadline over",
            Self::Shutdown => "shutdown",
        })
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) job: ClaimedJob,
    /// When the claim call was sent: no later than the store's time of the claim.
    pub(crate) claimed: Instant,
    /// When this attempt is over by the local clock.
    pub(crate) deadline: Option<Deadline>,
    ended: AtomicBool,
    cause: AtomicU8,
    token: OnceLock<CancellationToken>,
    listened: AtomicBool,
    stopped: AtomicBool,
    has_callback: AtomicBool,
    handler: AtomicWaker,
}

/// The deadline of an attempt: its length, and the moment it leads to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    pub(crate) length: Duration,
    pub(crate) at: Instant,
}

impl Attempt {
    /// An attempt that was claimed by a call sent at `claimed`.
    pub(crate) fn new(job: ClaimedJob, claimed: Instant, deadline: Option<Duration>) -> Self {
        Self {
            job,
            claimed,
            deadline: deadline.and_then(|length| Some(Deadline { length, at: claimed.checked_add(length)? })),
            ended: AtomicBool::new(false),
            cause: AtomicU8::new(0),
            token: OnceLock::new(),
            listened: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            has_callback: AtomicBool::new(false),
            handler: AtomicWaker::new(),
        }
    }

    /// Takes the right to say how the attempt ends: true for exactly one caller.
    pub(crate) fn take_end(&self) -> bool {
        !self.ended.swap(true, Ordering::AcqRel)
    }

    /// Whether somebody has said how the attempt ends.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Notes that the attempt has a token that somebody may call back with.
    pub(crate) fn mark_callback(&self) {
        self.has_callback.store(true, Ordering::Release);
    }

    /// Whether the attempt has such a token.
    pub(crate) fn has_callback(&self) -> bool {
        self.has_callback.load(Ordering::Acquire)
    }

    /// Asks the handler to stop. The first cause stays.
    pub(crate) fn cancel(&self, cause: CancelCause) {
        let _ = self.cause.compare_exchange(0, cause.code(), Ordering::AcqRel, Ordering::Acquire);
        self.token.get_or_init(CancellationToken::new).cancel();
    }

    /// Why the handler was asked to stop, if it was.
    pub(crate) fn cancelled(&self) -> Option<CancelCause> {
        CancelCause::from_code(self.cause.load(Ordering::Acquire))
    }

    /// The token for the handler, and a note that it listens.
    pub(crate) fn listen(&self) -> &CancellationToken {
        self.listened.store(true, Ordering::Release);
        self.token.get_or_init(CancellationToken::new)
    }

    /// Whether the handler ever looked at its cancellation.
    pub(crate) fn has_listened(&self) -> bool {
        self.listened.load(Ordering::Acquire)
    }

    /// Makes the executor drop the handler at its next await. Whoever calls this has taken the end.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.handler.wake();
    }

    /// Whether the handler is to be dropped; if not, `waker` is woken when it is.
    pub(crate) fn is_stopped_or_wakes(&self, waker: &Waker) -> bool {
        self.handler.register(waker);
        self.is_stopped()
    }

    /// Whether the handler is to be dropped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }
}
