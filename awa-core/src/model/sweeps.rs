//! The sweeps over the claim ring: in each slot one for stale claims and one for expired deadlines, over the claims of
//! each shape.

use std::collections::BTreeMap;

use super::Model;
use super::claims::ClaimSlot;
use crate::id::{ReceiptId, Slot};
use crate::receipt::ReceiptSet;
use crate::retry::RetryPolicy;
use crate::store::{RescueRequest, Rescued};
use crate::sweep::{
    BatchKey, Evidence, PageRequest, RescueOutcome, RowLocalKey, Sweep, SweepCursor, SweepKind, SweepLimits, Visited,
};
use crate::time::Timestamp;

/// Pages that one pass visits in each slot.
const PAGES_PER_PASS: usize = 8;

/// One pass of one sweep over one slot.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    pub(super) kind: SweepKind,
    pub(super) slot: Slot,
    pub(super) request: &'a RescueRequest,
    pub(super) retry: &'a RetryPolicy,
    pub(super) now: Timestamp,
}

/// The claims of one shape, in the order in which they are swept.
pub(super) trait Swept: Copy + Ord {
    /// Where the sweep of this kind stands.
    fn cursor(content: &mut ClaimSlot, kind: SweepKind) -> &mut SweepCursor<Self>;
    /// The moment that orders a claim.
    fn at(self) -> Timestamp;
    /// The claims of a page.
    fn page(content: &ClaimSlot, kind: SweepKind, asked: &PageRequest<Self>) -> Vec<Self>;
    /// The attempts of a claim that are open.
    fn open(self, content: &ClaimSlot, kind: SweepKind) -> ReceiptSet;
}

impl Swept for BatchKey {
    fn cursor(content: &mut ClaimSlot, kind: SweepKind) -> &mut SweepCursor<Self> {
        match kind {
            SweepKind::Stale => &mut content.stale_cursor,
            SweepKind::Deadline => &mut content.deadline_cursor,
        }
    }

    fn at(self) -> Timestamp {
        self.at
    }

    fn page(content: &ClaimSlot, kind: SweepKind, asked: &PageRequest<Self>) -> Vec<Self> {
        match kind {
            SweepKind::Stale => page_of(content.by_claim.iter(), asked),
            SweepKind::Deadline => page_of(content.by_deadline.iter(), asked),
        }
    }

    fn open(self, content: &ClaimSlot, _: SweepKind) -> ReceiptSet {
        content.open(self.batch)
    }
}

impl Swept for RowLocalKey {
    fn cursor(content: &mut ClaimSlot, kind: SweepKind) -> &mut SweepCursor<Self> {
        match kind {
            SweepKind::Stale => &mut content.row_stale_cursor,
            SweepKind::Deadline => &mut content.row_deadline_cursor,
        }
    }

    fn at(self) -> Timestamp {
        self.at
    }

    fn page(content: &ClaimSlot, kind: SweepKind, asked: &PageRequest<Self>) -> Vec<Self> {
        page_of(rows(content, kind).keys(), asked)
    }

    fn open(self, content: &ClaimSlot, kind: SweepKind) -> ReceiptSet {
        let receipt = rows(content, kind).get(&self).copied();
        receipt.filter(|receipt| !content.closed_rows.contains(receipt)).into_iter().collect()
    }
}

/// The row-local claims of a slot in the order of a sweep.
fn rows(content: &ClaimSlot, kind: SweepKind) -> &BTreeMap<RowLocalKey, ReceiptId> {
    match kind {
        SweepKind::Stale => &content.rows_by_claim,
        SweepKind::Deadline => &content.rows_by_deadline,
    }
}

fn page_of<'a, K: Copy + Ord + 'a>(keys: impl Iterator<Item = &'a K>, asked: &PageRequest<K>) -> Vec<K> {
    let is_wanted =
        |key: &K| asked.after.is_none_or(|after| *key > after) && asked.through.is_none_or(|through| *key <= through);
    keys.copied().filter(is_wanted).take(asked.limit).collect()
}

impl Model {
    /// One pass over the claims of one shape.
    pub(super) fn sweep<K: Swept>(&mut self, pass: &Pass<'_>, rescued: &mut Rescued) {
        let limits = SweepLimits::new(pass.request.page, PAGES_PER_PASS);
        let mut sweep = Sweep::begin(pass.kind, *K::cursor(self.claim_ring.content_mut(pass.slot), pass.kind), limits);
        while let Some(asked) = sweep.next_page() {
            let page = sweep.visit(self.read_page::<K>(pass, &asked));
            let keys: Vec<K> = page.to_rescue().collect();
            let mut outcomes = BTreeMap::new();
            for key in keys {
                let open = key.open(self.claim_ring.content(pass.slot), pass.kind);
                outcomes.insert(key, self.rescue_members(pass, &open, rescued));
            }
            sweep = page.settle(&outcomes);
        }
        let (stands, report) = sweep.finish();
        *K::cursor(self.claim_ring.content_mut(pass.slot), pass.kind) = stands;
        rescued.contended += report.contended;
        rescued.more |= !report.complete;
    }

    fn read_page<K: Swept>(&self, pass: &Pass<'_>, asked: &PageRequest<K>) -> Vec<Visited<K>> {
        let content = self.claim_ring.content(pass.slot);
        let visited = K::page(content, pass.kind, asked).into_iter().map(|key| Visited {
            key,
            too_new: match pass.kind {
                SweepKind::Stale => pass.now.since(key.at()) < pass.request.staleness,
                SweepKind::Deadline => key.at() > pass.now,
            },
            evidence: self.evidence(content, &key.open(content, pass.kind), pass),
        });
        visited.collect()
    }

    /// What is known of a claim whose open attempts these are. They have one worker, so they differ only in whether they
    /// have ended.
    fn evidence(&self, content: &ClaimSlot, open: &ReceiptSet, pass: &Pass<'_>) -> Evidence {
        let Some(first) = open.iter().next() else { return Evidence::Closed };
        let batch = &content.batches[&first.batch()];
        if self.is_gone(batch.instance, batch.claimed_at, None, pass.request, pass.now) {
            Evidence::Open
        } else {
            Evidence::Alive
        }
    }

    /// Ends open attempts of one claim.
    pub(super) fn rescue_members(
        &mut self,
        pass: &Pass<'_>,
        open: &ReceiptSet,
        rescued: &mut Rescued,
    ) -> RescueOutcome {
        let mut outcome = RescueOutcome::LostRace;
        for receipt in open.iter() {
            let batch = &self.claim_ring.content(pass.slot).batches[&receipt.batch()];
            let member = batch.member(receipt).expect("an open receipt names a member of its batch");
            let attempt = self.attempt_of(batch, member, receipt, pass.slot);
            rescued.attempts.push(self.rescue_attempt(
                pass.kind.into(),
                attempt,
                pass.request.staleness,
                pass.retry,
                pass.now,
            ));
            outcome = RescueOutcome::Closed;
        }
        outcome
    }
}
