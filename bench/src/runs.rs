//! Which jobs were handed to a handler, how often, and how long after they were enqueued.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The book of one measurement. Handlers write it, the measurement reads it.
#[derive(Debug)]
pub struct Runs {
    start: Instant,
    /// When each job was to be enqueued, in microseconds after the start.
    sent: Vec<AtomicU64>,
    /// How often each job was run.
    times: Vec<AtomicU8>,
    /// How long each job took from there to its first run, in microseconds.
    lags: Vec<AtomicU32>,
    distinct: AtomicU64,
    again: AtomicU64,
    foreign: AtomicU64,
}

impl Runs {
    /// A book for jobs 0 to `jobs` - 1.
    pub fn new(jobs: u64) -> Self {
        let jobs = usize::try_from(jobs).expect("the jobs of a measurement fit into memory");
        Self {
            start: Instant::now(),
            sent: (0..jobs).map(|_| AtomicU64::new(0)).collect(),
            times: (0..jobs).map(|_| AtomicU8::new(0)).collect(),
            lags: (0..jobs).map(|_| AtomicU32::new(0)).collect(),
            distinct: AtomicU64::new(0),
            again: AtomicU64::new(0),
            foreign: AtomicU64::new(0),
        }
    }

    /// Notes that the call that enqueues job `seq` was due at `at`.
    pub fn sent(&self, seq: u64, at: Instant) {
        self.sent[seq as usize].store(micros(at.saturating_duration_since(self.start)), Ordering::Relaxed);
    }

    /// Notes that a handler has run job `seq`.
    pub fn ran(&self, seq: u64) {
        let Some(times) = self.times.get(seq as usize) else {
            self.foreign.fetch_add(1, Ordering::Relaxed);
            return;
        };
        if times.fetch_add(1, Ordering::Relaxed) > 0 {
            self.again.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let sent = self.sent[seq as usize].load(Ordering::Relaxed);
        let lag = micros(self.start.elapsed()).saturating_sub(sent);
        self.lags[seq as usize].store(u32::try_from(lag).unwrap_or(u32::MAX), Ordering::Relaxed);
        self.distinct.fetch_add(1, Ordering::Release);
    }

    /// Different jobs that were run.
    pub fn distinct(&self) -> u64 {
        self.distinct.load(Ordering::Acquire)
    }

    /// Runs beyond the first of a job.
    pub fn again(&self) -> u64 {
        self.again.load(Ordering::Relaxed)
    }

    /// Runs of jobs that this measurement never made.
    pub fn foreign(&self) -> u64 {
        self.foreign.load(Ordering::Relaxed)
    }

    /// The sorted lags of the jobs from `first` on.
    pub fn lags_from(&self, first: u64) -> Vec<Duration> {
        let mut lags: Vec<_> = self.lags[first as usize..]
            .iter()
            .map(|lag| Duration::from_micros(lag.load(Ordering::Relaxed).into()))
            .collect();
        lags.sort_unstable();
        lags
    }
}

fn micros(length: Duration) -> u64 {
    u64::try_from(length.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_told_from_their_repetitions_and_from_foreign_ones() {
        let runs = Runs::new(3);
        for seq in [0, 2, 2, 7] {
            runs.ran(seq);
        }
        assert_eq!((runs.distinct(), runs.again(), runs.foreign()), (2, 1, 1));
    }

    #[test]
    fn lags_are_counted_from_when_a_job_was_due() {
        let runs = Runs::new(2);
        runs.sent(1, Instant::now());
        std::thread::sleep(Duration::from_millis(2));
        runs.ran(1);
        let lags = runs.lags_from(1);
        assert!(lags.len() == 1 && lags[0] >= Duration::from_millis(2), "{lags:?}");
    }
}
