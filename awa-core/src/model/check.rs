//! What must hold in every state that a model can reach.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::Model;
use super::slots::Content;
use super::unique::{Holder, OwnKey};
use crate::id::{JobId, ReceiptId, RunLease, Slot};
use crate::ring::SlotState;
use crate::state::JobState;
use crate::unique::StoredKey;

/// A state that no store may be in.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Violation {
    /// I1: a job is in more than one place.
    InManyPlaces {
        /// The job.
        job: JobId,
        /// The places.
        places: Vec<String>,
    },
    /// I2: two claims of a job carry the same lease.
    LeaseUsedTwice(JobId, RunLease),
    /// I3: a closure without a claim of its shape.
    ClosedButNotClaimed(ReceiptId),
    /// I5: the row of an open attempt is gone.
    BodyGone(ReceiptId),
    /// I5: a free slot of a ring still has content.
    FreeSlotNotEmpty(Slot),
    /// I5: rows wait in a slot in which no claim looks.
    WaitingInDrainedSlot(Slot),
    /// I10: a job that should hold its key does not, and another might take it.
    KeyNotHeld(JobId, StoredKey),
    /// Something is noted for a job that is completed, cancelled, failed or gone.
    NotedForNobody(JobId),
    /// I10: a key is held by a job that should have given it back, or by none.
    KeyNotGivenBack(JobId, StoredKey),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InManyPlaces { job, places } => write!(f, "job {job} is in {} places: {places:?}", places.len()),
            Self::LeaseUsedTwice(job, lease) => write!(f, "job {job} was claimed twice with run lease {lease}"),
            Self::ClosedButNotClaimed(receipt) => {
                write!(f, "receipt {receipt:?} is closed and was never claimed in that shape")
            }
            Self::BodyGone(receipt) => write!(f, "the job of the open attempt {receipt:?} is gone"),
            Self::FreeSlotNotEmpty(slot) => write!(f, "slot {slot} is free and not empty"),
            Self::WaitingInDrainedSlot(slot) => write!(f, "jobs wait in slot {slot}, which is drained"),
            Self::NotedForNobody(job) => write!(f, "something is noted for job {job}, which has ended or is gone"),
            Self::KeyNotHeld(job, key) => write!(f, "job {job} does not hold its key {key:?}"),
            Self::KeyNotGivenBack(job, key) => write!(f, "job {job} has not given back the key {key:?}"),
        }
    }
}

impl std::error::Error for Violation {}

impl Model {
    /// Looks for a violation of the storage invariants I1 to I5 and I10, as far as one state shows it. That nothing is lost
    /// takes two states: compare [`Self::census`] and [`Self::get`] over a history.
    ///
    /// # Errors
    ///
    /// The first violation found.
    pub fn check(&self) -> Result<(), Violation> {
        self.check_rings()?;
        self.check_claims()?;
        self.check_places()?;
        self.check_memory()?;
        self.check_keys()
    }

    fn check_memory(&self) -> Result<(), Violation> {
        match self.remembered().find(|job| !self.is_remembered(*job)) {
            Some(job) => Err(Violation::NotedForNobody(job)),
            None => Ok(()),
        }
    }

    fn check_keys(&self) -> Result<(), Violation> {
        let mut holders: BTreeMap<&StoredKey, JobId> = BTreeMap::new();
        for (job, place) in self.places(None) {
            let Some(OwnKey { key, states }) = self.row_at(job, &place).body.unique.as_ref() else { continue };
            let (state, first) = (self.state_at(job, &place), self.row_at(job, &place).run_lease == RunLease(0));
            let holder = self.keys.get(key);
            let is_held = holder.is_some_and(|holder| holder.job == job);
            let is_replaced = self.keyless.contains(&job)
                || holder.is_some_and(|holder| holder.before == Some(job))
                || self.transactions.is_being_given_up(key, None);
            // A key that is held only while the job waits is not taken again after the first claim.
            let must_hold = states.contains(state) && (first || states.contains(JobState::Running));
            if must_hold && !is_held && !is_replaced {
                return Err(Violation::KeyNotHeld(job, key.clone()));
            }
            if is_held {
                if !states.contains(state) {
                    return Err(Violation::KeyNotGivenBack(job, key.clone()));
                }
                holders.insert(key, job);
            }
        }
        let committed = self.keys.iter().filter(|(_, holder)| holder.taken_in.is_none());
        match committed.into_iter().find(|(key, Holder { job, .. })| holders.get(key) != Some(job)) {
            Some((key, holder)) => Err(Violation::KeyNotGivenBack(holder.job, key.clone())),
            None => Ok(()),
        }
    }

    fn check_places(&self) -> Result<(), Violation> {
        let mut places = self.places(None);
        places.sort_by_key(|(job, _)| *job);
        match places.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            None => Ok(()),
            Some(pair) => Err(Violation::InManyPlaces {
                job: pair[0].0,
                places: pair.iter().map(|(_, place)| format!("{place:?}")).collect(),
            }),
        }
    }

    fn check_claims(&self) -> Result<(), Violation> {
        let mut leases = BTreeSet::new();
        for (_, content) in self.claim_ring.numbered() {
            for batch in content.batches.values() {
                let reused = batch.members.iter().find(|member| !leases.insert((member.key.job, member.run_lease)));
                if let Some(member) = reused {
                    return Err(Violation::LeaseUsedTwice(member.key.job, member.run_lease));
                }
            }
            if let Some(receipt) = content.stray_closure() {
                return Err(Violation::ClosedButNotClaimed(receipt));
            }
            for (batch, id) in content.open_attempts() {
                let member = batch.member(id).ok_or(Violation::ClosedButNotClaimed(id))?;
                if self.queue_ring.content(batch.ready_slot).row(&batch.lane, member.key).is_none() {
                    return Err(Violation::BodyGone(id));
                }
            }
        }
        let leased = self.leases().filter(|(_, lease)| lease.claim_slot == Slot::LEASED);
        for (_, lease) in leased {
            if !leases.insert((lease.key.job, lease.row.run_lease)) {
                return Err(Violation::LeaseUsedTwice(lease.key.job, lease.row.run_lease));
            }
        }
        Ok(())
    }

    fn check_rings(&self) -> Result<(), Violation> {
        let free_queue = self.queue_ring.slots_in(SlotState::Free).into_iter();
        let free_lease = self.lease_ring.slots_in(SlotState::Free).into_iter();
        let free_claim = self.claim_ring.slots_in(SlotState::Free).into_iter();
        let mut dirty = free_queue
            .filter(|slot| !self.queue_ring.content(*slot).is_empty())
            .chain(free_claim.filter(|slot| !self.claim_ring.content(*slot).is_empty()))
            .chain(free_lease.filter(|slot| !self.lease_ring.content(*slot).is_empty()));
        if let Some(slot) = dirty.next() {
            return Err(Violation::FreeSlotNotEmpty(slot));
        }
        let drained = self.queue_ring.slots_in(SlotState::Drained);
        match drained.into_iter().find(|slot| self.queue_ring.content(*slot).is_waited_in()) {
            Some(slot) => Err(Violation::WaitingInDrainedSlot(slot)),
            None => Ok(()),
        }
    }
}
