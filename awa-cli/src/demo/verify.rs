//! The proof: every committed file has one completed job whose result equals a direct computation, and no other job
//! exists.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use awa_core::attempt::Receipt;
use awa_core::store::{JobFilter, JobView};
use awa_core::{JobId, JobState, QueueName, Store};

use super::files::FoundFile;
use super::hash_file::{FileHash, HashFile};
use super::producer::{CommittedJob, Produced};
use crate::failure::Failure;

/// What the comparison found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    pub(super) completed: usize,
    pub(super) lost: usize,
    pub(super) mismatched: usize,
    pub(super) changed: usize,
    pub(super) unexpected: usize,
    pub(super) rescued: usize,
    pub(super) retried: usize,
    /// From enqueue to done of each job that completed and was not late, shortest first.
    pub(super) latencies: Vec<Duration>,
    /// From the first enqueue to the last end, by the store's clock.
    pub(super) span: Duration,
    /// The first few things that are wrong, in words.
    pub(super) problems: Vec<String>,
}

/// How many problems are spelled out.
const MAX_PROBLEMS: usize = 10;

/// All jobs of `queue`. More than `expected` by a margin is an error, not an endless read.
pub(super) async fn read_queue(store: &dyn Store, queue: &QueueName, expected: usize) -> Result<Vec<JobView>, Failure> {
    let mut jobs: Vec<JobView> = Vec::with_capacity(expected);
    let mut filter = JobFilter { queue: Some(queue.clone()), limit: JobFilter::MAX_LIMIT, ..JobFilter::default() };
    let max_pages = 2 + 2 * expected.div_ceil(JobFilter::MAX_LIMIT);
    for _ in 0..max_pages {
        let page = store.list(&filter).await?;
        filter.before = page.last().map(|last| last.id);
        let is_last = page.len() < JobFilter::MAX_LIMIT;
        jobs.extend(page);
        if is_last {
            return Ok(jobs);
        }
    }
    Err(Failure::new(format!("queue {queue} holds {} jobs and more, where {expected} were enqueued", jobs.len())))
}

/// Compares the jobs of the queue with what was committed, and results with the files.
pub(super) fn compare(files: &[FoundFile], produced: &Produced, jobs: &[JobView], held: &[Receipt]) -> Findings {
    let by_id: HashMap<JobId, &JobView> = jobs.iter().map(|job| (job.id, job)).collect();
    let expected: HashSet<JobId> = produced.committed.iter().map(|job| job.id).collect();
    let mut findings = Findings { unexpected: jobs.len() - by_id.len(), ..Findings::default() };
    for job in by_id.values().filter(|job| !expected.contains(&job.id)) {
        findings.unexpected += 1;
        findings.problem(format!("job {} is {} and should not exist: {}", job.id, job.state, job.args));
    }
    let truths = direct(files, &produced.committed);
    for (committed, truth) in produced.committed.iter().zip(truths) {
        let file = &files[committed.file];
        let job = by_id.get(&committed.id).copied();
        let Some(job) = job.filter(|job| job.state == JobState::Completed) else {
            findings.lost += 1;
            let state = job.map_or("gone", |job| job.state.as_str());
            let error = job.and_then(|job| job.error.as_ref()).map_or_else(String::new, |error| format!(" ({error})"));
            findings.problem(format!("job {} of {} is {state}{error}", committed.id, file.path));
            continue;
        };
        findings.completed += 1;
        findings.retried += job.attempt.saturating_sub(1) as usize;
        match judge(job, file, truth.as_ref()) {
            Judgement::Equal => {}
            Judgement::Changed => findings.changed += 1,
            Judgement::Mismatch(what) => {
                findings.mismatched += 1;
                findings.problem(format!("job {} of {}: {what}", committed.id, file.path));
            }
        }
        if let Some(ended) = job.finalized_at.filter(|_| !committed.is_late) {
            findings.latencies.push(ended.since(job.created_at));
        }
    }
    let was_run_again = |receipt: &&Receipt| {
        by_id.get(&receipt.job).is_some_and(|job| job.run_lease > receipt.run_lease && job.state == JobState::Completed)
    };
    findings.rescued = held.iter().filter(was_run_again).count();
    findings.retried = findings.retried.saturating_sub(findings.rescued);
    findings.latencies.sort_unstable();
    let first = jobs.iter().map(|job| job.created_at).min();
    let last = jobs.iter().filter_map(|job| job.finalized_at).max();
    findings.span = first.zip(last).map_or(Duration::ZERO, |(first, last)| last.since(first));
    findings
}

impl Findings {
    fn problem(&mut self, problem: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        }
    }
}

/// The hashes of the committed files, computed here and now on all processors.
fn direct(files: &[FoundFile], committed: &[CommittedJob]) -> Vec<Option<FileHash>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = committed.len().div_ceil(threads).max(1);
    let hash = |job: &CommittedJob| FileHash::of(Path::new(&files[job.file].path)).ok();
    std::thread::scope(|scope| {
        let started: Vec<_> = committed
            .chunks(share)
            .map(|part| scope.spawn(move || part.iter().map(hash).collect::<Vec<_>>()))
            .collect();
        started.into_iter().flat_map(|part| part.join().expect("reading a file returns errors")).collect()
    })
}

enum Judgement {
    Equal,
    /// The file is not what it was, so that nothing follows.
    Changed,
    Mismatch(String),
}

/// Compares one result with the truth. A file that changed in between is read once more.
fn judge(job: &JobView, file: &FoundFile, truth: Option<&FileHash>) -> Judgement {
    let args: Result<HashFile, _> = job.args.decode();
    if !args.is_ok_and(|args| args.path == file.path) {
        return Judgement::Mismatch(format!("it has the arguments of another job: {}", job.args));
    }
    let result: Option<FileHash> = job.result.as_ref().and_then(|result| result.decode().ok());
    let Some(result) = result else {
        let result = job.result.as_ref().map_or("none", |result| result.as_str());
        return Judgement::Mismatch(format!("its result is not that of a hash: {result}"));
    };
    if truth == Some(&result) || FileHash::of(Path::new(&file.path)).ok().as_ref() == Some(&result) {
        return Judgement::Equal;
    }
    if file.has_changed() {
        return Judgement::Changed;
    }
    Judgement::Mismatch(format!("its result {result:?} differs from {truth:?}"))
}

#[cfg(test)]
mod tests;
