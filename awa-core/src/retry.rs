//! When a failed attempt is tried again.

use std::time::Duration;

use crate::error::BadInput;

/// Exponential backoff with a cap and jitter.
///
/// The delay after attempt n is `base * factor^(n - 1)`, at most `cap`, minus a random share of at most `jitter` of
/// it. Jitter only shortens, so `cap` holds always.
///
/// The default: 1 s, factor 2, cap 1 hour, jitter 0.2, i.e. about 1, 2, 4, 8 s and so on; the cap is reached after the
/// thirteenth attempt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    base: Duration,
    factor: f64,
    cap: Duration,
    jitter: f64,
}

/// How many attempts of a job have been used, the one that just ended included, and how many it may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttemptBudget {
    /// The number of the attempt that ended, from 1. A snooze or a release does not count.
    pub attempt: u32,
    /// The largest number of attempts.
    pub max_attempts: u32,
}

/// What becomes of a job whose attempt failed, whoever ended it: its handler, a deadline or rescue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Disposition {
    /// It becomes claimable again after `delay`.
    Retry {
        /// The time to wait; the store adds it to its own clock.
        delay: Duration,
    },
    /// Its attempts are used up.
    Exhausted,
}

impl RetryPolicy {
    /// The longest delay that a policy may use: 365 days.
    pub const LONGEST: Duration = Duration::from_hours(365 * 24);

    /// A policy that waits `base` after the first failure, doubles up to `cap`, with the default jitter.
    ///
    /// # Errors
    ///
    /// When `base` is shorter than a microsecond or longer than `cap`, or `cap` is longer than [`Self::LONGEST`].
    pub fn exponential(base: Duration, cap: Duration) -> Result<Self, BadInput> {
        if base < Duration::from_micros(1) || base > cap || cap > Self::LONGEST {
            return Err(BadInput::new(
                "retry",
                format!("base {base:?} and cap {cap:?} must fit 1 us <= base <= cap <= {:?}", Self::LONGEST),
            ));
        }
        Ok(Self { base, cap, ..Self::default() })
    }

    /// The same policy with another factor.
    ///
    /// # Errors
    ///
    /// When `factor` is not in 1 to 100.
    pub fn with_factor(self, factor: f64) -> Result<Self, BadInput> {
        if !(1.0..=100.0).contains(&factor) {
            return Err(BadInput::new("retry", format!("factor {factor} must be in 1 to 100")));
        }
        Ok(Self { factor, ..self })
    }

    /// The same policy that shortens each delay by a random share of at most `jitter`.
    ///
    /// # Errors
    ///
    /// When `jitter` is not in 0 to 1.
    pub fn with_jitter(self, jitter: f64) -> Result<Self, BadInput> {
        if !(0.0..=1.0).contains(&jitter) {
            return Err(BadInput::new("retry", format!("jitter {jitter} must be in 0 to 1")));
        }
        Ok(Self { jitter, ..self })
    }

    /// The delay after attempt number `attempt` (from 1) failed, in whole microseconds.
    ///
    /// `random` in 0 to 1 chooses the jitter; 0 gives the longest delay. Anything outside is brought to the nearer end,
    /// and what is no number counts as 0. Never above the cap, for every attempt; with `random` 0 it never falls from
    /// one attempt to the next.
    pub fn delay(&self, attempt: u32, random: f64) -> Duration {
        let random = if random.is_nan() { 0.0 } else { random.clamp(0.0, 1.0) };
        let exponent = f64::from(attempt.saturating_sub(1));
        // The power may be infinite; the cap brings it back. Base is above zero, so the product is a number.
        let grown = (self.base.as_secs_f64() * self.factor.powf(exponent)).min(self.cap.as_secs_f64());
        let micros = (grown * 1e6 * (1.0 - self.jitter * random)).round();
        Duration::from_micros(micros as u64).min(self.cap)
    }

    /// What becomes of a job whose attempt failed.
    ///
    /// `asked` is the delay that the handler asked for, if any: it replaces the policy's, without cap and jitter, but
    /// not the budget.
    pub fn after_failure(&self, budget: AttemptBudget, asked: Option<Duration>, random: f64) -> Disposition {
        if budget.attempt >= budget.max_attempts {
            return Disposition::Exhausted;
        }
        Disposition::Retry { delay: asked.unwrap_or_else(|| self.delay(budget.attempt, random)) }
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { base: Duration::from_secs(1), factor: 2.0, cap: Duration::from_hours(1), jitter: 0.2 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_default_doubles_from_one_second_to_one_hour() {
        let policy = RetryPolicy::default();
        let seconds: Vec<u64> = (1..=14).map(|attempt| policy.delay(attempt, 0.0).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600]);
        assert_eq!(policy.delay(3, 0.5), Duration::from_millis(3600), "half of a fifth is taken off");
    }

    #[test]
    fn the_delay_after_very_many_attempts_is_the_cap() {
        for factor in [1.000_001, 1.5, 2.0, 100.0] {
            let policy = RetryPolicy::default().with_factor(factor).unwrap();
            for attempt in [310, 32_767, i32::MAX as u32, u32::MAX] {
                let delay = policy.delay(attempt, 0.0);
                assert!(delay <= Duration::from_hours(1), "{factor} {attempt} {delay:?}");
                assert!(factor < 1.5 || delay == Duration::from_hours(1), "{factor} {attempt} {delay:?}");
            }
        }
        let steady = RetryPolicy::default().with_factor(1.0).unwrap();
        assert_eq!(steady.delay(i32::MAX as u32, 0.0), Duration::from_secs(1));
    }

    #[test]
    fn a_random_number_out_of_range_is_tamed() {
        let policy = RetryPolicy::default().with_jitter(1.0).unwrap();
        assert_eq!(policy.delay(1, f64::NAN), Duration::from_secs(1));
        assert_eq!(policy.delay(1, -3.0), Duration::from_secs(1));
        assert_eq!(policy.delay(1, f64::INFINITY), Duration::ZERO);
        assert_eq!(policy.delay(0, 0.0), Duration::from_secs(1), "attempt 0 counts as the first");
    }

    #[test]
    fn policies_that_make_no_sense_are_refused() {
        let second = Duration::from_secs(1);
        assert!(RetryPolicy::exponential(Duration::ZERO, second).is_err());
        assert!(RetryPolicy::exponential(second, Duration::from_millis(1)).is_err());
        assert!(RetryPolicy::exponential(second, Duration::MAX).is_err());
        for factor in [0.5, -1.0, 101.0, f64::NAN, f64::INFINITY] {
            assert!(RetryPolicy::default().with_factor(factor).is_err(), "{factor}");
        }
        for jitter in [-0.1, 1.1, f64::NAN] {
            assert!(RetryPolicy::default().with_jitter(jitter).is_err(), "{jitter}");
        }
    }

    #[test]
    fn the_last_allowed_attempt_exhausts_the_job_even_when_the_handler_asked_for_a_delay() {
        let policy = RetryPolicy::default();
        let budget = |attempt, max_attempts| AttemptBudget { attempt, max_attempts };
        let asked = Some(Duration::from_hours(2));
        assert_eq!(policy.after_failure(budget(3, 3), asked, 0.0), Disposition::Exhausted);
        assert_eq!(policy.after_failure(budget(4, 3), None, 0.0), Disposition::Exhausted);
        assert_eq!(policy.after_failure(budget(1, 0), None, 0.0), Disposition::Exhausted);
        assert_eq!(policy.after_failure(budget(2, 3), None, 0.0), Disposition::Retry { delay: Duration::from_secs(2) });
        assert_eq!(
            policy.after_failure(budget(2, 3), asked, 0.0),
            Disposition::Retry { delay: Duration::from_hours(2) },
            "a delay that was asked for is not capped"
        );
    }

    proptest! {
        #[test]
        fn delays_stay_inside_the_jitter_and_the_cap_and_do_not_fall(
            base in 1u64..10_000_000,
            above in 0u64..1_000_000_000_000,
            factor in 1.0f64..=100.0,
            jitter in 0.0f64..=1.0,
            attempt in prop_oneof![1u32..64, any::<u32>()],
            random in 0.0f64..1.0,
        ) {
            let cap = Duration::from_micros(base + above);
            let policy = RetryPolicy::exponential(Duration::from_micros(base), cap)
                .and_then(|policy| policy.with_factor(factor))
                .and_then(|policy| policy.with_jitter(jitter))
                .unwrap();
            let (longest, delay) = (policy.delay(attempt, 0.0), policy.delay(attempt, random));
            prop_assert!(longest <= cap && delay <= longest);
            let shortest = longest.as_secs_f64() * (1.0 - jitter) - 2e-6;
            prop_assert!(delay.as_secs_f64() >= shortest, "{delay:?} < {shortest}");
            prop_assert!(policy.delay(attempt.saturating_add(1), 0.0) >= longest);
        }
    }
}
