//! What can be seen of a store, with jobs named by the order in which they were enqueued.

use std::collections::{BTreeMap, BTreeSet};

use awa_core::attempt::ClosureAnswer;
use awa_core::store::{Grown, JobView, Memory, NoteAnswer, Purged, QueueView};
use awa_core::sweep::RescueCause;
use awa_core::{CallbackAnswer, JobState, Timestamp};

/// A job by the order of enqueueing, from 0.
pub type Job = usize;

/// The answer to one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    /// The answers to an enqueue.
    Enqueued(Vec<(&'static str, Option<Job>)>),
    /// The transaction that asked for this would wait for another, and was rolled back.
    Waits,
    /// The claimed jobs, lane by lane, in their order.
    Claimed(Vec<SeenClaim>),
    /// The answers to closures.
    Closed(Vec<ClosureAnswer>),
    /// The answers to notes.
    Noted(Vec<NoteAnswer>),
    /// The answers to callbacks.
    Resumed(Vec<CallbackAnswer>),
    /// The answers to an operator, as text.
    Acted(Vec<String>),
    /// What became of a wish for a larger ring.
    Grown(Grown),
    /// What a purge did.
    Purged(Purged),
    /// How many jobs became ready. Whether more are due is a hint: PostgreSQL gives it whenever it took as many as it might.
    Promoted(usize),
    /// The attempts that were ended, by job, lease, exhausted and cause.
    Rescued(Vec<(Job, i64, bool, RescueCause)>),
    /// Nothing that a caller could tell.
    Nothing,
}

/// One claimed job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of the claimed job")]
pub struct SeenClaim {
    pub job: Job,
    pub run_lease: i64,
    pub attempt: u32,
    pub deadline_at: Option<Timestamp>,
}

/// Everything that one look shows.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Sight {
    /// Each job.
    pub jobs: BTreeMap<Job, SeenJob>,
    /// Each queue, without what has finished.
    pub queues: Vec<QueueView>,
    /// The jobs of the attempts that are open.
    pub open: BTreeSet<Job>,
    /// The jobs of the attempts that a process is believed to hold.
    pub held: BTreeSet<Job>,
    /// What the open attempts have left for the next, by job.
    pub memories: BTreeMap<Job, Memory>,
}

/// One job; its view without its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenJob(pub JobView);

impl Sight {
    /// Says where two stores differ. How long finished jobs are kept is no promise beyond their retention: one of them may have
    /// forgotten what the other still shows.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let forgotten = |job: &SeenJob| job.0.state.is_terminal() && job.0.state != JobState::Dead;
        for job in self.jobs.keys().chain(other.jobs.keys()).collect::<BTreeSet<_>>() {
            match (self.jobs.get(job), other.jobs.get(job)) {
                (Some(one), Some(other)) if one == other => {}
                (Some(seen), None) | (None, Some(seen)) if forgotten(seen) => {}
                (one, other) => return Some(format!("job {job} is\n    {one:?}, and\n    {other:?}")),
            }
        }
        let parts = [
            ("the queues are", format!("{:?}", self.queues), format!("{:?}", other.queues)),
            ("the open attempts are of jobs", format!("{:?}", self.open), format!("{:?}", other.open)),
            ("processes hold attempts of jobs", format!("{:?}", self.held), format!("{:?}", other.held)),
            ("the attempts have noted", format!("{:?}", self.memories), format!("{:?}", other.memories)),
        ];
        let (what, one, other) = parts.into_iter().find(|(_, one, other)| one != other)?;
        Some(format!("{what}\n    {one}, and\n    {other}"))
    }
}
