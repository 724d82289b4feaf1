use std::time::Duration;

use async_trait::async_trait;
use awa_core::attempt::Receipt;
use awa_core::job::Priority;
use awa_core::store::{ClaimRequest, Claimed, Consumer, Peeked};
use awa_core::sweep::Beats;
use awa_core::{BatchId, Closure, ClosureAnswer, InstanceId, QueueName, ReceiptId, StoreError, Timestamp};
use rusqlite::{OptionalExtension, Transaction, params};

use crate::job::{Claim, Job, jobs_where};
use crate::{SqliteStore, next_number};

#[async_trait]
impl Consumer for SqliteStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed, StoreError> {
        self.step("claim", |transaction, now| {
            let mut claimed = Claimed::default();
            let lanes = lanes_by_urgency(transaction, request, now)?;
            if lanes.is_empty() {
                return Ok(claimed); // and nothing was written
            }
            let batch = BatchId(next_number(transaction, "batch")?);
            let (mut jobs, mut bytes) = (request.max_jobs.get(), request.max_bytes.max(1));
            for priority in lanes {
                let before = jobs;
                let lane = "queue = ?1 AND priority = ?2 AND state = 'ready' ORDER BY place LIMIT ?3";
                for job in jobs_where(transaction, lane, params![request.queue.as_str(), priority.get(), jobs])? {
                    if bytes == 0 {
                        break;
                    }
                    let claim = Claim {
                        receipt: ReceiptId::new(batch, request.max_jobs.get() - jobs + 1),
                        nonce: request.nonce,
                        instance: request.instance,
                        deadline_at: request.deadline.map(|length| now.saturating_add(length)),
                    };
                    jobs -= 1;
                    bytes = bytes.saturating_sub(job.view.args.as_str().len() as u64);
                    claimed.jobs.push(job.start(transaction, claim, now)?);
                }
                if jobs < before {
                    take_turn(transaction, &request.queue, priority)?;
                }
                if jobs == 0 || bytes == 0 {
                    break;
                }
            }
            claimed.more = jobs > 0 && !lanes_by_urgency(transaction, request, now)?.is_empty();
            Ok(claimed)
        })
    }

    async fn close(&self, closures: &[Closure]) -> Result<Vec<ClosureAnswer>, StoreError> {
        self.step("close", |transaction, now| {
            let answers = closures.iter().map(|Closure { receipt, end }| match open_attempt(transaction, receipt)? {
                Some(job) => job.end(transaction, end, now).map(|()| ClosureAnswer::Closed),
                None => Ok(ClosureAnswer::Stale),
            });
            answers.collect()
        })
    }

    async fn beat(&self, instance: InstanceId, staleness: Duration) -> Result<(), StoreError> {
        self.step("beat", |transaction, now| {
            let beats = beats_of(transaction, instance)?.map_or(Beats::first(now), |beats| beats.beat(now, staleness));
            let sql = "INSERT INTO instances (instance, since, last, staleness) VALUES (?1, ?2, ?3, ?4)
                       ON CONFLICT (instance) DO UPDATE SET since = ?2, last = ?3, staleness = ?4";
            let (since, last) = (beats.since.as_micros(), beats.last.as_micros());
            transaction.execute(sql, params![instance.0, since, last, micros(staleness)]).map(drop)
        })
    }

    async fn retire(&self, instance: InstanceId) -> Result<(), StoreError> {
        self.step("retire", |transaction, now| {
            let sql = "INSERT INTO instances (instance, since, last, staleness, retired) VALUES (?1, ?2, ?2, 0, 1)
                       ON CONFLICT (instance) DO UPDATE SET retired = 1";
            transaction.execute(sql, params![instance.0, now.as_micros()]).map(drop)
        })
    }

    async fn open_attempts(&self, instance: InstanceId, limit: usize) -> Result<Vec<Receipt>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.step("open_attempts", |transaction, _| {
            let theirs = "receipt IS NOT NULL AND instance = ?1 ORDER BY claimed_at, receipt LIMIT ?2";
            let jobs = jobs_where(transaction, theirs, params![instance.0, limit])?;
            Ok(jobs.iter().filter_map(Job::receipt).collect())
        })
    }

    async fn are_open(&self, receipts: &[Receipt]) -> Result<Vec<bool>, StoreError> {
        self.step("are_open", |transaction, _| {
            receipts.iter().map(|receipt| Ok(open_attempt(transaction, receipt)?.is_some())).collect()
        })
    }

    async fn peek(&self, queues: &[QueueName]) -> Result<Peeked, StoreError> {
        self.step("peek", |transaction, _| {
            let waiting = queues.iter().map(|queue| has_work(transaction, queue)).collect::<Result<_, _>>()?;
            Ok(Peeked { waiting, ..Peeked::default() }) // horizons are for wake-ups, and there are none
        })
    }
}

/// Whether a claim would find something.
fn has_work(transaction: &Transaction<'_>, queue: &QueueName) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM jobs WHERE queue = ?1 AND state = 'ready')
                   AND NOT EXISTS (SELECT 1 FROM queues WHERE queue = ?1 AND paused)";
    transaction.prepare_cached(sql)?.query_row([queue.as_str()], |row| row.get(0))
}

/// The lanes of a queue that have jobs, the most urgent first; equals take turns.
fn lanes_by_urgency(
    transaction: &Transaction<'_>,
    request: &ClaimRequest,
    now: Timestamp,
) -> rusqlite::Result<Vec<Priority>> {
    let queue = request.queue.as_str();
    let sql = "SELECT paused FROM queues WHERE queue = ?1";
    let paused: Option<bool> = transaction.query_row(sql, [queue], |row| row.get(0)).optional()?;
    if paused == Some(true) {
        return Ok(Vec::new());
    }
    let head = "SELECT ready_at, coalesce((SELECT turn FROM turns WHERE queue = ?1 AND priority = ?2), 0)
                FROM jobs WHERE queue = ?1 AND priority = ?2 AND state = 'ready' ORDER BY place LIMIT 1";
    let mut lanes = Vec::new();
    for priority in Priority::ALL {
        let head = transaction
            .prepare_cached(head)?
            .query_row(params![queue, priority.get()], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)))
            .optional()?;
        if let Some((ready_at, turn)) = head {
            lanes.push((aged(priority, now.since(Timestamp::from_micros(ready_at)), request.aging), turn, priority));
        }
    }
    lanes.sort_unstable();
    Ok(lanes.into_iter().map(|(_, _, priority)| priority).collect())
}

/// The priority that counts after a wait: one step more urgent for each full interval.
fn aged(priority: Priority, waited: Duration, interval: Option<Duration>) -> Priority {
    let Some(interval) = interval.filter(|interval| !interval.is_zero()) else { return priority };
    let steps = i16::try_from(waited.as_micros() / interval.as_micros().max(1)).unwrap_or(i16::MAX);
    Priority::new(priority.get().saturating_sub(steps)).unwrap_or(Priority::URGENT)
}

fn take_turn(transaction: &Transaction<'_>, queue: &QueueName, priority: Priority) -> rusqlite::Result<()> {
    let sql = "INSERT INTO turns (queue, priority, turn) VALUES (?1, ?2, ?3)
               ON CONFLICT (queue, priority) DO UPDATE SET turn = ?3";
    let turn = next_number(transaction, "turn")?;
    transaction.execute(sql, params![queue.as_str(), priority.get(), turn]).map(drop)
}

/// The job whose open attempt this receipt names: every part of it must fit (C3).
fn open_attempt(transaction: &Transaction<'_>, receipt: &Receipt) -> rusqlite::Result<Option<Job>> {
    let found = jobs_where(transaction, "receipt = ?1", [receipt.id.get()])?.pop();
    Ok(found.filter(|job| job.receipt() == Some(*receipt)))
}

/// The signs of life of a process.
pub(crate) fn beats_of(transaction: &Transaction<'_>, instance: InstanceId) -> rusqlite::Result<Option<Beats>> {
    let sql = "SELECT since, last FROM instances WHERE instance = ?1";
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Beats { since: Timestamp::from_micros(row.get(0)?), last: Timestamp::from_micros(row.get(1)?) })
    };
    transaction.query_row(sql, [instance.0], read).optional()
}

pub(crate) fn micros(length: Duration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX)
}
