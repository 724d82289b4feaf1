//! Looking at jobs and intervening.

use awa_core::attempt::ErrorText;
use awa_core::error::{StoreError, StoreErrorKind};
use awa_core::id::{JobId, RunLease};
use awa_core::job::{MaxAttempts, Priority};
use awa_core::json::JsonText;
use awa_core::name::{JobKind, QueueName};
use awa_core::state::JobState;
use awa_core::store::{Acted, CensusCount, DeferredReason, JobFilter, JobView, QueueView, Refusal};

use super::{PgStore, undecodable};
use crate::session::{Session, Statement};
use crate::value::{Param, Row, types};

impl PgStore {
    /// See [`Operator::get`](awa_core::store::Operator::get).
    pub async fn get(&self, job: JobId) -> Result<Option<JobView>, StoreError> {
        let filter = JobFilter { limit: 1, ..JobFilter::default() };
        Ok(self.jobs("get", Some(job), &filter).await?.pop())
    }

    /// See [`Operator::list`](awa_core::store::Operator::list).
    pub async fn list(&self, filter: &JobFilter) -> Result<Vec<JobView>, StoreError> {
        self.jobs("list", None, filter).await
    }

    async fn jobs(
        &self,
        operation: &'static str,
        job: Option<JobId>,
        filter: &JobFilter,
    ) -> Result<Vec<JobView>, StoreError> {
        let id = |id: Option<JobId>| id.map_or(Param::Null(types::INT8), |id| Param::I64(id.0));
        let text =
            |text: Option<&str>| text.map_or(Param::Null(types::TEXT), |text| Param::Text(text.to_owned().into()));
        let params = [
            id(job),
            text(filter.queue.as_ref().map(QueueName::as_str)),
            text(filter.state.map(JobState::as_str)),
            text(filter.kind.as_ref().map(JobKind::as_str)),
            id(filter.before),
            Param::I64(filter.limit.clamp(1, JobFilter::MAX_LIMIT) as i64),
        ];
        let rows = self.call(operation, self.sql.statement("operate/jobs"), &params).await?;
        rows.iter().map(|row| read_job(operation, row)).collect()
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
        let mut answers = Vec::with_capacity(jobs.len());
        // A job whose attempt somebody is ending in an open transaction fails the statement; it is found by halving, so
        // that it keeps no other back. All on one session: on another one, the locks of the failed part might still be
        // in the way.
        let mut session = self.pool.session().await.map_err(|error| error.into_store_error("cancel"))?;
        let mut waiting = vec![jobs];
        while let Some(part) = waiting.pop() {
            let params = [ids(part), Param::Text(reason.as_str().into()), self.clock.param()];
            let statement = self.sql.statement("operate/cancel");
            match self.act("cancel", session.as_mut(), statement, part.len(), &params).await {
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

    /// Carries out wishes, one answer each.
    async fn act(
        &self,
        operation: &'static str,
        session: &mut dyn Session,
        statement: &Statement,
        count: usize,
        params: &[Param<'_>],
    ) -> Result<Vec<Acted>, StoreError> {
        let mut answers = vec![Acted::Refused(Refusal::NotFound); count];
        if count == 0 {
            return Ok(answers);
        }
        let rows =
            self.query_alone(session, statement, params).await.map_err(|error| error.into_store_error(operation))?;
        for row in &rows {
            let bad = undecodable(operation);
            let position = usize::try_from(row.i32(0).map_err(&bad)? - 1).unwrap_or(usize::MAX);
            let answer = match row.opt_text(1).map_err(&bad)? {
                None => Acted::Refused(Refusal::NotFound),
                Some("contended") => Acted::Refused(Refusal::Contended),
                Some(text) => match (text.strip_prefix('!'), text.strip_prefix("key:")) {
                    (Some(state), _) => Acted::Refused(Refusal::WrongState(state.parse()?)),
                    (_, Some(holder)) => Acted::Refused(Refusal::KeyTaken(job_id(operation, holder)?)),
                    _ => Acted::Done { from: text.parse()? },
                },
            };
            if let Some(place) = answers.get_mut(position) {
                *place = answer;
            }
        }
        Ok(answers)
    }

    /// See [`Operator::set_paused`](awa_core::store::Operator::set_paused).
    pub async fn set_paused(&self, queue: &QueueName, paused: bool) -> Result<(), StoreError> {
        self.open_queue(queue).await?;
        let params = [Param::Text(queue.as_str().into()), Param::Bool(paused)];
        self.call("set_paused", self.sql.statement("operate/set_paused"), &params).await.map(drop)
    }
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
