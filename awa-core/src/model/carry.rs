//! Ready rows outside the ring, which claims read first.

use super::Model;
use super::leases::Lease;
use super::rows::{Lane, ReadyRow, Row};
use crate::attempt::ClaimedJob;
use crate::frontier::RowKey;
use crate::id::{BatchId, ReceiptId, RunLease, Slot};
use crate::state::JobState;
use crate::store::ClaimRequest;
use crate::time::Timestamp;

impl Model {
    /// Puts a ready row into the carry-over, at the place that it had in its lane.
    pub(super) fn carry(&mut self, key: RowKey, ready: ReadyRow) {
        self.wake(&ready.row.body.queue.clone());
        let lane = ready.row.body.lane();
        let before = self.carried.entry(lane).or_default().insert(key, ready);
        assert!(before.is_none(), "job {} was carried over twice", key.job);
        self.transactions.write_and_commit();
    }

    /// The first row of a lane in the carry-over.
    pub(super) fn first_carried(&self, lane: &Lane) -> Option<(RowKey, &ReadyRow)> {
        self.carried.get(lane)?.first_key_value().map(|(key, ready)| (*key, ready))
    }

    /// Takes a row out of the carry-over.
    pub(super) fn take_carried(&mut self, lane: &Lane, key: RowKey) -> ReadyRow {
        let rows = self.carried.get_mut(lane).expect("the lane has rows");
        let ready = rows.remove(&key).expect("the row is there");
        if rows.is_empty() {
            self.carried.remove(lane);
        }
        ready
    }

    /// Hands out rows of a lane from the carry-over, until `take` wants no more. Each becomes a lease, because no ready
    /// row is left behind it.
    pub(super) fn claim_carried(
        &mut self,
        request: &ClaimRequest,
        lane: &Lane,
        now: Timestamp,
        mut take: impl FnMut(&ReadyRow) -> bool,
    ) -> Vec<ClaimedJob> {
        let mut jobs = Vec::new();
        let batch = BatchId(self.last_batch.0 + 1);
        while let Some((key, ready)) = self.first_carried(lane) {
            if !take(ready) {
                break;
            }
            let ReadyRow { row, ready_at } = self.take_carried(lane, key);
            let row = Row { run_lease: RunLease(row.run_lease.0 + 1), attempt: row.attempt.saturating_add(1), ..row };
            let lease = Lease {
                nonce: request.nonce,
                instance: request.instance,
                claimed_at: now,
                deadline_at: request.deadline.map(|length| now.saturating_add(length)),
                claim_slot: Slot::LEASED,
                key,
                ready_at,
                waiting_until: None,
                row,
            };
            self.leave_key(key.job, &lease.row.body.clone(), JobState::Running);
            let id = ReceiptId::new(batch, jobs.len() as u16 + 1);
            jobs.push(claimed_job(id, &lease));
            self.insert_lease(id, lease);
        }
        if !jobs.is_empty() {
            self.last_batch = batch;
            self.transactions.write_and_commit();
        }
        jobs
    }
}

fn claimed_job(id: ReceiptId, lease: &Lease) -> ClaimedJob {
    let body = &lease.row.body;
    ClaimedJob {
        receipt: lease.receipt(id),
        queue: body.queue.clone(),
        kind: body.kind.clone(),
        args: body.args.clone(),
        metadata: body.metadata.clone(),
        priority: body.priority,
        attempt: lease.row.attempt,
        max_attempts: body.max_attempts,
        created_at: body.created_at,
        claimed_at: lease.claimed_at,
        deadline_at: lease.deadline_at,
    }
}
