use async_trait::async_trait;
use awa_core::attempt::ErrorText;
use awa_core::job::{Enqueued, NewJob, RunAt};
use awa_core::store::{DeferredReason, Producer};
use awa_core::unique::OnConflict;
use awa_core::{JobId, JobState, JsonText, StoreError, Timestamp};
use rusqlite::{Transaction, params};

use crate::job::{Job, jobs_where};
use crate::{SqliteStore, next_number};

#[async_trait]
impl Producer for SqliteStore {
    async fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        self.step("enqueue", |transaction, now| {
            let mut answers: Vec<Enqueued> = Vec::with_capacity(jobs.len());
            for job in jobs {
                let answer = enqueue_one(transaction, job, &mut answers, now)?;
                answers.push(answer);
            }
            Ok(answers)
        })
    }
}

/// Stores a job, unless another holds its key. `earlier` are the answers of the same call.
fn enqueue_one(
    transaction: &Transaction<'_>,
    job: &NewJob,
    earlier: &mut [Enqueued],
    now: Timestamp,
) -> rusqlite::Result<Enqueued> {
    let key = job.unique().map(|unique| unique.key.at(now));
    let holder = match &key {
        Some(key) => jobs_where(transaction, "unique_key = ?1 AND holds_key = 1", [key.as_bytes()])?.pop(),
        None => None,
    };
    let (Some(holder), Some(unique)) = (holder, job.unique()) else {
        return insert(transaction, job, now).map(Enqueued::Inserted);
    };
    let old = holder.view.id;
    let is_of_this_call = earlier.iter().any(|answer| answer.is_inserted() && answer.id() == old);
    if unique.on_conflict != OnConflict::Replace || is_of_this_call || !is_replaceable(&holder) {
        return Ok(Enqueued::of_conflict(old, unique.on_conflict));
    }
    // The holder must give the key back before the new job can take it.
    let number = next_job(transaction)?;
    holder.cancel(transaction, &ErrorText::new(format!("replaced by job {number}")), now)?;
    let new = insert(transaction, job, now)?;
    // Whoever was told of the holder within this call is told of the job that now stands for it.
    for answer in earlier {
        match answer {
            Enqueued::Duplicate(id) | Enqueued::Refused(id) if *id == old => *id = new,
            _ => {}
        }
    }
    Ok(Enqueued::Replaced { new, old })
}

/// Whether a job waits and has never been claimed.
fn is_replaceable(holder: &Job) -> bool {
    matches!(holder.view.state, JobState::Ready | JobState::Deferred)
}

/// The id of the next job that is inserted.
fn next_job(transaction: &Transaction<'_>) -> rusqlite::Result<JobId> {
    let sql = "SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'jobs'";
    transaction.query_row(sql, [], |row| row.get(0)).map(JobId)
}

fn insert(transaction: &Transaction<'_>, job: &NewJob, now: Timestamp) -> rusqlite::Result<JobId> {
    let run_at = match job.run_at() {
        RunAt::At(at) => at,
        RunAt::After(delay) => now.saturating_add(delay),
        _ => now,
    };
    let is_due = run_at <= now;
    let (state, reason) =
        if is_due { (JobState::Ready, None) } else { (JobState::Deferred, Some(DeferredReason::Scheduled)) };
    let place = if is_due { next_number(transaction, "place")? } else { 0 };
    let sql =
        "INSERT INTO jobs (state, queue, kind, priority, args, metadata, max_attempts, created_at, place, ready_at,
                   run_at, deferred, unique_key, key_states, holds_key)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?8, ?10, ?11, ?12, ?13, ?14)";
    let unique = job.unique();
    let key = unique.map(|unique| unique.key.at(now));
    transaction.prepare_cached(sql)?.execute(params![
        state.as_str(),
        job.queue().as_str(),
        job.kind().as_str(),
        job.priority().get(),
        job.args().as_str(),
        job.metadata().map(JsonText::as_str),
        job.max_attempts().get(),
        now.as_micros(),
        place,
        (!is_due).then_some(run_at.as_micros()),
        reason.map(DeferredReason::as_str),
        key.as_ref().map(awa_core::unique::StoredKey::as_bytes),
        unique.map_or(0, |unique| unique.states.mask()),
        unique.is_some(),
    ])?;
    Ok(JobId(transaction.last_insert_rowid()))
}
