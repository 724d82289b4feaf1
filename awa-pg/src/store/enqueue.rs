//! Enqueue: one statement for a whole batch, in a transaction of its own or in the caller's.

use std::collections::HashMap;

use async_trait::async_trait;
use awa_core::error::StoreError;
use awa_core::id::JobId;
use awa_core::job::{Enqueued, NewJob, RunAt};
use awa_core::queue::OrderingKey;
use awa_core::time::Timestamp;
use awa_core::unique::OnConflict;

use super::clock::micros_of;
use super::gather::{Carrier, Gathering};
use super::{Clock, PgStore, only_row, undecodable};
use crate::session::{PgError, Session};
use crate::sql::Sql;
use crate::value::{List, Param, types};

const OPERATION: &str = "enqueue";
/// Jobs of one statement. Larger calls are cut, so that no statement becomes a burden or grows beyond what PostgreSQL takes
/// (1 GB).
const MAX_JOBS_PER_STATEMENT: usize = 10_000;
/// Bytes of arguments and metadata from which on a statement takes no further job.
const MAX_BYTES_PER_STATEMENT: usize = 32 << 20;

impl PgStore {
    /// See [`Producer::enqueue`](awa_core::store::Producer::enqueue).
    pub async fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        match jobs {
            [] => Ok(Vec::new()),
            [job] if Gathering::takes(job) => self.gathering.enqueue(self, job).await.map(|answer| vec![answer]),
            _ => self.enqueue_alone(jobs).await,
        }
    }

    /// Stores jobs, of which there is at least one, in a transaction of their own.
    async fn enqueue_alone(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        let mut session = self.pool.session().await.map_err(|error| error.into_store_error(OPERATION))?;
        let is_one_statement = first_chunk(jobs) == jobs.len();
        if is_one_statement
            && self.reads_committed(session.as_mut()).await.map_err(|error| error.into_store_error(OPERATION))?
        {
            if let [job] = jobs
                && Gathering::takes(job)
                && self.pool.keeps_statements()
                && let Some(answer) = self.shortcut.store(session.as_mut(), &self.sql, &self.clock, job).await?
            {
                return Ok(vec![answer]);
            }
            return enqueue_as(session.as_mut(), &self.sql, &self.clock, jobs, Part::Whole).await;
        }
        let refused = |error: PgError| error.into_store_error(OPERATION);
        let limits = crate::session::TransactionLimits::default();
        let mut transaction = crate::session::Transaction::begin(session.as_mut(), &limits).await.map_err(refused)?;
        match enqueue_on(transaction.session(), &self.sql, &self.clock, jobs).await {
            Ok(answers) => transaction.commit().await.map(|()| answers).map_err(refused),
            Err(error) => {
                transaction.rollback().await.map_err(refused)?;
                Err(error)
            }
        }
    }
}

#[async_trait]
impl Carrier for PgStore {
    async fn carry(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        self.enqueue_alone(jobs).await
    }
}

/// Enqueues on a session, in whatever transaction it is in. The shared body of every driver's enqueue in the caller's
/// own transaction.
///
/// # Errors
///
/// As [`Producer::enqueue`](awa_core::store::Producer::enqueue). An error of the server leaves the caller's
/// transaction aborted, as every error of PostgreSQL does; what Awa itself refuses is refused before a byte is sent,
/// when the [`NewJob`] is made.
///
/// Of unique keys (C14): the call waits while another open transaction has taken one of its keys, until that one ends.
/// In READ COMMITTED it is then answered and the transaction goes on. Under REPEATABLE READ and SERIALIZABLE a key that was
/// taken after the transaction's snapshot gives a serialization failure,
/// [`Contended`](awa_core::StoreErrorKind::Contended): run the whole transaction again, as for every such failure. Two
/// transactions that take keys in several calls each, in opposite order, deadlock like any others, and PostgreSQL ends
/// one of them, again as `Contended`; within a call of up to 10,000 jobs and 32 MB the order of the keys does not matter.
pub async fn enqueue_on(
    session: &mut dyn Session,
    sql: &Sql,
    clock: &Clock,
    jobs: &[NewJob],
) -> Result<Vec<Enqueued>, StoreError> {
    enqueue_as(session, sql, clock, jobs, Part::Piece).await
}

/// What a call is of its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// All of it: the transaction ends with the statement.
    Whole,
    /// There may be more before and behind.
    Piece,
}

impl Part {
    /// Whether sleeping dispatchers are woken: always, but those who enqueue at the same time, each in a transaction of one
    /// statement, can leave it to one of them.
    fn wake(self) -> Param<'static> {
        match self {
            Self::Whole => Param::Null(types::BOOL),
            Self::Piece => Param::Bool(true),
        }
    }
}

async fn enqueue_as(
    session: &mut dyn Session,
    sql: &Sql,
    clock: &Clock,
    jobs: &[NewJob],
    part: Part,
) -> Result<Vec<Enqueued>, StoreError> {
    let mut answers = Vec::with_capacity(jobs.len());
    let mut left = jobs;
    while !left.is_empty() {
        let (chunk, rest) = left.split_at(first_chunk(left));
        left = rest;
        let columns = Columns::of(chunk);
        let keys = Keys::of(chunk);
        let (statement, params) = match &keys {
            None => match columns.plain_params(part, clock) {
                Some(params) => (sql.statement("enqueue/enqueue_at_once"), params),
                None => (sql.statement("enqueue/enqueue"), columns.params(&[], part, clock)),
            },
            Some(keys) => (sql.statement("enqueue/enqueue_unique"), columns.params(&keys.params(), part, clock)),
        };
        let rows = session.query(statement, &params).await.map_err(|error| error.into_store_error(OPERATION))?;
        let row = only_row(OPERATION, &rows)?;
        let ids = row.i64s(0).map_err(undecodable(OPERATION))?;
        debug_assert_eq!(ids.len(), chunk.len(), "the server answers each job with an id");
        if keys.is_none() {
            answers.extend(ids.into_iter().map(|id| Enqueued::Inserted(JobId(id))));
        } else {
            let are_new = row.bools(1).map_err(undecodable(OPERATION))?;
            let replaced = row.get::<Option<Vec<Option<i64>>>>(2).map_err(undecodable(OPERATION))?.unwrap_or_default();
            let replaced = replaced.into_iter().chain(std::iter::repeat(None));
            for (job, ((id, is_new), old)) in chunk.iter().zip(ids.into_iter().zip(are_new).zip(replaced)) {
                answers.push(answer(job, JobId(id), is_new, old.map(JobId)));
            }
        }
    }
    Ok(answers)
}

/// How many of `jobs`, of which there is at least one, go into the next statement.
fn first_chunk(jobs: &[NewJob]) -> usize {
    let length = |job: &NewJob| job.args().as_str().len() + job.metadata().map_or(0, |json| json.as_str().len());
    let mut bytes = 0;
    let fitting = jobs.iter().take(MAX_JOBS_PER_STATEMENT).take_while(|job| {
        let is_fitting = bytes < MAX_BYTES_PER_STATEMENT;
        bytes += length(job);
        is_fitting
    });
    fitting.count()
}

/// The answer to a job for which this one stands.
fn answer(job: &NewJob, id: JobId, is_new: bool, replaced: Option<JobId>) -> Enqueued {
    match (job.unique(), replaced) {
        (Some(unique), _) if !is_new => Enqueued::of_conflict(id, unique.on_conflict),
        (_, Some(old)) => Enqueued::Replaced { new: id, old },
        _ => Enqueued::Inserted(id),
    }
}

/// The keys of the jobs of one call, of which at least one is unique.
struct Keys<'j> {
    digests: Vec<Option<&'j [u8]>>,
    periods: Vec<Option<i64>>,
    states: Vec<Option<i16>>,
    replaces: Option<Vec<bool>>,
}

impl<'j> Keys<'j> {
    fn of(jobs: &'j [NewJob]) -> Option<Self> {
        jobs.iter().any(|job| job.unique().is_some()).then(|| Self {
            digests: jobs.iter().map(|job| job.unique().map(|unique| &unique.key.digest()[..])).collect(),
            periods: jobs.iter().map(|job| job.unique()?.key.period_micros()).collect(),
            states: jobs.iter().map(|job| job.unique().map(|unique| unique.states.mask())).collect(),
            replaces: jobs.iter().any(replaces).then(|| jobs.iter().map(replaces).collect()),
        })
    }

    fn params(&self) -> [Param<'_>; 4] {
        [
            Param::OptByteas(List::from(&self.digests)),
            Param::OptI64s(List::from(&self.periods)),
            Param::OptI16s(List::from(&self.states)),
            self.replaces.as_deref().map_or(Param::Null(types::BOOL_ARRAY), |each| Param::Bools(List::from(each))),
        ]
    }
}

/// Whether a job replaces one that waits.
fn replaces(job: &NewJob) -> bool {
    job.unique().is_some_and(|unique| unique.on_conflict == OnConflict::Replace)
}

/// The jobs of one call as columns, each left out where all jobs have the same or none has any.
struct Columns<'j> {
    queues: Vec<&'j str>,
    priorities: Vec<i16>,
    lanes: Option<Vec<i16>>,
    kinds: Vec<&'j str>,
    args: Vec<&'j str>,
    max_attempts: Vec<i16>,
    metadata: Option<Vec<Option<&'j str>>>,
    run_at: Option<Vec<Option<Timestamp>>>,
    delays: Option<Vec<Option<i64>>>,
    orders: Option<Vec<Option<i32>>>,
}

impl<'j> Columns<'j> {
    fn of(jobs: &'j [NewJob]) -> Self {
        let mut known: HashMap<(&str, i16), i16> = HashMap::new();
        let (mut queues, mut priorities) = (Vec::new(), Vec::new());
        let lanes: Vec<i16> = jobs
            .iter()
            .map(|job| {
                let lane = (job.queue().as_str(), job.priority().get());
                *known.entry(lane).or_insert_with(|| {
                    queues.push(lane.0);
                    priorities.push(lane.1);
                    i16::try_from(queues.len()).expect("a statement has at most 10,000 lanes")
                })
            })
            .collect();
        let deferred = |job: &NewJob| job.run_at() != RunAt::Now;
        Self {
            lanes: (queues.len() > 1).then_some(lanes),
            queues,
            priorities,
            kinds: uniform(jobs, |job| job.kind().as_str()),
            args: jobs.iter().map(|job| job.args().as_str()).collect(),
            max_attempts: uniform(jobs, |job| job.max_attempts().get()),
            metadata: jobs
                .iter()
                .any(|job| job.metadata().is_some())
                .then(|| jobs.iter().map(|job| job.metadata().map(awa_core::JsonText::as_str)).collect()),
            run_at: jobs.iter().any(deferred).then(|| jobs.iter().map(|job| moment(job.run_at())).collect()),
            delays: jobs.iter().any(deferred).then(|| jobs.iter().map(|job| delay(job.run_at())).collect()),
            orders: jobs
                .iter()
                .any(|job| job.ordering_key().is_some())
                .then(|| jobs.iter().map(|job| job.ordering_key().map(OrderingKey::number)).collect()),
        }
    }

    /// Those of jobs that are alike and are to run at once, for which there is a cheaper statement.
    fn plain_params(&self, part: Part, clock: &Clock) -> Option<Vec<Param<'_>>> {
        let ([queue], [priority], [kind]) = (&self.queues[..], &self.priorities[..], &self.kinds[..]) else {
            return None;
        };
        let &[max_attempts] = &self.max_attempts[..] else { return None };
        if self.run_at.is_some() || self.delays.is_some() || self.orders.is_some() {
            return None;
        }
        Some(vec![
            Param::Text((*queue).into()),
            Param::I16(*priority),
            Param::Text((*kind).into()),
            Param::jsons(self.args.as_slice()),
            Param::I16(max_attempts),
            self.metadata(),
            part.wake(),
            clock.param(),
        ])
    }

    fn metadata(&self) -> Param<'_> {
        self.metadata.as_deref().map_or(Param::Null(types::JSON_ARRAY), Param::opt_jsons)
    }

    fn params<'p>(&'p self, keys: &[Param<'p>], part: Part, clock: &Clock) -> Vec<Param<'p>> {
        let mut params = vec![
            Param::Texts(List::from(&self.queues)),
            Param::I16s(List::from(&self.priorities)),
            // The shards: as they are set for the queues.
            Param::Null(types::INT2_ARRAY),
            self.lanes.as_deref().map_or(Param::Null(types::INT2_ARRAY), |lanes| Param::I16s(List::from(lanes))),
            Param::Texts(List::from(&self.kinds)),
            Param::jsons(self.args.as_slice()),
            Param::I16s(List::from(&self.max_attempts)),
            self.metadata(),
            self.run_at
                .as_deref()
                .map_or(Param::Null(types::TIMESTAMPTZ_ARRAY), |at| Param::OptTimestamps(List::from(at))),
            self.delays.as_deref().map_or(Param::Null(types::INT8_ARRAY), |us| Param::OptI64s(List::from(us))),
        ];
        params.extend_from_slice(keys);
        let orders = self.orders.as_deref();
        let orders = orders.map_or(Param::Null(types::INT4_ARRAY), |numbers| Param::OptI32s(List::from(numbers)));
        params.extend([part.wake(), clock.param(), orders]);
        params
    }
}

fn moment(run_at: RunAt) -> Option<Timestamp> {
    match run_at {
        RunAt::At(at) => Some(at),
        _ => None,
    }
}

fn delay(run_at: RunAt) -> Option<i64> {
    match run_at {
        RunAt::After(delay) => Some(micros_of(delay)),
        _ => None,
    }
}

/// One element when all jobs have the same, else one per job.
fn uniform<'j, T: PartialEq + Copy>(jobs: &'j [NewJob], column: impl Fn(&'j NewJob) -> T) -> Vec<T> {
    let first = column(&jobs[0]);
    if jobs.iter().all(|job| column(job) == first) { vec![first] } else { jobs.iter().map(column).collect() }
}

#[cfg(test)]
mod tests {
    use awa_core::{JobKind, JsonText, QueueName};

    use super::*;

    #[test]
    fn a_statement_takes_a_bounded_number_of_jobs_and_bytes() {
        let job = |bytes: usize| {
            let args = JsonText::new("args", format!("\"{}\"", "x".repeat(bytes - 2))).unwrap();
            NewJob::new(QueueName::new("q").unwrap(), JobKind::new("k").unwrap(), args)
        };
        assert_eq!(first_chunk(&vec![job(2); MAX_JOBS_PER_STATEMENT + 5]), MAX_JOBS_PER_STATEMENT);
        assert_eq!(first_chunk(&vec![job(1 << 20); 100]), MAX_BYTES_PER_STATEMENT >> 20);
        assert_eq!(first_chunk(&[job(1 << 20)]), 1);
        let with_metadata = job(2).with_metadata(job(1 << 20).args().clone());
        assert_eq!(first_chunk(&vec![with_metadata; 100]), MAX_BYTES_PER_STATEMENT >> 20);
    }
}
