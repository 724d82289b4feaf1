//! Who holds which key.

use super::places::Place;
use super::rows::{Body, Row};
use super::{Model, TransactionId};
use crate::attempt::ErrorText;
use crate::error::{StoreError, StoreErrorKind};
use crate::id::JobId;
use crate::job::NewJob;
use crate::state::JobState;
use crate::store::Refusal;
use crate::time::Timestamp;
use crate::unique::{KeyStates, StoredKey};

/// A row of `unique_claims`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Holder {
    pub(super) job: JobId,
    /// The open transaction that took the key; `None` once it has committed.
    pub(super) taken_in: Option<TransactionId>,
    /// The job that held it before that transaction, and holds it again when it rolls back.
    pub(super) before: Option<JobId>,
}

/// The key of a job, which stays the same for its life.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct OwnKey {
    pub(super) key: StoredKey,
    pub(super) states: KeyStates,
}

/// Another open transaction has taken a key that was asked for, and may yet roll back. A store on a database waits for its
/// end; the model, whose steps are atomic, changes nothing and says so.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyInDoubt(pub StoredKey);

impl From<KeyInDoubt> for StoreError {
    fn from(doubt: KeyInDoubt) -> Self {
        let problem =
            format!("an open transaction has taken the unique key {:?}; ask again when it has ended", doubt.0);
        Self::new(StoreErrorKind::Contended, "enqueue", problem)
    }
}

impl Model {
    /// Refuses when one of these jobs has a key that another open transaction has taken.
    pub(super) fn no_key_in_doubt(
        &self,
        transaction: TransactionId,
        jobs: &[NewJob],
        now: Timestamp,
    ) -> Result<(), KeyInDoubt> {
        let keys = jobs.iter().filter_map(|job| job.unique()).map(|unique| unique.key.at(now));
        let in_doubt = |key: &StoredKey| {
            self.keys.get(key).is_some_and(|holder| holder.taken_in.is_some_and(|other| other != transaction))
                || self.transactions.is_being_given_up(key, Some(transaction))
        };
        match keys.into_iter().find(in_doubt) {
            Some(key) => Err(KeyInDoubt(key)),
            None => Ok(()),
        }
    }

    /// The job that holds the key of `job` already, if it has a key.
    pub(super) fn key_holder(&self, job: &NewJob, now: Timestamp) -> Option<JobId> {
        self.keys.get(&job.unique()?.key.at(now)).map(|holder| holder.job)
    }

    /// A new job takes its key, from its holder when it replaces that one.
    pub(super) fn take_key(&mut self, transaction: TransactionId, job: JobId, body: &Body) {
        match &body.unique {
            Some(own) if self.keys.contains_key(&own.key) => self.pass_key(transaction, job, &own.key),
            Some(own) => {
                self.keys.insert(own.key.clone(), Holder { job, taken_in: Some(transaction), before: None });
            }
            None => {}
        }
    }

    /// Whether the holder of a key can be replaced by a job of this transaction: whether it waits in the ring or for its time.
    /// One that was handed back or carried over is as good as claimed: it could only be cancelled by who holds its lane, and
    /// an open transaction must not.
    pub(super) fn can_be_replaced(&self, transaction: TransactionId, holder: JobId, key: &StoredKey) -> bool {
        let is_own = self.keys.get(key).is_some_and(|held| held.taken_in == Some(transaction));
        is_own || matches!(self.place(holder), Some(Place::Ready(_) | Place::Deferred))
    }

    /// The key passes to a job of this transaction that replaces its holder.
    fn pass_key(&mut self, transaction: TransactionId, job: JobId, key: &StoredKey) {
        let held = self.keys.get_mut(key).expect("a key that is passed on is held");
        if held.taken_in.is_none() {
            held.before = Some(held.job);
        }
        held.taken_in = Some(transaction);
        let old = std::mem::replace(&mut held.job, job);
        let row = self.place(old).and_then(|place| self.row_of_waiting(old, &place));
        let open = self.transactions.open_mut(transaction);
        open.replaced.push((old, job));
        open.held.extend(row.map(|lease| (old, lease)));
    }

    /// Jobs that still wait when the transaction commits that replaced them are cancelled; one that does not goes on
    /// without its key.
    pub(super) fn cancel_replaced(&mut self, replaced: &[(JobId, JobId)], now: Timestamp) {
        for (old, new) in replaced {
            let reason = ErrorText::new(format!("replaced by job {new}"));
            match self.place(*old) {
                Some(Place::Ready(_) | Place::Deferred) => {
                    self.cancel_now(*old, &reason, now);
                }
                _ => {
                    self.keyless.insert(*old);
                }
            }
        }
    }

    /// A job enters `state`: it gives its key back unless it holds it there.
    pub(super) fn leave_key(&mut self, job: JobId, body: &Body, state: JobState) {
        if body.unique.as_ref().is_some_and(|own| !own.states.contains(state)) {
            self.give_key_up(job, body);
        }
    }

    /// A job does not hold its key any more, whatever state it is in or whether it exists.
    pub(super) fn give_key_up(&mut self, job: JobId, body: &Body) {
        let Some(own) = &body.unique else { return };
        if self.keys.get(&own.key).is_some_and(|holder| holder.job == job) {
            self.keys.remove(&own.key);
        }
    }

    /// A job will not hold its key any more when this transaction commits, which may take it at once.
    pub(super) fn give_key_up_in(&mut self, transaction: TransactionId, job: JobId, body: &Body) {
        let Some(own) = &body.unique else { return };
        let Some(holder) = self.keys.get(&own.key).filter(|holder| holder.job == job).copied() else { return };
        let had_it = match holder.taken_in {
            None => Some(job),
            Some(by) if by == transaction => holder.before,
            Some(_) => return,
        };
        self.keys.remove(&own.key);
        // Who had it before the transaction has it again when that rolls back.
        self.transactions.open_mut(transaction).given_up.entry(own.key.clone()).or_insert(had_it);
    }

    /// A job that failed for good and is to live again takes the key that it gave back when it came into the state `from`.
    pub(super) fn take_key_again(&mut self, job: JobId, row: &Row, from: JobState) -> Result<(), Refusal> {
        let gave_back = |own: &&OwnKey| own.states.contains(JobState::Running) && !own.states.contains(from);
        let Some(own) = row.body.unique.as_ref().filter(gave_back) else { return Ok(()) };
        match self.keys.get(&own.key) {
            Some(Holder { taken_in: Some(_), .. }) => Err(Refusal::Contended),
            Some(Holder { job, .. }) => Err(Refusal::KeyTaken(*job)),
            None if self.transactions.is_being_given_up(&own.key, None) => Err(Refusal::Contended),
            None => {
                self.keys.insert(own.key.clone(), Holder { job, taken_in: None, before: None });
                Ok(())
            }
        }
    }

    pub(super) fn commit_keys(&mut self, transaction: TransactionId) {
        for holder in self.keys.values_mut().filter(|holder| holder.taken_in == Some(transaction)) {
            (holder.taken_in, holder.before) = (None, None);
        }
    }

    pub(super) fn roll_back_keys(&mut self, transaction: TransactionId) {
        let taken: Vec<_> = self
            .keys
            .iter()
            .filter(|(_, holder)| holder.taken_in == Some(transaction))
            .map(|(key, _)| key.clone())
            .collect();
        for key in taken {
            if let Some(job) = self.keys.remove(&key).and_then(|holder| holder.before) {
                self.restore_key(key, job);
            }
        }
    }

    /// A job has its key again that a transaction had taken from it, unless it has come into a state without it.
    pub(super) fn restore_key(&mut self, key: StoredKey, job: JobId) {
        let Some(place) = self.place(job) else { return };
        let holds = |own: &OwnKey| own.states.contains(self.state_at(job, &place));
        if self.row_at(job, &place).body.unique.as_ref().is_some_and(holds) {
            self.keys.insert(key, Holder { job, taken_in: None, before: None });
        }
    }
}
