//! `awa queues`: looks at queues and holds them back.

use awa_core::QueueName;
use awa_core::store::{Operator, QueueView};
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::connect::ConnectionArgs;
use crate::failure::Failure;
use crate::output::Format;
use crate::table::{Column, Table};

const EXAMPLES: &str = "\
Examples:
  awa queues
  awa queues pause mail
  awa queues resume mail --json

JSON: {\"queues\":[{\"queue\":\"mail\",\"paused\":false,\"ready\":3,\"running\":1,\"deferred\":0,\"waiting\":0,\n\"finished\":90,\"dead\":2}]}
and for pause and resume {\"queue\":\"mail\",\"paused\":true}.";

/// See [`crate::args::Command::Queues`].
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct QueuesArgs {
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
    queues: Vec<QueueView>,
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
            return format.answer(&Queues { queues: store.queues().await? }, |answer| table_of(&answer.queues));
        }
        Some(QueuesCommand::Pause { name }) => (name, true),
        Some(QueuesCommand::Resume { name }) => (name, false),
    };
    store.set_paused(queue, paused).await?;
    let state = if paused { "paused" } else { "running" };
    format.answer(&Paused { queue, paused }, |answer| format!("queue {} is {state}", answer.queue))
}

fn table_of(queues: &[QueueView]) -> String {
    if queues.is_empty() {
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
    ]);
    for view in queues {
        let paused = if view.paused { "yes" } else { "no" };
        let counts = [view.ready, view.running, view.deferred, view.waiting, view.finished, view.dead];
        let names = [view.queue.to_string(), paused.to_owned()];
        table.row(names.into_iter().chain(counts.map(|count| count.to_string())).collect::<Vec<_>>());
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_print_as_a_stable_shape_and_as_a_table() {
        let queue = QueueName::new("mail").unwrap();
        let view =
            QueueView { queue, paused: true, ready: 1, running: 2, deferred: 3, finished: 4, dead: 5, waiting: 6 };
        let answer = Queues { queues: vec![view] };
        let expected = r#"{"queues":[{"queue":"mail","paused":true,"ready":1,"running":2,"deferred":3,"waiting":6,"finished":4,"dead":5}]}"#;
        assert_eq!(serde_json::to_string(&answer).unwrap(), expected);
        let table = table_of(&answer.queues);
        assert_eq!(table.lines().last(), Some("mail   yes         1        2         3        6         4     5"));
    }
}
