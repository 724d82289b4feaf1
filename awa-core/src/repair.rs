//! Making a store usable that was carried into another cluster, or whose pointers were.
//!
//! A dump carries rows with the transaction numbers of the cluster that it was taken in. In another cluster those numbers
//! lie in the future or mean somebody else, so that the cursors over them take new rows for passed ones. [`plan`] decides
//! what must be done about it: rows that wait are appended again to a slot that no cursor has ever looked at, under
//! numbers that are past for everybody and keep their order; what has been passed stays where it is, as history and
//! as the evidence of claims. Rows outside the rings, carried over or held by leases, are numbered anew below those, in
//! their order.
//!
//! A dump also carries sequences from a later moment than its rows. A pointer that runs ahead of its ledger, or behind it,
//! is set to a generation above both.

use std::fmt;

use crate::id::{Generation, Slot};
use crate::ring::{Pointer, RingView, SlotState};

/// What was observed, under locks that keep everybody else out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairFacts {
    /// Whether the cluster is another than the one on record.
    pub is_foreign_cluster: bool,
    /// Whether a row that waits in or outside the ring, or a cursor that new rows would be compared with, has a transaction number that this
    /// cluster has not handed out yet. After `pg_upgrade` there is none: its numbers go on.
    pub has_future_transactions: bool,
    /// The queue ring.
    pub queue: RingView,
    /// The claim ring.
    pub claim: RingView,
    /// The lease ring.
    pub lease: RingView,
    /// Slots of the queue ring that no open claim refers to.
    pub settled: Vec<Slot>,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepairPlan {
    /// Whether the cluster is put on record.
    pub records_cluster: bool,
    /// The queue ring.
    pub queue: QueueRepair,
    /// The open slot of the claim ring, opened again under a generation above all others; `None` when its pointer and its
    /// ledger agree.
    pub claim: Option<Pointer>,
    /// The same of the lease ring.
    pub lease: Option<Pointer>,
}

impl RepairPlan {
    /// Whether there is anything to do.
    pub const fn is_empty(&self) -> bool {
        !self.records_cluster && matches!(self.queue, QueueRepair::Keep) && self.claim.is_none() && self.lease.is_none()
    }
}

/// What is to be done to the queue ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueRepair {
    /// Nothing.
    Keep,
    /// The open slot is opened again under this generation.
    Reopen(Pointer),
    /// Rows that wait go into this slot, which is opened.
    MoveInto {
        /// The slot and its new generation.
        slot: Pointer,
        /// `None`: the slot is free and nothing was ever written to it. Otherwise it is in use, for history only, and that
        /// history moves into this slot first.
        history_into: Option<Slot>,
    },
}

/// Every slot of the queue ring is referred to by running attempts, so that there is none for the rows that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub struct NoSlot;

impl fmt::Display for NoSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "every slot of the queue ring holds jobs that are running; start a worker, which rescues those whose worker is \
             gone, and repair again",
        )
    }
}

/// Decides what is to be done.
///
/// # Errors
///
/// [`NoSlot`] when rows must move and there is nowhere to move them.
pub fn plan(facts: &RepairFacts) -> Result<RepairPlan, NoSlot> {
    let queue = if facts.has_future_transactions {
        move_into(&facts.queue, &facts.settled)?
    } else if facts.queue.pointer() == facts.queue.ledger() {
        QueueRepair::Keep
    } else {
        QueueRepair::Reopen(above(&facts.queue, facts.queue.ledger().slot))
    };
    let reopened = |ring: &RingView| (ring.pointer() != ring.ledger()).then(|| above(ring, ring.ledger().slot));
    let (claim, lease) = (reopened(&facts.claim), reopened(&facts.lease));
    Ok(RepairPlan { records_cluster: facts.is_foreign_cluster, queue, claim, lease })
}

/// `slot` under a generation that neither the pointer nor the ledger has seen.
fn above(ring: &RingView, slot: Slot) -> Pointer {
    let newest = ring.pointer().generation.max(ring.ledger().generation);
    Pointer::new(Generation(newest.0 + 1), slot)
}

fn move_into(ring: &RingView, settled: &[Slot]) -> Result<QueueRepair, NoSlot> {
    let open = ring.ledger().slot;
    let slots = || ring.slots().iter().zip(0..).map(|(view, slot)| (Slot(slot), view));
    if let Some((slot, _)) = slots().find(|(_, view)| view.state == SlotState::Free && !view.has_pages) {
        return Ok(QueueRepair::MoveInto { slot: above(ring, slot), history_into: None });
    }
    let oldest = slots()
        .filter(|(slot, view)| view.state != SlotState::Open && settled.contains(slot))
        .min_by_key(|(_, view)| view.generation);
    let (slot, _) = oldest.ok_or(NoSlot)?;
    Ok(QueueRepair::MoveInto { slot: above(ring, slot), history_into: Some(open) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::SlotView;

    /// A ring from (generation, state, has pages) of each slot.
    fn ring(slots: &[(i64, SlotState, bool)], pointer: Pointer) -> RingView {
        let view = |(generation, state, has_pages): &(i64, SlotState, bool)| SlotView {
            generation: Generation(*generation),
            state: *state,
            has_pages: *has_pages,
        };
        RingView::new(slots.iter().map(view).collect(), pointer).unwrap()
    }

    fn at(generation: i64, slot: u8) -> Pointer {
        Pointer::new(Generation(generation), Slot(slot))
    }

    use SlotState::{Drained, Free, Open, Sealed};

    fn facts(queue: RingView) -> RepairFacts {
        RepairFacts {
            is_foreign_cluster: true,
            has_future_transactions: true,
            queue,
            claim: ring(&[(2, Open, true), (1, Sealed, true), (0, Free, false)], at(2, 0)),
            lease: ring(&[(3, Open, true), (0, Free, false)], at(3, 0)),
            settled: Vec::new(),
        }
    }

    #[test]
    fn a_store_in_order_is_left_alone() {
        let queue = ring(&[(2, Open, true), (1, Sealed, true), (0, Free, false)], at(2, 0));
        let facts = RepairFacts { is_foreign_cluster: false, has_future_transactions: false, ..facts(queue) };
        assert!(plan(&facts).unwrap().is_empty());
    }

    #[test]
    fn a_cluster_whose_numbers_go_on_is_only_put_on_record() {
        let queue = ring(&[(2, Open, true), (1, Sealed, true), (0, Free, false)], at(2, 0));
        let facts = RepairFacts { has_future_transactions: false, ..facts(queue) };
        let expected = RepairPlan { records_cluster: true, queue: QueueRepair::Keep, claim: None, lease: None };
        assert_eq!(plan(&facts), Ok(expected));
    }

    #[test]
    fn rows_move_into_a_slot_that_nobody_ever_wrote_to() {
        let queue = ring(&[(5, Open, true), (4, Sealed, true), (0, Free, true), (1, Free, false)], at(9, 2));
        let plan = plan(&facts(queue)).unwrap();
        assert_eq!(plan.queue, QueueRepair::MoveInto { slot: at(10, 3), history_into: None });
    }

    #[test]
    fn without_such_a_slot_the_oldest_that_holds_only_history_is_cleared() {
        let queue = ring(&[(5, Open, true), (2, Drained, true), (3, Drained, true), (4, Sealed, true)], at(5, 0));
        let some_run = RepairFacts { settled: vec![Slot(0), Slot(3), Slot(2)], ..facts(queue.clone()) };
        let expected = QueueRepair::MoveInto { slot: at(6, 2), history_into: Some(Slot(0)) };
        assert_eq!(plan(&some_run).unwrap().queue, expected);
        let all_run = RepairFacts { settled: vec![Slot(0)], ..facts(queue) };
        assert_eq!(plan(&all_run), Err(NoSlot), "the open slot has cursors of the other cluster");
    }

    #[test]
    fn a_pointer_that_left_its_ledger_is_set_above_both() {
        let slots = [(5, Open, true), (4, Sealed, true), (0, Free, false)];
        for (pointer, generation) in [(at(9, 1), 10), (at(3, 1), 6), (at(5, 1), 6)] {
            let facts = RepairFacts {
                is_foreign_cluster: false,
                has_future_transactions: false,
                claim: ring(&slots, pointer),
                lease: ring(&slots, pointer),
                ..facts(ring(&slots, pointer))
            };
            let expected = at(generation, 0);
            let plan = plan(&facts).unwrap();
            assert_eq!(plan.queue, QueueRepair::Reopen(expected));
            assert_eq!((plan.claim, plan.lease), (Some(expected), Some(expected)));
        }
    }
}
