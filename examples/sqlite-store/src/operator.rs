use async_trait::async_trait;
use awa_core::attempt::ErrorText;
use awa_core::ring::RingKind;
use awa_core::store::{
    Accuracy, Acted, CensusCount, Counts, Grown, JobFilter, JobView, MoveTo, Operator, PurgeScope, Purged, QueueCounts,
    QueueView, Refusal,
};
use awa_core::unique::KeyStates;
use awa_core::{JobId, JobKind, JobState, QueueName, QueueSettings, StoreError, Timestamp};
use rusqlite::{Transaction, params};

use crate::SqliteStore;
use crate::job::{Job, job_by_id, jobs_where};
use crate::missing::missing;

#[async_trait]
impl Operator for SqliteStore {
    async fn get(&self, job: JobId) -> Result<Option<JobView>, StoreError> {
        self.step("get", |transaction, _| Ok(job_by_id(transaction, job)?.map(|job| job.view)))
    }

    async fn list(&self, filter: &JobFilter) -> Result<Vec<JobView>, StoreError> {
        self.step("list", |transaction, _| {
            let all_hold = "(?1 IS NULL OR queue = ?1) AND (?2 IS NULL OR state = ?2) AND (?3 IS NULL OR kind = ?3)
                            AND (?4 IS NULL OR id < ?4) ORDER BY id DESC LIMIT ?5";
            let params = params![
                filter.queue.as_ref().map(QueueName::as_str),
                filter.state.map(JobState::as_str),
                filter.kind.as_ref().map(JobKind::as_str),
                filter.before.map(JobId::get),
                filter.limit.clamp(1, JobFilter::MAX_LIMIT) as i64,
            ];
            Ok(jobs_where(transaction, all_hold, params)?.into_iter().map(|job| job.view).collect())
        })
    }

    async fn queues(&self) -> Result<Vec<QueueView>, StoreError> {
        self.step("queues", |transaction, _| {
            let sql = "SELECT q.queue, coalesce((SELECT paused FROM queues AS p WHERE p.queue = q.queue), 0),
                           count(j.id) FILTER (WHERE j.state = 'ready'),
                           count(j.id) FILTER (WHERE j.state = 'running'),
                           count(j.id) FILTER (WHERE j.state = 'deferred'),
                           count(j.id) FILTER (WHERE j.state = 'waiting'),
                           count(j.id) FILTER (WHERE j.state IN ('completed', 'failed', 'cancelled')),
                           count(j.id) FILTER (WHERE j.state = 'dead')
                       FROM (SELECT queue FROM queues UNION SELECT queue FROM jobs) AS q
                       LEFT JOIN jobs AS j ON j.queue = q.queue
                       GROUP BY q.queue ORDER BY q.queue";
            let count = |row: &rusqlite::Row<'_>, column| row.get::<_, i64>(column).map(i64::unsigned_abs);
            let read = |row: &rusqlite::Row<'_>| {
                Ok(QueueView {
                    queue: QueueName::trusted(row.get::<_, String>(0)?),
                    paused: row.get(1)?,
                    ready: count(row, 2)?,
                    running: count(row, 3)?,
                    deferred: count(row, 4)?,
                    waiting: count(row, 5)?,
                    finished: count(row, 6)?,
                    dead: count(row, 7)?,
                })
            };
            transaction.prepare_cached(sql)?.query_map([], read)?.collect()
        })
    }

    async fn census(&self) -> Result<Vec<CensusCount>, StoreError> {
        self.step("census", |transaction, _| {
            let mut statement = transaction.prepare_cached("SELECT count(*) FROM jobs WHERE state = ?1")?;
            let mut counts = Vec::with_capacity(JobState::ALL.len());
            for state in JobState::ALL {
                let jobs: i64 = statement.query_row([state.as_str()], |row| row.get(0))?;
                counts.push(CensusCount { state, jobs: jobs.unsigned_abs() });
            }
            Ok(counts)
        })
    }

    async fn cancel(&self, jobs: &[JobId], reason: &ErrorText) -> Result<Vec<Acted>, StoreError> {
        self.step("cancel", |transaction, now| {
            each(transaction, jobs, |job| {
                if !job.view.state.may_become(JobState::Cancelled) {
                    return Ok(Err(Refusal::WrongState(job.view.state)));
                }
                job.cancel(transaction, reason, now).map(Ok)
            })
        })
    }

    async fn retry(&self, jobs: &[JobId]) -> Result<Vec<Acted>, StoreError> {
        self.step("retry", |transaction, now| each(transaction, jobs, |job| retry_one(transaction, job, now)))
    }

    async fn set_paused(&self, queue: &QueueName, paused: bool) -> Result<(), StoreError> {
        self.step("set_paused", |transaction, _| {
            let sql =
                "INSERT INTO queues (queue, paused) VALUES (?1, ?2) ON CONFLICT (queue) DO UPDATE SET paused = ?2";
            transaction.execute(sql, params![queue.as_str(), paused]).map(drop)
        })
    }

    async fn configure_queue(&self, _: &QueueName, _: &QueueSettings) -> Result<(), StoreError> {
        Err(missing("configure_queue"))
    }

    async fn queue_settings(&self, _: &QueueName) -> Result<QueueSettings, StoreError> {
        Ok(QueueSettings::default())
    }

    async fn move_jobs(&self, _: &[JobId], _: &MoveTo) -> Result<Vec<Acted>, StoreError> {
        Err(missing("move_jobs"))
    }

    async fn purge_queue(&self, _: &QueueName, _: PurgeScope) -> Result<Purged, StoreError> {
        Err(missing("purge_queue"))
    }

    async fn delete(&self, jobs: &[JobId]) -> Result<Vec<Acted>, StoreError> {
        self.step("delete", |transaction, _| {
            each(transaction, jobs, |job| {
                if !job.view.state.is_terminal() {
                    return Ok(Err(Refusal::WrongState(job.view.state)));
                }
                transaction.execute("DELETE FROM jobs WHERE id = ?1", [job.view.id.get()]).map(|_| Ok(()))
            })
        })
    }

    /// Counting is a walk over an index here, so an estimate is as exact as an exact count.
    async fn counts(&self, accuracy: Accuracy) -> Result<Counts, StoreError> {
        self.step("counts", |transaction, _| {
            let sql = "SELECT q.queue, coalesce((SELECT paused FROM queues AS p WHERE p.queue = q.queue), 0)
                       FROM (SELECT queue FROM queues UNION SELECT queue FROM jobs) AS q ORDER BY q.queue";
            let named = |row: &rusqlite::Row<'_>| {
                Ok(QueueCounts::empty(QueueName::trusted(row.get::<_, String>(0)?), row.get(1)?))
            };
            let queues: Vec<QueueCounts> =
                transaction.prepare_cached(sql)?.query_map([], named)?.collect::<rusqlite::Result<_>>()?;
            queues.into_iter().map(|counts| count_queue(transaction, counts)).collect::<rusqlite::Result<Vec<_>>>()
        })
        .map(|queues| Counts::new(accuracy, queues))
    }

    async fn grow_ring(&self, _: RingKind, _: u8) -> Result<Grown, StoreError> {
        Err(missing("grow_ring"))
    }
}

/// Counts the jobs of one queue.
fn count_queue(transaction: &Transaction<'_>, mut counts: QueueCounts) -> rusqlite::Result<QueueCounts> {
    let sql = "SELECT count(*) FILTER (WHERE NOT is_gone), count(*) FILTER (WHERE NOT is_gone) + coalesce(sum(gone), 0)
               FROM (SELECT 0 AS is_gone, 0 AS gone FROM jobs WHERE queue = ?1 AND state = ?2
                     UNION ALL SELECT 1, jobs FROM ended WHERE queue = ?1 AND state = ?2)";
    let mut statement = transaction.prepare_cached(sql)?;
    for state in JobState::ALL {
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        let (jobs, ever) = statement.query_row([counts.queue.as_str(), state.as_str()], read)?;
        let ever = if state.is_terminal() && state != JobState::Dead { ever } else { 0 };
        counts.add(state, jobs.unsigned_abs(), ever.unsigned_abs());
    }
    Ok(counts)
}

/// One answer per id, in input order.
fn each(
    transaction: &Transaction<'_>,
    jobs: &[JobId],
    mut act: impl FnMut(Job) -> rusqlite::Result<Result<(), Refusal>>,
) -> rusqlite::Result<Vec<Acted>> {
    let answers = jobs.iter().map(|id| {
        let Some(job) = job_by_id(transaction, *id)? else { return Ok(Acted::Refused(Refusal::NotFound)) };
        let from = job.view.state;
        Ok(act(job)?.map_or_else(Acted::Refused, |()| Acted::Done { from }))
    });
    answers.collect()
}

fn retry_one(transaction: &Transaction<'_>, mut job: Job, now: Timestamp) -> rusqlite::Result<Result<(), Refusal>> {
    match job.view.state {
        JobState::Deferred => {}
        JobState::Dead => {
            let holds_in = |state| job.key_states & KeyStates::bit(state) != 0;
            // It takes the key again that it gave back when it died.
            if holds_in(JobState::Running) && !holds_in(JobState::Dead) {
                let held = "unique_key = ?1 AND holds_key = 1";
                if let Some(holder) = jobs_where(transaction, held, [job.key.as_deref()])?.pop() {
                    return Ok(Err(Refusal::KeyTaken(holder.view.id)));
                }
                job.holds_key = true;
            }
            job.view.attempt = 0;
        }
        state => return Ok(Err(Refusal::WrongState(state))),
    }
    job.make_ready(transaction, now).map(Ok)
}
