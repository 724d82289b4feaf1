//! Where jobs are: the one spelling that reading, counting and intervening share.

use super::Model;
use super::rows::{Lane, ReadyPlace, ReadyRow, Row, TombstoneKind};
use crate::attempt::Receipt;
use crate::frontier::{RowKey, Snapshot};
use crate::id::{JobId, RunLease, Slot};
use crate::state::JobState;
use crate::store::JobView;

use super::claim::receipt;

/// The place of a committed job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// A ready row that no claim has passed.
    Ready(ReadyPlace),
    /// A ready row in the carry-over.
    Carried(Lane, RowKey),
    /// A claim without a closure, or a lease.
    Running(Receipt),
    /// A lease that is parked.
    Waiting(Receipt),
    /// A row of the deferred jobs.
    Deferred,
    /// A row of the dead-letter queue.
    Dead,
    /// Wide history in a slot.
    Done(Slot),
    /// Compact history in a slot.
    Completed(Slot),
    /// A tombstone over a ready row of a slot.
    Cancelled(Slot, RunLease),
}

impl Model {
    /// The places of all committed jobs, or of one. A store that keeps its promise has each job once.
    pub(super) fn places(&self, only: Option<JobId>) -> Vec<(JobId, Place)> {
        self.places_seen(&self.transactions.snapshot(), only)
    }

    /// The same, as far as a snapshot sees them.
    pub(super) fn places_seen(&self, snapshot: &Snapshot, only: Option<JobId>) -> Vec<(JobId, Place)> {
        let wanted = |job: JobId| only.is_none_or(|only| only == job);
        let mut places = Vec::new();
        for (slot, _) in self.queue_ring.numbered() {
            self.places_in_slot(slot, snapshot, &wanted, &mut places);
        }
        for (slot, content) in self.claim_ring.numbered() {
            for (batch, id) in content.open_attempts() {
                let member = batch.member(id).expect("an open receipt names a member of its batch");
                if wanted(member.key.job) {
                    places.push((member.key.job, Place::Running(receipt(batch, id, member, slot))));
                }
            }
        }
        let leases = self.leases().filter(|(_, lease)| wanted(lease.key.job));
        places.extend(leases.map(|(id, lease)| {
            let place = if lease.waiting_until.is_some() { Place::Waiting } else { Place::Running };
            (lease.key.job, place(lease.receipt(id)))
        }));
        let carried = self.carried.iter().flat_map(|(lane, rows)| rows.keys().map(move |key| (lane, *key)));
        let carried = carried.filter(|(_, key)| wanted(key.job));
        places.extend(carried.map(|(lane, key)| (key.job, Place::Carried(lane.clone(), key))));
        let deferred = self.deferred.iter().filter(|(job, row)| wanted(**job) && snapshot.sees(row.xid));
        places.extend(deferred.map(|(job, _)| (*job, Place::Deferred)));
        let dead = self.dead.keys().filter(|job| wanted(**job));
        places.extend(dead.map(|job| (*job, Place::Dead)));
        places
    }

    fn places_in_slot(
        &self,
        slot: Slot,
        snapshot: &Snapshot,
        wanted: &impl Fn(JobId) -> bool,
        places: &mut Vec<(JobId, Place)>,
    ) {
        let content = self.queue_ring.content(slot);
        for lane in content.ready.keys() {
            for (key, ready) in content.unpassed(lane) {
                if wanted(key.job) && snapshot.sees(key.xid) && !content.is_tombstoned(key, ready) {
                    places.push((key.job, Place::Ready(ReadyPlace { slot, lane: lane.clone(), key })));
                }
            }
        }
        let wanted = |job: JobId| wanted(job) && !content.hidden.contains(&job);
        let done = content.done.keys().filter(|job| wanted(**job));
        places.extend(done.map(|job| (*job, Place::Done(slot))));
        let completed = content.completions.keys().filter(|job| wanted(**job));
        places.extend(completed.map(|job| (*job, Place::Completed(slot))));
        let cancelled = content.tombstones.iter().filter(|(_, tombstone)| tombstone.kind == TombstoneKind::Cancelled);
        let cancelled = cancelled.filter(|((job, _), _)| wanted(*job));
        places.extend(cancelled.map(|((job, lease), _)| (*job, Place::Cancelled(slot, *lease))));
    }

    /// The place of one job, or `None` when it does not exist.
    pub(super) fn place(&self, job: JobId) -> Option<Place> {
        self.places(Some(job)).pop().map(|(_, place)| place)
    }

    /// The state that a place means.
    pub(super) fn state_at(&self, job: JobId, place: &Place) -> JobState {
        match place {
            Place::Ready(_) | Place::Carried(..) => JobState::Ready,
            Place::Running(_) => JobState::Running,
            Place::Waiting(_) => JobState::Waiting,
            Place::Deferred => JobState::Deferred,
            Place::Dead => JobState::Dead,
            Place::Done(slot) => self.queue_ring.content(*slot).done[&job].state,
            Place::Completed(_) => JobState::Completed,
            Place::Cancelled(..) => JobState::Cancelled,
        }
    }

    /// The row that tells what a job at this place is; lease and attempts are as that row has them.
    pub(super) fn row_at(&self, job: JobId, place: &Place) -> &Row {
        match place {
            Place::Ready(place) => &self.ready_row(place).row,
            Place::Carried(lane, key) => &self.carried[lane][key].row,
            Place::Running(receipt) | Place::Waiting(receipt) => {
                if let Some(lease) = self.lease(receipt.id) {
                    return &lease.row;
                }
                let batch = &self.claim_ring.content(receipt.claim_slot).batches[&receipt.id.batch()];
                let key = batch.member(receipt.id).expect("a place names a member that exists").key;
                &self.ready_row(&ReadyPlace { slot: batch.ready_slot, lane: batch.lane.clone(), key }).row
            }
            Place::Deferred => &self.deferred[&job].row,
            Place::Dead => &self.dead[&job].row,
            Place::Done(slot) => &self.queue_ring.content(*slot).done[&job].row,
            Place::Completed(slot) => {
                let completion = &self.queue_ring.content(*slot).completions[&job];
                let place = ReadyPlace { slot: *slot, lane: completion.lane.clone(), key: completion.key };
                &self.ready_row(&place).row
            }
            Place::Cancelled(slot, lease) => {
                let tombstone = &self.queue_ring.content(*slot).tombstones[&(job, *lease)];
                &self.ready_row(&ReadyPlace { slot: *slot, lane: tombstone.lane.clone(), key: tombstone.key }).row
            }
        }
    }

    /// The job at its place, as an operator sees it.
    pub(super) fn view_at(&self, job: JobId, place: &Place) -> JobView {
        let state = self.state_at(job, place);
        match place {
            Place::Ready(place) => view(job, state, &self.ready_row(place).row),
            Place::Carried(lane, key) => view(job, state, &self.carried[lane][key].row),
            Place::Running(receipt) => self.view_running(job, receipt),
            Place::Waiting(_) => view(job, state, self.row_at(job, place)),
            Place::Deferred => {
                let deferred = &self.deferred[&job];
                let view = view(job, state, &deferred.row);
                JobView { run_at: Some(deferred.run_at), deferred: Some(deferred.reason), ..view }
            }
            Place::Dead => {
                let dead = &self.dead[&job];
                JobView { finalized_at: Some(dead.died_at), ..view(job, state, &dead.row) }
            }
            Place::Done(slot) => {
                let done = &self.queue_ring.content(*slot).done[&job];
                let view = view(job, state, &done.row);
                JobView { finalized_at: Some(done.finalized_at), result: done.result.clone(), ..view }
            }
            Place::Completed(slot) => self.view_completed(job, *slot),
            Place::Cancelled(slot, lease) => {
                let tombstone = &self.queue_ring.content(*slot).tombstones[&(job, *lease)];
                let place = ReadyPlace { slot: *slot, lane: tombstone.lane.clone(), key: tombstone.key };
                let view = view(job, state, &self.ready_row(&place).row);
                let error = Some(tombstone.reason.clone());
                JobView { finalized_at: Some(tombstone.cancelled_at), error, ..view }
            }
        }
    }

    pub(super) fn ready_row(&self, place: &ReadyPlace) -> &ReadyRow {
        let row = self.queue_ring.content(place.slot).row(&place.lane, place.key);
        row.expect("a place names a row that exists")
    }

    fn view_running(&self, job: JobId, receipt: &Receipt) -> JobView {
        let attempt = self.open_attempt(receipt).expect("a running job has an open attempt");
        let claimed_at = match self.lease(receipt.id) {
            Some(lease) => lease.claimed_at,
            None => self.claim_ring.content(receipt.claim_slot).batches[&receipt.id.batch()].claimed_at,
        };
        JobView { claimed_at: Some(claimed_at), ..view(job, JobState::Running, &attempt.row) }
    }

    fn view_completed(&self, job: JobId, slot: Slot) -> JobView {
        let completion = &self.queue_ring.content(slot).completions[&job];
        let place = ReadyPlace { slot, lane: completion.lane.clone(), key: completion.key };
        let ready = &self.ready_row(&place).row;
        let row = Row { run_lease: completion.run_lease, attempt: completion.attempt, ..ready.clone() };
        JobView { finalized_at: Some(completion.finalized_at), ..view(job, JobState::Completed, &row) }
    }
}

fn view(id: JobId, state: JobState, row: &Row) -> JobView {
    let body = &row.body;
    JobView {
        id,
        state,
        queue: body.queue.clone(),
        kind: body.kind.clone(),
        priority: body.priority,
        attempt: row.attempt,
        max_attempts: body.max_attempts,
        run_lease: row.run_lease,
        args: body.args.clone(),
        metadata: body.metadata.clone(),
        created_at: body.created_at,
        run_at: None,
        deferred: None,
        claimed_at: None,
        finalized_at: None,
        result: None,
        error: row.error.clone(),
    }
}
