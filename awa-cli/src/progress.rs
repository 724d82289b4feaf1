//! Live progress on standard error: a bar on a terminal, else a line every few seconds.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::complain;

/// The pause between two lines.
const LINE_EVERY: Duration = Duration::from_secs(3);

/// What a bar shows.
const TEMPLATE: &str = "{wide_bar} {pos}/{len} {per_sec} {msg}";

/// Shows how far a run is.
#[derive(Debug)]
pub(crate) enum Progress {
    Bar(ProgressBar),
    Lines { next: Instant, jobs: Option<u64> },
}

impl Progress {
    /// Progress towards `jobs` completed jobs; `None` when their number is not known beforehand.
    pub(crate) fn new(jobs: Option<u64>) -> Self {
        if !stderr().is_terminal() {
            return Self::Lines { next: Instant::now() + LINE_EVERY, jobs };
        }
        let bar = jobs.map_or_else(ProgressBar::no_length, ProgressBar::new);
        let style = ProgressStyle::with_template(TEMPLATE);
        bar.set_style(style.expect("the template is a constant that the tests render"));
        Self::Bar(bar)
    }

    /// Shows that so many jobs are completed of so many that exist so far.
    pub(crate) fn show(&mut self, completed: u64, committed: u64) {
        match self {
            Self::Bar(bar) => bar.set_position(completed),
            Self::Lines { next, jobs } => {
                if Instant::now() >= *next {
                    *next = Instant::now() + LINE_EVERY;
                    let of = jobs.map(|jobs| format!(", of about {jobs}")).unwrap_or_default();
                    complain(&format!("{completed} done, {committed} enqueued{of}"));
                }
            }
        }
    }

    /// Says something that happens once.
    pub(crate) fn say(&self, text: &str) {
        match self {
            Self::Bar(bar) => bar.suspend(|| complain(text)),
            Self::Lines { .. } => complain(text),
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
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
        assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
    }
}
