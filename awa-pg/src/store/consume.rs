//! Claim, proof of life, and what an instance holds.

use std::borrow::Cow;
use std::time::Duration;

use awa_core::attempt::{ClaimedJob, Receipt};
use awa_core::error::{StoreError, StoreErrorKind};
use awa_core::id::{BatchId, InstanceId, JobId, Nonce, ReceiptId, RunLease, Slot};
use awa_core::job::{MaxAttempts, Priority};
use awa_core::json::JsonText;
use awa_core::name::{JobKind, QueueName};
use awa_core::store::{ClaimRequest, ClaimShape, Claimed, Horizon, Peeked};

use super::clock::micros_of;
use super::close::receipt;
use super::{PgStore, only_row, undecodable};
use crate::value::{Json, Param, Row, types};

const CLAIM: &str = "claim";

impl PgStore {
    /// See [`Consumer::claim`](awa_core::store::Consumer::claim).
    pub async fn claim(&self, request: &ClaimRequest) -> Result<Claimed, StoreError> {
        let length = |length: Option<Duration>| {
            length.map_or(Param::Null(types::INT8), |length| Param::I64(micros_of(length).max(1)))
        };
        let params = [
            Param::Text(Cow::Borrowed(request.queue.as_str())),
            Param::I64(request.instance.0),
            Param::I64(request.nonce.0),
            Param::I32(i32::from(request.max_jobs.get())),
            Param::I64(i64::try_from(request.max_bytes).unwrap_or(i64::MAX).max(1)),
            length(request.deadline),
            length(request.aging),
            self.clock.param(),
            Param::Bool(request.shape == ClaimShape::RowLocal),
        ];
        let rows = self.call(CLAIM, self.sql.statement("claims/claim"), &params).await?;
        let Some((status, batches)) = rows.split_last() else {
            return Err(only_row(CLAIM, &rows).expect_err("there is no row"));
        };
        let mut claimed = Claimed::default();
        for batch in batches {
            read_batch(batch, request, &mut claimed.jobs)?;
        }
        claimed.contended = status.bool(13).map_err(undecodable(CLAIM))?;
        claimed.more = status.bool(14).map_err(undecodable(CLAIM))?;
        claimed.horizon = Horizon(status.i64(15).map_err(undecodable(CLAIM))?.unsigned_abs());
        Ok(claimed)
    }

    /// See [`Consumer::beat`](awa_core::store::Consumer::beat).
    pub async fn beat(&self, instance: InstanceId, staleness: Duration) -> Result<(), StoreError> {
        let params = [Param::I64(instance.0), Param::I64(micros_of(staleness)), self.clock.param()];
        self.call("beat", self.sql.statement("claims/beat"), &params).await.map(drop)
    }

    /// See [`Consumer::retire`](awa_core::store::Consumer::retire).
    pub async fn retire(&self, instance: InstanceId) -> Result<(), StoreError> {
        self.call("retire", self.sql.statement("claims/retire"), &[Param::I64(instance.0), self.clock.param()])
            .await
            .map(drop)
    }

    /// See [`Consumer::open_attempts`](awa_core::store::Consumer::open_attempts).
    pub async fn open_attempts(&self, instance: InstanceId, limit: usize) -> Result<Vec<Receipt>, StoreError> {
        const OPERATION: &str = "open_attempts";
        let params = [Param::I64(instance.0), Param::I64(i64::try_from(limit).unwrap_or(i64::MAX))];
        let rows = self.call(OPERATION, self.sql.statement("claims/open_attempts"), &params).await?;
        let read = |row: &Row| {
            let bad = undecodable(OPERATION);
            Ok(Receipt {
                claim_slot: slot(row.i16(0).map_err(&bad)?),
                nonce: Nonce(row.i64(1).map_err(&bad)?),
                id: receipt(row.i64(2).map_err(&bad)?)?,
                job: JobId(row.i64(3).map_err(&bad)?),
                run_lease: RunLease(row.i64(4).map_err(&bad)?),
            })
        };
        rows.iter().map(read).collect()
    }

    /// See [`Consumer::are_open`](awa_core::store::Consumer::are_open).
    pub async fn are_open(&self, receipts: &[Receipt]) -> Result<Vec<bool>, StoreError> {
        const OPERATION: &str = "are_open";
        if receipts.is_empty() {
            return Ok(Vec::new());
        }
        let params = [
            Param::I16s(receipts.iter().map(|receipt| i16::from(receipt.claim_slot.0)).collect()),
            Param::I64s(receipts.iter().map(|receipt| receipt.nonce.0).collect()),
            Param::I64s(receipts.iter().map(|receipt| receipt.id.get()).collect()),
        ];
        let rows = self.call(OPERATION, self.sql.statement("claims/are_open"), &params).await?;
        only_row(OPERATION, &rows)?.bools(0).map_err(undecodable(OPERATION))
    }

    /// See [`Consumer::peek`](awa_core::store::Consumer::peek).
    pub async fn peek(&self, queues: &[QueueName]) -> Result<Peeked, StoreError> {
        const OPERATION: &str = "peek";
        let params = [Param::Texts(queues.iter().map(QueueName::as_str).collect())];
        let rows = self.call(OPERATION, self.sql.statement("claims/peek"), &params).await?;
        let row = only_row(OPERATION, &rows)?;
        let bad = undecodable(OPERATION);
        let mut waiting = vec![false; queues.len()];
        for place in row.i32s(0).map_err(&bad)? {
            let place = usize::try_from(place).unwrap_or(0).wrapping_sub(1);
            if let Some(queue) = waiting.get_mut(place) {
                *queue = true;
            }
        }
        Ok(Peeked { waiting, horizon: Horizon(row.i64(1).map_err(&bad)?.unsigned_abs()) })
    }
}

/// A slot number as the server sends it.
pub(super) fn slot(number: i16) -> Slot {
    Slot(u8::try_from(number).unwrap_or(u8::MAX))
}

/// Reads one batch: parallel arrays over its members.
fn read_batch(row: &Row, request: &ClaimRequest, jobs: &mut Vec<ClaimedJob>) -> Result<(), StoreError> {
    let bad = undecodable(CLAIM);
    let batch = BatchId(row.i64(0).map_err(&bad)?);
    let claim_slot = slot(row.i16(1).map_err(&bad)?);
    let priority = Priority::new(row.i16(2).map_err(&bad)?)?;
    let claimed_at = row.timestamp(3).map_err(&bad)?;
    let deadline_at = row.opt_timestamp(4).map_err(&bad)?;
    let ids = row.i64s(5).map_err(&bad)?;
    let leases = row.get::<Option<Vec<Option<i64>>>>(6).map_err(&bad)?;
    let attempts = row.get::<Option<Vec<Option<i16>>>>(7).map_err(&bad)?;
    let max_attempts = row.i16s(8).map_err(&bad)?;
    let created = row.timestamps(9).map_err(&bad)?;
    let kinds = row.get::<Vec<&str>>(10).map_err(&bad)?;
    let args = row.get::<Vec<Json<'_>>>(11).map_err(&bad)?;
    let metadata = row.get::<Option<Vec<Option<Json<'_>>>>>(12).map_err(&bad)?;
    let count = ids.len();
    let fits = |length: usize| length == count;
    if count > usize::from(ReceiptId::MAX_INDEX)
        || !(fits(max_attempts.len()) && fits(created.len()) && fits(kinds.len()) && fits(args.len()))
        || leases.as_ref().is_some_and(|leases| !fits(leases.len()))
        || attempts.as_ref().is_some_and(|attempts| !fits(attempts.len()))
        || metadata.as_ref().is_some_and(|metadata| !fits(metadata.len()))
    {
        return Err(StoreError::new(
            StoreErrorKind::Corrupt,
            CLAIM,
            format!("the arrays of claim batch {batch} differ in length; nothing of it was started"),
        ));
    }
    jobs.reserve(count);
    let mut last_kind: Option<JobKind> = None;
    let mut metadata = metadata.unwrap_or_default().into_iter();
    for (index, (kind, args)) in kinds.into_iter().zip(args).enumerate() {
        let kind = match &last_kind {
            Some(last) if last.as_str() == kind => last.clone(),
            _ => JobKind::trusted(kind),
        };
        last_kind = Some(kind.clone());
        let lease = leases.as_ref().and_then(|leases| leases[index]).unwrap_or(0);
        let tried = attempts.as_ref().and_then(|attempts| attempts[index]).unwrap_or(0);
        jobs.push(ClaimedJob {
            receipt: Receipt {
                id: ReceiptId::new(batch, u16::try_from(index + 1).expect("the count was checked")),
                claim_slot,
                nonce: request.nonce,
                job: JobId(ids[index]),
                run_lease: RunLease(lease + 1),
            },
            queue: request.queue.clone(),
            kind,
            args: JsonText::trusted(args.0),
            metadata: metadata.next().flatten().map(|json| JsonText::trusted(json.0)),
            priority,
            attempt: u32::from(tried.unsigned_abs()) + 1,
            max_attempts: MaxAttempts::new(i64::from(max_attempts[index].max(1)))?,
            created_at: created[index],
            claimed_at,
            deadline_at,
        });
    }
    Ok(())
}
