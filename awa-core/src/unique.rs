//! Unique jobs: at most one job at a time holds a key.
//!
//! A caller says what makes a job the same as another ([`UniqueBy`]), and a job that would be the second of its kind is
//! not stored: the enqueue call answers with the job that is there. A key is held from the enqueueing transaction on
//! and given back by the transaction in which its job enters a state outside [`KeyStates`]; by default that is the end
//! of the job, whatever ended it. A job never conflicts with itself: retries, snoozes and promotions keep its key.
//!
//! # What a key is made of
//!
//! A key is the SHA-256 digest of one JSON object that holds the chosen parts and nothing else, so that a producer in
//! any language can make it: `args`, `kind`, `period_us` and `queue` as they are in the job, and `text` for a caller's
//! own. The object is written canonically:
//!
//! - no white space; members in the order of their names' Unicode code points; of equal names the last counts;
//! - strings in UTF-8 with the shortest escapes (`\"`, `\\`, `\b`, `\f`, `\n`, `\r`, `\t`, else `\u00xx` below U+0020),
//!   their characters as they are: `"\u00e9"` and `"é"` are equal, composed and decomposed letters are not;
//! - numbers by their exact value, as digits without zeros at either end and, unless it is zero, `e` and the power of
//!   ten: `1`, `1.0` and `10e-1` are `1`; `1500` is `15e2`; `-0.50` is `-5e-1`; every zero is `0`;
//! - `null` differs from a member that is missing.
//!
//! A store keeps the 32 bytes of the digest; with a period, the number of the period since 1970 (UTC), as 8 bytes with the
//! most significant first, behind them. The store's clock decides which period it is (clause C12), so that producers with
//! different clocks agree. Periods have fixed borders: two enqueue calls seconds apart may lie in different ones.

mod canonical;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::error::BadInput;
use crate::job::NewJob;
use crate::state::JobState;
use crate::time::Timestamp;

/// The longest text of a caller's own in a key, in bytes.
pub const MAX_KEY_TEXT_BYTES: usize = 1024;
/// The shortest period.
pub const MIN_PERIOD: Duration = Duration::from_secs(1);
/// The longest period, 366 days.
pub const MAX_PERIOD: Duration = Duration::from_hours(366 * 24);

/// What makes a job unique. Two jobs are the same when all chosen parts are equal.
///
/// ```
/// use std::time::Duration;
/// use awa_core::unique::{Unique, UniqueBy};
/// use awa_core::{JobKind, JsonText, NewJob, QueueName};
///
/// let job = NewJob::new(
///     QueueName::new("email")?,
///     JobKind::new("send_digest")?,
///     JsonText::new("args", r#"{"user":7,"trace":"00-ab"}"#)?,
/// );
/// // One digest per user and day, whatever else is in the arguments.
/// let by = UniqueBy::kind().and_fields(["user"]).per(Duration::from_hours(24));
/// let key = by.key_of(&job)?;
/// let job = job.with_unique(Unique::new(key));
/// assert!(job.unique().is_some());
/// # Ok::<(), awa_core::BadInput>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct UniqueBy {
    kind: bool,
    queue: bool,
    args: Args,
    text: Option<String>,
    period: Option<Duration>,
}

/// Which part of the arguments counts.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
enum Args {
    #[default]
    None,
    All,
    Fields(Vec<String>),
}

impl UniqueBy {
    /// One job of the kind.
    pub fn kind() -> Self {
        Self { kind: true, ..Self::default() }
    }

    /// One job with this text, of whatever kind and in whatever queue, unless more parts are chosen: 1 to
    /// [`MAX_KEY_TEXT_BYTES`] bytes without U+0000.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// Per kind as well.
    #[must_use]
    pub fn and_kind(mut self) -> Self {
        self.kind = true;
        self
    }

    /// Per queue as well.
    #[must_use]
    pub fn and_queue(mut self) -> Self {
        self.queue = true;
        self
    }

    /// Per value of the arguments as well, as a whole.
    #[must_use]
    pub fn and_args(mut self) -> Self {
        self.args = Args::All;
        self
    }

    /// Per value of these members of the arguments as well, which must then be a JSON object. A member that is missing
    /// differs from one that is `null`.
    #[must_use]
    pub fn and_fields<S: Into<String>>(mut self, fields: impl IntoIterator<Item = S>) -> Self {
        self.args = Args::Fields(fields.into_iter().map(Into::into).collect());
        self
    }

    /// Per period as well, by the store's clock: from [`MIN_PERIOD`] to [`MAX_PERIOD`], in whole seconds. The period
    /// only splits the key; within a period the key is held as long as [`KeyStates`] say and no longer.
    #[must_use]
    pub fn per(mut self, period: Duration) -> Self {
        self.period = Some(period);
        self
    }

    /// The key of `job` as it is now.
    ///
    /// # Errors
    ///
    /// [`BadInput`] of the field `unique` when no part is chosen, when a text or a period is out of its range, or when the
    /// arguments cannot be told apart: members of what is no object, nested deeper than 127 levels, or with a number whose
    /// power of ten has more than 18 digits.
    pub fn key_of(&self, job: &NewJob) -> Result<UniqueKey, BadInput> {
        let mut parts: BTreeMap<&str, String> = BTreeMap::new();
        if self.kind {
            parts.insert("kind", canonical::quoted(job.kind().as_str()));
        }
        if self.queue {
            parts.insert("queue", canonical::quoted(job.queue().as_str()));
        }
        if let Some(args) = self.args.of(job)? {
            parts.insert("args", args);
        }
        if let Some(own) = &self.text {
            check_text(own)?;
            parts.insert("text", canonical::quoted(own));
        }
        if parts.is_empty() {
            return Err(refused("no part is chosen, so that all jobs would be the same; choose at least one"));
        }
        let period = self.period.map(check_period).transpose()?;
        if let Some(micros) = period {
            parts.insert("period_us", canonical::write(&micros.to_string())?);
        }
        let document = canonical::object(parts.iter().map(|(name, part)| (*name, part.as_str())));
        Ok(UniqueKey { digest: Sha256::digest(document.as_bytes()).into(), period })
    }
}

impl Args {
    /// The canonical text of the chosen arguments.
    fn of(&self, job: &NewJob) -> Result<Option<String>, BadInput> {
        let json = job.args().as_str();
        match self {
            Self::None => Ok(None),
            Self::All => canonical::write(json).map(Some),
            Self::Fields(fields) if fields.is_empty() => Err(refused("the list of members of the arguments is empty")),
            Self::Fields(fields) => {
                let members = canonical::members(json)?.ok_or_else(|| {
                    refused("members of the arguments are asked for, and the arguments are no JSON object")
                })?;
                let chosen = members.iter().filter(|(name, _)| fields.contains(*name));
                Ok(Some(canonical::object(chosen.map(|(name, member)| (name.as_str(), member.as_str())))))
            }
        }
    }
}

fn refused(problem: impl Into<String>) -> BadInput {
    BadInput::new("unique", problem)
}

fn check_text(text: &str) -> Result<(), BadInput> {
    match text.len() {
        0 => Err(refused("the text of a key is empty")),
        1..=MAX_KEY_TEXT_BYTES if text.contains('\0') => Err(refused("the text of a key holds U+0000")),
        1..=MAX_KEY_TEXT_BYTES => Ok(()),
        long => Err(refused(format!("the text of a key has {long} bytes; the limit is {MAX_KEY_TEXT_BYTES} bytes"))),
    }
}

fn check_period(period: Duration) -> Result<i64, BadInput> {
    if !(MIN_PERIOD..=MAX_PERIOD).contains(&period) || period.subsec_nanos() != 0 {
        return Err(refused(format!("a period of {period:?} is no whole number of seconds from 1 to 366 days")));
    }
    Ok(i64::try_from(period.as_micros()).expect("366 days have fewer than 2^63 microseconds"))
}

/// What at most one job at a time may hold. See [`UniqueBy::key_of`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UniqueKey {
    digest: [u8; 32],
    period: Option<i64>,
}

impl UniqueKey {
    /// The digest.
    pub const fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// The length of its period in microseconds, if it has one.
    pub const fn period_micros(&self) -> Option<i64> {
        self.period
    }

    /// The key as a store keeps it for a job that is enqueued at `now` by the store's clock.
    pub fn at(&self, now: Timestamp) -> StoredKey {
        let mut bytes = self.digest.to_vec();
        if let Some(period) = self.period {
            bytes.extend(now.as_micros().div_euclid(period).to_be_bytes());
        }
        StoredKey(bytes)
    }
}

impl fmt::Debug for UniqueKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UniqueKey({}", hex(&self.digest))?;
        match self.period {
            Some(micros) => write!(f, " per {:?})", Duration::from_micros(micros.unsigned_abs())),
            None => f.write_str(")"),
        }
    }
}

/// A key as a store keeps it: the digest, and the number of the period behind it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoredKey(Vec<u8>);

impl StoredKey {
    /// The bytes: 32, or 40 with a period.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for StoredKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoredKey({})", hex(&self.0))
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.extend(
            [byte >> 4, byte & 15].map(|digit| char::from_digit(u32::from(digit), 16).expect("it is below 16")),
        );
    }
    text
}

/// The states in which a job holds its key. The default is every state of a job that has not ended: ready, deferred, running
/// and waiting; a job that has ended never stands in the way of the next one.
///
/// A key is given back when its job first enters a state outside the set, and the job does not take it again, but for an
/// operator's retry out of the dead-letter queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyStates(i16);

impl KeyStates {
    /// Ready, deferred, running and waiting.
    pub const UNFINISHED: Self = Self(
        Self::bit(JobState::Ready)
            | Self::bit(JobState::Deferred)
            | Self::bit(JobState::Running)
            | Self::bit(JobState::Waiting),
    );
    /// Ready and deferred: until the job is claimed for the first time. At most one job waits beside the one that runs, so
    /// that what is enqueued during a run is not lost; a retry of the running one goes on without the key.
    pub const UNTIL_CLAIMED: Self = Self(Self::bit(JobState::Ready) | Self::bit(JobState::Deferred));
    /// [`Self::UNFINISHED`] and dead: a job in the dead-letter queue holds back the next one until somebody has looked.
    pub const UNTIL_RESOLVED: Self = Self(Self::UNFINISHED.0 | Self::bit(JobState::Dead));

    /// The number of a state in [`Self::mask`].
    pub const fn bit(state: JobState) -> i16 {
        match state {
            JobState::Ready => 1,
            JobState::Running => 2,
            JobState::Deferred => 4,
            JobState::Waiting => 8,
            JobState::Completed => 16,
            JobState::Failed => 32,
            JobState::Cancelled => 64,
            JobState::Dead => 128,
        }
    }

    /// The set of `states`.
    ///
    /// # Errors
    ///
    /// [`BadInput`] of the field `unique` for a set that could not be kept: without ready or deferred (a job must be unique
    /// while it waits); with one of running and waiting only (a parked attempt is an attempt); with dead and without
    /// running; with completed, failed or cancelled, whose history is kept for a time and a room that have nothing to do
    /// with keys (choose a period instead).
    pub fn new(states: &[JobState]) -> Result<Self, BadInput> {
        let set = Self(states.iter().fold(0, |mask, state| mask | Self::bit(*state)));
        match [Self::UNFINISHED, Self::UNTIL_CLAIMED, Self::UNTIL_RESOLVED].into_iter().find(|known| *known == set) {
            Some(known) => Ok(known),
            None => Err(refused(format!(
                "a key cannot be held in {set:?} only; the sets are {:?}, {:?} and {:?}",
                Self::UNTIL_CLAIMED,
                Self::UNFINISHED,
                Self::UNTIL_RESOLVED
            ))),
        }
    }

    /// Whether the key is held in `state`.
    pub const fn contains(self, state: JobState) -> bool {
        self.0 & Self::bit(state) != 0
    }

    /// The set as one number, the sum of its states' bits.
    pub const fn mask(self) -> i16 {
        self.0
    }
}

impl Default for KeyStates {
    fn default() -> Self {
        Self::UNFINISHED
    }
}

impl fmt::Debug for KeyStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(JobState::ALL.into_iter().filter(|state| self.contains(*state))).finish()
    }
}

/// What becomes of a job whose key another job holds. The other jobs of the call are stored
/// in any case.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum OnConflict {
    /// It is not stored; the answer is [`Duplicate`](crate::Enqueued::Duplicate).
    #[default]
    Skip,
    /// A holder that waits, ready or deferred, is replaced: it ends as cancelled, and this job takes its key and its turn at the
    /// tail of the lane; the answer is [`Replaced`](crate::Enqueued::Replaced). A holder that runs is left alone, and so is
    /// one of the same call; the answer is then [`Duplicate`](crate::Enqueued::Duplicate).
    ///
    /// In a transaction of the caller's, the holder can be claimed until the commit. Then it runs as it was enqueued,
    /// without the key, and this job waits beside it.
    Replace,
    /// It is not stored; the answer is [`Refused`](crate::Enqueued::Refused), for callers to whom a duplicate is a mistake.
    Error,
}

/// The uniqueness of one job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unique {
    /// The key.
    pub key: UniqueKey,
    /// In which states the job holds it.
    pub states: KeyStates,
    /// What becomes of the job when another holds it.
    pub on_conflict: OnConflict,
}

impl Unique {
    /// Holds `key` until the job ends; a job whose key is taken is skipped.
    pub fn new(key: UniqueKey) -> Self {
        Self { key, states: KeyStates::default(), on_conflict: OnConflict::default() }
    }

    /// Holds the key in these states.
    #[must_use]
    pub fn while_in(mut self, states: KeyStates) -> Self {
        self.states = states;
        self
    }

    /// Does this when the key is taken.
    #[must_use]
    pub fn on_conflict(mut self, on_conflict: OnConflict) -> Self {
        self.on_conflict = on_conflict;
        self
    }
}

#[cfg(test)]
mod tests;
