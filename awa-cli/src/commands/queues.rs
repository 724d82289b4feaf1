//! `awa queues`: looks at queues, holds them back, sets what holds for them.

use std::time::Duration;

use awa_core::store::{Accuracy, Counts, PurgeScope, Purged, QueueCounts};
use awa_core::{JobState, QueueName, QueueSettings, ShardCount, Store, StoreError};
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use tokio::time::sleep;

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
  awa queues set mail --shards 4 --dead-letter off
  awa queues purge mail --deferred
  awa queues set mail                                what is set for it

JSON: {\"accuracy\":\"estimate\",\"queues\":[{\"queue\":\"mail\",\"paused\":false,\"ready\":3,\"running\":1,\"deferred\":0,\"waiting\":0,
\"finished\":90,\"dead\":2,\"ever\":90000}]}, finished with the jobs whose history is kept, ever with all that have ended;
and for pause and resume {\"queue\":\"mail\",\"paused\":true}, for set {\"queue\":\"mail\",\"enqueue_shards\":4,\"dead_letter\":false},
for purge {\"queue\":\"mail\",\"jobs\":17,\"contended\":false}.";

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
    /// Remove the jobs of a queue that wait, for good. Running ones go on.
    Purge {
        /// The queue.
        #[arg(value_name = "QUEUE")]
        name: QueueName,
        /// Remove those that wait for their time as well.
        #[arg(long)]
        deferred: bool,
    },
    /// Set what holds for the jobs of a queue that come or fail from now on; what is not given stays as it is.
    Set {
        /// The queue.
        #[arg(value_name = "QUEUE")]
        name: QueueName,
        /// Spread new jobs over so many lanes per priority, 1 to 64, so that as many claims work side by side; jobs with one
        /// ordering key stay in one lane.
        #[arg(long, value_name = "N", value_parser = parse_shards, allow_negative_numbers = true)]
        shards: Option<ShardCount>,
        /// Hold jobs that fail for good in the dead-letter queue (on), or leave them to the history as failed (off).
        #[arg(long, value_name = "SWITCH")]
        dead_letter: Option<Switch>,
    },
}

/// On or off.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum Switch {
    On,
    Off,
}

fn parse_shards(text: &str) -> Result<ShardCount, String> {
    let number = text.parse().map_err(|_| format!("{text:?} is outside 1 to {}", ShardCount::MAX.get()))?;
    ShardCount::new(number).map_err(|refusal| refusal.problem)
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

/// The answer of `awa queues purge`.
#[derive(Serialize, Debug)]
struct Emptied<'a> {
    queue: &'a QueueName,
    #[serde(flatten)]
    purged: Purged,
}

impl Emptied<'_> {
    fn describe(&self) -> String {
        format!("removed {} jobs of queue {}", self.purged.jobs, self.queue)
    }
}

/// The answer of `awa queues set`.
#[derive(Serialize, Debug)]
struct Settings<'a> {
    queue: &'a QueueName,
    #[serde(flatten)]
    settings: QueueSettings,
}

impl Settings<'_> {
    fn describe(&self) -> String {
        let dead_letter = if self.settings.dead_letter { "on" } else { "off" };
        format!(
            "queue {}: enqueue shards {}, dead-letter queue {dead_letter}",
            self.queue,
            self.settings.enqueue_shards.get()
        )
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
        Some(QueuesCommand::Purge { name, deferred }) => {
            let scope = if *deferred { PurgeScope::ReadyAndDeferred } else { PurgeScope::Ready };
            let purged = purge(&*store, name, scope).await?;
            format.answer(&Emptied { queue: name, purged }, Emptied::describe)?;
            if purged.contended {
                return Err(Failure::new(format!("somebody else is changing jobs of queue {name}; purge it again")));
            }
            return Ok(());
        }
        Some(QueuesCommand::Set { name, shards, dead_letter }) => {
            let settings = set(&*store, name, *shards, *dead_letter).await?;
            return format.answer(&Settings { queue: name, settings }, Settings::describe);
        }
    };
    store.set_paused(queue, paused).await?;
    let state = if paused { "paused" } else { "running" };
    format.answer(&Paused { queue, paused }, |answer| format!("queue {} is {state}", answer.queue))
}

/// Removes what waits, asking again for what somebody else is changing at this moment.
async fn purge(store: &dyn Store, queue: &QueueName, scope: PurgeScope) -> Result<Purged, StoreError> {
    const ROUNDS: usize = 5;
    const PAUSE: Duration = Duration::from_millis(100);
    let mut purged = store.purge_queue(queue, scope).await?;
    for _ in 1..ROUNDS {
        if !purged.contended {
            break;
        }
        sleep(PAUSE).await;
        let more = store.purge_queue(queue, scope).await?;
        purged = Purged { jobs: purged.jobs + more.jobs, contended: more.contended };
    }
    Ok(purged)
}

/// Changes what is given of the settings of a queue, and answers with all of them.
async fn set(
    store: &dyn Store,
    queue: &QueueName,
    shards: Option<ShardCount>,
    dead_letter: Option<Switch>,
) -> Result<QueueSettings, StoreError> {
    let before = store.queue_settings(queue).await?;
    let settings = before
        .with_enqueue_shards(shards.unwrap_or(before.enqueue_shards))
        .with_dead_letter(dead_letter.map_or(before.dead_letter, |switch| switch == Switch::On));
    if shards.is_some() || dead_letter.is_some() {
        store.configure_queue(queue, &settings).await?;
    }
    Ok(settings)
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
    fn settings_print_as_a_stable_shape_and_as_a_sentence() {
        let queue = QueueName::new("mail").unwrap();
        let settings = QueueSettings::default().with_enqueue_shards(ShardCount::MAX).with_dead_letter(false);
        let answer = Settings { queue: &queue, settings };
        let expected = r#"{"queue":"mail","enqueue_shards":64,"dead_letter":false}"#;
        assert_eq!(serde_json::to_string(&answer).unwrap(), expected);
        assert_eq!(answer.describe(), "queue mail: enqueue shards 64, dead-letter queue off");
        assert_eq!(parse_shards("65").unwrap_err(), "65 is outside 1 to 64");
        assert_eq!(parse_shards("x").unwrap_err(), "\"x\" is outside 1 to 64");
    }

    #[test]
    fn a_purge_prints_as_a_stable_shape_and_as_a_sentence() {
        let queue = QueueName::new("mail").unwrap();
        let answer = Emptied { queue: &queue, purged: Purged { jobs: 17, contended: false } };
        assert_eq!(serde_json::to_string(&answer).unwrap(), r#"{"queue":"mail","jobs":17,"contended":false}"#);
        assert_eq!(answer.describe(), "removed 17 jobs of queue mail");
    }

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
