//! Jobs are handed out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::Model;
use super::claims::{Batch, Member};
use super::rows::{Lane, ReadyRow};
use crate::attempt::{ClaimedJob, Receipt};
use crate::frontier::{Snapshot, Step};
use crate::id::{BatchId, ReceiptId, RunLease, Slot};
use crate::job::Priority;
use crate::name::QueueName;
use crate::ring::Pointer;
use crate::state::JobState;
use crate::store::{ClaimRequest, Claimed, Horizon, Peeked};
use crate::time::Timestamp;

/// The most slots of the queue ring that one call takes jobs from: each costs a database a handful of locks.
const MAX_SLOTS_PER_CALL: usize = 2;

/// What one call may still take, and what it took.
struct Budget {
    jobs: u16,
    bytes: u64,
    slots: BTreeSet<Slot>,
}

impl Budget {
    fn is_spent(&self) -> bool {
        self.jobs == 0 || self.bytes == 0
    }

    /// Pays for a job. True, so that a condition can end with it.
    fn spend(&mut self, ready: &ReadyRow) -> bool {
        self.jobs -= 1;
        self.bytes = self.bytes.saturating_sub(ready.row.body.args.as_str().len() as u64);
        true
    }

    /// Whether the call may take jobs from `slot`.
    fn admits(&mut self, slot: Slot) -> bool {
        self.slots.contains(&slot) || self.slots.len() < MAX_SLOTS_PER_CALL && self.slots.insert(slot)
    }
}

impl Model {
    /// Claims jobs of one queue. See [`Consumer::claim`](crate::store::Consumer::claim).
    pub fn claim(&mut self, request: &ClaimRequest, now: Timestamp) -> Claimed {
        let snapshot = self.transactions.snapshot();
        let mut claimed = Claimed { horizon: Horizon(snapshot.xmin().0), ..Claimed::default() };
        if self.queues.get(&request.queue).is_some_and(|queue| queue.paused) {
            return claimed;
        }
        let mut budget =
            Budget { jobs: request.max_jobs.get(), bytes: request.max_bytes.max(1), slots: BTreeSet::new() };
        let slots = self.queue_ring.view().claim_slots();
        let lanes = self.lanes_by_urgency(request, &slots, &snapshot, now);
        let pieces = || lanes.iter().flat_map(|lane| slots.iter().map(move |slot| (lane, *slot)));
        'lanes: for lane in &lanes {
            claimed.jobs.extend(self.claim_first(request, lane, &mut budget, now));
            for slot in &slots {
                if !self.has_candidates(lane, slot.slot, &snapshot) {
                    continue;
                }
                if budget.is_spent() || !budget.admits(slot.slot) {
                    break 'lanes;
                }
                claimed.jobs.extend(self.claim_from(request, lane, *slot, &snapshot, &mut budget, now));
            }
        }
        claimed.more = budget.jobs > 0
            && (lanes.iter().any(|lane| self.carried.contains_key(lane))
                || pieces().any(|(lane, slot)| self.has_candidates(lane, slot.slot, &snapshot)));
        claimed
    }

    /// Which queues have something to claim. See [`Consumer::peek`](crate::store::Consumer::peek).
    pub fn peek(&self, queues: &[QueueName]) -> Peeked {
        let snapshot = self.transactions.snapshot();
        let slots = self.queue_ring.view().claim_slots();
        let in_ring = slots.iter().flat_map(|slot| self.queue_ring.content(slot.slot).ready.keys());
        let lanes: BTreeSet<&Lane> = in_ring.chain(self.carried.keys()).collect();
        let busy: BTreeSet<&QueueName> = lanes
            .into_iter()
            .filter(|lane| self.head_ready_at(lane, &slots, &snapshot).is_some())
            .map(|lane| &lane.queue)
            .filter(|queue| !self.queues.get(*queue).is_some_and(|queue| queue.paused))
            .collect();
        let waiting = queues.iter().map(|queue| busy.contains(queue)).collect();
        Peeked { waiting, horizon: Horizon(snapshot.xmin().0) }
    }

    /// Takes the rows of a lane that go before those in the ring.
    fn claim_first(
        &mut self,
        request: &ClaimRequest,
        lane: &Lane,
        budget: &mut Budget,
        now: Timestamp,
    ) -> Vec<ClaimedJob> {
        let jobs = self.claim_carried(request, lane, now, |ready| !budget.is_spent() && budget.spend(ready));
        if !jobs.is_empty() {
            self.take_turn(lane);
        }
        jobs
    }

    /// Whether a walk of this lane in this slot would visit anything, tombstones included.
    fn has_candidates(&self, lane: &Lane, slot: Slot, snapshot: &Snapshot) -> bool {
        let content = self.queue_ring.content(slot);
        let Some(rows) = content.ready.get(lane) else { return false };
        content.frontier(lane).candidates(snapshot).iter().any(|probe| rows.range(probe.bounds()).next().is_some())
    }

    /// The lanes of a queue that have candidates, the most urgent first; equals take turns.
    fn lanes_by_urgency(
        &self,
        request: &ClaimRequest,
        slots: &[Pointer],
        snapshot: &Snapshot,
        now: Timestamp,
    ) -> Vec<Lane> {
        let queue = self.queues.get(&request.queue);
        let in_ring = slots.iter().flat_map(|slot| self.queue_ring.content(slot.slot).ready.keys());
        let known: BTreeSet<&Lane> =
            in_ring.chain(self.carried.keys()).filter(|lane| lane.queue == request.queue).collect();
        let mut lanes = Vec::new();
        for lane in known {
            let Some(head_at) = self.head_ready_at(lane, slots, snapshot) else { continue };
            let urgency = aged(lane.priority, now.since(head_at), request.aging);
            let last_turn = queue.and_then(|queue| queue.turns.get(lane)).copied().unwrap_or(0);
            lanes.push((urgency, last_turn, lane.clone()));
        }
        lanes.sort();
        lanes.into_iter().map(|(_, _, lane)| lane).collect()
    }

    /// Since when the first candidate of a lane waits.
    fn head_ready_at(&self, lane: &Lane, slots: &[Pointer], snapshot: &Snapshot) -> Option<Timestamp> {
        if let Some((_, ready)) = self.first_carried(lane) {
            return Some(ready.ready_at);
        }
        slots.iter().find_map(|slot| {
            let content = self.queue_ring.content(slot.slot);
            let rows = content.ready.get(lane)?;
            let probes = content.frontier(lane).candidates(snapshot);
            probes.iter().find_map(|probe| rows.range(probe.bounds()).next()).map(|(_, row)| row.ready_at)
        })
    }

    /// Takes jobs of one lane from one slot: one cursor row, and one batch unless there were only tombstones.
    fn claim_from(
        &mut self,
        request: &ClaimRequest,
        lane: &Lane,
        slot: Pointer,
        snapshot: &Snapshot,
        budget: &mut Budget,
        now: Timestamp,
    ) -> Vec<ClaimedJob> {
        let content = self.queue_ring.content(slot.slot);
        let mut members = Vec::new();
        let walk = content.frontier(lane).walk(snapshot, &content.ready[lane], |key, ready| {
            if content.is_tombstoned(key, ready) {
                return Step::Continue;
            }
            members.push(Member {
                key,
                run_lease: RunLease(ready.row.run_lease.0 + 1),
                attempt: ready.row.attempt.saturating_add(1),
            });
            budget.spend(ready);
            if budget.is_spent() { Step::StopHere } else { Step::Continue }
        });
        self.queue_ring.content_mut(slot.slot).frontiers.insert(lane.clone(), walk.frontier);
        self.transactions.write_and_commit();
        if members.is_empty() {
            return Vec::new();
        }
        self.take_turn(lane);
        self.leave_keys_of(&members, lane, slot.slot);
        let batch = Batch {
            shape: request.shape,
            nonce: request.nonce,
            instance: request.instance,
            claimed_at: now,
            deadline_at: request.deadline.map(|length| now.saturating_add(length)),
            ready_slot: slot.slot,
            ready_generation: slot.generation,
            lane: lane.clone(),
            members,
        };
        self.append_batch(batch)
    }

    /// Claimed jobs give back the keys that they hold only while they wait.
    fn leave_keys_of(&mut self, members: &[Member], lane: &Lane, slot: Slot) {
        for member in members {
            let ready = self.queue_ring.content(slot).row(lane, member.key).expect("the row was just visited");
            let body = Arc::clone(&ready.row.body);
            self.leave_key(member.key.job, &body, JobState::Running);
        }
    }

    fn take_turn(&mut self, lane: &Lane) {
        let queue = self.queues.entry(lane.queue.clone()).or_default();
        queue.claims += 1;
        queue.turns.insert(lane.clone(), queue.claims);
    }

    fn append_batch(&mut self, batch: Batch) -> Vec<ClaimedJob> {
        self.last_batch = BatchId(self.last_batch.0 + 1);
        let id = self.last_batch;
        let claim_slot = self.claim_ring.pointer().slot;
        let jobs = (1_u16..).zip(&batch.members).map(|(index, member)| {
            let receipt = receipt(&batch, ReceiptId::new(id, index), member, claim_slot);
            self.claimed_job(&batch, member, receipt)
        });
        let jobs = jobs.collect();
        self.claim_ring.open_mut().append(id, batch);
        jobs
    }

    fn claimed_job(&self, batch: &Batch, member: &Member, receipt: Receipt) -> ClaimedJob {
        let ready = self.queue_ring.content(batch.ready_slot).row(&batch.lane, member.key);
        let body = &ready.expect("a claimed job has its row in the slot that the claim names").row.body;
        ClaimedJob {
            receipt,
            queue: body.queue.clone(),
            kind: body.kind.clone(),
            args: body.args.clone(),
            metadata: body.metadata.clone(),
            priority: body.priority,
            attempt: member.attempt,
            max_attempts: body.max_attempts,
            created_at: body.created_at,
            claimed_at: batch.claimed_at,
            deadline_at: batch.deadline_at,
        }
    }
}

/// What a worker must present for this member.
pub(super) fn receipt(batch: &Batch, id: ReceiptId, member: &Member, claim_slot: Slot) -> Receipt {
    Receipt { id, claim_slot, nonce: batch.nonce, job: member.key.job, run_lease: member.run_lease }
}

/// The priority that counts after a wait: one step more urgent for each full interval.
fn aged(priority: Priority, waited: Duration, interval: Option<Duration>) -> Priority {
    let Some(interval) = interval.filter(|interval| !interval.is_zero()) else { return priority };
    let steps = waited.as_micros() / interval.as_micros().max(1);
    let steps = i16::try_from(steps).unwrap_or(i16::MAX);
    Priority::new(priority.get().saturating_sub(steps)).unwrap_or(Priority::URGENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_ages_one_step_per_interval_up_to_urgent() {
        let minute = Duration::from_mins(1);
        for (waited, expected) in [(0, 4), (59, 4), (60, 3), (179, 2), (180, 1), (u64::MAX, 1)] {
            assert_eq!(aged(Priority::BULK, Duration::from_secs(waited), Some(minute)).get(), expected, "{waited}");
        }
        assert_eq!(aged(Priority::BULK, Duration::MAX, None), Priority::BULK);
        assert_eq!(aged(Priority::BULK, Duration::MAX, Some(Duration::ZERO)), Priority::BULK);
    }
}
