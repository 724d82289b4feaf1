//! An operator removes what waits in a queue.

use super::Model;
use super::rows::{Body, Lane};
use crate::frontier::{Snapshot, Step};
use crate::id::{JobId, RunLease, Slot};
use crate::name::QueueName;
use crate::store::{PurgeScope, Purged};

impl Model {
    /// Removes the jobs of a queue that wait. See [`Operator::purge_queue`](crate::store::Operator::purge_queue).
    pub fn purge_queue(&mut self, queue: &QueueName, scope: PurgeScope) -> Purged {
        let snapshot = self.transactions.snapshot();
        let mut purged = Purged::default();
        for slot in (0..self.queue_ring.len()).map(Slot) {
            let lanes: Vec<Lane> =
                self.queue_ring.content(slot).ready.keys().filter(|lane| lane.queue == *queue).cloned().collect();
            for lane in lanes {
                self.purge_lane(slot, &lane, &snapshot, &mut purged);
            }
        }
        let lanes: Vec<Lane> = self.carried.keys().filter(|lane| lane.queue == *queue).cloned().collect();
        for lane in lanes {
            for (key, ready) in self.carried.remove(&lane).expect("the lane has rows") {
                self.remove(key.job, &ready.row.body.clone(), &mut purged);
            }
        }
        if scope == PurgeScope::ReadyAndDeferred {
            self.purge_deferred(queue, &snapshot, &mut purged);
        }
        self.transactions.write_and_commit();
        purged
    }

    /// Moves the cursor of a lane in a slot over everything that it sees there, and hands nothing out.
    fn purge_lane(&mut self, slot: Slot, lane: &Lane, snapshot: &Snapshot, purged: &mut Purged) {
        let content = self.queue_ring.content(slot);
        let mut jobs = Vec::new();
        let walk = content.frontier(lane).walk(snapshot, &content.ready[lane], |key, ready| {
            if !content.is_tombstoned(key, ready) {
                jobs.push((key.job, ready.row.clone()));
            }
            Step::Continue
        });
        if jobs.is_empty() {
            return;
        }
        if jobs.iter().any(|(job, row)| self.transactions.is_held(*job, row.run_lease)) {
            purged.contended = true;
            return;
        }
        self.queue_ring.content_mut(slot).frontiers.insert(lane.clone(), walk.frontier);
        for (job, row) in jobs {
            self.remove(job, &row.body, purged);
        }
    }

    fn purge_deferred(&mut self, queue: &QueueName, snapshot: &Snapshot, purged: &mut Purged) {
        let of_queue = self.deferred.iter().filter(|(_, row)| row.row.body.queue == *queue && snapshot.sees(row.xid));
        let jobs: Vec<(JobId, RunLease)> = of_queue.map(|(job, row)| (*job, row.row.run_lease)).collect();
        for (job, lease) in jobs {
            if self.transactions.is_held(job, lease) {
                purged.contended = true;
            } else {
                let deferred = self.deferred.remove(&job).expect("it was just found");
                self.remove(job, &deferred.row.body, purged);
            }
        }
    }

    fn remove(&mut self, job: JobId, body: &Body, purged: &mut Purged) {
        self.give_key_up(job, body);
        self.forget(job);
        purged.jobs += 1;
    }
}
