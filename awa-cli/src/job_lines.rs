//! The reader of `jobs.jsonl`: one job per line, as a stream, every line judged by itself.
//!
//! A line is a JSON object with `args` and, where it differs from the flags, `queue`, `kind`, `priority`, `run_at` or
//! `delay_s`, `max_attempts` and `metadata`. Blank lines are passed over. Nothing of a line is rewritten: `args` and
//! `metadata` are enqueued byte for byte.

mod line;

use std::io::{self, BufRead, Read};

use awa_core::NewJob;
use serde::Serialize;

pub(crate) use line::Defaults;

/// The longest line, in bytes: arguments and metadata of the largest size, and room for the rest.
pub(crate) const MAX_LINE_BYTES: usize = 2 * awa_core::json::DEFAULT_MAX_JSON_BYTES + (64 << 10);

/// A line that makes no job.
#[derive(Serialize, Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadLine {
    /// Its number, from 1.
    pub(crate) line: u64,
    /// The field at fault, or `line` when it is the line as a whole.
    pub(crate) field: String,
    /// What is wrong with it.
    pub(crate) problem: String,
}

/// A job and the line it stands on.
#[derive(Debug)]
pub(crate) struct NumberedJob {
    pub(crate) line: u64,
    pub(crate) job: NewJob,
}

/// The jobs of a stream of lines.
#[derive(Debug)]
pub(crate) struct JobLines<'a, R> {
    input: R,
    defaults: &'a Defaults,
    number: u64,
    buffer: Vec<u8>,
}

impl<'a, R: BufRead> JobLines<'a, R> {
    /// Reads `input`; what a line does not say is taken from `defaults`.
    pub(crate) fn new(input: R, defaults: &'a Defaults) -> Self {
        Self { input, defaults, number: 0, buffer: Vec::new() }
    }

    /// The next line, or `None` at the end.
    fn read_line(&mut self) -> io::Result<Option<Result<(), BadLine>>> {
        self.buffer.clear();
        let limit = MAX_LINE_BYTES as u64 + 1;
        if self.input.by_ref().take(limit).read_until(b'\n', &mut self.buffer)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        if self.buffer.len() <= MAX_LINE_BYTES || self.buffer.ends_with(b"\n") {
            return Ok(Some(Ok(())));
        }
        self.input.skip_until(b'\n')?;
        Ok(Some(Err(self.bad("line", format!("it has more than {MAX_LINE_BYTES} bytes")))))
    }

    fn parse(&self) -> Option<Result<NumberedJob, BadLine>> {
        /// Some editors put it at the beginning of a file.
        const BYTE_ORDER_MARK: &str = "\u{feff}";
        let text = match std::str::from_utf8(&self.buffer) {
            Ok(text) if self.number == 1 => text.trim_start_matches(BYTE_ORDER_MARK).trim_ascii(),
            Ok(text) => text.trim_ascii(),
            Err(error) => {
                return Some(Err(self.bad("line", format!("it is not UTF-8 from byte {} on", error.valid_up_to()))));
            }
        };
        if text.is_empty() {
            return None;
        }
        let job = self.defaults.job_of(text);
        Some(match job {
            Ok(job) => Ok(NumberedJob { line: self.number, job }),
            Err(refusal) => Err(self.bad(&refusal.field, refusal.problem)),
        })
    }

    fn bad(&self, field: &str, problem: String) -> BadLine {
        BadLine { line: self.number, field: field.to_owned(), problem }
    }
}

impl<R: BufRead> Iterator for JobLines<'_, R> {
    type Item = io::Result<Result<NumberedJob, BadLine>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.read_line() {
                Err(error) => return Some(Err(error)),
                Ok(None) => return None,
                Ok(Some(Err(bad))) => return Some(Ok(Err(bad))),
                Ok(Some(Ok(()))) => {}
            }
            if let Some(outcome) = self.parse() {
                return Some(Ok(outcome));
            }
        }
    }
}

#[cfg(test)]
mod tests;
