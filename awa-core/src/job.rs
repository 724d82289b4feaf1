//! What a caller may enqueue. A [`NewJob`] is valid by construction, so that one bad job can never poison a batch.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::BadInput;
use crate::id::JobId;
use crate::json::JsonText;
use crate::name::{JobKind, QueueName};
use crate::queue::OrderingKey;
use crate::time::Timestamp;
use crate::unique::{OnConflict, Unique};

/// How urgent a job is, from 1 (urgent) to 4 (bulk); 2 unless told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "i16", into = "i16")]
pub struct Priority(u8);

impl Priority {
    /// The most urgent priority, 1.
    pub const URGENT: Self = Self(1);
    /// The least urgent priority, 4.
    pub const BULK: Self = Self(4);
    /// All priorities, most urgent first.
    pub const ALL: [Self; 4] = [Self(1), Self(2), Self(3), Self(4)];

    /// The priority `number`, 1 to 4.
    ///
    /// # Errors
    ///
    /// [`BadInput`] of the field `priority` outside that range.
    pub fn new(number: i16) -> Result<Self, BadInput> {
        match u8::try_from(number) {
            Ok(n @ 1..=4) => Ok(Self(n)),
            _ => Err(BadInput::new("priority", format!("{number} is outside 1 (urgent) to 4 (bulk)"))),
        }
    }

    /// The number, 1 to 4.
    pub const fn get(self) -> i16 {
        self.0 as i16
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self(2)
    }
}

impl TryFrom<i16> for Priority {
    type Error = BadInput;

    fn try_from(number: i16) -> Result<Self, BadInput> {
        Self::new(number)
    }
}

impl From<Priority> for i16 {
    fn from(priority: Priority) -> Self {
        priority.get()
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// How many charged attempts a job has, 1 to 32,767; 25 unless told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct MaxAttempts(i16);

impl MaxAttempts {
    /// The budget `number`, 1 to 32,767.
    ///
    /// # Errors
    ///
    /// [`BadInput`] of the field `max_attempts` outside that range.
    pub fn new(number: i64) -> Result<Self, BadInput> {
        match i16::try_from(number) {
            Ok(n @ 1..) => Ok(Self(n)),
            _ => Err(BadInput::new("max_attempts", format!("{number} is outside 1 to {}", i16::MAX))),
        }
    }

    /// The number, 1 to 32,767.
    pub const fn get(self) -> i16 {
        self.0
    }
}

impl Default for MaxAttempts {
    fn default() -> Self {
        Self(25)
    }
}

impl TryFrom<i64> for MaxAttempts {
    type Error = BadInput;

    fn try_from(number: i64) -> Result<Self, BadInput> {
        Self::new(number)
    }
}

impl From<MaxAttempts> for i64 {
    fn from(attempts: MaxAttempts) -> Self {
        Self::from(attempts.0)
    }
}

/// The earliest moment at which a job may run. The store's clock decides; the moment of enqueueing is the base of a delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum RunAt {
    /// As soon as the enqueueing transaction commits.
    #[default]
    Now,
    /// Not before this moment; a moment that is past means now.
    At(Timestamp),
    /// Not before this much time after the enqueue call.
    After(Duration),
}

impl RunAt {
    /// Not before the moment `at`.
    ///
    /// # Errors
    ///
    /// [`BadInput`] of the field `run_at` before 1970 or from the year 10000 on.
    pub fn at(at: Timestamp) -> Result<Self, BadInput> {
        if at < Timestamp::EPOCH || at >= Timestamp::MAX {
            return Err(BadInput::new("run_at", "it must lie from 1970-01-01 to 9999-12-31"));
        }
        Ok(Self::At(at))
    }

    /// Not before `delay` after the enqueue call; at most 1,000 years.
    ///
    /// # Errors
    ///
    /// [`BadInput`] of the field `run_at` when the delay is longer.
    pub fn after(delay: Duration) -> Result<Self, BadInput> {
        const LONGEST: Duration = Duration::from_hours(1_000 * 365 * 24);
        if delay > LONGEST {
            return Err(BadInput::new("run_at", "a delay is at most 1,000 years"));
        }
        Ok(Self::After(delay))
    }
}

/// A job to be enqueued, valid by construction.
///
/// ```
/// use awa_core::{JobKind, JsonText, NewJob, Priority, QueueName};
///
/// let job = NewJob::new(
///     QueueName::new("email")?,
///     JobKind::new("send_email")?,
///     JsonText::new("args", r#"{"to":"ada@example.org"}"#)?,
/// )
/// .with_priority(Priority::URGENT);
/// assert_eq!(job.priority().get(), 1);
/// # Ok::<(), awa_core::BadInput>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    queue: QueueName,
    kind: JobKind,
    args: JsonText,
    priority: Priority,
    run_at: RunAt,
    max_attempts: MaxAttempts,
    metadata: Option<JsonText>,
    unique: Option<Unique>,
    ordering: Option<OrderingKey>,
}

impl NewJob {
    /// A job with the default priority and attempt budget, to be run as soon as it is committed.
    pub fn new(queue: QueueName, kind: JobKind, args: JsonText) -> Self {
        Self {
            queue,
            kind,
            args,
            priority: Priority::default(),
            run_at: RunAt::Now,
            max_attempts: MaxAttempts::default(),
            metadata: None,
            unique: None,
            ordering: None,
        }
    }

    /// Puts it into another queue.
    #[must_use]
    pub fn with_queue(mut self, queue: QueueName) -> Self {
        self.queue = queue;
        self
    }

    /// Gives it another priority.
    #[must_use]
    pub fn with_priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the earliest moment at which it may run.
    #[must_use]
    pub fn with_run_at(mut self, run_at: RunAt) -> Self {
        self.run_at = run_at;
        self
    }

    /// Gives it another budget of attempts.
    #[must_use]
    pub fn with_max_attempts(mut self, max_attempts: MaxAttempts) -> Self {
        self.max_attempts = max_attempts;
        self
    }

    /// Attaches a JSON document that travels with the job and that Awa does not interpret.
    #[must_use]
    pub fn with_metadata(mut self, metadata: JsonText) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// Lets it exist only once per key (C14). The key is as it was made: later changes of the job do not change it.
    #[must_use]
    pub fn with_unique(mut self, unique: Unique) -> Self {
        self.unique = Some(unique);
        self
    }

    /// Keeps it in order with the other jobs of this key, this queue and this priority (see [`queue`](crate::queue)).
    #[must_use]
    pub fn with_ordering_key(mut self, key: OrderingKey) -> Self {
        self.ordering = Some(key);
        self
    }

    /// The queue.
    pub fn queue(&self) -> &QueueName {
        &self.queue
    }

    /// The kind.
    pub fn kind(&self) -> &JobKind {
        &self.kind
    }

    /// The arguments.
    pub fn args(&self) -> &JsonText {
        &self.args
    }

    /// The priority.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// The earliest moment at which it may run.
    pub fn run_at(&self) -> RunAt {
        self.run_at
    }

    /// The budget of attempts.
    pub fn max_attempts(&self) -> MaxAttempts {
        self.max_attempts
    }

    /// The attached document.
    pub fn metadata(&self) -> Option<&JsonText> {
        self.metadata.as_ref()
    }

    /// Its uniqueness, if it is to exist only once per key.
    pub fn unique(&self) -> Option<&Unique> {
        self.unique.as_ref()
    }

    /// What keeps it in order with other jobs, if anything.
    pub fn ordering_key(&self) -> Option<OrderingKey> {
        self.ordering
    }
}

/// What became of one job of an enqueue call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Enqueued {
    /// It was stored under this id, and exists once the transaction commits.
    Inserted(JobId),
    /// It was not stored: this job holds its key. It is committed, or belongs to the same transaction.
    Duplicate(JobId),
    /// It was stored, and takes the key of a job that waited ([`OnConflict::Replace`]), which ends as cancelled when the
    /// transaction commits, unless it was claimed before.
    Replaced {
        /// The id under which it was stored.
        new: JobId,
        /// The job that it replaces.
        old: JobId,
    },
    /// It was not stored, and the caller asked to be told so as a mistake ([`OnConflict::Error`]): this job holds its key.
    Refused(JobId),
}

impl Enqueued {
    /// The answer of a store about a job whose key `holder` holds.
    pub fn of_conflict(holder: JobId, on_conflict: OnConflict) -> Self {
        match on_conflict {
            OnConflict::Skip | OnConflict::Replace => Self::Duplicate(holder),
            OnConflict::Error => Self::Refused(holder),
        }
    }

    /// The id of the job that now stands for the caller's: its own, or the one that holds its key.
    pub fn id(self) -> JobId {
        match self {
            Self::Inserted(id) | Self::Duplicate(id) | Self::Refused(id) | Self::Replaced { new: id, .. } => id,
        }
    }

    /// Whether the job was stored.
    pub fn is_inserted(self) -> bool {
        matches!(self, Self::Inserted(_) | Self::Replaced { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_run_from_one_to_four() {
        for number in [-1, 0, 5, 256 + 1, i16::MAX] {
            assert_eq!(Priority::new(number).unwrap_err().field, "priority");
        }
        assert!(Priority::ALL.iter().map(|p| p.get()).eq(1..=4));
    }

    #[test]
    fn a_moment_out_of_range_is_refused() {
        for micros in [i64::MIN, -1, Timestamp::MAX.as_micros(), i64::MAX] {
            assert_eq!(RunAt::at(Timestamp::from_micros(micros)).unwrap_err().field, "run_at");
        }
        assert_eq!(RunAt::after(Duration::MAX).unwrap_err().field, "run_at");
    }

    #[test]
    fn attempt_budgets_have_a_range() {
        for number in [i64::MIN, 0, 32_768, i64::MAX] {
            assert_eq!(MaxAttempts::new(number).unwrap_err().field, "max_attempts");
        }
    }
}
