//! Moving a ring on to its next slot.

use awa_core::error::StoreError;
use awa_core::id::{Generation, Slot};
use awa_core::ring::{self, RingKind, RotateDecision, RotationPolicy};
use awa_core::store::Rotated;

use super::slots::StoredRing;
use super::{PgStore, only_row, undecodable};
use crate::session::{Session, Transaction, TransactionLimits};
use crate::sql::Sql;
use crate::value::Param;

const OPERATION: &str = "rotate";

impl PgStore {
    /// See [`Maintainer::rotate`](awa_core::store::Maintainer::rotate).
    pub async fn rotate(&self, ring: RingKind, policy: &RotationPolicy) -> Result<Rotated, StoreError> {
        let sql = self.installed(OPERATION).await?;
        let lost = |error: crate::session::PgError| error.into_store_error(OPERATION);
        let mut session = self.pool.session().await.map_err(lost)?;
        // Most ticks change nothing, and find that out without a transaction.
        let seen = StoredRing::read(session.as_mut(), &sql, &self.clock, ring, OPERATION).await?;
        if let RotateDecision::Stay(reason) = decide(&seen, policy)? {
            return Ok(Rotated::Stayed(reason));
        }
        let mut transaction =
            Transaction::begin(session.as_mut(), &TransactionLimits::default()).await.map_err(lost)?;
        let rotated = self.rotate_in(transaction.session(), &sql, ring, policy).await;
        match rotated {
            Ok(rotated @ (Rotated::Opened(..) | Rotated::Repaired(..))) => {
                transaction.commit().await.map(|()| rotated).map_err(lost)
            }
            other => transaction.undo(other, lost).await,
        }
    }

    async fn rotate_in(
        &self,
        session: &mut dyn Session,
        sql: &Sql,
        ring: RingKind,
        policy: &RotationPolicy,
    ) -> Result<Rotated, StoreError> {
        let name = match ring {
            RingKind::Queue => "queue",
            RingKind::Claim => "claim",
            RingKind::Lease => "lease",
        };
        if !flag(session, sql, "rings/try_lock_rotation", &[Param::Text(name.into())]).await? {
            return Ok(Rotated::Contended);
        }
        let stored = StoredRing::read(session, sql, &self.clock, ring, OPERATION).await?;
        let (slot, generation, is_repair) = match decide(&stored, policy)? {
            RotateDecision::Open(pointer) => (pointer.slot, pointer.generation, false),
            RotateDecision::RepairLedger(pointer) => (pointer.slot, pointer.generation, true),
            RotateDecision::Stay(reason) => return Ok(Rotated::Stayed(reason)),
        };
        if !self.open_slot(session, sql, ring, slot, generation).await? {
            return Ok(Rotated::Contended);
        }
        Ok(if is_repair { Rotated::Repaired(slot, generation) } else { Rotated::Opened(slot, generation) })
    }

    async fn open_slot(
        &self,
        session: &mut dyn Session,
        sql: &Sql,
        ring: RingKind,
        slot: Slot,
        generation: Generation,
    ) -> Result<bool, StoreError> {
        let statement = match ring {
            RingKind::Queue => "rings/open_queue_slot",
            RingKind::Claim => "rings/open_claim_slot",
            RingKind::Lease => "rings/open_lease_slot",
        };
        let params = [Param::I16(i16::from(slot.0)), Param::I64(generation.0), self.clock.param()];
        flag(session, sql, statement, &params).await
    }
}

fn decide(stored: &StoredRing, policy: &RotationPolicy) -> Result<RotateDecision, StoreError> {
    let view = stored.view(OPERATION)?;
    Ok(ring::rotate(&view, policy, &stored.open_slot()))
}

async fn flag(
    session: &mut dyn Session,
    sql: &Sql,
    statement: &'static str,
    params: &[Param<'_>],
) -> Result<bool, StoreError> {
    let rows =
        session.query(sql.statement(statement), params).await.map_err(|error| error.into_store_error(OPERATION))?;
    only_row(OPERATION, &rows)?.bool(0).map_err(undecodable(OPERATION))
}
