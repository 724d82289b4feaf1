//! Ending attempts whose worker is gone or whose deadline is over.
//!
//! A sweep of `awa-core` decides what to look at, what to rescue and where its cursor goes; this module reads the pages,
//! ends attempts by the same statement as a handler's error, and stores the cursors. Nothing is held between two
//! statements: each closure stands on its own, and a pass that is cut off has only forgotten how far it came.

use std::collections::{BTreeMap, HashMap};

use awa_core::attempt::ClosureAnswer;
use awa_core::error::StoreError;
use awa_core::id::{JobId, Nonce, ReceiptId, RunLease, Slot};
use awa_core::name::QueueName;
use awa_core::retry::{AttemptBudget, Disposition, RetryPolicy};
use awa_core::store::{RescueRequest, Rescued, RescuedAttempt};
use awa_core::sweep::{
    Beats, PageRequest, RescueCause, RescueOutcome, RescuerHealth, Sweep, SweepCursor, SweepKind, SweepLimits,
};
use awa_core::time::Timestamp;

use super::clock::micros_of;
use super::close::{Ending, Outcome, receipt};
use super::sweeps::{Candidate, Page, Pass, SlotCursors, Swept};
use super::{PgStore, undecodable};
use crate::sql::Sql;
use crate::value::{Param, Row};

pub(super) const OPERATION: &str = "rescue";

impl PgStore {
    /// See [`Maintainer::rescue`](awa_core::store::Maintainer::rescue).
    pub async fn rescue(&self, request: &RescueRequest, retry: &RetryPolicy) -> Result<Rescued, StoreError> {
        let sql = self.installed(OPERATION).await?;
        let Some(judged_at) = self.may_rescue(request).await? else {
            return Ok(Rescued { rescuer_too_young: true, ..Rescued::default() });
        };
        let rows = self.call(OPERATION, sql.statement("rescue/slots"), &[Param::Timestamp(judged_at)]).await?;
        let mut rescued = Rescued::default();
        let mut first_failure = None;
        for row in &rows {
            let slot = SlotCursors::read(row).map_err(undecodable(OPERATION))?;
            for kind in [SweepKind::Stale, SweepKind::Deadline] {
                let pass = Pass { kind, slot: slot.slot, now: slot.now, request, retry };
                match self.sweep_slot(&sql, &pass, &slot, &mut rescued).await {
                    Ok(()) => {}
                    Err(error) if error.is_transient() => return Err(error),
                    // A slot that is damaged stops no other.
                    Err(error) => drop(first_failure.get_or_insert(error)),
                }
            }
        }
        self.rescue_leases(&sql, request, retry, judged_at, &mut rescued).await?;
        match first_failure {
            Some(error) if rescued.attempts.is_empty() => Err(error),
            _ => Ok(rescued),
        }
    }

    /// The moment at which the rescuer was found healthy, if it was. It is the present of the whole pass: by a later one,
    /// everybody would look dead behind an outage that came after the rescuer was judged.
    async fn may_rescue(&self, request: &RescueRequest) -> Result<Option<Timestamp>, StoreError> {
        let params = [Param::I64(request.rescuer.0), self.clock.param()];
        let rows = self.call(OPERATION, self.sql.statement("rescue/rescuer"), &params).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let read = || Ok((Beats { since: row.timestamp(0)?, last: row.timestamp(1)? }, row.timestamp(2)?));
        let (beats, now) = read().map_err(undecodable(OPERATION))?;
        let health = RescuerHealth::of(Some(beats), now, request.staleness);
        if !health.may_rescue() {
            tracing::debug!(%health, "not rescuing");
        }
        Ok(health.may_rescue().then_some(now))
    }

    /// The sweeps of one kind over one slot: of compact claims, and of row-local ones where there are any.
    async fn sweep_slot(
        &self,
        sql: &Sql,
        pass: &Pass<'_>,
        slot: &SlotCursors,
        rescued: &mut Rescued,
    ) -> Result<(), StoreError> {
        let is_stale = pass.kind == SweepKind::Stale;
        let compact = if is_stale { slot.stale } else { slot.deadline };
        self.sweep(sql, pass, compact, rescued).await?;
        if slot.has_rows {
            let rows = if is_stale { slot.row_stale } else { slot.row_deadline };
            self.sweep(sql, pass, rows, rescued).await?;
        }
        Ok(())
    }

    async fn sweep<K: Swept>(
        &self,
        sql: &Sql,
        pass: &Pass<'_>,
        before: SweepCursor<K>,
        rescued: &mut Rescued,
    ) -> Result<(), StoreError> {
        let mut sweep = Sweep::begin(pass.kind, before, SweepLimits::for_visits(pass.request.page.max(1)));
        while let Some(asked) = sweep.next_page() {
            let Page { visited, candidates } = self.read_page(sql, pass, &asked).await?;
            let page = sweep.visit(visited);
            let wanted: Vec<_> = page.to_rescue().filter_map(|key| Some((key, candidates.get(&key)?))).collect();
            let outcomes = self.rescue_claims(sql, pass, &wanted, rescued).await?;
            sweep = page.settle(&outcomes);
        }
        let (after, report) = sweep.finish();
        rescued.contended += report.contended;
        rescued.more |= !report.complete;
        if after != before {
            let mut params = vec![Param::I16(i16::from(pass.slot.0))];
            params.extend(K::key_params(after.at));
            params.extend(K::key_params(after.resume));
            self.call(OPERATION, sql.statement(K::move_statement(pass.kind)), &params).await?;
        }
        Ok(())
    }

    async fn read_page<K: Swept>(
        &self,
        sql: &Sql,
        pass: &Pass<'_>,
        asked: &PageRequest<K>,
    ) -> Result<Page<K>, StoreError> {
        let rows =
            self.call(OPERATION, sql.statement(K::page_statement(pass.kind)), &K::page_params(pass, asked)).await?;
        K::read_page(pass, asked, &rows)
    }

    async fn rescue_claims<K: Swept>(
        &self,
        sql: &Sql,
        pass: &Pass<'_>,
        wanted: &[(K, &Candidate)],
        rescued: &mut Rescued,
    ) -> Result<BTreeMap<K, RescueOutcome>, StoreError> {
        if wanted.is_empty() {
            return Ok(BTreeMap::new());
        }
        let ids: Vec<i64> =
            wanted.iter().flat_map(|(_, candidate)| candidate.open.iter().map(ReceiptId::get)).collect();
        let rows = self.call(OPERATION, sql.statement("rescue/attempts"), &[Param::I64s(ids.into())]).await?;
        let attempts: HashMap<ReceiptId, OpenAttempt> =
            rows.iter().map(OpenAttempt::read).collect::<Result<_, StoreError>>()?;
        let mut endings = Vec::with_capacity(attempts.len());
        for (_, candidate) in wanted {
            for id in candidate.open.iter() {
                let Some(attempt) = attempts.get(&id) else { continue };
                endings.push(attempt.ending(
                    id,
                    pass.slot,
                    candidate.nonce,
                    pass.kind.into(),
                    pass.request,
                    pass.retry,
                ));
            }
        }
        let mut answers = HashMap::with_capacity(endings.len());
        if let Err(error) = self.end(&endings, &mut answers).await {
            if error.is_transient() {
                return Err(error);
            }
            // One attempt that cannot be moved keeps no other back: it is left for an operator, and looked at again.
            tracing::error!(%error, "an attempt could not be rescued; run `awa doctor`");
            for ending in &endings {
                answers.entry(ending.receipt).or_insert(ClosureAnswer::Contended);
            }
        }
        for ending in &endings {
            if answers.get(&ending.receipt) == Some(&ClosureAnswer::Closed) {
                let attempt = &attempts[&ending.receipt];
                rescued.attempts.push(attempt.report(pass.kind.into(), ending));
            }
        }
        let outcome = |candidate: &Candidate| {
            let member = |id| match answers.get(&id) {
                Some(ClosureAnswer::Closed) => RescueOutcome::Closed,
                Some(ClosureAnswer::Contended) => RescueOutcome::Contended,
                _ => RescueOutcome::LostRace,
            };
            candidate.open.iter().map(member).max().unwrap_or(RescueOutcome::LostRace)
        };
        Ok(wanted.iter().map(|(key, candidate)| (*key, outcome(candidate))).collect())
    }
}

/// What decides where a rescued job goes.
pub(super) struct OpenAttempt {
    pub(super) job: JobId,
    pub(super) run_lease: RunLease,
    pub(super) budget: AttemptBudget,
    pub(super) queue: QueueName,
}

impl OpenAttempt {
    fn read(row: &Row) -> Result<(ReceiptId, Self), StoreError> {
        let bad = undecodable(OPERATION);
        let attempt = Self {
            job: JobId(row.i64(1).map_err(&bad)?),
            run_lease: RunLease(row.i64(2).map_err(&bad)?),
            budget: AttemptBudget {
                attempt: row.i32(3).map_err(&bad)?.unsigned_abs(),
                max_attempts: u32::from(row.i16(4).map_err(&bad)?.unsigned_abs()),
            },
            queue: QueueName::trusted(row.text(5).map_err(&bad)?),
        };
        Ok((receipt(row.i64(0).map_err(&bad)?)?, attempt))
    }

    /// What was done to it.
    pub(super) fn report(&self, cause: RescueCause, ending: &Ending) -> RescuedAttempt {
        RescuedAttempt {
            job: self.job,
            queue: self.queue.clone(),
            run_lease: self.run_lease,
            exhausted: ending.route == "dead",
            cause,
        }
    }

    pub(super) fn ending(
        &self,
        id: ReceiptId,
        claim_slot: Slot,
        nonce: Nonce,
        cause: RescueCause,
        request: &RescueRequest,
        retry: &RetryPolicy,
    ) -> Ending {
        let outcome = Outcome::of_rescue(cause);
        let next = retry.after_failure(self.budget, None, spread(id));
        let text = Some(cause.error(request.staleness, self.budget, &next).as_str().to_owned());
        let (route, delay_us) = match next {
            Disposition::Retry { delay } => ("deferred", Some(micros_of(delay))),
            Disposition::Exhausted => ("dead", None),
        };
        Ending { claim_slot, nonce, receipt: id, outcome, route, delay_us, text, result: None }
    }
}

/// A number in 0 to 1 that differs from receipt to receipt, so that jobs rescued together are not retried together.
fn spread(id: ReceiptId) -> f64 {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let mixed = id.get().unsigned_abs().wrapping_mul(GOLDEN);
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}
