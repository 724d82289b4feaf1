//! Gathering facts for the doctor. What is made of them is decided in [`awa_core::doctor`].

use std::time::{Duration, Instant};

use awa_core::doctor::{
    self, DeadRows, Facts, InstanceFacts, PreparedFacts, ReplicationSlotFacts, Report, RingFacts, SchemaFacts,
    SequenceFacts, SlotReport, SnapshotFacts, WakeupFacts, WorkFacts,
};
use awa_core::error::StoreError;
use awa_core::prune::PruneDecision;
use awa_core::ring::{self, DrainDecision, DrainFacts, DrainKeep, Pointer, RingKind, RotationPolicy, SlotState};
use awa_core::store::RetentionPolicy;

use super::clock::length_of;
use super::drain::unpassed_lanes;
use super::prune::Look;
use super::slots::{StoredRing, StoredSlot};
use super::wakeups::PgWakeups;
use super::{PgStore, only_row, undecodable};
use crate::session::{PgError, Session, Transaction, TransactionLimits};
use crate::sql::Sql;
use crate::value::{DecodeError, Param, Row};

const OPERATION: &str = "doctor";
/// Exact counts take their time.
const LIMITS: TransactionLimits = TransactionLimits {
    idle: Duration::from_secs(10),
    statement: Duration::from_mins(5),
    lock: Some(Duration::from_secs(10)),
};
/// At most so many lines about one kind of thing are read.
const MAX_ROWS: i64 = 100;
/// The queue that the doctor's wake-up is sent for; dispatchers of its bucket look once for nothing.
const QUEUE: &str = "awa doctor";
/// How often an announcement is tried that a producer's test of the bucket is in the way of.
const TRIES: usize = 20;

/// By which policies the workers keep the store in order: the doctor says what they would do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoctorOptions {
    /// When the queue ring moves on.
    pub queue_rotation: RotationPolicy,
    /// When the claim ring moves on.
    pub claim_rotation: RotationPolicy,
    /// When the lease ring moves on.
    pub lease_rotation: RotationPolicy,
    /// How long history is kept.
    pub retention: RetentionPolicy,
    /// How long to wait for the doctor's own wake-up.
    pub wakeup_patience: Duration,
}

impl PgStore {
    /// Looks at everything that can go wrong and says what to do about it. Changes nothing; a lock that it tries is given
    /// back at once. The counts are exact, so that a large backlog of overdue jobs takes time to count.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the server cannot be reached. A schema that is missing or does not fit is a finding.
    pub async fn doctor(&self, options: &DoctorOptions) -> Result<Report, StoreError> {
        Ok(doctor::examine(&self.doctor_facts(options).await?))
    }

    /// What [`Self::doctor`] judges.
    ///
    /// # Errors
    ///
    /// As [`Self::doctor`].
    pub async fn doctor_facts(&self, options: &DoctorOptions) -> Result<Facts, StoreError> {
        let lost = |error: PgError| error.into_store_error(OPERATION);
        let mut session = self.pool.session().await.map_err(lost)?;
        let schema = self.schema_facts(session.as_mut()).await?;
        // A transaction, because it closes the search path: nothing in it can stand in for what is meant.
        let mut transaction = Transaction::begin(session.as_mut(), &LIMITS).await.map_err(lost)?;
        let facts = self.standing_facts(transaction.session(), schema).await;
        let mut facts = transaction.undo(facts, lost).await?;
        if !matches!(facts.schema, SchemaFacts::Fits { .. }) {
            return Ok(facts);
        }
        if !facts.is_foreign_cluster {
            let sql = self.installed(OPERATION).await?;
            for ring in RingKind::ALL {
                facts.rings.push(self.ring_facts(session.as_mut(), &sql, ring, options).await?);
            }
        }
        drop(session);
        if let Some(wakeups) = self.wakeups() {
            facts.wakeups = self.round_trip(wakeups, options.wakeup_patience).await;
        }
        Ok(facts)
    }

    /// What can be read without asking the rings.
    async fn standing_facts(&self, session: &mut dyn Session, schema: SchemaFacts) -> Result<Facts, StoreError> {
        let (fixed, limit) = (&self.sql, [Param::I64(MAX_ROWS)]);
        let mut facts = Facts::of_schema(schema);
        facts.snapshots = read(session, fixed, "doctor/snapshots", &limit, snapshot).await?;
        facts.prepared = read(session, fixed, "doctor/prepared", &limit, prepared).await?;
        facts.replication_slots = read(session, fixed, "doctor/replication_slots", &limit, replication_slot).await?;
        facts.dead_rows = read(session, fixed, "doctor/dead_rows", &limit, dead_rows).await?;
        facts.sequences = read(session, fixed, "doctor/sequences", &[], sequence).await?;
        let SchemaFacts::Fits { server, .. } = &mut facts.schema else { return Ok(facts) };
        let cluster = read(session, fixed, "doctor/cluster", &[], |row| Ok((row.bool(0)?, row.text(1)?.to_owned())));
        for (is_foreign, version) in cluster.await? {
            facts.is_foreign_cluster = is_foreign;
            *server = version;
        }
        let now = self.clock.param();
        facts.work = read(session, fixed, "doctor/work", std::slice::from_ref(&now), work).await?.pop();
        let params = [now, Param::I64(MAX_ROWS)];
        facts.instances = read(session, fixed, "doctor/instances", &params, instance).await?;
        Ok(facts)
    }

    async fn ring_facts(
        &self,
        session: &mut dyn Session,
        sql: &Sql,
        ring: RingKind,
        options: &DoctorOptions,
    ) -> Result<RingFacts, StoreError> {
        let lost = |error: PgError| error.into_store_error(OPERATION);
        let stored = StoredRing::read(session, sql, &self.clock, ring, OPERATION).await?;
        let policy = match ring {
            RingKind::Queue => options.queue_rotation,
            RingKind::Claim => options.claim_rotation,
            RingKind::Lease => options.lease_rotation,
        };
        let rotation = stored.try_view().map(|view| (view.ledger(), ring::rotate(&view, &policy, &stored.open_slot())));
        // To find rows that wait, cursors are moved over cancelled ones; the doctor takes that back.
        let mut transaction = Transaction::begin(session, &TransactionLimits::default()).await.map_err(lost)?;
        let plan = self.plan(transaction.session(), sql, ring, &stored, &options.retention, Look::Everywhere).await;
        let plan = transaction.undo(plan, lost).await?;
        let mut slots = Vec::with_capacity(stored.slots.len());
        for slot in &stored.slots {
            let is_sealed = ring == RingKind::Queue && slot.state == SlotState::Sealed;
            let undrained = if is_sealed { self.undrained(session, sql, &stored, slot).await? } else { None };
            let decision = plan.iter().find(|planned| planned.facts.slot == slot.slot).map(|planned| planned.decision);
            slots.push(report(slot, undrained, decision));
        }
        Ok(RingFacts { ring, pointer: stored.pointer, rotation, slots })
    }

    /// Why a sealed slot of the queue ring would not be drained now.
    async fn undrained(
        &self,
        session: &mut dyn Session,
        sql: &Sql,
        stored: &StoredRing,
        slot: &StoredSlot,
    ) -> Result<Option<DrainKeep>, StoreError> {
        let lost = |error: PgError| error.into_store_error(OPERATION);
        let mut transaction = Transaction::begin(session, &TransactionLimits::default()).await.map_err(lost)?;
        let facts = drain_facts(transaction.session(), sql, stored, slot).await;
        Ok(match ring::drain(&transaction.undo(facts, lost).await?) {
            DrainDecision::Drain => None,
            DrainDecision::Keep(reason) => Some(reason),
        })
    }

    /// Announces a sleeper, wakes it as a producer would, and waits for the notification.
    async fn round_trip(&self, wakeups: &PgWakeups, patience: Duration) -> WakeupFacts {
        let heard = tokio::time::timeout(patience, self.wake_oneself(wakeups));
        match heard.await {
            Err(_) => WakeupFacts::Silent(patience),
            Ok(Err(error)) => WakeupFacts::Failed(error.to_string()),
            Ok(Ok(None)) => WakeupFacts::Failed("a producer was testing the bucket each time; try again".to_owned()),
            Ok(Ok(Some(after))) => WakeupFacts::Heard(after),
        }
    }

    async fn wake_oneself(&self, wakeups: &PgWakeups) -> Result<Option<Duration>, StoreError> {
        let lost = |error: PgError| error.into_store_error(OPERATION);
        let queues = [Param::Texts([QUEUE].as_slice().into())];
        let rows = self.call(OPERATION, self.sql.statement("wakeups/buckets"), &queues).await?;
        let row = only_row(OPERATION, &rows)?;
        let bad = undecodable(OPERATION);
        let (buckets, channel) = (row.i32s(0).map_err(&bad)?, row.text(1).map_err(&bad)?);
        let mut listener = wakeups.source().listen(channel).await.map_err(lost)?;
        let announce = self.sql.statement("wakeups/announce");
        let mut is_announced = false;
        for _ in 0..TRIES {
            let rows = listener
                .session()
                .query(announce, &[Param::I32s(buckets.iter().copied().collect())])
                .await
                .map_err(lost)?;
            is_announced = only_row(OPERATION, &rows)?.opt_i64(1).map_err(&bad)?.is_some();
            if is_announced {
                break;
            }
        }
        if !is_announced {
            return Ok(None);
        }
        let sent = Instant::now();
        self.call(OPERATION, self.sql.statement("doctor/wake"), &[Param::Text(QUEUE.into())]).await?;
        let mut told = String::new();
        // The caller's patience bounds the wait; notifications of other buckets are not for us.
        while !buckets.iter().any(|bucket| told == bucket.to_string()) {
            told = listener.next().await.map_err(lost)?;
        }
        Ok(Some(sent.elapsed()))
    }
}

async fn drain_facts(
    session: &mut dyn Session,
    sql: &Sql,
    stored: &StoredRing,
    slot: &StoredSlot,
) -> Result<DrainFacts, StoreError> {
    let params = [Param::I16(i16::from(slot.slot.0)), Param::Bool(false)];
    let locked = read(session, sql, "rings/try_lock_queue_slot", &params, |row| row.bool(0)).await?;
    Ok(DrainFacts {
        slot: slot.slot,
        state: slot.state,
        pointer: stored.pointer,
        writers_in_flight: locked != [true],
        has_unpassed_rows: unpassed_lanes(session, sql, slot.slot.0, OPERATION).await? > 0,
    })
}

fn report(slot: &StoredSlot, undrained: Option<DrainKeep>, decision: Option<PruneDecision>) -> SlotReport {
    SlotReport {
        slot: Pointer { generation: slot.generation, slot: slot.slot },
        state: slot.state,
        bytes: slot.bytes,
        age: slot.age,
        undrained,
        decision,
    }
}

/// Runs a statement and reads its rows.
async fn read<T>(
    session: &mut dyn Session,
    sql: &Sql,
    statement: &'static str,
    params: &[Param<'_>],
    row: impl Fn(&Row) -> Result<T, DecodeError>,
) -> Result<Vec<T>, StoreError> {
    let rows = session.query(sql.statement(statement), params).await;
    let rows = rows.map_err(|error| error.into_store_error(OPERATION))?;
    rows.iter().map(row).collect::<Result<_, _>>().map_err(undecodable(OPERATION))
}

fn snapshot(row: &Row) -> Result<SnapshotFacts, DecodeError> {
    let age = length_of(row.i64(3)?);
    Ok(SnapshotFacts { pid: row.i32(0)?, who: row.text(1)?.to_owned(), state: row.text(2)?.to_owned(), age })
}

fn prepared(row: &Row) -> Result<PreparedFacts, DecodeError> {
    Ok(PreparedFacts { gid: row.text(0)?.to_owned(), database: row.text(1)?.to_owned(), age: length_of(row.i64(2)?) })
}

fn replication_slot(row: &Row) -> Result<ReplicationSlotFacts, DecodeError> {
    Ok(ReplicationSlotFacts {
        name: row.text(0)?.to_owned(),
        is_active: row.bool(1)?,
        pinned_transactions: row.opt_i64(2)?.map(i64::unsigned_abs),
        log_bytes: row.i64(3)?.unsigned_abs(),
    })
}

fn dead_rows(row: &Row) -> Result<DeadRows, DecodeError> {
    Ok(DeadRows {
        table: row.text(0)?.to_owned(),
        is_ring: row.bool(1)?,
        live: row.i64(2)?.unsigned_abs(),
        dead: row.i64(3)?.unsigned_abs(),
    })
}

fn sequence(row: &Row) -> Result<SequenceFacts, DecodeError> {
    Ok(SequenceFacts { name: row.text(0)?.to_owned(), last: row.i64(1)?, max: row.i64(2)? })
}

fn work(row: &Row) -> Result<WorkFacts, DecodeError> {
    Ok(WorkFacts {
        dead: row.i64(0)?.unsigned_abs(),
        overdue: row.i64(1)?.unsigned_abs(),
        longest_overdue: length_of(row.i64(2)?),
        lane_hints: row.i64(3)?.unsigned_abs(),
        rings_tick_age: row.opt_i64(4)?.map(length_of),
        carried: row.i64(5)?.unsigned_abs(),
        leases: row.i64(6)?.unsigned_abs(),
        lost_cursors: row.i64(7)?.unsigned_abs(),
    })
}

fn instance(row: &Row) -> Result<InstanceFacts, DecodeError> {
    Ok(InstanceFacts { silent_for: length_of(row.i64(0)?), is_retired: row.bool(1)? })
}
