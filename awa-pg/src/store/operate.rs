//! Looking at jobs and intervening.

use awa_core::attempt::ErrorText;
use awa_core::error::{StoreError, StoreErrorKind};
use awa_core::id::{JobId, RunLease};
use awa_core::job::{MaxAttempts, Priority};
use awa_core::json::JsonText;
use awa_core::name::{JobKind, QueueName};
use awa_core::queue::{QueueSettings, ShardCount};
use awa_core::state::JobState;
use awa_core::store::{
    Acted, CensusCount, DeferredReason, JobFilter, JobView, MoveTo, PurgeScope, Purged, QueueView, Refusal,
};

use super::{Clock, PgStore, only_row, undecodable};
use crate::session::{Session, Statement};
use crate::sql::Sql;
use crate::value::{Param, Row, types};

impl PgStore {
    /// See [`Operator::get`](awa_core::store::Operator::get).
    pub async fn get(&self, job: JobId) -> Result<Option<JobView>, StoreError> {
        const OPERATION: &str = "get";
        let rows = self.call(OPERATION, self.sql.statement("operate/job"), &[Param::I64(job.0)]).await?;
        rows.first().map(|row| read_job(OPERATION, row)).transpose()
    }

    /// See [`Operator::list`](awa_core::store::Operator::list).
    pub async fn list(&self, filter: &JobFilter) -> Result<Vec<JobView>, StoreError> {
        const OPERATION: &str = "list";
        let text =
            |text: Option<&str>| text.map_or(Param::Null(types::TEXT), |text| Param::Text(text.to_owned().into()));
        let params = [
            text(filter.queue.as_ref().map(QueueName::as_str)),
            text(filter.state.map(JobState::as_str)),
            text(filter.kind.as_ref().map(JobKind::as_str)),
            filter.before.map_or(Param::Null(types::INT8), |id| Param::I64(id.0)),
            Param::I64(filter.limit.clamp(1, JobFilter::MAX_LIMIT) as i64),
        ];
        let rows = self.call(OPERATION, self.sql.statement("operate/jobs"), &params).await?;
        rows.iter().map(|row| read_job(OPERATION, row)).collect()
    }

    /// See [`Operator::queues`](awa_core::store::Operator::queues).
    pub async fn queues(&self) -> Result<Vec<QueueView>, StoreError> {
        const OPERATION: &str = "queues";
        let rows = self.call(OPERATION, self.sql.statement("operate/queues"), &[]).await?;
        let read = |row: &Row| {
            let bad = undecodable(OPERATION);
            let count = |column| row.i64(column).map(i64::unsigned_abs).map_err(&bad);
            Ok(QueueView {
                queue: QueueName::trusted(row.text(0).map_err(&bad)?),
                paused: row.bool(1).map_err(&bad)?,
                ready: count(2)?,
                running: count(3)?,
                deferred: count(4)?,
                finished: count(5)?,
                dead: count(6)?,
                waiting: count(7)?,
            })
        };
        rows.iter().map(read).collect()
    }

    /// See [`Operator::census`](awa_core::store::Operator::census).
    pub async fn census(&self) -> Result<Vec<CensusCount>, StoreError> {
        const OPERATION: &str = "census";
        let rows = self.call(OPERATION, self.sql.statement("operate/census"), &[]).await?;
        let mut counts = JobState::ALL.map(|state| CensusCount { state, jobs: 0 });
        for row in &rows {
            let bad = undecodable(OPERATION);
            let state = row.opt_text(0).map_err(&bad)?;
            let (jobs, distinct) = (row.i64(1).map_err(&bad)?, row.i64(2).map_err(&bad)?);
            if jobs != distinct {
                let (more, state) = (jobs - distinct, state.unwrap_or("in two states"));
                let problem = format!("{more} jobs are {state} more than once; nothing was guessed");
                return Err(StoreError::new(StoreErrorKind::Corrupt, OPERATION, problem));
            }
            let Some(state) = state.map(str::parse::<JobState>).transpose()? else { continue };
            if let Some(count) = counts.iter_mut().find(|count| count.state == state) {
                count.jobs = jobs.unsigned_abs();
            }
        }
        Ok(counts.to_vec())
    }

    /// See [`Operator::cancel`](awa_core::store::Operator::cancel).
    pub async fn cancel(&self, jobs: &[JobId], reason: &ErrorText) -> Result<Vec<Acted>, StoreError> {
        let params = [Param::Text(reason.as_str().into()), self.clock.param()];
        self.act_in_parts("cancel", self.sql.statement("operate/cancel"), jobs, &params).await
    }

    /// See [`Operator::move_jobs`](awa_core::store::Operator::move_jobs).
    pub async fn move_jobs(&self, jobs: &[JobId], to: &MoveTo) -> Result<Vec<Acted>, StoreError> {
        let params = [
            to.new_queue().map_or(Param::Null(types::TEXT), |queue| Param::Text(queue.as_str().into())),
            to.new_priority().map_or(Param::Null(types::INT2), |priority| Param::I16(priority.get())),
            self.clock.param(),
        ];
        self.act_in_parts("move_jobs", self.sql.statement("operate/move"), jobs, &params).await
    }

    /// See [`Operator::purge_queue`](awa_core::store::Operator::purge_queue).
    pub async fn purge_queue(&self, queue: &QueueName, scope: PurgeScope) -> Result<Purged, StoreError> {
        const OPERATION: &str = "purge_queue";
        let params = [Param::Text(queue.as_str().into()), Param::Bool(scope == PurgeScope::ReadyAndDeferred)];
        let mut session = self.pool.session().await.map_err(|error| error.into_store_error(OPERATION))?;
        let rows = self.query_alone(session.as_mut(), self.sql.statement("operate/purge"), &params).await;
        let rows = rows.map_err(|error| error.into_store_error(OPERATION))?;
        let (row, bad) = (only_row(OPERATION, &rows)?, undecodable(OPERATION));
        Ok(Purged { jobs: row.i64(0).map_err(&bad)?.unsigned_abs(), contended: row.bool(1).map_err(&bad)? })
    }

    /// Carries out wishes about jobs that others may be about to change in open transactions; `params` follow the ids.
    async fn act_in_parts(
        &self,
        operation: &'static str,
        statement: &Statement,
        jobs: &[JobId],
        params: &[Param<'_>],
    ) -> Result<Vec<Acted>, StoreError> {
        let mut answers = Vec::with_capacity(jobs.len());
        // A job whose attempt somebody is ending in an open transaction fails the statement; it is found by halving, so
        // that it keeps no other back. All on one session: on another one, the locks of the failed part might still be
        // in the way.
        let mut session = self.pool.session().await.map_err(|error| error.into_store_error(operation))?;
        let mut waiting = vec![jobs];
        while let Some(part) = waiting.pop() {
            let params = [&[ids(part)][..], params].concat();
            match self.act(operation, session.as_mut(), statement, part.len(), &params).await {
                Err(error) if error.kind() == StoreErrorKind::Contended => {
                    if part.len() == 1 {
                        answers.push(Acted::Refused(Refusal::Contended));
                    } else {
                        let (left, right) = part.split_at(part.len() / 2);
                        waiting.extend([right, left]);
                    }
                }
                acted => answers.extend(acted?),
            }
        }
        Ok(answers)
    }

    /// See [`Operator::retry`](awa_core::store::Operator::retry).
    pub async fn retry(&self, jobs: &[JobId]) -> Result<Vec<Acted>, StoreError> {
        let mut session = self.pool.session().await.map_err(|error| error.into_store_error("retry"))?;
        let params = [ids(jobs), self.clock.param()];
        self.act("retry", session.as_mut(), self.sql.statement("operate/retry"), jobs.len(), &params).await
    }

    /// See [`Operator::delete`](awa_core::store::Operator::delete).
    pub async fn delete(&self, jobs: &[JobId]) -> Result<Vec<Acted>, StoreError> {
        let mut session = self.pool.session().await.map_err(|error| error.into_store_error("delete"))?;
        let params = [ids(jobs), self.clock.param()];
        self.act("delete", session.as_mut(), self.sql.statement("operate/delete"), jobs.len(), &params).await
    }

    /// Carries out wishes, one answer each.
    async fn act(
        &self,
        operation: &'static str,
        session: &mut dyn Session,
        statement: &Statement,
        count: usize,
        params: &[Param<'_>],
    ) -> Result<Vec<Acted>, StoreError> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let rows =
            self.query_alone(session, statement, params).await.map_err(|error| error.into_store_error(operation))?;
        read_answers(operation, &rows, count)
    }

    /// See [`Operator::set_paused`](awa_core::store::Operator::set_paused).
    pub async fn set_paused(&self, queue: &QueueName, paused: bool) -> Result<(), StoreError> {
        self.open_queue(queue).await?;
        let params = [Param::Text(queue.as_str().into()), Param::Bool(paused)];
        self.call("set_paused", self.sql.statement("operate/set_paused"), &params).await.map(drop)
    }

    /// See [`Operator::configure_queue`](awa_core::store::Operator::configure_queue).
    pub async fn configure_queue(&self, queue: &QueueName, settings: &QueueSettings) -> Result<(), StoreError> {
        let params = [
            Param::Text(queue.as_str().into()),
            Param::I16(settings.enqueue_shards.get()),
            Param::Bool(settings.dead_letter),
        ];
        self.call("configure_queue", self.sql.statement("operate/configure_queue"), &params).await.map(drop)
    }

    /// See [`Operator::queue_settings`](awa_core::store::Operator::queue_settings).
    pub async fn queue_settings(&self, queue: &QueueName) -> Result<QueueSettings, StoreError> {
        const OPERATION: &str = "queue_settings";
        let params = [Param::Text(queue.as_str().into())];
        let rows = self.call(OPERATION, self.sql.statement("operate/queue_settings"), &params).await?;
        let Some(row) = rows.first() else { return Ok(QueueSettings::default()) };
        let bad = undecodable(OPERATION);
        Ok(QueueSettings::default()
            .with_enqueue_shards(ShardCount::new(i64::from(row.i16(0).map_err(&bad)?))?)
            .with_dead_letter(row.bool(1).map_err(&bad)?))
    }
}

/// Cancels jobs on a session, in the transaction that it is in: if and only if that commits. The shared body of every driver's
/// cancel in the caller's own transaction; one answer per id in input order.
///
/// Holds neither a lane nor an attempt, so that it delays no claim and no closure, whatever becomes of the transaction (C10).
/// A job that waits for its time is cancelled by the commit ([`Acted::Done`]). Of one that is ready or runs it is asked for
/// ([`Acted::Asked`]): no claim that begins after the commit hands the job out, and an attempt that is open by then is ended by the
/// next tidy tick, or by its own end if the job was to live on; an attempt that ends for good before that keeps its end. The
/// unique key of the job is free when it is cancelled (C14).
///
/// # Errors
///
/// As [`Operator::cancel`](awa_core::store::Operator::cancel). The call waits for another open transaction that has cancelled or
/// replaced the same job, until that one ends. An error of the server leaves the caller's transaction aborted.
pub async fn cancel_on(
    session: &mut dyn Session,
    sql: &Sql,
    clock: &Clock,
    jobs: &[JobId],
    reason: &ErrorText,
) -> Result<Vec<Acted>, StoreError> {
    const OPERATION: &str = "cancel_in";
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let params = [ids(jobs), Param::Text(reason.as_str().into()), clock.param()];
    let rows = session.query(sql.statement("operate/cancel_in"), &params).await;
    read_answers(OPERATION, &rows.map_err(|error| error.into_store_error(OPERATION))?, jobs.len())
}

/// The answers of a function that was asked about so many ids.
fn read_answers(operation: &'static str, rows: &[Row], count: usize) -> Result<Vec<Acted>, StoreError> {
    let mut answers = vec![Acted::Refused(Refusal::NotFound); count];
    for row in rows {
        let bad = undecodable(operation);
        let position = usize::try_from(row.i32(0).map_err(&bad)? - 1).unwrap_or(usize::MAX);
        let answer = match row.opt_text(1).map_err(&bad)? {
            None => Acted::Refused(Refusal::NotFound),
            Some("contended") => Acted::Refused(Refusal::Contended),
            Some(text) => match text.split_once(':') {
                Some(("key", holder)) => Acted::Refused(Refusal::KeyTaken(job_id(operation, holder)?)),
                Some(("asked", from)) => Acted::Asked { from: from.parse()? },
                _ => match text.strip_prefix('!') {
                    Some(state) => Acted::Refused(Refusal::WrongState(state.parse()?)),
                    None => Acted::Done { from: text.parse()? },
                },
            },
        };
        if let Some(place) = answers.get_mut(position) {
            *place = answer;
        }
    }
    Ok(answers)
}

fn job_id(operation: &'static str, text: &str) -> Result<JobId, StoreError> {
    text.parse().map(JobId).map_err(|_| {
        StoreError::new(StoreErrorKind::Corrupt, operation, format!("{text:?} is no job; nothing was guessed"))
    })
}

fn ids(jobs: &[JobId]) -> Param<'static> {
    Param::I64s(jobs.iter().map(|job| job.0).collect())
}

fn read_job(operation: &'static str, row: &Row) -> Result<JobView, StoreError> {
    let bad = undecodable(operation);
    let json = |column| row.opt_json_text(column).map(|json| json.map(JsonText::trusted)).map_err(&bad);
    Ok(JobView {
        id: JobId(row.i64(0).map_err(&bad)?),
        state: row.text(1).map_err(&bad)?.parse()?,
        queue: QueueName::trusted(row.text(2).map_err(&bad)?),
        kind: JobKind::trusted(row.text(3).map_err(&bad)?),
        priority: Priority::new(row.i16(4).map_err(&bad)?)?,
        attempt: u32::from(row.i16(5).map_err(&bad)?.unsigned_abs()),
        max_attempts: MaxAttempts::new(i64::from(row.i16(6).map_err(&bad)?.max(1)))?,
        run_lease: RunLease(row.i64(7).map_err(&bad)?),
        args: JsonText::trusted(row.json_text(8).map_err(&bad)?),
        metadata: json(9)?,
        created_at: row.timestamp(10).map_err(&bad)?,
        run_at: row.opt_timestamp(11).map_err(&bad)?,
        deferred: row.opt_text(12).map_err(&bad)?.and_then(DeferredReason::from_name),
        claimed_at: row.opt_timestamp(13).map_err(&bad)?,
        finalized_at: row.opt_timestamp(14).map_err(&bad)?,
        result: json(15)?,
        error: row.opt_text(16).map_err(&bad)?.map(ErrorText::new),
    })
}
