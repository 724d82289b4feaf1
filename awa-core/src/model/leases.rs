//! Attempts that need no slot: each is a lease that carries its job with it.

use std::collections::BTreeMap;

use super::Model;
use super::claims::Member;
use super::close::{Held, OpenAttempt};
use super::rows::Row;
use super::slots::Content;
use crate::attempt::Receipt;
use crate::frontier::RowKey;
use crate::id::{InstanceId, Nonce, ReceiptId, Slot};
use crate::time::Timestamp;

/// A row of `leases`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lease {
    pub(super) nonce: Nonce,
    pub(super) instance: InstanceId,
    pub(super) claimed_at: Timestamp,
    pub(super) deadline_at: Option<Timestamp>,
    /// The slot in the receipt: of the claim that it was, or [`Slot::LEASED`].
    pub(super) claim_slot: Slot,
    /// The place of the ready row that it came from.
    pub(super) key: RowKey,
    pub(super) ready_at: Timestamp,
    /// When its time runs out, while it is parked.
    pub(super) waiting_until: Option<Timestamp>,
    /// The job: claimed, and charged for this attempt.
    pub(super) row: Row,
}

impl Lease {
    /// Takes the attempt out of its worker's hands: what the worker holds does not fit any more.
    pub(super) fn park(&mut self, until: Timestamp) {
        self.nonce = Nonce(!self.nonce.0);
        self.waiting_until = Some(until);
    }

    /// What the worker of this lease must present, or the store itself for one that is parked.
    pub(super) fn receipt(&self, id: ReceiptId) -> Receipt {
        Receipt { id, claim_slot: self.claim_slot, nonce: self.nonce, job: self.key.job, run_lease: self.row.run_lease }
    }
}

/// The content of one slot of the lease ring.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct LeaseSlot {
    leases: BTreeMap<ReceiptId, Lease>,
    /// Whether a lease was ever stored since the slot was emptied.
    used: bool,
}

impl Content for LeaseSlot {
    fn is_empty(&self) -> bool {
        !self.used
    }

    fn bytes(&self) -> u64 {
        self.leases.values().map(|lease| lease.row.body.bytes()).sum()
    }
}

impl LeaseSlot {
    pub(super) fn len(&self) -> usize {
        self.leases.len()
    }
}

impl Model {
    /// All leases, by slot.
    pub(super) fn leases(&self) -> impl Iterator<Item = (ReceiptId, &Lease)> {
        self.lease_ring.numbered().flat_map(|(_, content)| content.leases.iter().map(|(id, lease)| (*id, lease)))
    }

    /// The lease with this receipt.
    pub(super) fn lease(&self, id: ReceiptId) -> Option<&Lease> {
        self.lease_ring.numbered().find_map(|(_, content)| content.leases.get(&id))
    }

    /// Stores a lease in the open slot.
    pub(super) fn insert_lease(&mut self, id: ReceiptId, lease: Lease) {
        assert!(self.lease(id).is_none(), "receipt {id} is leased twice");
        let slot = self.lease_ring.open_mut();
        slot.leases.insert(id, lease);
        slot.used = true;
    }

    /// Ends a lease.
    pub(super) fn remove_lease(&mut self, id: ReceiptId) -> Lease {
        let taken = self.lease_ring.contents_mut().find_map(|content| content.leases.remove(&id));
        taken.unwrap_or_else(|| panic!("the lease of receipt {id} is ended twice"))
    }

    /// Moves at most `limit` leases of a slot into the open one.
    pub(super) fn forward_leases(&mut self, slot: Slot, limit: usize) -> usize {
        let ids: Vec<ReceiptId> = self.lease_ring.content(slot).leases.keys().copied().take(limit).collect();
        for id in &ids {
            let lease = self.remove_lease(*id);
            self.insert_lease(*id, lease);
        }
        ids.len()
    }

    /// The lease for which this receipt was issued.
    pub(super) fn open_as_lease(&self, presented: &Receipt) -> Option<OpenAttempt> {
        let lease = self.lease(presented.id)?;
        (lease.receipt(presented.id) == *presented).then(|| leased(presented.id, lease))
    }

    /// Turns an open attempt into a lease, unless it is one: its claim is closed, its receipt stays good.
    pub(super) fn materialise(&mut self, attempt: &OpenAttempt) {
        let Held::InRing { claim_slot, .. } = &attempt.held else { return };
        let batch = &self.claim_ring.content(*claim_slot).batches[&attempt.id.batch()];
        let lease = Lease {
            nonce: batch.nonce,
            instance: batch.instance,
            claimed_at: batch.claimed_at,
            deadline_at: batch.deadline_at,
            claim_slot: *claim_slot,
            key: attempt.member.key,
            ready_at: attempt.ready_at,
            waiting_until: None,
            row: attempt.row.clone(),
        };
        self.append_closure(attempt);
        self.insert_lease(attempt.id, lease);
    }
}

/// The open attempt that a lease is.
pub(super) fn leased(id: ReceiptId, lease: &Lease) -> OpenAttempt {
    OpenAttempt {
        id,
        held: Held::AsLease,
        member: Member { key: lease.key, run_lease: lease.row.run_lease, attempt: lease.row.attempt },
        row: lease.row.clone(),
        ready_at: lease.ready_at,
    }
}
