//! Jobs that wait change their queue or their priority.

use std::sync::Arc;

use super::Model;
use super::places::Place;
use super::rows::{Body, ReadyPlace, Row, Tombstone, TombstoneKind};
use crate::attempt::ErrorText;
use crate::id::{JobId, RunLease};
use crate::state::JobState;
use crate::store::{Acted, MoveTo, Refusal};
use crate::time::Timestamp;

impl Model {
    /// Moves jobs that are ready or deferred. See [`Operator::move_jobs`](crate::store::Operator::move_jobs).
    pub fn move_jobs(&mut self, jobs: &[JobId], to: &MoveTo, now: Timestamp) -> Vec<Acted> {
        jobs.iter().map(|job| self.move_one(*job, to, now)).collect()
    }

    fn move_one(&mut self, job: JobId, to: &MoveTo, now: Timestamp) -> Acted {
        let Some(place) = self.place(job) else { return Acted::Refused(Refusal::NotFound) };
        let from = self.state_at(job, &place);
        if !matches!(place, Place::Ready(_) | Place::Carried(..) | Place::Deferred) {
            return Acted::Refused(Refusal::WrongState(from));
        }
        let row = self.row_at(job, &place).clone();
        let body = moved(&row.body, to);
        let (is_held, is_there) = (self.transactions.is_held(job, row.run_lease), body.lane() == row.body.lane());
        // A deferred job that is held does not exist as far as PostgreSQL can tell, and may not be asked where it is.
        if is_held && (!is_there || from == JobState::Deferred) {
            return Acted::Refused(Refusal::Contended);
        }
        if is_there {
            return Acted::Done { from };
        }
        let row = Row { body: Arc::new(body), ..row };
        match place {
            Place::Ready(place) => {
                self.leave_lane(place, &row, now);
                self.arrive(job, row, now);
            }
            Place::Carried(lane, key) => {
                self.take_carried(&lane, key);
                self.arrive(job, row, now);
            }
            _ => {
                self.deferred.get_mut(&job).expect("a place names a row that exists").row = row;
                self.transactions.write_and_commit();
            }
        }
        Acted::Done { from }
    }

    /// Appends a tombstone over the row that the job leaves behind.
    fn leave_lane(&mut self, place: ReadyPlace, row: &Row, now: Timestamp) {
        let ReadyPlace { slot, lane, key } = place;
        let reason = ErrorText::new("moved");
        let tombstone = Tombstone { kind: TombstoneKind::Moved, lane, key, reason, cancelled_at: now };
        self.queue_ring.content_mut(slot).tombstones.insert((key.job, row.run_lease), tombstone);
    }

    /// Appends the job to its new lane, with a lease of its own: an id and a lease name one row for ever.
    fn arrive(&mut self, job: JobId, row: Row, now: Timestamp) {
        let row = Row { run_lease: RunLease(row.run_lease.0 + 1), ..row };
        let xid = self.transactions.write_and_commit();
        self.append_ready(xid, job, row, now);
    }
}

fn moved(body: &Body, to: &MoveTo) -> Body {
    Body {
        queue: to.new_queue().unwrap_or(&body.queue).clone(),
        priority: to.new_priority().unwrap_or(body.priority),
        ..body.clone()
    }
}
