//! Ending leases whose worker is gone, whose deadline is over, or whose callback did not come. They are few, and no cursor is kept over them: a statement
//! finds those that may have to be ended, and the core decides about each.

use std::collections::HashMap;

use awa_core::attempt::ClosureAnswer;
use awa_core::error::StoreError;
use awa_core::id::{JobId, Nonce, ReceiptId, RunLease, Slot};
use awa_core::name::QueueName;
use awa_core::retry::{AttemptBudget, RetryPolicy};
use awa_core::store::{RescueRequest, Rescued};
use awa_core::sweep::{LifeSigns, RescueCause};
use awa_core::time::Timestamp;

use super::clock::micros_of;
use super::close::receipt;
use super::consume::slot;
use super::rescue::{OPERATION, OpenAttempt};
use super::sweeps::patience;
use super::{PgStore, undecodable};
use crate::sql::Sql;
use crate::value::{Param, Row};

/// A lease that has to be ended.
struct LostLease {
    id: ReceiptId,
    claim_slot: Slot,
    nonce: Nonce,
    cause: RescueCause,
    attempt: OpenAttempt,
}

impl PgStore {
    /// One page of leases, in the order of their receipts, judged by the moment at which the rescuer was.
    pub(super) async fn rescue_leases(
        &self,
        sql: &Sql,
        request: &RescueRequest,
        retry: &RetryPolicy,
        judged_at: Timestamp,
        rescued: &mut Rescued,
    ) -> Result<(), StoreError> {
        let limit = i64::try_from(request.page.max(1)).unwrap_or(i64::MAX);
        let params = [Param::I64(micros_of(request.staleness)), Param::I64(limit), Param::Timestamp(judged_at)];
        let rows = self.call(OPERATION, sql.statement("rescue/leases"), &params).await?;
        rescued.more |= rows.len() as u64 >= limit.unsigned_abs();
        let mut lost = Vec::with_capacity(rows.len());
        for row in &rows {
            lost.extend(LostLease::read(row, request)?);
        }
        let endings: Vec<_> = lost
            .iter()
            .map(|lease| lease.attempt.ending(lease.id, lease.claim_slot, lease.nonce, lease.cause, request, retry))
            .collect();
        let mut answers = HashMap::with_capacity(endings.len());
        self.end(&endings, &mut answers).await?;
        for (lease, ending) in lost.iter().zip(&endings) {
            match answers.get(&lease.id) {
                Some(ClosureAnswer::Closed) => {
                    rescued.attempts.push(lease.attempt.report(lease.cause, ending));
                }
                Some(ClosureAnswer::Contended) => rescued.contended += 1,
                _ => {}
            }
        }
        Ok(())
    }
}

impl LostLease {
    /// The lease, if it has to be ended.
    fn read(row: &Row, request: &RescueRequest) -> Result<Option<Self>, StoreError> {
        let bad = undecodable(OPERATION);
        let now = row.timestamp(7).map_err(&bad)?;
        let signs = LifeSigns {
            claimed_at: row.timestamp(3).map_err(&bad)?,
            instance_seen_at: row.opt_timestamp(4).map_err(&bad)?,
            attempt_seen_at: row.opt_timestamp(13).map_err(&bad)?,
        };
        let is_over = row.opt_timestamp(6).map_err(&bad)?.is_some_and(|deadline| deadline <= now);
        let cause = if row.bool(14).map_err(&bad)? {
            RescueCause::NotCalled
        } else if row.bool(5).map_err(&bad)? || signs.is_stale(now, patience(row, 15, request)?) {
            RescueCause::Gone
        } else if is_over {
            RescueCause::DeadlineOver
        } else {
            return Ok(None);
        };
        let attempt = OpenAttempt {
            job: JobId(row.i64(8).map_err(&bad)?),
            run_lease: RunLease(row.i64(9).map_err(&bad)?),
            budget: AttemptBudget {
                attempt: row.i32(10).map_err(&bad)?.unsigned_abs(),
                max_attempts: u32::from(row.i16(11).map_err(&bad)?.unsigned_abs()),
            },
            queue: QueueName::trusted(row.text(12).map_err(&bad)?),
        };
        Ok(Some(Self {
            id: receipt(row.i64(0).map_err(&bad)?)?,
            claim_slot: slot(row.i16(1).map_err(&bad)?),
            nonce: Nonce(row.i64(2).map_err(&bad)?),
            cause,
            attempt,
        }))
    }
}
