//! Pauses that grow while something keeps failing, and few log lines about it.

use std::time::Duration;

use tokio::time::Instant;

/// A pause that doubles from `shortest` to `longest`, varied so that processes do not move in step.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    shortest: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// For a store that cannot be reached.
    pub(crate) fn for_trouble() -> Self {
        Self::new(Duration::from_millis(100), Duration::from_secs(5))
    }

    pub(crate) fn new(shortest: Duration, longest: Duration) -> Self {
        Self { shortest, longest, next: shortest }
    }

    /// The next pause: between half and all of its step.
    pub(crate) fn pause(&mut self) -> Duration {
        let step = self.next;
        self.next = step.saturating_mul(2).min(self.longest);
        step.mul_f64(0.5 + 0.5 * rand::random::<f64>())
    }

    /// Begins anew.
    pub(crate) fn reset(&mut self) {
        self.next = self.shortest;
    }
}

/// `length`, varied by a quarter to either side.
pub(crate) fn varied(length: Duration) -> Duration {
    length.mul_f64(0.75 + 0.5 * rand::random::<f64>())
}

/// Decides which failures of one loop are worth a log line: the first, then one per [`Self::QUIET`].
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    said: Option<Instant>,
    failures: u64,
}

impl Trouble {
    const QUIET: Duration = Duration::from_secs(30);

    /// Counts a failure; its number when it is worth a line.
    pub(crate) fn failed(&mut self) -> Option<u64> {
        self.failures += 1;
        let now = Instant::now();
        if self.said.is_some_and(|said| now.duration_since(said) < Self::QUIET) {
            return None;
        }
        self.said = Some(now);
        Some(self.failures)
    }

    /// Notes a success; how many failures it ended, if any.
    pub(crate) fn over(&mut self) -> Option<u64> {
        self.said = None;
        let failures = std::mem::take(&mut self.failures);
        (failures > 0).then_some(failures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_anew() {
        let (shortest, longest) = (Duration::from_millis(100), Duration::from_secs(1));
        let mut backoff = Backoff::new(shortest, longest);
        for step in [100, 200, 400, 800, 1000, 1000] {
            let (pause, step) = (backoff.pause(), Duration::from_millis(step));
            assert!(pause >= step / 2 && pause <= step, "{pause:?} of {step:?}");
        }
        backoff.reset();
        assert!(backoff.pause() <= shortest);
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_trouble_makes_few_lines() {
        let mut trouble = Trouble::default();
        let mut lines = 0;
        for _ in 0..600 {
            lines += u32::from(trouble.failed().is_some());
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(lines, 20, "ten minutes of failures, one line per half minute");
        assert_eq!((trouble.over(), trouble.over()), (Some(600), None));
    }
}
