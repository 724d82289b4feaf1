//! Jobs, attempts and tokens as stores name them, beside the positions by which a history does.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use awa_core::attempt::Receipt;
use awa_core::job::MaxAttempts;
use awa_core::queue::Shard;
use awa_core::unique::KeyStates;
use awa_core::{
    CallbackToken, Enqueued, JobId, JobKind, JsonText, NewJob, OrderingKey, Priority, QueueName, RunAt, ShardCount,
    Unique, UniqueBy,
};

use super::observed::{Job, Observed};
use super::step::{NewStep, OF_LANES, Pick};

/// The queue of this number.
pub(super) fn queue(number: u8) -> QueueName {
    QueueName::new(["first", "second", "third"][usize::from(number)]).expect("the name is good")
}

/// The priority of a job, which is that of all jobs of its queue, unless that has several.
pub(super) fn priority(queue: u8, lane: u8) -> Priority {
    let number = if queue == OF_LANES { 3 + lane % 2 } else { queue + 1 };
    Priority::new(i16::from(number)).expect("1 to 4 are priorities")
}

/// The ordering key of a job in the queue that has several lanes.
fn ordering(lane: u8) -> OrderingKey {
    OrderingKey::new(["a", "b", "c", "d"][usize::from(lane / 2)]).expect("the key is short")
}

/// Over how many shards that queue spreads its jobs.
pub(super) fn shards() -> ShardCount {
    ShardCount::new(2).expect("2 is allowed")
}

/// One job for a queue.
pub(super) fn new_job(number: u8, step: &NewStep) -> NewJob {
    let args = JsonText::new("args", r#"{"a":1}"#).expect("the text is JSON");
    let mut job = NewJob::new(queue(number), JobKind::new("told").expect("the name is good"), args)
        .with_priority(priority(number, step.lane))
        .with_max_attempts(MaxAttempts::new(step.max_attempts).expect("budgets are small"));
    if number == OF_LANES {
        job = job.with_ordering_key(ordering(step.lane));
    }
    if let Some(seconds) = step.delay {
        job = job.with_run_at(RunAt::after(Duration::from_secs(seconds)).expect("delays are short"));
    }
    if let Some(key) = step.key {
        let key = UniqueBy::text(format!("key {key}")).key_of(&job).expect("the key is short");
        job = job.with_unique(Unique::new(key).while_in(KeyStates::UNFINISHED));
    }
    job
}

/// All that one store has named so far.
#[derive(Debug, Default)]
pub(super) struct Named {
    jobs: Vec<JobId>,
    known: HashMap<JobId, Job>,
    /// In which shard each job is, if it is in the queue with several lanes; only jobs without a shard may leave their queue.
    sharded: HashMap<JobId, Shard>,
    /// Every job of which a transaction asked that it be cancelled.
    pub(super) cancelled_in: HashSet<JobId>,
    /// Every attempt that was handed out.
    pub(super) receipts: Vec<Receipt>,
    /// Every token that was given.
    pub(super) tokens: Vec<CallbackToken>,
}

impl Named {
    /// The position of a job.
    ///
    /// # Panics
    ///
    /// When the store made the job up.
    pub(super) fn job(&self, id: JobId) -> Job {
        *self.known.get(&id).unwrap_or_else(|| panic!("job {id} was never enqueued"))
    }

    /// The jobs that these positions mean, each once.
    pub(super) fn picked(&self, picks: &[Pick]) -> Vec<JobId> {
        let mut picked = Vec::new();
        for job in picks.iter().filter_map(|pick| pick.of(&self.jobs)) {
            if !picked.contains(job) {
                picked.push(*job);
            }
        }
        picked
    }

    /// Takes in what an enqueue answered.
    pub(super) fn enqueued(&mut self, jobs: &[NewJob], answers: &[Enqueued]) -> Observed {
        let mut seen = Vec::with_capacity(answers.len());
        for (job, answer) in jobs.iter().zip(answers) {
            if let Some(key) = job.ordering_key().filter(|_| answer.is_inserted()) {
                self.sharded.insert(answer.id(), key.shard(shards()));
            }
            let what = match answer {
                Enqueued::Inserted(_) => "inserted",
                Enqueued::Duplicate(_) => "duplicate of",
                _ => "other",
            };
            if answer.is_inserted() {
                self.known.insert(answer.id(), self.jobs.len());
                self.jobs.push(answer.id());
            }
            seen.push((what, self.known.get(&answer.id()).copied()));
        }
        Observed::Enqueued(seen)
    }

    /// The lane of a job of this priority, among those of its queue.
    pub(super) fn lane(&self, id: JobId, priority: Priority) -> (Priority, Option<Shard>) {
        (priority, self.sharded.get(&id).copied())
    }

    /// Whether a job may move into this queue: jobs of several shards would make several lanes of it.
    pub(super) fn may_move(&self, id: JobId, number: u8) -> bool {
        number == OF_LANES || !self.sharded.contains_key(&id)
    }

    /// How a reader names an attempt.
    pub(super) fn attempt(&self, pick: Pick) -> String {
        let Some(receipt) = pick.of(&self.receipts) else { return "no attempt".to_owned() };
        format!("job {} (lease {})", self.job(receipt.job), receipt.run_lease)
    }

    /// How a reader names these jobs.
    pub(super) fn listed(&self, picks: &[Pick]) -> String {
        let jobs: Vec<_> = self.picked(picks).into_iter().map(|id| self.job(id).to_string()).collect();
        if jobs.is_empty() { "no job".to_owned() } else { format!("job {}", jobs.join(", ")) }
    }
}
