//! Marking what claims need not look at any more: slots of the queue ring whose rows have all been passed, and rows that were
//! carried over and are gone.

use awa_core::error::StoreError;
use awa_core::ring::{self, DrainDecision, DrainFacts, RingKind, SlotState};
use awa_core::store::Drained;

use super::slots::{StoredRing, StoredSlot};
use super::{PgStore, only_row, undecodable};
use crate::session::{PgError, Session, Transaction, TransactionLimits};
use crate::sql::Sql;
use crate::value::Param;

const OPERATION: &str = "drain";

impl PgStore {
    /// See [`Maintainer::drain`](awa_core::store::Maintainer::drain).
    pub async fn drain(&self) -> Result<Drained, StoreError> {
        let lost = |error: PgError| error.into_store_error(OPERATION);
        let sql = self.installed(OPERATION).await?;
        let mut session = self.pool.session().await.map_err(lost)?;
        let stored = StoredRing::read(session.as_mut(), &sql, &self.clock, RingKind::Queue, OPERATION).await?;
        let reads_committed = self.reads_committed(session.as_mut()).await.map_err(lost)?;
        let mut drained = Drained::default();
        for slot in stored.slots.iter().filter(|slot| slot.state == SlotState::Sealed) {
            // A slot with rows waiting is the common case under load; it is found out without a lock.
            if reads_committed && unpassed_lanes(session.as_mut(), &sql, slot.slot.0, OPERATION).await? > 0 {
                drained.kept.push(slot.slot);
                if !slot.has_noted_lanes {
                    let params = [Param::I16(i16::from(slot.slot.0)), Param::I64(slot.generation.0)];
                    session.query(sql.statement("rings/note_lanes"), &params).await.map_err(lost)?;
                }
                continue;
            }
            let mut transaction =
                Transaction::begin(session.as_mut(), &TransactionLimits::default()).await.map_err(lost)?;
            let outcome = self.drain_slot(transaction.session(), &sql, slot).await;
            if matches!(outcome, Ok(true)) {
                transaction.commit().await.map_err(lost)?;
                drained.slots.push(slot.slot);
            } else {
                transaction.undo(outcome, lost).await?;
                drained.kept.push(slot.slot);
            }
        }
        for step in ["ticks/summarise_slots", "ticks/raise_carried_floor"] {
            self.query_alone(session.as_mut(), sql.statement(step), &[]).await.map_err(lost)?;
        }
        Ok(drained)
    }

    /// Whether the slot was marked. The lock is taken first; the facts are read in statements after it.
    async fn drain_slot(&self, session: &mut dyn Session, sql: &Sql, stored: &StoredSlot) -> Result<bool, StoreError> {
        let number = Param::I16(i16::from(stored.slot.0));
        let statement = sql.statement("rings/try_lock_queue_slot");
        let rows = session
            .query(statement, &[number.clone(), Param::Bool(false)])
            .await
            .map_err(|error| error.into_store_error(OPERATION))?;
        let is_locked = only_row(OPERATION, &rows)?.bool(0).map_err(undecodable(OPERATION))?;
        let ring = StoredRing::read(session, sql, &self.clock, RingKind::Queue, OPERATION).await?;
        let Some(now) = ring.facts(stored.slot) else { return Ok(false) };
        let has_unpassed_rows = unpassed_lanes(session, sql, stored.slot.0, OPERATION).await? > 0;
        let facts = DrainFacts {
            slot: stored.slot,
            state: now.state,
            pointer: ring.pointer,
            writers_in_flight: !is_locked,
            has_unpassed_rows,
        };
        if let DrainDecision::Keep(reason) = ring::drain(&facts) {
            tracing::trace!(slot = stored.slot.0, %reason, "slot not drained");
            return Ok(false);
        }
        let params =
            [number, Param::I64(now.generation.0), Param::Text("sealed".into()), Param::Text("drained".into())];
        let rows = session
            .query(sql.statement("rings/mark_queue_slot"), &params)
            .await
            .map_err(|error| error.into_store_error(OPERATION))?;
        Ok(!rows.is_empty())
    }
}

/// How many lanes of a slot have rows that nobody has passed.
pub(super) async fn unpassed_lanes(
    session: &mut dyn Session,
    sql: &Sql,
    slot: u8,
    operation: &'static str,
) -> Result<i32, StoreError> {
    let rows = session
        .query(sql.statement("rings/unpassed_lanes"), &[Param::I16(i16::from(slot))])
        .await
        .map_err(|error| error.into_store_error(operation))?;
    only_row(operation, &rows)?.i32(0).map_err(undecodable(operation))
}
