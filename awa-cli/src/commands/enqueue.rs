//! `awa enqueue`: one job from the command line, or many from a file.

mod file;

use std::path::PathBuf;
use std::time::Duration;

use awa_core::job::MaxAttempts;
use awa_core::{Enqueued, JobId, JobKind, JsonText, OrderingKey, Priority, QueueName, RunAt, Timestamp};
use clap::Args;
use serde::Serialize;

use crate::connect::ConnectionArgs;
use crate::failure::Failure;
use crate::job_lines::{BadLine, Defaults};
use crate::length::{parse_length, parse_moment};
use crate::output::Format;

const EXAMPLES: &str = "\
Examples:
  awa enqueue --queue mail --kind send --args '{\"to\":\"ada@example.org\"}' --priority 1
  awa enqueue --queue mail --kind send --args '{}' --delay 10m --max-attempts 3
  awa enqueue --queue mail --kind digest --args '{}' --unique-key digest-of-ada
  awa enqueue --queue mail --kind send --args '{}' --ordering-key customer-7
  awa enqueue --queue mail --file jobs.jsonl
  zcat jobs.jsonl.gz | awa enqueue --file - --skip-bad --json

A line of the file is a JSON object with args and, where it differs from the flags, queue, kind, priority, run_at or
delay_s, max_attempts, metadata, unique_key and ordering_key:
  {\"args\":{\"to\":\"ada@example.org\"},\"kind\":\"send\",\"priority\":1,\"delay_s\":60}

The whole file is checked before anything is written: one bad line refuses it, unless --skip-bad is given. It is then
enqueued in transactions of at most 1,000 jobs; when the database fails on the way, the error says at which line.

JSON: {\"enqueued\":2,\"ids\":[7,8],\"refused_lines\":1,\"refused\":[{\"line\":3,\"field\":\"priority\",\"problem\":\"...\"}]}
with the first 1,000 refused lines; jobs that were not stored because another holds their key are counted in duplicates,
which has the ids of the others and is left out when empty.";

/// See [`crate::args::Command::Enqueue`].
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EnqueueArgs {
    /// The queue; lines of a file may name another.
    #[arg(long, value_name = "QUEUE", required_unless_present = "file")]
    queue: Option<QueueName>,

    /// The kind of job, by which a worker finds what to do; lines of a file may name another.
    #[arg(long, value_name = "KIND", required_unless_present = "file")]
    kind: Option<JobKind>,

    /// The arguments of one job, any JSON text.
    #[arg(long, value_name = "JSON", required_unless_present = "file", conflicts_with = "file")]
    args: Option<String>,

    /// A file with one job per line; - is standard input.
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,

    /// From 1 (urgent) to 4 (bulk).
    #[arg(long, value_name = "N", default_value = "2", value_parser = parse_priority, allow_negative_numbers = true)]
    priority: Priority,

    /// Run not before so much time from now, such as 10s, 5m or 2h.
    #[arg(long, value_name = "LENGTH", value_parser = parse_length, conflicts_with = "run_at")]
    delay: Option<Duration>,

    /// Run not before this moment in RFC 3339, such as 2026-01-31T09:00:00Z.
    #[arg(long, value_name = "MOMENT", value_parser = parse_moment)]
    run_at: Option<Timestamp>,

    /// How often the job may be tried.
    #[arg(long, value_name = "N", default_value = "25", allow_negative_numbers = true)]
    #[arg(value_parser = parse_max_attempts)]
    max_attempts: MaxAttempts,

    /// Store the job only if no job with this key, of whatever kind and in whatever queue, is there that has not ended.
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    unique_key: Option<String>,

    /// Keep the job in order with the other jobs of this key, its queue and its priority.
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    ordering_key: Option<String>,

    /// Enqueue the good lines of the file and report the bad ones, instead of refusing the file.
    #[arg(long, requires = "file")]
    skip_bad: bool,
}

pub(crate) fn parse_priority(text: &str) -> Result<Priority, String> {
    let number = text.parse().map_err(|_| format!("{text:?} is outside 1 (urgent) to 4 (bulk)"))?;
    Priority::new(number).map_err(|refusal| refusal.problem)
}

fn parse_max_attempts(text: &str) -> Result<MaxAttempts, String> {
    let number = text.parse().map_err(|_| format!("{text:?} is outside 1 to {}", i16::MAX))?;
    MaxAttempts::new(number).map_err(|refusal| refusal.problem)
}

/// The answer of `awa enqueue --json`.
#[derive(Serialize, Debug, Default)]
struct Answer {
    enqueued: usize,
    ids: Vec<JobId>,
    /// The jobs that hold the keys of those that were not stored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    duplicates: Vec<JobId>,
    refused_lines: u64,
    /// The first of them.
    refused: Vec<BadLine>,
}

impl Answer {
    fn count(&mut self, answers: Vec<Enqueued>) {
        for answer in answers {
            if answer.is_inserted() {
                self.enqueued += 1;
                self.ids.push(answer.id());
            } else {
                self.duplicates.push(answer.id());
            }
        }
    }

    fn describe(&self) -> String {
        let jobs = match (self.ids.first(), self.ids.last()) {
            (Some(only), Some(_)) if self.enqueued == 1 => format!("enqueued job {only}"),
            (Some(first), Some(last)) => format!("enqueued {} jobs, ids {first} to {last}", self.enqueued),
            _ => "enqueued nothing".to_owned(),
        };
        let jobs = match self.duplicates[..] {
            [] => jobs,
            [only] => format!("{jobs}; job {only} holds the key of another"),
            _ => format!("{jobs}; the keys of {} others are taken", self.duplicates.len()),
        };
        match self.refused_lines {
            0 => jobs,
            bad => format!("{jobs}; {bad} bad lines"),
        }
    }
}

/// Enqueues what the arguments say.
pub(super) async fn run(connection: &ConnectionArgs, args: &EnqueueArgs, format: Format) -> Result<(), Failure> {
    let defaults = args.defaults()?;
    if let Some(path) = &args.file {
        return file::enqueue(connection, &defaults, path, args.skip_bad, format).await;
    }
    let text = args.args.as_deref().unwrap_or_default();
    let mut job = defaults.job(JsonText::new("args", text)?)?;
    if let Some(key) = &args.unique_key {
        job = Defaults::keyed(job, key)?;
    }
    if let Some(key) = &args.ordering_key {
        job = job.with_ordering_key(OrderingKey::new(key)?);
    }
    let store = connection.connect_ready(1).await?;
    let mut answer = Answer::default();
    answer.count(store.enqueue(&[job]).await?);
    format.answer(&answer, Answer::describe)
}

impl EnqueueArgs {
    fn defaults(&self) -> Result<Defaults, Failure> {
        let run_at = match (self.delay, self.run_at) {
            (Some(delay), _) => RunAt::after(delay)?,
            (None, Some(at)) => RunAt::at(at)?,
            (None, None) => RunAt::Now,
        };
        Ok(Defaults {
            queue: self.queue.clone(),
            kind: self.kind.clone(),
            priority: self.priority,
            run_at,
            max_attempts: self.max_attempts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_has_a_stable_shape() {
        let bad = BadLine { line: 3, field: "args".into(), problem: "it is missing".into() };
        let ids = vec![JobId(1), JobId(i64::MAX)];
        let answer = Answer { enqueued: 2, ids, refused_lines: 1, refused: vec![bad], ..Answer::default() };
        let expected = concat!(
            r#"{"enqueued":2,"ids":[1,9223372036854775807],"refused_lines":1,"#,
            r#""refused":[{"line":3,"field":"args","problem":"it is missing"}]}"#
        );
        assert_eq!(serde_json::to_string(&answer).unwrap(), expected);
        assert_eq!(answer.describe(), "enqueued 2 jobs, ids 1 to 9223372036854775807; 1 bad lines");
        assert_eq!(Answer::default().describe(), "enqueued nothing");
    }

    #[test]
    fn a_duplicate_is_told_apart_from_what_was_stored() {
        let mut answer = Answer::default();
        answer.count(vec![Enqueued::Duplicate(JobId(7))]);
        assert_eq!(answer.describe(), "enqueued nothing; job 7 holds the key of another");
        answer.count(vec![Enqueued::Inserted(JobId(8)), Enqueued::Duplicate(JobId(8))]);
        assert_eq!(answer.describe(), "enqueued job 8; the keys of 2 others are taken");
        let expected = r#"{"enqueued":1,"ids":[8],"duplicates":[7,8],"refused_lines":0,"refused":[]}"#;
        assert_eq!(serde_json::to_string(&answer).unwrap(), expected);
    }
}
