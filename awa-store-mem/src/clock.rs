//! Where a memory store reads the time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use awa_core::Timestamp;

/// A source of the present. A memory store asks it once per call, and compares all times with the answer.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The present.
    fn now(&self) -> Timestamp;
}

/// The clock of the computer.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::EPOCH.saturating_add(since_epoch)
    }
}

/// A clock that stands still until it is moved. Clones show the same time.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    /// A clock that stands at `now`.
    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(AtomicI64::new(now.as_micros())))
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        let moved = |micros| Some(Timestamp::from_micros(micros).saturating_add(by).as_micros());
        // The closure always gives a value, so the update cannot be refused.
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, moved);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

/// The clock of a tokio runtime: in a test with paused time it moves with the runtime's timers.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    started: tokio::time::Instant,
    started_at: Timestamp,
}

impl TokioClock {
    /// A clock that shows `now` at this moment and moves with tokio's time from here on.
    pub fn starting_at(now: Timestamp) -> Self {
        Self { started: tokio::time::Instant::now(), started_at: now }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        self.started_at.saturating_add(self.started.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_told_and_its_clones_with_it() {
        let clock = ManualClock::at(Timestamp::from_micros(7));
        let clone = clock.clone();
        clock.advance(Duration::from_micros(3));
        assert_eq!((clock.now(), clone.now()), (Timestamp::from_micros(10), Timestamp::from_micros(10)));
        clock.advance(Duration::MAX);
        assert_eq!(clone.now(), Timestamp::MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn a_tokio_clock_follows_paused_time() {
        let clock = TokioClock::starting_at(Timestamp::EPOCH);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(clock.now(), Timestamp::from_micros(5_000_000));
    }
}
