//! Promotion: `promote_due` takes jobs from `deferred_jobs` and appends them again, in one transaction.

use awa_core::id::Slot;

use super::enter::{Door, Enter, Entered};
use super::{Flow, Outcome, Script};
use crate::locks::Sole;
use crate::rows::JobRow;
use crate::turn::Turn;
use crate::world::Reach;

/// A promoter's script.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Promote {
    taken: Vec<JobRow>,
    stage: Stage,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Stage {
    Take,
    Enter(Enter),
    Insert(Slot),
    Commit,
}

impl Promote {
    pub(crate) fn new() -> Self {
        Self { taken: Vec::new(), stage: Stage::Take }
    }

    pub(crate) fn step(mut self, turn: &mut Turn<'_>) -> Outcome {
        self.stage = match self.stage {
            Stage::Take => {
                // FOR UPDATE SKIP LOCKED: what somebody has is passed over, and what is gone by now is gone.
                let due: Vec<JobRow> = turn.seen(&turn.world.tables.deferred).cloned().collect();
                for row in due {
                    let is_mine = turn.try_hold(Sole::Deferred(row.job));
                    if is_mine && turn.remove(|tables| &mut tables.deferred, |old| old.job == row.job) > 0 {
                        self.taken.push(row);
                    }
                }
                if self.taken.is_empty() {
                    return Ok(Flow::Rollback(None));
                }
                Stage::Enter(Enter::Read)
            }
            Stage::Enter(at) => match at.step(turn, Door::Ready)? {
                Entered::Next(next) => Stage::Enter(next),
                Entered::In(slot) => Stage::Insert(slot),
            },
            Stage::Insert(slot) => {
                let xid = turn.xid();
                for row in std::mem::take(&mut self.taken) {
                    turn.insert(|tables| &mut tables.of_queue_mut(slot).ready, JobRow { xid, ..row });
                }
                Stage::Commit
            }
            Stage::Commit => {
                turn.reach(Reach::Promotion);
                return Ok(Flow::Commit(None));
            }
        };
        Ok(Flow::Next(Script::Promote(self)))
    }
}
