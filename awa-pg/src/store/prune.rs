//! Reclaiming slots that are proven spent: facts, decision, lock, facts again, decision again, truncate.

use std::collections::HashMap;
use std::time::Duration;

use awa_core::error::StoreError;
use awa_core::prune::{
    self, ClaimFacts, ClaimProof, KeepReason, LeaseFacts, Phase, PruneDecision, PruneFacts, QueueFacts, SlotFacts,
    SlotHistory,
};
use awa_core::ring::{RingKind, SlotState};
use awa_core::store::{PruneReport, RetentionPolicy};

use super::clock::{length_of, micros_of};
use super::drain::unpassed_lanes;
use super::slots::StoredRing;
use super::{PgStore, only_row, undecodable};
use crate::session::{PgError, Session, Transaction, TransactionLimits};
use crate::sql::Sql;
use crate::value::Param;

const OPERATION: &str = "prune";

/// Of which drained slots the costly facts are gathered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// Of those that may go now.
    WhereNeeded,
    /// Of all, to tell an operator the reason of each.
    Everywhere,
}

/// What was decided of a slot before its lock is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planned {
    pub(super) facts: SlotFacts,
    pub(super) decision: PruneDecision,
    /// What was found out about its claims, when they were looked at.
    proof: Option<ClaimProof>,
}

impl PgStore {
    /// See [`Maintainer::prune`](awa_core::store::Maintainer::prune).
    pub async fn prune(&self, ring: RingKind, retention: &RetentionPolicy) -> Result<Vec<PruneReport>, StoreError> {
        let lost = |error: PgError| error.into_store_error(OPERATION);
        let sql = self.installed(OPERATION).await?;
        let mut session = self.pool.session().await.map_err(lost)?;
        let stored = StoredRing::read(session.as_mut(), &sql, &self.clock, ring, OPERATION).await?;
        // The search for rows that wait may move a cursor over cancelled ones, which must see what the lane's last claim did.
        let plan = if self.reads_committed(session.as_mut()).await.map_err(lost)? {
            self.plan(session.as_mut(), &sql, ring, &stored, retention, Look::WhereNeeded).await?
        } else {
            let limits = TransactionLimits::default();
            let mut transaction = Transaction::begin(session.as_mut(), &limits).await.map_err(lost)?;
            let plan = self.plan(transaction.session(), &sql, ring, &stored, retention, Look::WhereNeeded).await;
            transaction.finish(plan, lost).await?
        };
        let mut reports = Vec::with_capacity(plan.len());
        for planned in plan {
            let kept = match planned.decision {
                PruneDecision::Keep(reason) => Some(reason),
                PruneDecision::Truncate | PruneDecision::Undrain => {
                    self.carry_out(session.as_mut(), &sql, ring, planned, retention).await?
                }
            };
            reports.push(PruneReport { slot: planned.facts.slot, kept });
        }
        Ok(reports)
    }

    /// The decision before the lock for each used slot of a ring.
    pub(super) async fn plan(
        &self,
        session: &mut dyn Session,
        sql: &Sql,
        ring: RingKind,
        stored: &StoredRing,
        retention: &RetentionPolicy,
        look: Look,
    ) -> Result<Vec<Planned>, StoreError> {
        match ring {
            RingKind::Queue => self.plan_queue(session, sql, stored, retention, look).await,
            RingKind::Claim | RingKind::Lease => plan_sealed(session, sql, ring, stored).await,
        }
    }

    /// The decision before the lock for each used slot of the queue ring. Costly facts are gathered only of drained slots
    /// that may go: those whose history is old enough, and the oldest while all together exceed its bytes. What is not
    /// gathered here is proven under the lock.
    async fn plan_queue(
        &self,
        session: &mut dyn Session,
        sql: &Sql,
        stored: &StoredRing,
        retention: &RetentionPolicy,
        look: Look,
    ) -> Result<Vec<Planned>, StoreError> {
        let mut observed = Vec::new();
        let mut proofs = HashMap::new();
        let mut used: Vec<_> =
            stored.slots.iter().filter(|slot| !matches!(slot.state, SlotState::Free | SlotState::Open)).collect();
        used.sort_by_key(|slot| slot.generation);
        let drained = used.iter().filter(|slot| slot.state == SlotState::Drained);
        let mut bytes = drained.fold(0_u64, |sum, slot| sum.saturating_add(slot.bytes));
        for slot in used {
            let facts =
                SlotFacts { slot: slot.slot, generation: slot.generation, state: slot.state, pointer: stored.pointer };
            let youngest = Some(slot.sealed_for);
            let (mut queue, mut history) =
                (spent(facts), SlotHistory { completed: youngest, cancelled: youngest, bytes: slot.bytes });
            let crowded = bytes > retention.max_bytes;
            let may_go = look == Look::Everywhere || slot.sealed_for >= retention.shortest() || crowded;
            if slot.state == SlotState::Drained {
                // A row that waits in a drained slot is looked for each time: no claim would find it. And first, because it
                // may move cursors over cancelled rows, which looks like a claim.
                queue.has_unpassed_rows = unpassed_lanes(session, sql, slot.slot.0, OPERATION).await? > 0;
            }
            if slot.state == SlotState::Drained && may_go {
                bytes = bytes.saturating_sub(slot.bytes);
                let params = [Param::I16(i16::from(slot.slot.0)), self.clock.param()];
                let ages = query(session, sql, "rings/history_age", &params).await?;
                let ages = only_row(OPERATION, &ages)?;
                let age = |column| ages.opt_i64(column).map(|age| age.map(length_of)).map_err(undecodable(OPERATION));
                history = SlotHistory { completed: age(0)?, cancelled: age(1)?, ..history };
                if look == Look::Everywhere || crowded || retention.time_left(&history).is_zero() {
                    let proof = prove_claims(session, sql, RingKind::Queue, facts).await?;
                    queue.open_claims = proof.open;
                    proofs.insert(slot.slot, proof);
                }
            }
            observed.push((queue, history));
        }
        let plan = retention.plan(&observed);
        let planned = plan.into_iter().filter_map(|(slot, decision)| {
            let facts = observed.iter().find(|(facts, _)| facts.slot.slot == slot).map(|(facts, _)| facts.slot)?;
            Some(Planned { facts, decision, proof: proofs.get(&slot).copied() })
        });
        Ok(planned.collect())
    }

    /// Locks the slot, proves again in new statements, and acts. `None` when it was truncated.
    async fn carry_out(
        &self,
        session: &mut dyn Session,
        sql: &Sql,
        ring: RingKind,
        chosen: Planned,
        retention: &RetentionPolicy,
    ) -> Result<Option<KeepReason>, StoreError> {
        let lost = |error: PgError| error.into_store_error(OPERATION);
        let mut transaction = Transaction::begin(session, &TransactionLimits::default()).await.map_err(lost)?;
        let outcome = self.carry_out_in(transaction.session(), sql, ring, chosen, retention).await;
        let ended = match outcome {
            Ok((_, true)) => transaction.finish(outcome, lost).await,
            other => transaction.undo(other, lost).await,
        };
        ended.map(|(kept, _)| kept)
    }

    /// Why the slot is kept, if it is, and whether anything was changed.
    async fn carry_out_in(
        &self,
        session: &mut dyn Session,
        sql: &Sql,
        ring: RingKind,
        Planned { facts: chosen, proof, .. }: Planned,
        retention: &RetentionPolicy,
    ) -> Result<(Option<KeepReason>, bool), StoreError> {
        let slot = Param::I16(i16::from(chosen.slot.0));
        let held = [
            slot.clone(),
            Param::I64(chosen.generation.0),
            Param::Text(if chosen.state == SlotState::Drained { "drained" } else { "sealed" }.into()),
        ];
        let hold = match ring {
            RingKind::Queue => "rings/hold_queue_slot",
            RingKind::Claim => "rings/hold_claim_slot",
            RingKind::Lease => "rings/hold_lease_slot",
        };
        if query(session, sql, hold, &held).await?.is_empty() {
            return Ok((Some(KeepReason::InUse), false));
        }
        let only = std::slice::from_ref(&slot);
        let locked = match ring {
            RingKind::Queue => {
                query(session, sql, "rings/try_lock_queue_slot", &[slot.clone(), Param::Bool(true)]).await?
            }
            RingKind::Claim => query(session, sql, "rings/try_lock_claim_slot", only).await?,
            RingKind::Lease => query(session, sql, "rings/try_lock_lease_slot", only).await?,
        };
        if !only_row(OPERATION, &locked)?.bool(0).map_err(undecodable(OPERATION))? {
            return Ok((Some(KeepReason::InUse), false));
        }
        let stored = StoredRing::read(session, sql, &self.clock, ring, OPERATION).await?;
        let Some(now) = stored.facts(chosen.slot) else { return Ok((Some(KeepReason::Reopened), false)) };
        let facts = match ring {
            RingKind::Queue => {
                let open_claims = open_under_lock(session, sql, ring, now, proof).await?;
                let has_unpassed_rows = unpassed_lanes(session, sql, now.slot.0, OPERATION).await? > 0;
                PruneFacts::Queue(QueueFacts { has_unpassed_rows, open_claims, ..spent(now) })
            }
            RingKind::Claim => {
                let open_claims = open_under_lock(session, sql, ring, now, proof).await?;
                PruneFacts::Claim(ClaimFacts { slot: now, open_claims })
            }
            RingKind::Lease => lease_facts(session, sql, now).await?,
        };
        match prune::decide(Phase::AfterLock { chosen: chosen.generation }, &facts) {
            PruneDecision::Keep(reason) => Ok((Some(reason), false)),
            PruneDecision::Truncate => {
                self.truncate(session, sql, ring, slot, retention).await?;
                Ok((None, true))
            }
            PruneDecision::Undrain => {
                tracing::warn!(slot = chosen.slot.0, "a job is waiting in a drained slot; claims look at it again");
                let params =
                    [slot, Param::I64(now.generation.0), Param::Text("drained".into()), Param::Text("sealed".into())];
                query(session, sql, "rings/mark_queue_slot", &params).await?;
                Ok((Some(KeepReason::WrongState { is: SlotState::Sealed, needs: SlotState::Drained }), true))
            }
        }
    }
}

impl PgStore {
    /// Empties a slot under its locks.
    async fn truncate(
        &self,
        session: &mut dyn Session,
        sql: &Sql,
        ring: RingKind,
        slot: Param<'static>,
        retention: &RetentionPolicy,
    ) -> Result<(), StoreError> {
        match ring {
            RingKind::Claim => query(session, sql, "rings/truncate_claim_slot", &[slot]).await?,
            RingKind::Lease => query(session, sql, "rings/truncate_lease_slot", &[slot]).await?,
            RingKind::Queue => {
                let bytes = i64::try_from(retention.max_failed_bytes).unwrap_or(i64::MAX);
                let params = [slot, Param::I64(micros_of(retention.failed)), Param::I64(bytes), self.clock.param()];
                query(session, sql, "rings/truncate_queue_slot", &params).await?
            }
        };
        Ok(())
    }
}

/// Reads every claim of a slot and every closure beside them.
async fn prove_claims(
    session: &mut dyn Session,
    sql: &Sql,
    ring: RingKind,
    slot: SlotFacts,
) -> Result<ClaimProof, StoreError> {
    let statement = match ring {
        RingKind::Queue => "rings/open_claims_of_queue_slot",
        _ => "rings/open_claims_of_claim_slot",
    };
    let rows = query(session, sql, statement, &[Param::I16(i16::from(slot.slot.0))]).await?;
    let row = only_row(OPERATION, &rows)?;
    let count = |column| row.i64(column).map(i64::unsigned_abs).map_err(undecodable(OPERATION));
    Ok(ClaimProof { generation: slot.generation, open: count(0)?, claims: count(1)? })
}

/// How many claims of a locked slot are open: none, by the proof before the lock if it still holds, else by a new one.
async fn open_under_lock(
    session: &mut dyn Session,
    sql: &Sql,
    ring: RingKind,
    slot: SlotFacts,
    proof: Option<ClaimProof>,
) -> Result<u64, StoreError> {
    let statement = match ring {
        RingKind::Queue => "rings/claims_on_queue_slot",
        _ => "rings/claims_in_claim_slot",
    };
    let claims = number(session, sql, statement, &[Param::I16(i16::from(slot.slot.0))]).await?;
    let claims = claims.unwrap_or(0).unsigned_abs();
    if proof.is_some_and(|proof| proof.still_holds(slot.generation, claims)) {
        return Ok(0);
    }
    Ok(prove_claims(session, sql, ring, slot).await?.open)
}

/// The facts of a slot of which nothing is needed any more.
fn spent(slot: SlotFacts) -> QueueFacts {
    QueueFacts { slot, has_unpassed_rows: false, open_claims: 0, retention_left: Duration::ZERO }
}

/// The decision before the lock for each sealed slot of a ring that is not drained first.
async fn plan_sealed(
    session: &mut dyn Session,
    sql: &Sql,
    ring: RingKind,
    stored: &StoredRing,
) -> Result<Vec<Planned>, StoreError> {
    let mut plan = Vec::new();
    let mut used: Vec<_> = stored.slots.iter().filter(|slot| slot.state == SlotState::Sealed).collect();
    used.sort_by_key(|slot| slot.generation);
    for slot in used {
        let facts =
            SlotFacts { slot: slot.slot, generation: slot.generation, state: slot.state, pointer: stored.pointer };
        let (sealed, proof) = if ring == RingKind::Lease {
            (lease_facts(session, sql, facts).await?, None)
        } else {
            let proof = prove_claims(session, sql, ring, facts).await?;
            (PruneFacts::Claim(ClaimFacts { slot: facts, open_claims: proof.open }), Some(proof))
        };
        plan.push(Planned { facts, decision: prune::decide(Phase::BeforeLock, &sealed), proof });
    }
    Ok(plan)
}

async fn lease_facts(session: &mut dyn Session, sql: &Sql, slot: SlotFacts) -> Result<PruneFacts, StoreError> {
    let params = [Param::I16(i16::from(slot.slot.0))];
    let leases = number(session, sql, "rings/leases_in_slot", &params).await?.unwrap_or(0).unsigned_abs();
    Ok(PruneFacts::Lease(LeaseFacts { slot, leases }))
}

async fn query(
    session: &mut dyn Session,
    sql: &Sql,
    statement: &'static str,
    params: &[Param<'_>],
) -> Result<Vec<crate::value::Row>, StoreError> {
    session.query(sql.statement(statement), params).await.map_err(|error| error.into_store_error(OPERATION))
}

async fn number(
    session: &mut dyn Session,
    sql: &Sql,
    statement: &'static str,
    params: &[Param<'_>],
) -> Result<Option<i64>, StoreError> {
    let rows = query(session, sql, statement, params).await?;
    only_row(OPERATION, &rows)?.opt_i64(0).map_err(undecodable(OPERATION))
}
