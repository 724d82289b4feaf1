//! Live progress on standard error: a bar on a terminal, else a line every few seconds.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::complain;

/// The pause between two lines.
const LINE_EVERY: Duration = Duration::from_secs(3);

/// Shows how far the demo is.
#[derive(Debug)]
pub(super) enum Progress {
    Bar(ProgressBar),
    Lines { next: Instant, jobs: u64 },
}

impl Progress {
    /// Progress towards `jobs` completed jobs.
    pub(super) fn new(jobs: u64) -> Self {
        if !stderr().is_terminal() {
            return Self::Lines { next: Instant::now() + LINE_EVERY, jobs };
        }
        let bar = ProgressBar::new(jobs);
        let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {per_sec} {msg}");
        bar.set_style(style.expect("the template is a constant that the tests render"));
        Self::Bar(bar)
    }

    /// Shows that so many jobs are completed of so many that exist so far.
    pub(super) fn show(&mut self, completed: u64, committed: u64) {
        match self {
            Self::Bar(bar) => bar.set_position(completed),
            Self::Lines { next, jobs } => {
                if Instant::now() >= *next {
                    *next = Instant::now() + LINE_EVERY;
                    complain(&format!("{completed} done, {committed} enqueued, of about {jobs}"));
                }
            }
        }
    }

    /// Says something that happens once.
    pub(super) fn say(&self, text: &str) {
        match self {
            Self::Bar(bar) => bar.suspend(|| complain(text)),
            Self::Lines { .. } => complain(text),
        }
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_of_the_bar_is_valid() {
        assert!(ProgressStyle::with_template("{wide_bar} {pos}/{len} {per_sec} {msg}").is_ok());
    }
}
