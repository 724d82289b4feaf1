//! `awa queues`: looks at queues and holds them back.

use awa_core::store::{Accuracy, Counts, Operator, QueueCounts};
use awa_core::{JobState, QueueName};
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::connect::ConnectionArgs;
use crate::failure::Failure;
use crate::output::{Format, with_accuracy};
use crate::table::{Column, Table};

const EXAMPLES: &str = "\
Examples:
  awa queues
  awa queues --exact
  awa queues pause mail
  awa queues resume mail --json

JSON: {\"accuracy\":\"estimate\",\"queues\":[{\"queue\":\"mail\",\"paused\":false,\"ready\":3,\"running\":1,\"deferred\":0,\"waiting\":0,
\"finished\":90,\"dead\":2,\"ever\":90000}]}, finished with the jobs whose history is kept, ever with all that have ended;
and for pause and resume {\"queue\":\"mail\",\"paused\":true}.";

/// See [`crate::args::Command::Queues`].
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct QueuesArgs {
    /// Count one by one, which reads everything, instead of estimating.
    #[arg(long)]
    exact: bool,
    #[command(subcommand)]
    command: Option<QueuesCommand>,
}

/// What to do with queues.
#[derive(Subcommand, Debug)]
enum QueuesCommand {
    /// List all queues with their counts; the same as no command.
    List,
    /// Hold back the jobs of a queue. Running ones go on, new ones wait; it holds until resumed.
    Pause {
        /// The queue.
        #[arg(value_name = "QUEUE")]
        name: QueueName,
    },
    /// Let the jobs of a queue go on.
    Resume {
        /// The queue.
        #[arg(value_name = "QUEUE")]
        name: QueueName,
    },
}

#[derive(Serialize, Debug)]
struct Queues {
    accuracy: Accuracy,
    queues: Vec<QueueShape>,
}

/// A queue as this command prints it.
#[derive(Serialize, Debug)]
struct QueueShape {
    queue: QueueName,
    paused: bool,
    ready: u64,
    running: u64,
    deferred: u64,
    waiting: u64,
    finished: u64,
    dead: u64,
    ever: u64,
}

impl From<Counts> for Queues {
    fn from(counts: Counts) -> Self {
        Self { accuracy: counts.accuracy, queues: counts.queues.iter().map(QueueShape::from).collect() }
    }
}

impl From<&QueueCounts> for QueueShape {
    fn from(counts: &QueueCounts) -> Self {
        const ENDS: [JobState; 3] = [JobState::Completed, JobState::Failed, JobState::Cancelled];
        let of = |state| counts.in_states(&[state]);
        Self {
            queue: counts.queue.clone(),
            paused: counts.paused,
            ready: of(JobState::Ready),
            running: of(JobState::Running),
            deferred: of(JobState::Deferred),
            waiting: of(JobState::Waiting),
            finished: counts.in_states(&ENDS),
            dead: of(JobState::Dead),
            ever: counts.ever_in(&ENDS),
        }
    }
}

#[derive(Serialize, Debug)]
struct Paused<'a> {
    queue: &'a QueueName,
    paused: bool,
}

/// Carries out a command about queues.
pub(super) async fn run(connection: &ConnectionArgs, args: &QueuesArgs, format: Format) -> Result<(), Failure> {
    let store = connection.connect_ready(1).await?;
    let (queue, paused) = match &args.command {
        None | Some(QueuesCommand::List) => {
            let accuracy = if args.exact { Accuracy::Exact } else { Accuracy::Estimate };
            return format.answer(&Queues::from(store.counts(accuracy).await?), table_of);
        }
        Some(QueuesCommand::Pause { name }) => (name, true),
        Some(QueuesCommand::Resume { name }) => (name, false),
    };
    store.set_paused(queue, paused).await?;
    let state = if paused { "paused" } else { "running" };
    format.answer(&Paused { queue, paused }, |answer| format!("queue {} is {state}", answer.queue))
}

fn table_of(answer: &Queues) -> String {
    if answer.queues.is_empty() {
        return "no queues".to_owned();
    }
    let mut table = Table::new([
        Column::Text("queue"),
        Column::Text("paused"),
        Column::Number("ready"),
        Column::Number("running"),
        Column::Number("deferred"),
        Column::Number("waiting"),
        Column::Number("finished"),
        Column::Number("dead"),
        Column::Number("ever"),
    ]);
    for view in &answer.queues {
        let paused = if view.paused { "yes" } else { "no" };
        let counts = [view.ready, view.running, view.deferred, view.waiting, view.finished, view.dead, view.ever];
        let names = [view.queue.to_string(), paused.to_owned()];
        table.row(names.into_iter().chain(counts.map(|count| count.to_string())).collect::<Vec<_>>());
    }
    with_accuracy(&table.render(), answer.accuracy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_print_as_a_stable_shape_and_as_a_table() {
        let mut counts = QueueCounts::empty(QueueName::new("mail").unwrap(), true);
        let states = [JobState::Ready, JobState::Running, JobState::Deferred, JobState::Completed, JobState::Dead];
        for (state, jobs) in states.into_iter().zip(1..) {
            counts.add(state, jobs, if state == JobState::Completed { 40 } else { 0 });
        }
        let answer = Queues::from(Counts::new(Accuracy::Estimate, vec![counts]));
        let expected = concat!(
            r#"{"accuracy":"estimate","queues":[{"queue":"mail","paused":true,"ready":1,"running":2,"deferred":3,"#,
            r#""waiting":0,"finished":4,"dead":5,"ever":40}]}"#
        );
        assert_eq!(serde_json::to_string(&answer).unwrap(), expected);
        let table = table_of(&answer);
        let line = "mail   yes         1        2         3        0         4     5    40";
        assert_eq!(table.lines().rev().take(2).collect::<Vec<_>>(), ["estimated; --exact counts one by one", line]);
    }
}
