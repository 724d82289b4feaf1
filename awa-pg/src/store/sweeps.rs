//! What the sweeps of rescue read and store: the pages and cursors of claims in both shapes.

use std::collections::BTreeMap;
use std::time::Duration;

use awa_core::error::StoreError;
use awa_core::id::{BatchId, JobId, Nonce, RunLease, Slot};
use awa_core::receipt::ReceiptSet;
use awa_core::retry::RetryPolicy;
use awa_core::store::RescueRequest;
use awa_core::sweep::{BatchKey, Evidence, LifeSigns, PageRequest, RowLocalKey, SweepCursor, SweepKind, Visited};
use awa_core::time::Timestamp;

use super::close::{receipt, receipts};
use super::consume::slot;
use super::rescue::OPERATION;
use super::undecodable;
use crate::value::{DecodeError, Param, Row, types};

/// One pass of one kind over one slot.
pub(super) struct Pass<'a> {
    pub(super) kind: SweepKind,
    pub(super) slot: Slot,
    pub(super) now: Timestamp,
    pub(super) request: &'a RescueRequest,
    pub(super) retry: &'a RetryPolicy,
}

impl Pass<'_> {
    /// The slot, as a parameter.
    fn slot(&self) -> Param<'static> {
        Param::I16(i16::from(self.slot.0))
    }
}

/// The sweeps of one slot, as stored.
pub(super) struct SlotCursors {
    pub(super) slot: Slot,
    pub(super) now: Timestamp,
    pub(super) stale: SweepCursor<BatchKey>,
    pub(super) deadline: SweepCursor<BatchKey>,
    /// Whether there are row-local claims.
    pub(super) has_rows: bool,
    pub(super) row_stale: SweepCursor<RowLocalKey>,
    pub(super) row_deadline: SweepCursor<RowLocalKey>,
}

impl SlotCursors {
    pub(super) fn read(row: &Row) -> Result<Self, DecodeError> {
        Ok(Self {
            slot: slot(row.i16(0)?),
            now: row.timestamp(1)?,
            stale: SweepCursor { at: BatchKey::read(row, 2)?, resume: BatchKey::read(row, 4)? },
            deadline: SweepCursor { at: BatchKey::read(row, 6)?, resume: BatchKey::read(row, 8)? },
            has_rows: row.bool(10)?,
            row_stale: SweepCursor { at: RowLocalKey::read(row, 11)?, resume: RowLocalKey::read(row, 14)? },
            row_deadline: SweepCursor { at: RowLocalKey::read(row, 17)?, resume: RowLocalKey::read(row, 20)? },
        })
    }
}

/// The open part of a claim that a sweep wants to end.
pub(super) struct Candidate {
    pub(super) nonce: Nonce,
    pub(super) open: ReceiptSet,
}

/// What a page of a sweep shows.
pub(super) struct Page<K> {
    pub(super) visited: Vec<Visited<K>>,
    pub(super) candidates: BTreeMap<K, Candidate>,
}

/// The claims of one shape, as the statements of its sweeps have them.
pub(super) trait Swept: Copy + Ord + Send + Sync {
    /// The statement that reads a page.
    fn page_statement(kind: SweepKind) -> &'static str;
    /// The statement that stores a cursor.
    fn move_statement(kind: SweepKind) -> &'static str;
    /// A key as parameters of these statements.
    fn key_params(key: Option<Self>) -> Vec<Param<'static>>;
    /// The parameters of the page statement.
    fn page_params(pass: &Pass<'_>, asked: &PageRequest<Self>) -> Vec<Param<'static>>;
    /// What the page statement returned.
    fn read_page(pass: &Pass<'_>, asked: &PageRequest<Self>, rows: &[Row]) -> Result<Page<Self>, StoreError>;
    /// A key in a row, from this column on.
    fn read(row: &Row, column: usize) -> Result<Option<Self>, DecodeError>;
}

impl Swept for BatchKey {
    fn page_statement(kind: SweepKind) -> &'static str {
        if kind == SweepKind::Stale { "rescue/stale_page" } else { "rescue/deadline_page" }
    }

    fn move_statement(kind: SweepKind) -> &'static str {
        if kind == SweepKind::Stale { "rescue/move_stale_cursor" } else { "rescue/move_deadline_cursor" }
    }

    fn key_params(key: Option<Self>) -> Vec<Param<'static>> {
        match key {
            Some(key) => vec![Param::Timestamp(key.at), Param::I64(key.batch.0)],
            None => vec![Param::Null(types::TIMESTAMPTZ), Param::Null(types::INT8)],
        }
    }

    fn page_params(pass: &Pass<'_>, asked: &PageRequest<Self>) -> Vec<Param<'static>> {
        let limit = limit(asked);
        if pass.kind == SweepKind::Stale {
            let after = Param::I64(asked.after.map_or(0, |key| key.batch.0));
            let through = asked.through.map_or(Param::Null(types::INT8), |key| Param::I64(key.batch.0));
            return vec![pass.slot(), after, through, limit];
        }
        let mut params = vec![pass.slot()];
        params.extend(Self::key_params(asked.after));
        params.extend(Self::key_params(asked.through));
        params.extend([limit, Param::Timestamp(pass.now)]);
        params
    }

    /// Compact claims are visited in the order of their batch ids, which is the order of their claims but for calls that
    /// overlapped; the time of a key is carried along so that keys ascend as ids do.
    fn read_page(pass: &Pass<'_>, asked: &PageRequest<Self>, rows: &[Row]) -> Result<Page<Self>, StoreError> {
        let mut latest = asked.after.map_or(Timestamp::from_micros(i64::MIN), |key| key.at);
        let mut page = Page { visited: Vec::with_capacity(rows.len()), candidates: BTreeMap::new() };
        for row in rows {
            let bad = undecodable(OPERATION);
            let moment = row.timestamp(2).map_err(&bad)?;
            latest = latest.max(moment);
            // A page is bounded by ids; a claim that overlapped others may have a smaller id and a later time.
            latest = asked.through.map_or(latest, |through| latest.min(through.at));
            let key = Self { at: latest, batch: BatchId(row.i64(0).map_err(&bad)?) };
            let nonce = Nonce(row.i64(1).map_err(&bad)?);
            let open = receipts(row.text(3).map_err(&bad)?)?;
            let is_gone = if pass.kind == SweepKind::Stale { Gone::read(pass, row, moment, 4)? } else { Gone::UNASKED };
            page.add(key, is_gone, Candidate { nonce, open });
        }
        Ok(page)
    }

    fn read(row: &Row, column: usize) -> Result<Option<Self>, DecodeError> {
        Ok(match (row.opt_timestamp(column)?, row.opt_i64(column + 1)?) {
            (Some(at), Some(batch)) => Some(Self { at, batch: BatchId(batch) }),
            _ => None,
        })
    }
}

impl Swept for RowLocalKey {
    fn page_statement(kind: SweepKind) -> &'static str {
        if kind == SweepKind::Stale { "rescue/stale_rows" } else { "rescue/deadline_rows" }
    }

    fn move_statement(kind: SweepKind) -> &'static str {
        if kind == SweepKind::Stale { "rescue/move_row_stale_cursor" } else { "rescue/move_row_deadline_cursor" }
    }

    fn key_params(key: Option<Self>) -> Vec<Param<'static>> {
        match key {
            Some(key) => vec![Param::Timestamp(key.at), Param::I64(key.job.0), Param::I64(key.run_lease.0)],
            None => vec![Param::Null(types::TIMESTAMPTZ), Param::Null(types::INT8), Param::Null(types::INT8)],
        }
    }

    fn page_params(pass: &Pass<'_>, asked: &PageRequest<Self>) -> Vec<Param<'static>> {
        let mut params = vec![pass.slot()];
        params.extend(Self::key_params(asked.after));
        params.extend(Self::key_params(asked.through));
        params.push(limit(asked));
        if pass.kind == SweepKind::Deadline {
            params.push(Param::Timestamp(pass.now));
        }
        params
    }

    fn read_page(pass: &Pass<'_>, _: &PageRequest<Self>, rows: &[Row]) -> Result<Page<Self>, StoreError> {
        let mut page = Page { visited: Vec::with_capacity(rows.len()), candidates: BTreeMap::new() };
        for row in rows {
            let bad = undecodable(OPERATION);
            let id = receipt(row.i64(0).map_err(&bad)?)?;
            let at = row.timestamp(4).map_err(&bad)?;
            let job = JobId(row.i64(1).map_err(&bad)?);
            let key = Self { at, job, run_lease: RunLease(row.i64(2).map_err(&bad)?) };
            let nonce = Nonce(row.i64(3).map_err(&bad)?);
            let is_closed = row.bool(5).map_err(&bad)?;
            let is_gone = if pass.kind == SweepKind::Stale { Gone::read(pass, row, at, 6)? } else { Gone::UNASKED };
            page.add(key, is_gone, Candidate { nonce, open: (!is_closed).then_some(id).into_iter().collect() });
        }
        Ok(page)
    }

    fn read(row: &Row, column: usize) -> Result<Option<Self>, DecodeError> {
        Ok(match (row.opt_timestamp(column)?, row.opt_i64(column + 1)?, row.opt_i64(column + 2)?) {
            (Some(at), Some(job), Some(lease)) => Some(Self { at, job: JobId(job), run_lease: RunLease(lease) }),
            _ => None,
        })
    }
}

/// What a stale sweep wants to know of the worker of a claim.
#[derive(Clone, Copy)]
struct Gone {
    too_new: bool,
    is_alive: bool,
}

impl Gone {
    /// For a deadline it does not matter.
    const UNASKED: Self = Self { too_new: false, is_alive: false };

    /// From the last beat of the instance in `column`, whether it has withdrawn since in the next one, and the staleness
    /// time that it asked for in the one after.
    fn read(pass: &Pass<'_>, row: &Row, claimed_at: Timestamp, column: usize) -> Result<Self, StoreError> {
        let bad = undecodable(OPERATION);
        if row.bool(column + 1).map_err(&bad)? {
            return Ok(Self::UNASKED);
        }
        let instance_seen_at = row.opt_timestamp(column).map_err(&bad)?;
        let signs = LifeSigns { claimed_at, instance_seen_at, attempt_seen_at: None };
        let staleness = patience(row, column + 2, pass.request)?;
        Ok(Self { too_new: pass.now.since(claimed_at) < staleness, is_alive: !signs.is_stale(pass.now, staleness) })
    }
}

/// How long a silence must last: as long as the rescuer says, or longer where the process asked for it.
pub(super) fn patience(row: &Row, column: usize, request: &RescueRequest) -> Result<Duration, StoreError> {
    let asked = row.opt_i64(column).map_err(undecodable(OPERATION))?.unwrap_or(0);
    Ok(request.staleness.max(Duration::from_micros(asked.unsigned_abs())))
}

impl<K: Ord + Copy> Page<K> {
    fn add(&mut self, key: K, gone: Gone, candidate: Candidate) {
        let evidence = if candidate.open.is_empty() {
            Evidence::Closed
        } else if gone.is_alive {
            Evidence::Alive
        } else {
            Evidence::Open
        };
        self.visited.push(Visited { key, too_new: gone.too_new, evidence });
        self.candidates.insert(key, candidate);
    }
}

fn limit<K>(asked: &PageRequest<K>) -> Param<'static> {
    Param::I64(i64::try_from(asked.limit).unwrap_or(i64::MAX))
}
