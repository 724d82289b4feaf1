//! Moving out what little keeps old slots.

use awa_core::error::{StoreError, StoreErrorKind};
use awa_core::id::Slot;
use awa_core::ring::{RingKind, SlotState};
use awa_core::store::{PinReport, Unpinned};
use awa_core::unpin::{PinReason, UnpinDecision, UnpinFacts, UnpinPlan, UnpinPolicy, decide};

use super::slots::StoredRing;
use super::{PgStore, only_row, undecodable};
use crate::session::{PgError, Session, Transaction, TransactionLimits};
use crate::sql::Sql;
use crate::value::{Param, Row, types};

const OPERATION: &str = "unpin";

/// Attempts as `materialize_attempts` takes them.
#[derive(Debug, Default)]
struct Attempts {
    claim_slots: Vec<i16>,
    nonces: Vec<i64>,
    receipts: Vec<i64>,
}

impl PgStore {
    /// See [`Maintainer::unpin`](awa_core::store::Maintainer::unpin).
    pub async fn unpin(&self, policy: &UnpinPolicy) -> Result<Unpinned, StoreError> {
        let sql = self.installed(OPERATION).await?;
        let mut session = self.pool.session().await.map_err(lost)?;
        let mut unpinned = Unpinned::default();
        for ring in [RingKind::Queue, RingKind::Claim] {
            let stored = StoredRing::read(session.as_mut(), &sql, &self.clock, ring, OPERATION).await?;
            let mut plan = UnpinPlan::new(policy, &stored.view(OPERATION)?);
            while let Some(slot) = plan.next_slot() {
                match self.unpin_slot(session.as_mut(), &sql, policy, ring, slot, &mut unpinned).await? {
                    Ok(()) => plan.freed(),
                    Err(reason) => unpinned.kept.push(PinReport { ring, slot, reason }),
                }
            }
        }
        self.forward_leases(session.as_mut(), &sql, policy, &mut unpinned).await?;
        Ok(unpinned)
    }

    /// Moves leases forward in batches; their slot is free to go when none is left.
    async fn forward_leases(
        &self,
        session: &mut dyn Session,
        sql: &Sql,
        policy: &UnpinPolicy,
        unpinned: &mut Unpinned,
    ) -> Result<(), StoreError> {
        let stored = StoredRing::read(session, sql, &self.clock, RingKind::Lease, OPERATION).await?;
        let mut plan = UnpinPlan::new(policy, &stored.view(OPERATION)?);
        while let Some(slot) = plan.next_slot() {
            let params = [number(slot), Param::I64(i64::from(policy.max_attempts))];
            let rows = query(session, sql, "rings/forward_leases", &params).await?;
            let row = only_row(OPERATION, &rows)?;
            let count = |column| row.i64(column).map(i64::unsigned_abs).map_err(undecodable(OPERATION));
            unpinned.forwarded += usize::try_from(count(0)?).unwrap_or(0);
            if count(1)? == 0 {
                plan.freed();
            } else {
                unpinned.kept.push(PinReport { ring: RingKind::Lease, slot, reason: PinReason::Busy });
            }
        }
        Ok(())
    }

    /// Frees one slot, or says why not.
    async fn unpin_slot(
        &self,
        session: &mut dyn Session,
        sql: &Sql,
        policy: &UnpinPolicy,
        ring: RingKind,
        slot: Slot,
        unpinned: &mut Unpinned,
    ) -> Result<Result<(), PinReason>, StoreError> {
        let attempts = Attempts::read(session, sql, policy, ring, slot).await?;
        let open_attempts = attempts.receipts.len() as u64;
        let mut transaction = Transaction::begin(session, &TransactionLimits::default()).await.map_err(lost)?;
        let carried = self.carry_out_of(transaction.session(), sql, policy, ring, slot, open_attempts).await;
        match carried {
            Ok(Ok(carried)) if carried > 0 => {
                transaction.commit().await.map_err(lost)?;
                unpinned.carried += carried;
            }
            other => {
                transaction.rollback().await.map_err(lost)?;
                if let Err(reason) = other? {
                    return Ok(Err(reason));
                }
            }
        }
        let evicted = attempts.materialise(session, sql).await?;
        Ok(evicted.map(|evicted| unpinned.evicted += evicted))
    }

    /// Decides by the facts under the locks, and moves the rows of a slot if that is the decision.
    async fn carry_out_of(
        &self,
        session: &mut dyn Session,
        sql: &Sql,
        policy: &UnpinPolicy,
        ring: RingKind,
        slot: Slot,
        open_attempts: u64,
    ) -> Result<Result<usize, PinReason>, StoreError> {
        let mut older_writers = false;
        let mut writers_in_flight = false;
        if ring == RingKind::Queue {
            let stored = StoredRing::read(session, sql, &self.clock, ring, OPERATION).await?;
            let Some(this) = stored.facts(slot) else { return Ok(Err(PinReason::Contended)) };
            let older = stored.slots.iter().filter(|other| other.generation <= this.generation);
            for other in older.filter(|other| other.state == SlotState::Sealed) {
                let free = is_without_writers(session, sql, other.slot).await?;
                writers_in_flight |= !free && other.slot == slot;
                older_writers |= !free && other.slot != slot;
            }
        }
        // Read after the locks were asked for: a writer may have committed meanwhile.
        let stored = StoredRing::read(session, sql, &self.clock, ring, OPERATION).await?;
        let Some(slot_facts) = stored.facts(slot) else { return Ok(Err(PinReason::Contended)) };
        let (mut waiting_rows, mut has_older_rows) = (0, false);
        if ring == RingKind::Queue {
            let params = [number(slot), Param::I64(i64::from(policy.max_rows) + 1)];
            let rows = query(session, sql, "rings/waiting", &params).await?;
            let row = only_row(OPERATION, &rows)?;
            waiting_rows = row.i64(0).map_err(undecodable(OPERATION))?.unsigned_abs();
            has_older_rows = older_writers || row.bool(1).map_err(undecodable(OPERATION))?;
        }
        let facts = UnpinFacts { slot: slot_facts, writers_in_flight, waiting_rows, has_older_rows, open_attempts };
        match decide(policy, &facts) {
            UnpinDecision::Keep(reason) => Ok(Err(reason)),
            UnpinDecision::Unpinned => Ok(Ok(0)),
            UnpinDecision::MoveOut if waiting_rows == 0 => Ok(Ok(0)),
            UnpinDecision::MoveOut => {
                let params = [number(slot), Param::I64(i64::from(policy.max_rows))];
                let rows = query(session, sql, "rings/carry", &params).await?;
                let moved = only_row(OPERATION, &rows)?.i32(0).map_err(undecodable(OPERATION))?;
                Ok(usize::try_from(moved).map_err(|_| PinReason::Contended))
            }
        }
    }
}

impl Attempts {
    /// The open attempts that keep a slot, up to one more than are moved.
    async fn read(
        session: &mut dyn Session,
        sql: &Sql,
        policy: &UnpinPolicy,
        ring: RingKind,
        slot: Slot,
    ) -> Result<Self, StoreError> {
        let (on, within) = match ring {
            RingKind::Queue => (number(slot), Param::Null(types::INT2)),
            _ => (Param::Null(types::INT2), number(slot)),
        };
        let limit = Param::I64(i64::from(policy.max_attempts) + 1);
        let mut attempts = Self::default();
        for row in &query(session, sql, "rings/attempts_on_slot", &[on, within, limit]).await? {
            let bad = undecodable(OPERATION);
            attempts.claim_slots.push(row.i16(0).map_err(&bad)?);
            attempts.nonces.push(row.i64(1).map_err(&bad)?);
            attempts.receipts.push(row.i64(2).map_err(&bad)?);
        }
        Ok(attempts)
    }

    /// Turns them into leases. Those that ended meanwhile are left out.
    async fn materialise(self, session: &mut dyn Session, sql: &Sql) -> Result<Result<usize, PinReason>, StoreError> {
        if self.receipts.is_empty() {
            return Ok(Ok(0));
        }
        let params =
            [Param::I16s(self.claim_slots.into()), Param::I64s(self.nonces.into()), Param::I64s(self.receipts.into())];
        match session.query(sql.statement("rings/materialize"), &params).await {
            Ok(rows) => {
                let moved = only_row(OPERATION, &rows)?.i64(0).map_err(undecodable(OPERATION))?;
                Ok(Ok(usize::try_from(moved).unwrap_or(0)))
            }
            // Somebody is ending one of them; it may be gone before the next tick.
            Err(error) if error.kind() == StoreErrorKind::Contended => Ok(Err(PinReason::Contended)),
            Err(error) => Err(lost(error)),
        }
    }
}

fn lost(error: PgError) -> StoreError {
    error.into_store_error(OPERATION)
}

fn number(slot: Slot) -> Param<'static> {
    Param::I16(i16::from(slot.0))
}

/// Whether nobody can append to a slot for as long as the transaction lasts.
async fn is_without_writers(session: &mut dyn Session, sql: &Sql, slot: Slot) -> Result<bool, StoreError> {
    let rows = query(session, sql, "rings/try_lock_queue_slot", &[number(slot), Param::Bool(false)]).await?;
    only_row(OPERATION, &rows)?.bool(0).map_err(undecodable(OPERATION))
}

async fn query(
    session: &mut dyn Session,
    sql: &Sql,
    statement: &'static str,
    params: &[Param<'_>],
) -> Result<Vec<Row>, StoreError> {
    session.query(sql.statement(statement), params).await.map_err(lost)
}
