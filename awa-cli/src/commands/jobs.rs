//! `awa jobs`: looks at jobs and intervenes.

mod resume;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::store::{Accuracy, Acted, JobFilter, JobView, MoveTo, Refusal};
use awa_core::{CallbackToken, JobId, JobKind, JobState, Priority, QueueName, Store, StoreError};
use clap::{Args, Subcommand};
use serde::Serialize;
use tokio::time::sleep;

use crate::commands::enqueue::parse_priority;
use crate::connect::ConnectionArgs;
use crate::failure::Failure;
use crate::output::{Format, one_line, printable, with_accuracy};
use crate::shape::{ActedShape, JobShape};
use crate::table::{Column, Table};

/// See [`crate::args::Command::Jobs`].
#[derive(Subcommand, Debug)]
pub(crate) enum JobsCommand {
    /// List jobs, newest id first.
    #[command(after_help = "\
Examples:
  awa jobs list --queue mail --state dead
  awa jobs list --limit 1000 --json
  awa jobs list --limit 1000 --before 48213 --json     the next page

JSON: {\"jobs\":[...],\"next_before\":48213} with the value for --before of the next page, null at the end.")]
    List(ListArgs),

    /// Count jobs by state. Estimated from what is counted already, unless asked for exact numbers.
    #[command(after_help = "\
Examples:
  awa jobs count
  awa jobs count --queue mail --exact --json

JSON: {\"accuracy\":\"estimate\",\"jobs\":{\"ready\":3,\"running\":1,...},\"ever\":{\"completed\":90,...}}, ever with the jobs
that have ended in a state since the beginning, also those whose history is no longer kept.")]
    Count {
        /// Only this queue.
        #[arg(long)]
        queue: Option<QueueName>,
        /// Count one by one, which reads everything.
        #[arg(long)]
        exact: bool,
    },

    /// Show one job with its arguments, result and error.
    #[command(after_help = "Examples:\n  awa jobs get 4711\n  awa jobs get 4711 --json | jq .result")]
    Get {
        /// The job.
        #[arg(value_parser = parse_id)]
        id: JobId,
    },

    /// Cancel jobs that have not ended. A running one is told to stop, and its result is refused.
    #[command(after_help = "\
Examples:
  awa jobs cancel 4711 4712 --reason 'sent by hand'

Exits with 1 when a job could not be cancelled, and says why for each.
JSON: {\"jobs\":[{\"id\":4711,\"done\":true,\"state\":\"ready\",\"refused\":null}]}, state before; refused is not_found,
wrong_state (of state) or contended; of a retry also key_taken: another job holds its unique key.")]
    Cancel {
        /// The jobs.
        #[arg(required = true, value_name = "ID", value_parser = parse_id)]
        ids: Vec<JobId>,
        /// Why; kept with the job.
        #[arg(long, default_value = "cancelled by an operator", hide_default_value = true)]
        reason: String,
    },

    /// Put jobs that wait into another queue, or give them another priority.
    #[command(after_help = "\
Examples:
  awa jobs move 4711 4712 --priority 1
  awa jobs move 4711 --queue slow --priority 4

A job joins the tail of its new lane. Exits with 1 when a job could not be moved, and says why for each. JSON as for
awa jobs cancel.")]
    #[command(group(clap::ArgGroup::new("where").required(true).multiple(true)))]
    Move {
        /// The jobs.
        #[arg(required = true, value_name = "ID", value_parser = parse_id)]
        ids: Vec<JobId>,
        /// The queue to put them into.
        #[arg(long, value_name = "QUEUE", group = "where")]
        queue: Option<QueueName>,
        /// Their new priority, from 1 (urgent) to 4 (bulk).
        #[arg(long, value_name = "N", group = "where", value_parser = parse_priority, allow_negative_numbers = true)]
        priority: Option<Priority>,
    },

    /// Run jobs again that are dead or failed, or at once those that wait for their time.
    #[command(after_help = "\
Examples:
  awa jobs retry 4711

Exits with 1 when a job could not be retried, and says why for each. JSON as for awa jobs cancel.")]
    Retry {
        /// The jobs.
        #[arg(required = true, value_name = "ID", value_parser = parse_id)]
        ids: Vec<JobId>,
    },

    /// Remove jobs that have ended from every view, dead ones with the unique key that they may hold.
    #[command(after_help = "\
Examples:
  awa jobs delete 4711 4712

Exits with 1 when a job could not be deleted, and says why for each; one that has not ended must be cancelled first.
JSON as for awa jobs cancel.")]
    Delete {
        /// The jobs.
        #[arg(required = true, value_name = "ID", value_parser = parse_id)]
        ids: Vec<JobId>,
    },

    /// Resume a job that waits for a callback, with the token that it gave away.
    #[command(after_help = "\
Examples:
  awa jobs resume 6f1c0a94b2d84e7c9d1e5a3b7c2f4e60 --payload '{\"paid\":true}'

Exits with 1 when the callback was not taken, and says why. JSON: {\"accepted\":true,\"answer\":\"resumed\"}; answer is resumed,
kept (the job still runs and goes on when it parks), unknown, already_used, expired, attempt_over or contended.")]
    Resume {
        /// The token.
        token: CallbackToken,
        /// JSON for the next attempt of the job.
        #[arg(long, value_name = "JSON", default_value = "null")]
        payload: String,
    },
}

/// Which jobs to list.
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Only this queue.
    #[arg(long)]
    queue: Option<QueueName>,
    /// Only this state: ready, running, deferred, waiting, completed, failed, cancelled or dead.
    #[arg(long)]
    state: Option<JobState>,
    /// Only this kind.
    #[arg(long)]
    kind: Option<JobKind>,
    /// Only ids below this one.
    #[arg(long, value_name = "ID", value_parser = parse_id)]
    before: Option<JobId>,
    /// At most so many jobs.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    limit: u16,
}

fn parse_id(text: &str) -> Result<JobId, String> {
    match text.parse() {
        Ok(id @ 1..) => Ok(JobId(id)),
        _ => Err(format!("{text:?} is no job id; ids are whole numbers from 1 on")),
    }
}

/// Carries out a command about jobs.
pub(super) async fn run(connection: &ConnectionArgs, command: &JobsCommand, format: Format) -> Result<(), Failure> {
    let store = connection.connect_ready(1).await?;
    match command {
        JobsCommand::List(args) => list(&*store, args, format).await,
        JobsCommand::Count { queue, exact } => count(&*store, queue.as_ref(), *exact, format).await,
        JobsCommand::Get { id } => get(&*store, *id, format).await,
        JobsCommand::Cancel { ids, reason } => {
            let reason = ErrorText::new(reason);
            let acted = act_until_settled(ids, async |ids| store.cancel(&ids, &reason).await).await?;
            answer_acted(ids, &acted, "cancelled", format)
        }
        JobsCommand::Move { ids, queue, priority } => {
            let to = match (queue, priority) {
                (Some(queue), Some(priority)) => MoveTo::queue(queue.clone()).and_priority(*priority),
                (Some(queue), None) => MoveTo::queue(queue.clone()),
                (None, Some(priority)) => MoveTo::priority(*priority),
                (None, None) => return Err(Failure::new("give --queue or --priority, or both")),
            };
            let acted = act_until_settled(ids, async |ids| store.move_jobs(&ids, &to).await).await?;
            answer_acted(ids, &acted, "moved", format)
        }
        JobsCommand::Retry { ids } => {
            let acted = act_until_settled(ids, async |ids| store.retry(&ids).await).await?;
            answer_acted(ids, &acted, "retried", format)
        }
        JobsCommand::Delete { ids } => {
            let acted = act_until_settled(ids, async |ids| store.delete(&ids).await).await?;
            answer_acted(ids, &acted, "deleted", format)
        }
        JobsCommand::Resume { token, payload } => resume::run(&*store, *token, payload, format).await,
    }
}

#[derive(Serialize, Debug)]
struct Page {
    jobs: Vec<JobShape>,
    next_before: Option<JobId>,
}

async fn list(store: &dyn Store, args: &ListArgs, format: Format) -> Result<(), Failure> {
    let limit = usize::from(args.limit);
    let ListArgs { queue, state, kind, before, .. } = args;
    let filter = JobFilter { queue: queue.clone(), state: *state, kind: kind.clone(), before: *before, limit };
    let views = store.list(&filter).await?;
    let next_before = views.last().filter(|_| views.len() == limit).map(|last| last.id);
    let text = table_of(&views, next_before);
    let page = Page { jobs: views.into_iter().map(JobShape::from).collect(), next_before };
    format.answer(&page, |_| text)
}

#[derive(Serialize, Debug)]
struct Counted {
    accuracy: Accuracy,
    jobs: BTreeMap<JobState, u64>,
    ever: BTreeMap<JobState, u64>,
}

/// States whose jobs are counted for good.
const ENDS: [JobState; 3] = [JobState::Completed, JobState::Failed, JobState::Cancelled];

async fn count(store: &dyn Store, only: Option<&QueueName>, exact: bool, format: Format) -> Result<(), Failure> {
    let counts = store.counts(if exact { Accuracy::Exact } else { Accuracy::Estimate }).await?;
    let queues = || counts.queues.iter().filter(|line| only.is_none_or(|only| line.queue == *only));
    let answer = Counted {
        accuracy: counts.accuracy,
        jobs: JobState::ALL.map(|state| (state, queues().map(|line| line.in_states(&[state])).sum())).into(),
        ever: ENDS.map(|state| (state, queues().map(|line| line.ever_in(&[state])).sum())).into(),
    };
    format.answer(&answer, |answer| {
        let mut table = Table::new([Column::Text("state"), Column::Number("jobs"), Column::Number("ever")]);
        for (state, jobs) in &answer.jobs {
            let ever = answer.ever.get(state).map(u64::to_string).unwrap_or_default();
            table.row([state.to_string(), jobs.to_string(), ever]);
        }
        with_accuracy(&table.render(), answer.accuracy)
    })
}

fn table_of(views: &[JobView], next_before: Option<JobId>) -> String {
    if views.is_empty() {
        return "no jobs".to_owned();
    }
    let mut table = Table::new([
        Column::Number("id"),
        Column::Text("state"),
        Column::Text("queue"),
        Column::Text("kind"),
        Column::Number("priority"),
        Column::Number("attempt"),
        Column::Text("created"),
        Column::Text("note"),
    ]);
    for job in views {
        table.row([
            job.id.to_string(),
            job.state.to_string(),
            job.queue.to_string(),
            job.kind.to_string(),
            job.priority.to_string(),
            format!("{}/{}", job.attempt, job.max_attempts.get()),
            job.created_at.to_string(),
            note(job),
        ]);
    }
    match next_before {
        Some(id) => format!("{}\nmore: --before {id}", table.render()),
        None => table.render(),
    }
}

/// What is worth a glance: why the job waits, failed, or what it left.
fn note(job: &JobView) -> String {
    const WIDTH: usize = 60;
    let waits = job.deferred.zip(job.run_at).map(|(reason, at)| format!("{} until {at}", reason.as_str()));
    let error = job.error.as_ref().map(|error| error.as_str().to_owned());
    let result = job.result.as_ref().map(|result| result.as_str().to_owned());
    let parts: Vec<String> = [waits, error, result].into_iter().flatten().collect();
    one_line(&parts.join(": "), WIDTH)
}

async fn get(store: &dyn Store, id: JobId, format: Format) -> Result<(), Failure> {
    let view = store.get(id).await?;
    let view = view.ok_or_else(|| {
        Failure::new(format!("there is no job {id}, or its history is no longer kept; look with awa jobs list"))
    })?;
    let text = details(&view);
    format.answer(&JobShape::from(view), |_| text)
}

fn details(job: &JobView) -> String {
    let mut lines = vec![
        ("job", job.id.to_string()),
        ("state", job.state.to_string()),
        ("queue", job.queue.to_string()),
        ("kind", job.kind.to_string()),
        ("priority", job.priority.to_string()),
        ("attempt", format!("{} of {}", job.attempt, job.max_attempts.get())),
        ("claims", job.run_lease.to_string()),
        ("created", job.created_at.to_string()),
    ];
    let moments = [("run at", job.run_at), ("claimed", job.claimed_at), ("ended", job.finalized_at)];
    lines.extend(moments.into_iter().filter_map(|(name, at)| Some((name, at?.to_string()))));
    lines.extend(job.deferred.map(|reason| ("waits for", reason.as_str().to_owned())));
    lines.push(("args", printable(job.args.as_str())));
    let documents = [("metadata", &job.metadata), ("result", &job.result)];
    lines.extend(documents.into_iter().filter_map(|(name, text)| Some((name, printable(text.as_ref()?.as_str())))));
    lines.extend(job.error.as_ref().map(|error| ("error", printable(error.as_str()))));
    lines.into_iter().map(|(name, value)| format!("{name:<10} {value}")).collect::<Vec<_>>().join("\n")
}

/// Asks again for ids that somebody else is changing at this moment. An id that is given twice is acted upon once.
async fn act_until_settled(
    ids: &[JobId],
    mut act: impl AsyncFnMut(Vec<JobId>) -> Result<Vec<Acted>, StoreError>,
) -> Result<HashMap<JobId, Acted>, StoreError> {
    const ROUNDS: usize = 5;
    const PAUSE: Duration = Duration::from_millis(100);
    let mut settled = HashMap::new();
    let mut open = ids.to_vec();
    open.sort_unstable();
    open.dedup();
    for round in 0..ROUNDS {
        if round > 0 {
            sleep(PAUSE).await;
        }
        let answers = act(open.clone()).await?;
        settled.extend(open.iter().copied().zip(answers));
        open.retain(|id| matches!(settled.get(id), Some(Acted::Refused(Refusal::Contended)) | None));
        if open.is_empty() {
            break;
        }
    }
    Ok(settled)
}

#[derive(Serialize, Debug)]
struct ActedOn {
    jobs: Vec<ActedShape>,
}

fn answer_acted(
    ids: &[JobId],
    acted: &HashMap<JobId, Acted>,
    done: &'static str,
    format: Format,
) -> Result<(), Failure> {
    let answer_of = |id: &JobId| acted.get(id).copied().unwrap_or(Acted::Refused(Refusal::Contended));
    let answer = ActedOn { jobs: ids.iter().map(|id| ActedShape::new(*id, answer_of(id))).collect() };
    let refused = answer.jobs.iter().filter(|job| !job.done).count();
    format
        .answer(&answer, |answer| answer.jobs.iter().map(|job| sentence(job, done)).collect::<Vec<_>>().join("\n"))?;
    match refused {
        0 => Ok(()),
        _ => Err(Failure::new(format!("{refused} of {} jobs were not {done}", ids.len()))),
    }
}

fn sentence(job: &ActedShape, done: &str) -> String {
    let state = job.state.map(JobState::as_str).unwrap_or_default();
    match job.refused {
        None => format!("job {}: {done} (was {state})", job.id),
        Some("not_found") => format!("job {}: not found, or its history is no longer kept", job.id),
        Some("wrong_state") => format!("job {}: not {done}, because it is {state}", job.id),
        Some("key_taken") => format!("job {}: not {done}, because another job holds its unique key", job.id),
        Some(_) => format!("job {}: not {done}, because somebody else is changing it; ask again", job.id),
    }
}

#[cfg(test)]
mod tests;
