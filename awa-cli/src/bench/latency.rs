//! How long things took: quantiles over a run, and over its course.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::job::Moment;

/// The longest length that is told apart from longer ones.
const LONGEST: Duration = Duration::from_hours(1);
/// The length of one point of the course.
const WINDOW: Duration = Duration::from_millis(500);

/// Lengths of time, recorded from any thread.
#[derive(Debug)]
pub(super) struct Latency(Mutex<Inside>);

#[derive(Debug)]
struct Inside {
    all: Histogram<u64>,
    /// Those of the window that goes on.
    window: Histogram<u64>,
    /// The number of that window.
    number: u64,
    course: Vec<Point>,
}

/// What a run comes to, in milliseconds.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub(super) struct Quantiles {
    pub(super) p50: f64,
    pub(super) p95: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
}

/// One point of the course of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Point {
    /// The middle of the window, from the beginning of the run.
    pub(super) at: Duration,
    /// In milliseconds.
    pub(super) quantiles: Quantiles,
}

impl Default for Latency {
    fn default() -> Self {
        let (all, window) = (histogram(3), histogram(2));
        Self(Mutex::new(Inside { all, window, number: 0, course: Vec::new() }))
    }
}

impl Latency {
    /// Records that something took `length` and ended `since_begin` after the run began. What comes after later windows have
    /// begun counts in the one that goes on.
    pub(super) fn record(&self, length: Duration, since_begin: Duration) {
        let micros = u64::try_from(length.as_micros()).unwrap_or(u64::MAX);
        let number = u64::try_from(since_begin.as_micros() / WINDOW.as_micros()).unwrap_or(u64::MAX);
        let mut inside = self.lock();
        if number > inside.number {
            inside.close_window();
            inside.number = number;
        }
        inside.all.saturating_record(micros);
        inside.window.saturating_record(micros);
    }

    /// How many were recorded.
    #[cfg(test)]
    pub(super) fn count(&self) -> u64 {
        self.lock().all.len()
    }

    /// The quantiles of all; `None` of nothing.
    pub(super) fn quantiles(&self) -> Option<Quantiles> {
        quantiles_of(&self.lock().all)
    }

    /// The course of the run up to now.
    pub(super) fn course(&self) -> Vec<Point> {
        let mut inside = self.lock();
        inside.close_window();
        inside.course.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    fn close_window(&mut self) {
        if let Some(quantiles) = quantiles_of(&self.window) {
            let at = WINDOW.mul_f64(self.number as f64 + 0.5);
            self.course.push(Point { at, quantiles });
        }
        self.window.reset();
    }
}

/// The length from `due` to `now`.
pub(super) fn between(due: Moment, now: Moment) -> Duration {
    Duration::from_micros(now.0.saturating_sub(due.0))
}

fn histogram(digits: u8) -> Histogram<u64> {
    let longest = u64::try_from(LONGEST.as_micros()).expect("an hour has fewer microseconds");
    Histogram::new_with_bounds(1, longest, digits).expect("the bounds are constants that the tests use")
}

fn quantiles_of(histogram: &Histogram<u64>) -> Option<Quantiles> {
    let millis = |micros: u64| micros as f64 / 1_000.0;
    let at = |quantile| millis(histogram.value_at_quantile(quantile));
    let some = Quantiles { p50: at(0.50), p95: at(0.95), p99: at(0.99), max: millis(histogram.max()) };
    (!histogram.is_empty()).then_some(some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn quantiles_are_those_of_all_lengths_within_a_thousandth() {
        let latency = Latency::default();
        assert_eq!(latency.quantiles(), None);
        (1..=1_000).for_each(|length| latency.record(ms(length), ms(0)));
        let quantiles = latency.quantiles().unwrap();
        for (found, expected) in
            [(quantiles.p50, 500.0), (quantiles.p95, 950.0), (quantiles.p99, 990.0), (quantiles.max, 1_000.0)]
        {
            assert!((found - expected).abs() <= expected / 1_000.0, "{found} for {expected}");
        }
        assert_eq!(latency.count(), 1_000);
    }

    #[test]
    fn a_length_beyond_measure_counts_as_the_longest() {
        let latency = Latency::default();
        latency.record(Duration::MAX, ms(0));
        assert!(latency.quantiles().unwrap().max >= 3_600_000.0);
    }

    #[test]
    fn the_course_has_a_point_per_window_with_something_in_it() {
        let latency = Latency::default();
        for (length, at) in [(10, 0), (30, 499), (50, 500), (70, 1_700)] {
            latency.record(ms(length), ms(at));
        }
        let course = latency.course();
        let found: Vec<_> = course.iter().map(|point| (point.at, point.quantiles.max.round())).collect();
        assert_eq!(found, [(ms(250), 30.0), (ms(750), 50.0), (ms(1_750), 70.0)]);
    }
}
