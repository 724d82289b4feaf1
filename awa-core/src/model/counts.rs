//! How many jobs there are, and how many have ended for good.

use std::collections::BTreeMap;

use super::Model;
use super::rows::{DoneRow, QueueSlot};
use crate::id::{JobId, Slot};
use crate::name::QueueName;
use crate::prune::{FailedJob, RetentionPolicy};
use crate::state::JobState;
use crate::store::{Accuracy, Counts, QueueCounts};
use crate::time::Timestamp;

impl Model {
    /// Counts the jobs of all queues. See [`Operator::counts`](crate::store::Operator::counts).
    pub fn counts(&self, accuracy: Accuracy) -> Counts {
        let mut lines: BTreeMap<QueueName, QueueCounts> = BTreeMap::new();
        for (name, queue) in &self.queues {
            lines.insert(name.clone(), QueueCounts::empty(name.clone(), queue.paused));
        }
        let mut add = |queue: &QueueName, state, jobs, ever| {
            let line = lines.entry(queue.clone()).or_insert_with(|| QueueCounts::empty(queue.clone(), false));
            line.add(state, jobs, ever);
        };
        for (job, place) in self.places(None) {
            add(&self.row_at(job, &place).body.queue, self.state_at(job, &place), 1, 0);
        }
        for ((queue, state), jobs) in &self.ended {
            add(queue, *state, 0, *jobs);
        }
        for (_, content) in self.queue_ring.numbered() {
            for (queue, state) in ended_in(content) {
                add(queue, state, 0, 1);
            }
        }
        Counts::new(accuracy, lines.into_values().collect())
    }

    /// Takes the failed jobs out of a slot that is about to be emptied which must be kept for longer.
    pub(super) fn take_failed(
        &mut self,
        slot: Slot,
        retention: &RetentionPolicy,
        now: Timestamp,
    ) -> Vec<(JobId, DoneRow)> {
        let content = self.queue_ring.content_mut(slot);
        let failed = content.failed();
        let facts: Vec<FailedJob> =
            failed.iter().map(|(_, row)| FailedJob { age: now.since(row.failed_at), bytes: row.bytes }).collect();
        let kept = failed.iter().take(retention.carried_forward(&facts));
        kept.filter_map(|(job, _)| content.done.remove_entry(job)).collect()
    }

    /// Adds the history of a slot that is about to be emptied to what is counted for good.
    pub(super) fn count_for_good(&mut self, slot: Slot) {
        for (queue, state) in ended_in(self.queue_ring.content(slot)) {
            *self.ended.entry((queue.clone(), state)).or_insert(0) += 1;
        }
    }
}

/// Every job whose end the history of a slot shows, also one that was deleted.
fn ended_in(content: &QueueSlot) -> impl Iterator<Item = (&QueueName, JobState)> {
    let completed = content.completions.values().map(|completion| (&completion.lane.queue, JobState::Completed));
    let done = content.done.values().map(|done| (&done.row.body.queue, done.state));
    let cancelled = content.tombstones.values().map(|tombstone| (&tombstone.lane.queue, JobState::Cancelled));
    completed.chain(done).chain(cancelled)
}
