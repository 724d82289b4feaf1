//! Moving leases out of an old slot of the lease ring: `PgStore::forward_leases` with `forward_leases`. Which slots is said by
//! `UnpinPlan`; that a lease that somebody is ending is passed over is the database's.

use awa_core::id::Slot;
use awa_core::ring::RingKind;
use awa_core::unpin::{UnpinPlan, UnpinPolicy};

use super::enter::{Door, Enter, Entered};
use super::{Flow, Outcome, Script};
use crate::locks::{Child, Mode, Sole};
use crate::mutants::Mutant;
use crate::rows::LeaseRow;
use crate::turn::Turn;
use crate::world::Reach;

/// The script of whoever moves leases.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Forward {
    /// Slots that are still to be freed.
    others: Vec<Slot>,
    stage: Stage,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Stage {
    Plan,
    Enter(Slot, Enter),
    Commit,
}

impl Forward {
    pub(crate) fn new() -> Self {
        Self { others: Vec::new(), stage: Stage::Plan }
    }

    pub(crate) fn step(mut self, turn: &mut Turn<'_>) -> Outcome {
        self.stage = match self.stage {
            Stage::Plan => {
                let mut plan = UnpinPlan::new(&UnpinPolicy::default(), &turn.ring(RingKind::Lease));
                self.others = std::iter::from_fn(|| plan.next_slot()).collect();
                return Ok(Flow::Rollback(self.next_slot()));
            }
            Stage::Enter(from, at) => match at.step(turn, Door::Leases)? {
                Entered::Next(next) => Stage::Enter(from, next),
                Entered::In(open) if open == from => Stage::Commit,
                Entered::In(open) => {
                    turn.lock(Child::Leases(from), Mode::RowExclusive)?;
                    move_leases(turn, from, open);
                    Stage::Commit
                }
            },
            Stage::Commit => return Ok(Flow::Commit(self.next_slot())),
        };
        Ok(Flow::Next(Script::Forward(self)))
    }

    fn next_slot(mut self) -> Option<Script> {
        if self.others.is_empty() {
            return None;
        }
        self.stage = Stage::Enter(self.others.remove(0), Enter::Read);
        Some(Script::Forward(self))
    }
}

/// One statement: SKIP LOCKED, so that who is ending a lease is not disturbed.
fn move_leases(turn: &mut Turn<'_>, from: Slot, open: Slot) {
    let seen: Vec<LeaseRow> = turn.seen(turn.world.tables.of_lease(from)).cloned().collect();
    let is_blind = turn.rules.breaks(Mutant::MoverCopiesWhatItSaw);
    for lease in seen {
        if !turn.try_hold(Sole::Lease(lease.receipt)) && !is_blind {
            continue;
        }
        let removed = turn.remove(|tables| tables.of_lease_mut(from), |old| old.receipt == lease.receipt);
        if removed > 0 || is_blind {
            turn.insert(|tables| tables.of_lease_mut(open), lease);
            turn.reach(Reach::LeaseMoved);
        }
    }
}
