use std::time::Duration;

use async_trait::async_trait;
use awa_core::retry::{Disposition, RetryPolicy};
use awa_core::ring::{RingKind, RotationPolicy, StayReason};
use awa_core::store::{
    Drained, Maintainer, Promoted, PruneReport, RescueRequest, Rescued, RescuedAttempt, RetentionPolicy, Rotated, Task,
    Unpinned,
};
use awa_core::sweep::{LifeSigns, RescueCause, RescuerHealth};
use awa_core::unpin::UnpinPolicy;
use awa_core::{AttemptEnd, InstanceId, QueueName, StoreError, Timestamp};
use rusqlite::{OptionalExtension, Transaction, params};

use crate::SqliteStore;
use crate::consumer::{beats_of, micros};
use crate::job::{Job, jobs_where};

/// After this silence a process that holds nothing is forgotten.
const FORGET_AFTER: Duration = Duration::from_hours(1);

#[async_trait]
impl Maintainer for SqliteStore {
    async fn try_tick(&self, task: Task, every: Duration) -> Result<bool, StoreError> {
        self.step("try_tick", |transaction, now| {
            let sql = "INSERT INTO ticks (task, at) VALUES (?1, ?2)
                       ON CONFLICT (task) DO UPDATE SET at = ?2 WHERE ?2 - at >= ?3";
            let turns = transaction.execute(sql, params![task.as_str(), now.as_micros(), micros(every)])?;
            Ok(turns == 1)
        })
    }

    async fn promote(&self, limit: usize) -> Result<Promoted, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX - 1);
        self.step("promote", |transaction, now| {
            let due = "state = 'deferred' AND run_at <= ?1 ORDER BY run_at, id LIMIT ?2";
            let mut jobs = jobs_where(transaction, due, params![now.as_micros(), limit + 1])?;
            let more = jobs.len() as i64 > limit;
            jobs.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            let promoted = Promoted { jobs: jobs.len(), more };
            for job in jobs {
                job.make_ready(transaction, now)?;
            }
            Ok(promoted)
        })
    }

    async fn rescue(&self, request: &RescueRequest, retry: &RetryPolicy) -> Result<Rescued, StoreError> {
        self.step("rescue", |transaction, now| {
            let mut rescued = Rescued::default();
            let beats = beats_of(transaction, request.rescuer)?;
            if !RescuerHealth::of(beats, now, request.staleness).may_rescue() {
                rescued.rescuer_too_young = true;
                return Ok(rescued);
            }
            for job in jobs_where(transaction, "receipt IS NOT NULL ORDER BY receipt", [])? {
                let Some(cause) = cause(transaction, &job, request.staleness, now)? else { continue };
                if rescued.attempts.len() >= request.page {
                    rescued.more = true;
                    break;
                }
                rescued.attempts.push(rescue_one(transaction, job, cause, request.staleness, retry, now)?);
            }
            Ok(rescued)
        })
    }

    async fn rotate(&self, _: RingKind, _: &RotationPolicy) -> Result<Rotated, StoreError> {
        Ok(Rotated::Stayed(StayReason::OpenSlotEmpty)) // there are no rings
    }

    async fn drain(&self) -> Result<Drained, StoreError> {
        Ok(Drained::default())
    }

    async fn unpin(&self, _: &UnpinPolicy) -> Result<Unpinned, StoreError> {
        Ok(Unpinned::default())
    }

    async fn prune(&self, ring: RingKind, retention: &RetentionPolicy) -> Result<Vec<PruneReport>, StoreError> {
        if ring == RingKind::Queue {
            self.step("prune", |transaction, now| {
                let sql = "DELETE FROM jobs WHERE state = ?1 AND finalized_at <= ?2";
                let kept = [
                    ("completed", retention.completed),
                    ("failed", retention.failed),
                    ("cancelled", retention.cancelled),
                ];
                for (state, time) in kept {
                    transaction.execute(sql, (state, now.saturating_sub(time).as_micros()))?;
                }
                Ok(())
            })?;
        }
        Ok(Vec::new()) // no slot to report about
    }

    async fn tidy(&self) -> Result<(), StoreError> {
        self.step("tidy", |transaction, now| {
            let sql = "DELETE FROM instances WHERE (retired = 1 OR last <= ?1)
                           AND instance NOT IN (SELECT instance FROM jobs WHERE receipt IS NOT NULL)";
            transaction.execute(sql, [now.saturating_sub(FORGET_AFTER).as_micros()]).map(drop)
        })
    }

    async fn open_queue(&self, queue: &QueueName) -> Result<(), StoreError> {
        self.step("open_queue", |transaction, _| {
            transaction.execute("INSERT OR IGNORE INTO queues (queue) VALUES (?1)", [queue.as_str()]).map(drop)
        })
    }

    async fn forget_dead(&self, age: Duration, limit: usize) -> Result<usize, StoreError> {
        self.step("forget_dead", |transaction, now| {
            let sql = "DELETE FROM jobs WHERE id IN (
                           SELECT id FROM jobs WHERE state = 'dead' AND finalized_at <= ?1 ORDER BY finalized_at LIMIT ?2)";
            let latest = now.as_micros().saturating_sub(i64::try_from(age.as_micros()).unwrap_or(i64::MAX));
            transaction.execute(sql, params![latest, i64::try_from(limit).unwrap_or(i64::MAX)])
        })
    }

    async fn open_queues(&self, queues: &[QueueName]) -> Result<(), StoreError> {
        self.step("open_queues", |transaction, _| {
            let mut open = transaction.prepare_cached("INSERT OR IGNORE INTO queues (queue) VALUES (?1)")?;
            queues.iter().try_for_each(|queue| open.execute([queue.as_str()]).map(drop))
        })
    }
}

fn cause(
    transaction: &Transaction<'_>,
    job: &Job,
    staleness: Duration,
    now: Timestamp,
) -> rusqlite::Result<Option<RescueCause>> {
    let Some((instance, claimed_at, deadline_at)) = job.claim() else { return Ok(None) };
    if is_gone(transaction, instance, claimed_at, staleness, now)? {
        return Ok(Some(RescueCause::Gone));
    }
    Ok(deadline_at.is_some_and(|deadline| deadline <= now).then_some(RescueCause::DeadlineOver))
}

/// Whether a worker has given no sign of life for too long, or has said goodbye.
fn is_gone(
    transaction: &Transaction<'_>,
    instance: InstanceId,
    claimed_at: Timestamp,
    staleness: Duration,
    now: Timestamp,
) -> rusqlite::Result<bool> {
    let sql = "SELECT last, staleness, retired FROM instances WHERE instance = ?1";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, bool>(2)?));
    let process = transaction.query_row(sql, [instance.0], read).optional()?;
    // A process may ask for more patience than the rescuer has, never for less.
    let own = process.map_or(Duration::ZERO, |(_, own, _)| Duration::from_micros(own.unsigned_abs()));
    let instance_seen_at = process.map(|(last, ..)| Timestamp::from_micros(last));
    let signs = LifeSigns { claimed_at, instance_seen_at, attempt_seen_at: None };
    Ok(process.is_some_and(|(.., retired)| retired) || signs.is_stale(now, staleness.max(own)))
}

/// Ends one attempt the way its handler would have ended it with an error.
fn rescue_one(
    transaction: &Transaction<'_>,
    job: Job,
    cause: RescueCause,
    staleness: Duration,
    retry: &RetryPolicy,
    now: Timestamp,
) -> rusqlite::Result<RescuedAttempt> {
    let disposition = retry.after_failure(job.budget(), None, 0.0);
    let report = RescuedAttempt {
        job: job.view.id,
        queue: job.view.queue.clone(),
        run_lease: job.view.run_lease,
        exhausted: disposition == Disposition::Exhausted,
        cause,
    };
    let error = cause.error(staleness, job.budget(), &disposition);
    let end = match disposition {
        Disposition::Retry { delay } => AttemptEnd::Retry { delay, error },
        Disposition::Exhausted => AttemptEnd::Fail { error },
    };
    job.end(transaction, &end, now)?;
    Ok(report)
}
