//! Giving a ring more slots while everybody goes on working.
//!
//! Each slot is a short transaction of its own: its tables are made and attached, its row of control is written, and the
//! functions with a branch per slot are created anew. Programs send statements that do not depend on the sizes of the
//! rings, so those that run notice nothing; what was under way in an older version of a function and meets the new slot is
//! told to call again.

use std::time::Duration;

use awa_core::error::{StoreError, StoreErrorKind};
use awa_core::ring::{GrowRefusal, RingKind, grow};
use awa_core::store::Grown;

use super::PgStore;
use super::install::{find, missing, record, replace_objects};
use crate::session::{PgError, Session, Transaction, TransactionLimits};
use crate::sql::{Ring, Sql};
use crate::value::Param;

const OPERATION: &str = "grow_ring";
/// Nobody who works waits behind a lock that is waited for here; the limits are for whoever asked.
const LIMITS: TransactionLimits = TransactionLimits {
    idle: Duration::from_secs(10),
    statement: Duration::from_mins(1),
    lock: Some(Duration::from_secs(2)),
};
/// How often a slot is tried while somebody holds a lock that is in the way, such as a VACUUM of a parent.
const TRIES: u32 = 10;
/// The pause before the second try; it doubles up to [`MAX_PAUSE`].
const PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// How far one transaction came.
enum Step {
    Refused(GrowRefusal),
    /// The ring has that many slots, as was asked for.
    Enough(u8),
    /// A slot was added to so many.
    Added(u8),
}

impl PgStore {
    /// See [`Operator::grow_ring`](awa_core::store::Operator::grow_ring).
    pub async fn grow_ring(&self, ring: RingKind, slots: u8) -> Result<Grown, StoreError> {
        let mut from = None;
        loop {
            match (self.add_slot_patiently(ring, slots).await?, from) {
                (Step::Added(before), _) => from = Some(from.unwrap_or(before)),
                (Step::Enough(has), _) => return Ok(Grown::Done { from: from.unwrap_or(has), to: has }),
                // Somebody else wanted more and was faster.
                (Step::Refused(GrowRefusal::Shrinks { has, .. }), Some(from)) => {
                    return Ok(Grown::Done { from, to: has });
                }
                (Step::Refused(refusal), _) => return Ok(Grown::Refused(refusal)),
            }
        }
    }

    async fn add_slot_patiently(&self, ring: RingKind, slots: u8) -> Result<Step, StoreError> {
        let mut pause = PAUSE;
        for _ in 1..TRIES {
            match self.add_slot(ring, slots).await {
                Err(error) if error.kind() == StoreErrorKind::Contended => {
                    tracing::debug!(%error, "a slot cannot be added yet");
                    tokio::time::sleep(pause).await;
                    pause = (2 * pause).min(MAX_PAUSE);
                }
                other => return other,
            }
        }
        self.add_slot(ring, slots).await
    }

    async fn add_slot(&self, ring: RingKind, slots: u8) -> Result<Step, StoreError> {
        let lost = |error: PgError| error.into_store_error(OPERATION);
        let mut session = self.pool.session().await.map_err(lost)?;
        let mut transaction = Transaction::begin(session.as_mut(), &LIMITS).await.map_err(lost)?;
        let step = self.add_slot_in(transaction.session(), ring, slots).await;
        match step {
            Ok(step @ Step::Added(_)) => transaction.commit().await.map(|()| step).map_err(lost),
            other => transaction.undo(other, lost).await,
        }
    }

    async fn add_slot_in(&self, session: &mut dyn Session, ring: RingKind, slots: u8) -> Result<Step, StoreError> {
        run(session, &self.sql, "install/take_turn", &[]).await?;
        let Some(found) = find(session, &self.sql, OPERATION).await? else {
            return Err(missing(OPERATION, &self.sql));
        };
        found.must_fit(&Sql::new(self.sql.schema(), found.rings), OPERATION)?;
        let of = Ring::from(ring);
        let has = found.rings.of(of);
        let added = match grow(has, slots) {
            Ok(mut added) => added.next(),
            Err(refusal) => return Ok(Step::Refused(refusal)),
        };
        let Some(slot) = added else { return Ok(Step::Enough(has)) };
        run(session, &self.sql, "install/become_owner", &[]).await?;
        let params = [Param::Text(of.name().into()), Param::I16(i16::from(slot))];
        run(session, &self.sql, "rings/add_slot", &params).await?;
        let grown = Sql::new(self.sql.schema(), found.rings.with(of, slot + 1));
        replace_objects(session, &grown, OPERATION).await?;
        run(session, &self.sql, "rings/grant_as_slot_0", &params[1..]).await?;
        record(session, &grown, OPERATION).await?;
        Ok(Step::Added(has))
    }
}

async fn run(
    session: &mut dyn Session,
    sql: &Sql,
    statement: &'static str,
    params: &[Param<'_>],
) -> Result<(), StoreError> {
    session.query(sql.statement(statement), params).await.map(drop).map_err(|error| error.into_store_error(OPERATION))
}
