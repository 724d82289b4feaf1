//! `awa work`: runs jobs by a program in any language.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use awa_core::store::ClaimShape;
use awa_core::{JobId, QueueName};
use awa_runtime::{QueueConfig, ShutdownReport, Worker};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::connect::ConnectionArgs;
use crate::exec::Program;
use crate::failure::Failure;
use crate::length::parse_positive_length;
use crate::log;
use crate::output::{Format, complain};
use crate::signals::StopSignal;

const EXAMPLES: &str = "\
Examples:
  awa work --queue mail --exec ./send-mail
  awa work --queue mail --queue sms --concurrency 8 --timeout 30s --exec python3 handle.py --verbose
  awa work --queue mail --exec sh -c 'jq -r .args.to | xargs send'

All that follows --exec belongs to the program, so it comes last. It is started once per job and gets one JSON object on
its standard input:
  {\"id\":7,\"queue\":\"mail\",\"kind\":\"send\",\"args\":{...},\"attempt\":1,\"max_attempts\":25,\"priority\":2,
   \"created_at\":\"2026-01-31T09:00:00.000000Z\",\"metadata\":null}
Exit code 0 means done; anything else, a signal and a time-out included, that the attempt failed, and it is tried again
until its attempts are used up. The end of its standard error is kept as the error. Its standard output is kept as the
result: as it is when it is JSON, else as a JSON string; nothing when it is empty. What is too large is cut.

Ctrl-C or SIGTERM stops claiming and lets running programs finish for the grace period. A second one ends at once; what
ran is then run again by others.

JSON, when it ends: {\"claimed\":9,\"completed\":8,\"failed\":0,\"retried\":1,\"released\":0,\"stale\":0,\"abandoned\":[]}";

/// See [`crate::args::Command::Work`].
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WorkArgs {
    /// The queue; may be given several times.
    #[arg(long = "queue", required = true, value_name = "QUEUE")]
    queues: Vec<QueueName>,

    /// How many programs run at a time, per queue.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    concurrency: u16,

    /// How long one attempt may last, such as 30s; then the program and its children are ended and it has failed.
    #[arg(long, value_name = "LENGTH", value_parser = parse_positive_length)]
    timeout: Option<Duration>,

    /// How long running programs may go on when the worker is told to stop.
    #[arg(long, value_name = "LENGTH", default_value = "30s", value_parser = parse_positive_length)]
    grace: Duration,

    /// How claims are recorded: in one row for all jobs of a call, or in a row for each, to be read in lease_claims.
    #[arg(long, value_name = "SHAPE", default_value = "compact")]
    claim_shape: Shape,

    /// The program and its arguments.
    #[arg(long, required = true, value_name = "CMD", num_args = 1.., allow_hyphen_values = true)]
    exec: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum Shape {
    Compact,
    RowLocal,
}

impl From<Shape> for ClaimShape {
    fn from(shape: Shape) -> Self {
        match shape {
            Shape::Compact => Self::Compact,
            Shape::RowLocal => Self::RowLocal,
        }
    }
}

impl WorkArgs {
    /// The program and its arguments.
    #[cfg(test)]
    pub(crate) fn program(&self) -> &[OsString] {
        &self.exec
    }
}

/// The answer of `awa work --json`.
#[derive(Serialize, Debug)]
struct Worked {
    claimed: u64,
    completed: u64,
    failed: u64,
    retried: u64,
    released: u64,
    stale: u64,
    abandoned: Vec<JobId>,
}

impl From<ShutdownReport> for Worked {
    fn from(report: ShutdownReport) -> Self {
        let stats = report.stats;
        Self {
            claimed: stats.claimed,
            completed: stats.completed,
            failed: stats.failed,
            retried: stats.retried,
            released: stats.released,
            stale: stats.stale,
            abandoned: report.abandoned.iter().map(|attempt| attempt.job).collect(),
        }
    }
}

impl Worked {
    fn describe(&self) -> String {
        let Self { completed, retried, failed, abandoned, .. } = self;
        let abandoned = abandoned.len();
        format!(
            "stopped: {completed} done, {retried} to be tried again, {failed} failed for good, {abandoned} abandoned"
        )
    }
}

/// Works until a signal comes.
pub(super) async fn run(connection: &ConnectionArgs, args: WorkArgs, format: Format) -> Result<(), Failure> {
    const CONNECTIONS: u32 = 8;
    let mut signals = StopSignal::listen()?;
    let program = Arc::new(Program::find(args.exec, args.timeout)?);
    log::to_stderr("warn");
    let store = connection.connect_ready(CONNECTIONS).await?.shared();
    let mut builder = Worker::builder(store).shutdown_grace(args.grace).fallback_handler(move |job, cx| {
        let program = Arc::clone(&program);
        async move { program.run(&job, &cx).await }
    });
    for queue in &args.queues {
        // A program is started per job, so a job that waits here for its turn gains nothing.
        let config = QueueConfig::default().concurrency(args.concurrency.into()).prefetch(0);
        let config = config.claim_shape(args.claim_shape.into());
        builder = builder.queue(queue, config);
    }
    let worker = builder.build()?;
    if format == Format::Text {
        let names: Vec<&str> = args.queues.iter().map(QueueName::as_str).collect();
        complain(&format!("working on {}; Ctrl-C stops", names.join(", ")));
    }
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let mut run = Box::pin(worker.run_until(async move {
        // A sender that is gone means the same.
        let _ = stopped.await;
    }));
    tokio::select! {
        ended = &mut run => return finish(ended?, format),
        () = signals.wait() => drop(stop),
    }
    tokio::select! {
        ended = run => finish(ended?, format),
        () = signals.wait() => Err(Failure::interrupted()),
    }
}

fn finish(report: ShutdownReport, format: Format) -> Result<(), Failure> {
    format.answer(&Worked::from(report), Worked::describe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_has_a_stable_shape() {
        let answer = Worked {
            claimed: 9,
            completed: 7,
            failed: 0,
            retried: 1,
            released: 1,
            stale: 0,
            abandoned: vec![JobId(i64::MAX)],
        };
        let expected = concat!(
            r#"{"claimed":9,"completed":7,"failed":0,"retried":1,"released":1,"stale":0,"#,
            r#""abandoned":[9223372036854775807]}"#
        );
        assert_eq!(serde_json::to_string(&answer).unwrap(), expected);
        assert_eq!(answer.describe(), "stopped: 7 done, 1 to be tried again, 0 failed for good, 1 abandoned");
    }
}
