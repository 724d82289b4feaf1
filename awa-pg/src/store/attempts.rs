//! What running attempts note down, and callbacks from outside.

use std::collections::{HashMap, HashSet};

use awa_core::attempt::{ClosureAnswer, Receipt};
use awa_core::callback::{CallbackAnswer, CallbackToken};
use awa_core::error::{StoreError, StoreErrorKind};
use awa_core::id::ReceiptId;
use awa_core::json::JsonText;
use awa_core::store::{AttemptNote, Callback, Memory, NoteAnswer};

use super::close::receipt;
use super::{PgStore, undecodable};
use crate::session::Statement;
use crate::value::{Param, Row};

const NOTE: &str = "note";
const RECALL: &str = "recall";
const RESUME: &str = "resume";
/// Attempts of one statement: each is locked until its end.
const MAX_ATTEMPTS: usize = 500;

/// A wish to park an attempt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parking {
    pub(super) receipt: Receipt,
    pub(super) timeout_us: i64,
}

impl PgStore {
    /// See [`Attempts::note`](awa_core::store::Attempts::note).
    pub async fn note(&self, notes: &[AttemptNote]) -> Result<Vec<NoteAnswer>, StoreError> {
        let mut answers = vec![NoteAnswer::Stale; notes.len()];
        let mut left: Vec<(usize, &AttemptNote)> = notes.iter().enumerate().collect();
        // Two notes of one attempt are written one after the other.
        while !left.is_empty() {
            let mut numbers = HashSet::with_capacity(left.len());
            let (now, later): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|(_, note)| numbers.insert(note.receipt.id));
            self.note_distinct(&now, &mut answers).await?;
            left = later;
        }
        Ok(answers)
    }

    async fn note_distinct(
        &self,
        notes: &[(usize, &AttemptNote)],
        answers: &mut [NoteAnswer],
    ) -> Result<(), StoreError> {
        let mut waiting: Vec<&[(usize, &AttemptNote)]> = notes.chunks(MAX_ATTEMPTS).rev().collect();
        while let Some(part) = waiting.pop() {
            match self.try_part(NOTE, self.sql.statement("attempts/note"), note_params(part)).await? {
                Some(rows) => {
                    let mut noted = HashMap::with_capacity(rows.len());
                    for row in &rows {
                        let id = receipt(row.i64(0).map_err(undecodable(NOTE))?)?;
                        noted.insert(id, row.opt_uuid(1).map_err(undecodable(NOTE))?.map(CallbackToken));
                    }
                    for (at, note) in part {
                        if let Some(callback) = noted.get(&note.receipt.id) {
                            answers[*at] = NoteAnswer::Noted { callback: *callback };
                        }
                    }
                }
                None if part.len() == 1 => answers[part[0].0] = NoteAnswer::Contended,
                None => {
                    let (first, second) = part.split_at(part.len() / 2);
                    waiting.extend([second, first]);
                }
            }
        }
        Ok(())
    }

    /// See [`Attempts::recall`](awa_core::store::Attempts::recall).
    pub async fn recall(&self, receipts: &[Receipt]) -> Result<Vec<Option<Memory>>, StoreError> {
        if receipts.is_empty() {
            return Ok(Vec::new());
        }
        let [claim_slots, nonces, numbers] = presented(receipts.iter());
        let jobs = Param::I64s(receipts.iter().map(|receipt| receipt.job.0).collect());
        let statement = self.sql.statement("attempts/recall");
        let rows = self.call(RECALL, statement, &[claim_slots, nonces, numbers, jobs]).await?;
        let read = |row: &Row| {
            let bad = undecodable(RECALL);
            let json = |column| row.opt_json_text(column).map(|json| json.map(JsonText::trusted)).map_err(&bad);
            let is_running = row.bool(0).map_err(&bad)?;
            Ok(if is_running { Some(Memory { progress: json(1)?, payload: json(2)? }) } else { None })
        };
        rows.iter().map(read).collect()
    }

    /// See [`Attempts::resume`](awa_core::store::Attempts::resume).
    pub async fn resume(&self, callbacks: &[Callback]) -> Result<Vec<CallbackAnswer>, StoreError> {
        let mut answers = vec![CallbackAnswer::Unknown; callbacks.len()];
        let ends = |start: usize| (start, (start + MAX_ATTEMPTS).min(callbacks.len()));
        let mut waiting: Vec<(usize, usize)> = (0..callbacks.len()).step_by(MAX_ATTEMPTS).rev().map(ends).collect();
        while let Some((start, end)) = waiting.pop() {
            let part = &callbacks[start..end];
            let tokens: Vec<u128> = part.iter().map(|callback| callback.token.0).collect();
            let payloads: Vec<Option<&str>> = part.iter().map(|callback| Some(callback.payload.as_str())).collect();
            let params = [Param::Uuids(tokens.into()), Param::opt_jsons(payloads)];
            match self.try_part(RESUME, self.sql.statement("attempts/resume"), params).await? {
                Some(rows) => {
                    for row in &rows {
                        let bad = undecodable(RESUME);
                        let position = usize::try_from(row.i32(0).map_err(&bad)? - 1).unwrap_or(usize::MAX);
                        if let Some(place) = answers[start..end].get_mut(position) {
                            *place = callback_answer(row.text(1).map_err(&bad)?)?;
                        }
                    }
                }
                None if part.len() == 1 => answers[start] = CallbackAnswer::Contended,
                None => {
                    let middle = start + part.len() / 2;
                    waiting.extend([(middle, end), (start, middle)]);
                }
            }
        }
        Ok(answers)
    }

    /// Parks attempts whose receipts differ in their number.
    pub(super) async fn park(
        &self,
        parkings: &[Parking],
        answers: &mut HashMap<ReceiptId, ClosureAnswer>,
    ) -> Result<(), StoreError> {
        let mut waiting: Vec<&[Parking]> = parkings.chunks(MAX_ATTEMPTS).collect();
        while let Some(part) = waiting.pop() {
            let [claim_slots, nonces, receipts] = presented(part.iter().map(|parking| &parking.receipt));
            let timeouts = Param::I64s(part.iter().map(|parking| parking.timeout_us).collect());
            let statement = self.sql.statement("attempts/park");
            match self.try_part("close", statement, [claim_slots, nonces, receipts, timeouts]).await? {
                Some(rows) => {
                    for row in &rows {
                        let id = receipt(row.i64(0).map_err(undecodable("close"))?)?;
                        answers.insert(id, ClosureAnswer::Closed);
                    }
                }
                None if part.len() == 1 => drop(answers.insert(part[0].receipt.id, ClosureAnswer::Contended)),
                None => {
                    let (first, second) = part.split_at(part.len() / 2);
                    waiting.extend([first, second]);
                }
            }
        }
        Ok(())
    }

    /// One statement with the clock as its last parameter; `None` when somebody is in the way of one of its items.
    async fn try_part<const N: usize>(
        &self,
        operation: &'static str,
        statement: &Statement,
        params: [Param<'_>; N],
    ) -> Result<Option<Vec<Row>>, StoreError> {
        let params: Vec<Param<'_>> = params.into_iter().chain([self.clock.param()]).collect();
        match self.try_call(statement, &params).await {
            Ok(rows) => Ok(Some(rows)),
            Err(error) if error.kind() == StoreErrorKind::Contended => Ok(None),
            Err(error) => Err(error.into_store_error(operation)),
        }
    }
}

/// Notes as the function `note_attempts` takes them.
fn note_params<'n>(notes: &[(usize, &'n AttemptNote)]) -> [Param<'n>; 5] {
    let [claim_slots, nonces, receipts] = presented(notes.iter().map(|(_, note)| &note.receipt));
    let progress: Vec<Option<&str>> =
        notes.iter().map(|(_, note)| note.progress.as_ref().map(JsonText::as_str)).collect();
    let tokens: Vec<Option<u128>> = notes.iter().map(|(_, note)| note.callback.map(|token| token.0)).collect();
    [claim_slots, nonces, receipts, Param::opt_jsons(progress), Param::OptUuids(tokens.into())]
}

/// What is checked of receipts, as parallel arrays.
fn presented<'r>(receipts: impl Iterator<Item = &'r Receipt> + Clone) -> [Param<'static>; 3] {
    [
        Param::I16s(receipts.clone().map(|receipt| i16::from(receipt.claim_slot.0)).collect()),
        Param::I64s(receipts.clone().map(|receipt| receipt.nonce.0).collect()),
        Param::I64s(receipts.map(|receipt| receipt.id.get()).collect()),
    ]
}

fn callback_answer(text: &str) -> Result<CallbackAnswer, StoreError> {
    Ok(match text {
        "resumed" => CallbackAnswer::Resumed,
        "kept" => CallbackAnswer::Kept,
        "unknown" => CallbackAnswer::Unknown,
        "used" => CallbackAnswer::AlreadyUsed,
        "expired" => CallbackAnswer::Expired,
        "over" => CallbackAnswer::AttemptOver,
        other => {
            let problem = format!("{other:?} is no answer to a callback; run `awa migrate` of this version");
            return Err(StoreError::new(StoreErrorKind::NotReady, RESUME, problem));
        }
    })
}
