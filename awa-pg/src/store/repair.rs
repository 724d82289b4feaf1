//! Making a schema usable that was carried into another cluster. What has to be done is decided in [`awa_core::repair`].

use std::fmt;
use std::time::Duration;

use awa_core::error::{StoreError, StoreErrorKind};
use awa_core::id::Slot;
use awa_core::repair::{self, QueueRepair, RepairFacts, RepairPlan};
use awa_core::ring::{Pointer, RingKind, SlotState};

use super::slots::StoredRing;
use super::{PgStore, only_row, undecodable};
use crate::session::{PgError, Session, Transaction, TransactionLimits};
use crate::sql::Sql;
use crate::value::{Param, Row};

const OPERATION: &str = "repair";
/// A repair is one transaction over everything that waits; whoever writes now waits for it that long at most.
const LIMITS: TransactionLimits = TransactionLimits {
    idle: Duration::from_mins(1),
    statement: Duration::from_hours(1),
    lock: Some(Duration::from_secs(10)),
};
/// The most transaction numbers that one repair uses up, which takes a minute or two.
const MAX_USED_UP: i64 = 5_000_000;
/// More hints than `MAX_FOLDS` times a thousand were left by nobody.
const MAX_FOLDS: usize = 1_000;

/// What [`PgStore::repair`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repaired {
    /// The schema.
    pub schema: String,
    /// Whether it had been carried into this cluster, which is on record now.
    pub was_carried: bool,
    /// Jobs that waited and were appended again, in their order.
    pub moved_jobs: u64,
    /// Jobs outside the rings, carried over or running as leases, whose places were numbered anew.
    pub renumbered_jobs: u64,
    /// Finished jobs whose history was moved to make room for them.
    pub moved_history: u64,
    /// Rings whose writers were sent to a new generation.
    pub reopened: Vec<RingKind>,
    /// Sequences that were raised above what is stored.
    pub raised: Vec<&'static str>,
}

impl Repaired {
    /// Whether there was nothing to repair.
    pub fn is_nothing(&self) -> bool {
        !self.was_carried && self.reopened.is_empty() && self.raised.is_empty()
    }
}

impl fmt::Display for Repaired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "schema {:?}: ", self.schema)?;
        if self.is_nothing() {
            return f.write_str("nothing to repair");
        }
        let mut parts = Vec::new();
        if self.was_carried {
            parts.push("this cluster is on record now".to_owned());
        }
        if self.moved_jobs > 0 {
            parts.push(format!("{} waiting jobs were appended again in their order", self.moved_jobs));
        }
        if self.renumbered_jobs > 0 {
            parts.push(format!("{} jobs outside the rings keep their places under new numbers", self.renumbered_jobs));
        }
        if self.moved_history > 0 {
            parts.push(format!("the history of {} jobs was moved", self.moved_history));
        }
        parts.extend(self.reopened.iter().map(|ring| format!("the {ring} ring has a new generation")));
        parts.extend(self.raised.iter().map(|sequence| format!("sequence {sequence} was raised")));
        f.write_str(&parts.join(", "))
    }
}

/// How an attempt at a repair ended.
enum Outcome {
    Done(Repaired),
    /// So many transaction numbers are missing for keeping the order of the jobs.
    NumbersMissing(i64),
}

/// What `repair/facts` says.
struct Numbers {
    is_foreign_cluster: bool,
    has_future_transactions: bool,
    needed: i64,
    available: i64,
}

impl PgStore {
    /// Makes a schema usable that was carried here from another cluster, or whose ring pointers or sequences do not fit its
    /// rows. One transaction: it happens as a whole or not at all. Safe to repeat, and to run in several places at once.
    ///
    /// - Jobs that wait keep their order in each lane, also those that were carried over; deferred, dead and finished jobs
    ///   stay as they are.
    /// - Attempts that were running stay open: a worker that still holds one may end it, and the others are rescued when
    ///   their worker is not heard of for the staleness time, which charges them like any rescue.
    ///
    /// # Errors
    ///
    /// [`NotReady`](StoreErrorKind::NotReady) when the schema is missing or of another version,
    /// [`Contended`](StoreErrorKind::Contended) when somebody holds the rings for long,
    /// [`Refused`](StoreErrorKind::Refused) when there is no room to move to, and [`Corrupt`](StoreErrorKind::Corrupt) when a
    /// ring contradicts itself.
    pub async fn repair(&self) -> Result<Repaired, StoreError> {
        let lost = |error: PgError| error.into_store_error(OPERATION);
        let sql = self.installed(OPERATION).await?;
        let mut session = self.pool.session().await.map_err(lost)?;
        for _ in 0..2 {
            let mut transaction = Transaction::begin(session.as_mut(), &LIMITS).await.map_err(lost)?;
            let outcome = self.repair_in(transaction.session(), &sql).await;
            let missing = match outcome {
                Ok(Outcome::Done(repaired)) => return transaction.commit().await.map(|()| repaired).map_err(lost),
                Ok(Outcome::NumbersMissing(missing)) => missing,
                Err(error) => return transaction.undo(Err(error), lost).await,
            };
            transaction.rollback().await.map_err(lost)?;
            if missing > MAX_USED_UP {
                let problem = format!(
                    "{missing} transaction numbers are missing to keep the order of the waiting jobs; use them up by \
                     calling the procedure use_up_transactions of the schema, then repair again"
                );
                return Err(StoreError::new(StoreErrorKind::Refused, OPERATION, problem));
            }
            query(session.as_mut(), &sql, "repair/use_up_transactions", &[Param::I64(missing)]).await?;
        }
        let problem = "an old transaction of this server keeps its recent numbers in use; end it, then repair again";
        Err(StoreError::new(StoreErrorKind::Contended, OPERATION, problem))
    }

    async fn repair_in(&self, session: &mut dyn Session, sql: &Sql) -> Result<Outcome, StoreError> {
        query(session, sql, "install/take_turn", &[]).await?;
        // A store in order is found out without disturbing anybody.
        let (_, plan) = self.plan_repair(session, sql).await?;
        let mut repaired = Repaired {
            schema: sql.schema().as_str().to_owned(),
            was_carried: plan.records_cluster,
            moved_jobs: 0,
            renumbered_jobs: 0,
            moved_history: 0,
            reopened: Vec::new(),
            raised: Vec::new(),
        };
        if plan.is_empty() {
            repaired.raised = raise_sequences(session, sql).await?;
            return Ok(Outcome::Done(repaired));
        }
        for _ in 0..MAX_FOLDS {
            if number(session, sql, "ticks/fold_lane_hints", &[]).await? == 0 {
                break;
            }
        }
        session.batch(&sql.statement("repair/lock").text).await.map_err(|error| error.into_store_error(OPERATION))?;
        let (numbers, plan) = self.plan_repair(session, sql).await?;
        if matches!(plan.queue, QueueRepair::MoveInto { .. }) && numbers.needed > numbers.available {
            return Ok(Outcome::NumbersMissing(numbers.needed - numbers.available));
        }
        repaired.raised = raise_sequences(session, sql).await?;
        if plan.records_cluster {
            query(session, sql, "repair/record_cluster", &[]).await?;
        }
        self.carry_out_repair(session, sql, &plan, &mut repaired).await?;
        Ok(Outcome::Done(repaired))
    }

    async fn plan_repair(&self, session: &mut dyn Session, sql: &Sql) -> Result<(Numbers, RepairPlan), StoreError> {
        let rows = query(session, sql, "repair/facts", &[]).await?;
        let numbers = Numbers::read(only_row(OPERATION, &rows)?)?;
        let queue = StoredRing::read(session, sql, &self.clock, RingKind::Queue, OPERATION).await?.view(OPERATION)?;
        let claim = StoredRing::read(session, sql, &self.clock, RingKind::Claim, OPERATION).await?.view(OPERATION)?;
        let lease = StoredRing::read(session, sql, &self.clock, RingKind::Lease, OPERATION).await?.view(OPERATION)?;
        let mut settled = Vec::new();
        if numbers.has_future_transactions {
            for slot in (0..).map(Slot).take(queue.slots().len()) {
                let params = [Param::I16(i16::from(slot.0))];
                if number(session, sql, "rings/open_claims_of_queue_slot", &params).await? == 0 {
                    settled.push(slot);
                }
            }
        }
        let facts = RepairFacts {
            is_foreign_cluster: numbers.is_foreign_cluster,
            has_future_transactions: numbers.has_future_transactions,
            queue,
            claim,
            lease,
            settled,
        };
        let refused = |no: repair::NoSlot| StoreError::new(StoreErrorKind::Refused, OPERATION, no.to_string());
        Ok((numbers, repair::plan(&facts).map_err(refused)?))
    }

    async fn carry_out_repair(
        &self,
        session: &mut dyn Session,
        sql: &Sql,
        plan: &RepairPlan,
        repaired: &mut Repaired,
    ) -> Result<(), StoreError> {
        if let Some(pointer) = plan.claim {
            self.reopen(session, sql, RingKind::Claim, pointer).await?;
            repaired.reopened.push(RingKind::Claim);
        }
        if let Some(pointer) = plan.lease {
            self.reopen(session, sql, RingKind::Lease, pointer).await?;
            repaired.reopened.push(RingKind::Lease);
        }
        match plan.queue {
            QueueRepair::Keep => return Ok(()),
            QueueRepair::Reopen(pointer) => self.reopen(session, sql, RingKind::Queue, pointer).await?,
            QueueRepair::MoveInto { slot, history_into } => {
                let target = [Param::I16(i16::from(slot.slot.0))];
                repaired.renumbered_jobs = number(session, sql, "repair/renumber_carried", &[]).await?.unsigned_abs();
                if let Some(into) = history_into {
                    let params = [target[0].clone(), Param::I16(i16::from(into.0))];
                    repaired.moved_history =
                        number(session, sql, "repair/widen_history", &params).await?.unsigned_abs();
                    query(session, sql, "repair/clear_slot", &target).await?;
                }
                repaired.moved_jobs = number(session, sql, "repair/move_rows", &target).await?.unsigned_abs();
                self.reopen(session, sql, RingKind::Queue, slot).await?;
            }
        }
        repaired.reopened.push(RingKind::Queue);
        Ok(())
    }

    /// Sends writers to `to`. Whatever else may hold rows becomes sealed, so that it is looked at before it is emptied, and
    /// is emptied before it is opened again. Moving the pointer comes last, because a rollback does not take it back.
    async fn reopen(
        &self,
        session: &mut dyn Session,
        sql: &Sql,
        ring: RingKind,
        to: Pointer,
    ) -> Result<(), StoreError> {
        let stored = StoredRing::read(session, sql, &self.clock, ring, OPERATION).await?;
        let (mark, open) = match ring {
            RingKind::Queue => ("rings/mark_queue_slot", "rings/open_queue_slot"),
            RingKind::Claim => ("repair/mark_claim_slot", "rings/open_claim_slot"),
            RingKind::Lease => ("repair/mark_lease_slot", "rings/open_lease_slot"),
        };
        for slot in &stored.slots {
            let is_pointed = slot.slot == stored.pointer.slot;
            let (before, after) = match slot.state {
                state if slot.slot == to.slot => (state, SlotState::Free),
                SlotState::Free if slot.bytes > 0 => (SlotState::Free, SlotState::Sealed),
                SlotState::Drained if is_pointed => (SlotState::Drained, SlotState::Sealed),
                _ => continue,
            };
            if before != after {
                let state = |state: SlotState| Param::Text(state.to_string().into());
                let params =
                    [Param::I16(i16::from(slot.slot.0)), Param::I64(slot.generation.0), state(before), state(after)];
                query(session, sql, mark, &params).await?;
            }
        }
        let params = [Param::I16(i16::from(to.slot.0)), Param::I64(to.generation.0), self.clock.param()];
        let rows = query(session, sql, open, &params).await?;
        if only_row(OPERATION, &rows)?.bool(0).map_err(undecodable(OPERATION))? {
            return Ok(());
        }
        let problem =
            format!("generation {} of the {ring} ring is in its ledger already; nothing was changed", to.generation);
        Err(StoreError::new(StoreErrorKind::Corrupt, OPERATION, problem))
    }
}

impl Numbers {
    fn read(row: &Row) -> Result<Self, StoreError> {
        let read = || {
            Ok(Self {
                is_foreign_cluster: row.bool(0)?,
                has_future_transactions: row.bool(1)?,
                needed: row.i64(2)?,
                available: row.i64(3)?,
            })
        };
        read().map_err(undecodable(OPERATION))
    }
}

async fn raise_sequences(session: &mut dyn Session, sql: &Sql) -> Result<Vec<&'static str>, StoreError> {
    let rows = query(session, sql, "repair/raise_sequences", &[]).await?;
    let row = only_row(OPERATION, &rows)?;
    let mut raised = Vec::new();
    for (column, sequence) in ["job_id_seq", "batch_id_seq"].into_iter().enumerate() {
        if row.bool(column).map_err(undecodable(OPERATION))? {
            raised.push(sequence);
        }
    }
    Ok(raised)
}

async fn query(
    session: &mut dyn Session,
    sql: &Sql,
    statement: &'static str,
    params: &[Param<'_>],
) -> Result<Vec<Row>, StoreError> {
    session.query(sql.statement(statement), params).await.map_err(|error| error.into_store_error(OPERATION))
}

/// The number that a statement answers with.
async fn number(
    session: &mut dyn Session,
    sql: &Sql,
    statement: &'static str,
    params: &[Param<'_>],
) -> Result<i64, StoreError> {
    let rows = query(session, sql, statement, params).await?;
    let row = only_row(OPERATION, &rows)?;
    row.i64(0).or_else(|_| row.i32(0).map(i64::from)).map_err(undecodable(OPERATION))
}
