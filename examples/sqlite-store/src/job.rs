//! One job as it is stored, and the moves that it can make.

use std::error::Error;
use std::time::Duration;

use awa_core::attempt::{ClaimedJob, ErrorText, Receipt};
use awa_core::id::{InstanceId, JobId, Nonce, ReceiptId, RunLease, Slot};
use awa_core::job::{MaxAttempts, Priority};
use awa_core::retry::{AttemptBudget, Disposition, RetryPolicy};
use awa_core::store::{DeferredReason, JobView};
use awa_core::unique::KeyStates;
use awa_core::{AttemptEnd, JobKind, JobState, JsonText, QueueName, Timestamp};
use rusqlite::types::Type;
use rusqlite::{OptionalExtension, Params, Row, Transaction, params};

use crate::next_number;

/// A row of `jobs`.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) view: JobView,
    /// Since when it is ready.
    pub(crate) ready_at: Timestamp,
    place: i64,
    open: Option<OpenAttempt>,
    pub(crate) holds_key: bool,
    pub(crate) key_states: i16,
    pub(crate) key: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Debug)]
struct OpenAttempt {
    receipt: ReceiptId,
    nonce: Nonce,
    instance: InstanceId,
    claimed_at: Timestamp,
    deadline_at: Option<Timestamp>,
}

/// Who claims, and until when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) receipt: ReceiptId,
    pub(crate) nonce: Nonce,
    pub(crate) instance: InstanceId,
    pub(crate) deadline_at: Option<Timestamp>,
}

const COLUMNS: &str = "id, state, queue, kind, priority, args, metadata, max_attempts, attempt, run_lease, created_at, place,
    ready_at, run_at, deferred, finalized_at, result, error, receipt, nonce, instance, claimed_at, deadline_at, unique_key,
    key_states, holds_key";

/// The jobs that `condition` selects, in its order.
pub(crate) fn jobs_where(
    transaction: &Transaction<'_>,
    condition: &str,
    params: impl Params,
) -> rusqlite::Result<Vec<Job>> {
    let sql = format!("SELECT {COLUMNS} FROM jobs WHERE {condition}");
    transaction.prepare_cached(&sql)?.query_map(params, Job::read)?.collect()
}

/// The job with this id.
pub(crate) fn job_by_id(transaction: &Transaction<'_>, id: JobId) -> rusqlite::Result<Option<Job>> {
    let sql = format!("SELECT {COLUMNS} FROM jobs WHERE id = ?1");
    transaction.prepare_cached(&sql)?.query_row([id.get()], Job::read).optional()
}

impl Job {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let moment =
            |column: &str| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_micros));
        let json =
            |column: &str| Ok::<_, rusqlite::Error>(row.get::<_, Option<String>>(column)?.map(JsonText::trusted));
        let state: JobState = row.get::<_, String>("state")?.parse().map_err(unreadable)?;
        let claimed_at = Timestamp::from_micros(row.get("claimed_at")?);
        let receipt = row.get::<_, Option<i64>>("receipt")?.and_then(ReceiptId::from_raw);
        let open = match receipt {
            Some(receipt) => Some(OpenAttempt {
                receipt,
                nonce: Nonce(row.get("nonce")?),
                instance: InstanceId(row.get("instance")?),
                claimed_at,
                deadline_at: moment("deadline_at")?,
            }),
            None => None,
        };
        let deferred: Option<String> = row.get("deferred")?;
        let view = JobView {
            id: JobId(row.get("id")?),
            state,
            queue: QueueName::trusted(row.get::<_, String>("queue")?),
            kind: JobKind::trusted(row.get::<_, String>("kind")?),
            priority: Priority::new(row.get("priority")?).map_err(unreadable)?,
            attempt: row.get("attempt")?,
            max_attempts: MaxAttempts::new(row.get("max_attempts")?).map_err(unreadable)?,
            run_lease: RunLease(row.get("run_lease")?),
            args: JsonText::trusted(row.get::<_, String>("args")?),
            metadata: json("metadata")?,
            created_at: Timestamp::from_micros(row.get("created_at")?),
            run_at: moment("run_at")?,
            deferred: deferred.as_deref().and_then(DeferredReason::from_name),
            claimed_at: open.map(|open| open.claimed_at),
            finalized_at: moment("finalized_at")?,
            result: json("result")?,
            error: row.get::<_, Option<String>>("error")?.map(ErrorText::new),
        };
        Ok(Self {
            view,
            ready_at: Timestamp::from_micros(row.get("ready_at")?),
            place: row.get("place")?,
            open,
            holds_key: row.get("holds_key")?,
            key_states: row.get("key_states")?,
            key: row.get("unique_key")?,
        })
    }

    /// Writes back everything that a move may change.
    fn save(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let sql = "UPDATE jobs SET state = ?2, attempt = ?3, run_lease = ?4, place = ?5, ready_at = ?6, run_at = ?7,
                       deferred = ?8, finalized_at = ?9, result = ?10, error = ?11, receipt = ?12, nonce = ?13,
                       instance = ?14, claimed_at = ?15, deadline_at = ?16, holds_key = ?17
                   WHERE id = ?1";
        let JobView { id, state, attempt, run_lease, run_at, deferred, finalized_at, result, error, .. } = &self.view;
        let micros = |moment: &Option<Timestamp>| moment.map(Timestamp::as_micros);
        transaction.prepare_cached(sql)?.execute(params![
            id.get(),
            state.as_str(),
            attempt,
            run_lease.get(),
            self.place,
            self.ready_at.as_micros(),
            micros(run_at),
            deferred.map(DeferredReason::as_str),
            micros(finalized_at),
            result.as_ref().map(JsonText::as_str),
            error.as_ref().map(ErrorText::as_str),
            self.open.map(|open| open.receipt.get()),
            self.open.map_or(0, |open| open.nonce.get()),
            self.open.map_or(0, |open| open.instance.0),
            self.open.map_or(0, |open| open.claimed_at.as_micros()),
            self.open.and_then(|open| open.deadline_at).map(Timestamp::as_micros),
            self.holds_key,
        ])?;
        Ok(())
    }

    /// Goes to `state`, and gives the key back that is not held there. The one place where a state changes.
    fn enter(mut self, transaction: &Transaction<'_>, state: JobState) -> rusqlite::Result<Self> {
        assert!(self.view.state.may_become(state), "job {} cannot become {state}", self.view.id);
        self.view.state = state;
        self.holds_key &= self.key_states & KeyStates::bit(state) != 0;
        self.save(transaction)?;
        Ok(self)
    }

    /// What a worker must present to end the open attempt.
    pub(crate) fn receipt(&self) -> Option<Receipt> {
        let Self { view: JobView { id, run_lease, .. }, open, .. } = self;
        // One slot stands for the claim ring that there is not.
        open.map(|open| Receipt {
            id: open.receipt,
            claim_slot: Slot(0),
            nonce: open.nonce,
            job: *id,
            run_lease: *run_lease,
        })
    }

    /// The claim of its open attempt: who, when, until when.
    pub(crate) fn claim(&self) -> Option<(InstanceId, Timestamp, Option<Timestamp>)> {
        self.open.map(|open| (open.instance, open.claimed_at, open.deadline_at))
    }

    /// An attempt begins.
    pub(crate) fn start(
        mut self,
        transaction: &Transaction<'_>,
        claim: Claim,
        now: Timestamp,
    ) -> rusqlite::Result<ClaimedJob> {
        let Claim { receipt, nonce, instance, deadline_at } = claim;
        self.view.attempt += 1;
        self.view.run_lease.0 += 1;
        self.open = Some(OpenAttempt { receipt, nonce, instance, claimed_at: now, deadline_at });
        let job = self.enter(transaction, JobState::Running)?;
        let receipt = job.receipt().expect("its attempt has just begun");
        let JobView { queue, kind, args, metadata, priority, attempt, max_attempts, created_at, .. } = job.view;
        Ok(ClaimedJob {
            receipt,
            queue,
            kind,
            args,
            metadata,
            priority,
            attempt,
            max_attempts,
            created_at,
            claimed_at: now,
            deadline_at,
        })
    }

    /// The open attempt ends.
    pub(crate) fn end(
        mut self,
        transaction: &Transaction<'_>,
        end: &AttemptEnd,
        now: Timestamp,
    ) -> rusqlite::Result<()> {
        self.open = None;
        if !end.is_charged() {
            self.view.attempt = self.view.attempt.saturating_sub(1);
        }
        match end {
            AttemptEnd::CompleteWith { result } => {
                self.view.result = Some(result.clone());
                self.finish(transaction, JobState::Completed, now)
            }
            AttemptEnd::Retry { delay, error } => {
                self.view.error = Some(error.clone());
                match RetryPolicy::default().after_failure(self.budget(), Some(*delay), 0.0) {
                    Disposition::Retry { delay } => self.defer(transaction, delay, DeferredReason::Retry, now),
                    Disposition::Exhausted => self.finish(transaction, JobState::Dead, now),
                }
            }
            AttemptEnd::Fail { error } => {
                self.view.error = Some(error.clone());
                self.finish(transaction, JobState::Dead, now)
            }
            AttemptEnd::Cancel { reason } => self.cancel(transaction, reason, now),
            AttemptEnd::Snooze { delay } => self.defer(transaction, *delay, DeferredReason::Snooze, now),
            // It keeps its place, which is before all that wait.
            AttemptEnd::Release { delay } if delay.is_zero() => self.enter(transaction, JobState::Ready).map(drop),
            AttemptEnd::Release { delay } => self.defer(transaction, *delay, DeferredReason::Release, now),
            _ => self.finish(transaction, JobState::Completed, now),
        }
    }

    /// How much of its budget it has used, the open attempt included.
    pub(crate) fn budget(&self) -> AttemptBudget {
        let max_attempts = self.view.max_attempts.get().unsigned_abs().into();
        AttemptBudget { attempt: self.view.attempt, max_attempts }
    }

    /// It is no longer wanted.
    pub(crate) fn cancel(
        mut self,
        transaction: &Transaction<'_>,
        reason: &ErrorText,
        now: Timestamp,
    ) -> rusqlite::Result<()> {
        self.open = None;
        self.view.error = Some(reason.clone());
        self.finish(transaction, JobState::Cancelled, now)
    }

    /// It joins the tail of its lane.
    pub(crate) fn make_ready(mut self, transaction: &Transaction<'_>, now: Timestamp) -> rusqlite::Result<()> {
        (self.view.run_at, self.view.deferred, self.view.finalized_at) = (None, None, None);
        (self.place, self.ready_at) = (next_number(transaction, "place")?, now);
        self.enter(transaction, JobState::Ready).map(drop)
    }

    fn finish(mut self, transaction: &Transaction<'_>, state: JobState, now: Timestamp) -> rusqlite::Result<()> {
        (self.view.run_at, self.view.deferred) = (None, None);
        self.view.finalized_at = Some(now);
        self.enter(transaction, state).map(drop)
    }

    fn defer(
        mut self,
        transaction: &Transaction<'_>,
        delay: Duration,
        reason: DeferredReason,
        now: Timestamp,
    ) -> rusqlite::Result<()> {
        (self.view.run_at, self.view.deferred) = (Some(now.saturating_add(delay)), Some(reason));
        self.enter(transaction, JobState::Deferred).map(drop)
    }
}

/// A value that no version of this store has written.
fn unreadable(error: impl Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error))
}
