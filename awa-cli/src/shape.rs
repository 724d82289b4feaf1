//! The JSON that commands print and programs read. The shapes are stable: fields are added, never renamed or removed.
//!
//! Moments are RFC 3339 in UTC with microseconds, ids JSON numbers, and documents of users (arguments, metadata,
//! results) stand in it byte for byte as they were enqueued or returned.

use awa_core::store::{Acted, DeferredReason, JobView, Refusal};
use awa_core::{ClaimedJob, JobId, JobState, JsonText, Timestamp};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// A document of a user, as it is.
#[derive(Debug)]
pub(crate) struct Document(JsonText);

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(self.0.as_str()).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// One job, as `awa jobs` prints it.
#[derive(Serialize, Debug)]
pub(crate) struct JobShape {
    id: JobId,
    state: JobState,
    queue: String,
    kind: String,
    priority: i16,
    attempt: u32,
    max_attempts: i16,
    run_lease: i64,
    args: Document,
    metadata: Option<Document>,
    created_at: String,
    run_at: Option<String>,
    deferred: Option<DeferredReason>,
    claimed_at: Option<String>,
    finalized_at: Option<String>,
    result: Option<Document>,
    error: Option<String>,
}

impl From<JobView> for JobShape {
    fn from(job: JobView) -> Self {
        let moment = |at: Option<Timestamp>| at.map(|at| at.to_string());
        Self {
            id: job.id,
            state: job.state,
            queue: job.queue.into(),
            kind: job.kind.into(),
            priority: job.priority.get(),
            attempt: job.attempt,
            max_attempts: job.max_attempts.get(),
            run_lease: job.run_lease.get(),
            args: Document(job.args),
            metadata: job.metadata.map(Document),
            created_at: job.created_at.to_string(),
            run_at: moment(job.run_at),
            deferred: job.deferred,
            claimed_at: moment(job.claimed_at),
            finalized_at: moment(job.finalized_at),
            result: job.result.map(Document),
            error: job.error.map(|error| error.as_str().to_owned()),
        }
    }
}

/// One attempt, as a program of `awa work` gets it on its standard input.
#[derive(Serialize, Debug)]
pub(crate) struct AttemptShape {
    id: JobId,
    queue: String,
    kind: String,
    args: Document,
    attempt: u32,
    max_attempts: i16,
    priority: i16,
    created_at: String,
    metadata: Option<Document>,
}

impl From<&ClaimedJob> for AttemptShape {
    fn from(job: &ClaimedJob) -> Self {
        Self {
            id: job.receipt.job,
            queue: job.queue.to_string(),
            kind: job.kind.to_string(),
            args: Document(job.args.clone()),
            attempt: job.attempt,
            max_attempts: job.max_attempts.get(),
            priority: job.priority.get(),
            created_at: job.created_at.to_string(),
            metadata: job.metadata.clone().map(Document),
        }
    }
}

/// What became of one id of `awa jobs cancel` or `awa jobs retry`.
#[derive(Serialize, Debug, PartialEq, Eq)]
pub(crate) struct ActedShape {
    pub(crate) id: JobId,
    pub(crate) done: bool,
    /// Where the job was before, or is when that is the reason of a refusal.
    pub(crate) state: Option<JobState>,
    /// `not_found`, `wrong_state`, `key_taken` or `contended`.
    pub(crate) refused: Option<&'static str>,
}

impl ActedShape {
    /// The answer for `id`.
    pub(crate) fn new(id: JobId, acted: Acted) -> Self {
        let (done, state, refused) = match acted {
            Acted::Done { from } => (true, Some(from), None),
            Acted::Refused(Refusal::NotFound) => (false, None, Some("not_found")),
            Acted::Refused(Refusal::WrongState(state)) => (false, Some(state), Some("wrong_state")),
            Acted::Refused(Refusal::Contended) => (false, None, Some("contended")),
            Acted::Refused(Refusal::KeyTaken(_)) => (false, None, Some("key_taken")),
            // Answers that a later core adds are refusals until this program knows better.
            _ => (false, None, Some("unknown")),
        };
        Self { id, done, state, refused }
    }
}

#[cfg(test)]
mod tests {
    use awa_core::attempt::Receipt;
    use awa_core::job::MaxAttempts;
    use awa_core::{BatchId, JobKind, Nonce, Priority, QueueName, ReceiptId, RunLease};

    use super::*;

    #[test]
    fn ids_and_documents_keep_every_digit() {
        let job = ClaimedJob {
            receipt: Receipt {
                id: ReceiptId::new(BatchId(1), 1),
                claim_slot: awa_core::id::Slot(0),
                nonce: Nonce(1),
                job: JobId(i64::MAX),
                run_lease: RunLease(1),
            },
            queue: QueueName::new("q").unwrap(),
            kind: JobKind::new("k").unwrap(),
            args: JsonText::new("args", "{\"b\":1e400, \"a\":12345678901234567890.10}").unwrap(),
            metadata: None,
            priority: Priority::default(),
            attempt: 1,
            max_attempts: MaxAttempts::default(),
            created_at: Timestamp::EPOCH,
            claimed_at: Timestamp::EPOCH,
            deadline_at: None,
        };
        let text = serde_json::to_string(&AttemptShape::from(&job)).unwrap();
        let expected = concat!(
            r#"{"id":9223372036854775807,"queue":"q","kind":"k","args":{"b":1e400, "a":12345678901234567890.10},"#,
            r#""attempt":1,"max_attempts":25,"priority":2,"created_at":"1970-01-01T00:00:00.000000Z","metadata":null}"#
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn a_refusal_says_why_and_where_the_job_is() {
        let refused = ActedShape::new(JobId(5), Acted::Refused(Refusal::WrongState(JobState::Completed)));
        let text = serde_json::to_string(&refused).unwrap();
        assert_eq!(text, r#"{"id":5,"done":false,"state":"completed","refused":"wrong_state"}"#);
        let done = ActedShape::new(JobId(6), Acted::Done { from: JobState::Ready });
        assert_eq!(serde_json::to_string(&done).unwrap(), r#"{"id":6,"done":true,"state":"ready","refused":null}"#);
    }
}
