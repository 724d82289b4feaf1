//! Ending attempts: plain completions by ranges, everything else one by one, each in one statement.

use std::collections::{BTreeMap, HashMap, HashSet};

use awa_core::attempt::{AttemptEnd, Closure, ClosureAnswer, Receipt};
use awa_core::error::{StoreError, StoreErrorKind};
use awa_core::id::{BatchId, Nonce, ReceiptId, Slot};
use awa_core::receipt::ReceiptSet;
use awa_core::sweep::RescueCause;

use super::attempts::Parking;
use super::clock::micros_of;
use super::{Clock, PgStore, undecodable};
use crate::session::PgError;
use crate::value::{List, Param, types};

const OPERATION: &str = "close";
/// Attempts of one statement that moves jobs.
const MAX_ENDINGS: usize = 1_000;

/// The numbers of the table `attempt_outcomes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i16)]
pub(super) enum Outcome {
    Completed = 1,
    Retried = 2,
    Snoozed = 3,
    Failed = 4,
    Cancelled = 5,
    Released = 6,
    StaleRescued = 7,
    DeadlineExpired = 8,
    CallbackTimedOut = 11,
}

impl Outcome {
    /// How an attempt is recorded that is ended by a rescuer.
    pub(super) fn of_rescue(cause: RescueCause) -> Self {
        match cause {
            RescueCause::DeadlineOver => Self::DeadlineExpired,
            RescueCause::NotCalled => Self::CallbackTimedOut,
            _ => Self::StaleRescued,
        }
    }
}

/// The ways to end an attempt, each a statement of its own.
enum Way {
    /// A plain completion.
    Plain,
    /// Parked.
    Park(Parking),
    /// Everything else.
    Other(Ending),
}

/// How one attempt ends, as the function `end_attempts` takes it.
#[derive(Debug, Clone)]
pub(super) struct Ending {
    pub(super) claim_slot: Slot,
    pub(super) nonce: Nonce,
    pub(super) receipt: ReceiptId,
    pub(super) outcome: Outcome,
    pub(super) route: &'static str,
    pub(super) delay_us: Option<i64>,
    pub(super) text: Option<String>,
    pub(super) result: Option<String>,
}

impl PgStore {
    /// See [`Consumer::close`](awa_core::store::Consumer::close).
    pub async fn close(&self, closures: &[Closure]) -> Result<Vec<ClosureAnswer>, StoreError> {
        // Of several closures of one attempt in one call, the first is the one that is carried out.
        let mut asked = HashSet::with_capacity(closures.len());
        let mut left = Vec::with_capacity(closures.len());
        for (index, closure) in closures.iter().enumerate() {
            if asked.insert(closure.receipt) {
                left.push((index, closure.receipt, way(closure)?));
            }
        }
        let mut answers = vec![ClosureAnswer::Stale; closures.len()];
        // After a failover that lost a claim, its number may have been handed out again. Two receipts of one number are
        // asked for one after the other: the answers name the number only.
        while !left.is_empty() {
            let mut numbers = HashSet::with_capacity(left.len());
            let (now, later): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|(_, receipt, _)| numbers.insert(receipt.id));
            self.close_distinct(now, &mut answers).await?;
            left = later;
        }
        Ok(answers)
    }

    /// Ends attempts whose receipts differ in their number; each comes with the place of its answer.
    async fn close_distinct(
        &self,
        closures: Vec<(usize, Receipt, Way)>,
        answers: &mut [ClosureAnswer],
    ) -> Result<(), StoreError> {
        let mut plain = BTreeMap::<(Slot, BatchId, Nonce), Vec<ReceiptId>>::new();
        let (mut others, mut parkings) = (Vec::new(), Vec::new());
        let mut places = Vec::with_capacity(closures.len());
        for (index, receipt, way) in closures {
            places.push((index, receipt.id));
            match way {
                Way::Other(ending) => others.push(ending),
                Way::Park(parking) => parkings.push(parking),
                Way::Plain => {
                    plain.entry((receipt.claim_slot, receipt.id.batch(), receipt.nonce)).or_default().push(receipt.id);
                }
            }
        }
        let mut by_number = HashMap::with_capacity(places.len());
        let plain: Vec<_> =
            plain.into_iter().map(|(key, ids)| (key, ids.into_iter().collect::<ReceiptSet>())).collect();
        let mut outcome = self.complete(&plain, &mut by_number).await;
        if outcome.is_ok() {
            outcome = self.end(&others, &mut by_number).await;
        }
        if outcome.is_ok() {
            outcome = self.park(&parkings, &mut by_number).await;
        }
        let mut unanswered = ClosureAnswer::Stale;
        if let Err(error) = outcome {
            if !by_number.values().any(|answer| *answer == ClosureAnswer::Closed) {
                return Err(error);
            }
            // Something was closed for good and must be answered so; the rest is asked for again.
            tracing::warn!(%error, "some attempts of a call could not be ended");
            unanswered = ClosureAnswer::Contended;
        }
        for (index, id) in places {
            answers[index] = by_number.remove(&id).unwrap_or(unanswered);
        }
        Ok(())
    }

    /// Ends whole batches or parts of them well, all in one statement; when somebody is in the way, in halves.
    async fn complete(
        &self,
        groups: &[((Slot, BatchId, Nonce), ReceiptSet)],
        answers: &mut HashMap<ReceiptId, ClosureAnswer>,
    ) -> Result<(), StoreError> {
        let mut waiting = vec![groups.to_vec()];
        while let Some(groups) = waiting.pop() {
            if groups.is_empty() {
                continue;
            }
            match self.try_complete(&groups).await {
                Ok(closed) => answers.extend(closed.into_iter().map(|id| (id, ClosureAnswer::Closed))),
                Err(Failed::Contended) => match halves(groups) {
                    Ok(halves) => waiting.extend(halves),
                    Err(id) => drop(answers.insert(id, ClosureAnswer::Contended)),
                },
                Err(Failed::Other(error)) => return Err(error),
            }
        }
        Ok(())
    }

    async fn try_complete(&self, groups: &[((Slot, BatchId, Nonce), ReceiptSet)]) -> Result<Vec<ReceiptId>, Failed> {
        let texts: Vec<String> = groups.iter().map(|(_, receipts)| receipts.to_string()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let params = [
            Param::I16s(groups.iter().map(|((slot, ..), _)| i16::from(slot.0)).collect()),
            Param::I64s(groups.iter().map(|((_, batch, _), _)| batch.0).collect()),
            Param::I64s(groups.iter().map(|((.., nonce), _)| nonce.0).collect()),
            Param::Texts(List::from(&texts)),
            self.clock.param(),
        ];
        let rows = self.try_call(self.sql.statement("claims/complete"), &params).await.map_err(Failed::of)?;
        let mut closed = Vec::new();
        for row in &rows {
            let text = row.text(1).map_err(undecodable(OPERATION)).map_err(Failed::Other)?;
            closed.extend(receipts(text).map_err(Failed::Other)?.iter());
        }
        Ok(closed)
    }

    /// Ends attempts in any other way, at most [`MAX_ENDINGS`] in one statement; when somebody is in the way or the server
    /// refuses one, in halves, so that one of them keeps no other back.
    ///
    /// # Errors
    ///
    /// The first failure, when all that could be ended was ended and answered; or at once when the server is away.
    pub(super) async fn end(
        &self,
        endings: &[Ending],
        answers: &mut HashMap<ReceiptId, ClosureAnswer>,
    ) -> Result<(), StoreError> {
        let mut waiting: Vec<&[Ending]> = endings.chunks(MAX_ENDINGS).collect();
        let mut first_failure = None;
        while let Some(endings) = waiting.pop() {
            match self.try_end(endings).await {
                Ok(closed) => answers.extend(closed.into_iter().map(|id| (id, ClosureAnswer::Closed))),
                Err(Failed::Other(error)) if error.is_transient() => return Err(error),
                Err(_) if endings.len() > 1 => {
                    let (left, right) = endings.split_at(endings.len() / 2);
                    waiting.extend([left, right]);
                }
                Err(Failed::Contended) => {
                    answers.insert(endings[0].receipt, ClosureAnswer::Contended);
                }
                Err(Failed::Other(error)) => {
                    first_failure.get_or_insert(error);
                }
            }
        }
        first_failure.map_or(Ok(()), Err)
    }

    async fn try_end(&self, endings: &[Ending]) -> Result<Vec<ReceiptId>, Failed> {
        let columns = Columns::of(endings);
        let params = columns.params(endings, &self.clock);
        let rows = self.try_call(self.sql.statement("claims/end"), &params).await.map_err(Failed::of)?;
        let read = |row: &crate::value::Row| row.i64(0).map_err(undecodable(OPERATION)).map_err(Failed::Other);
        rows.iter().map(|row| read(row).and_then(|raw| receipt(raw).map_err(Failed::Other))).collect()
    }
}

/// The texts of endings, as columns.
pub(super) struct Columns<'e> {
    routes: Vec<&'e str>,
    texts: Vec<Option<&'e str>>,
    results: Vec<Option<&'e str>>,
}

impl<'e> Columns<'e> {
    pub(super) fn of(endings: &'e [Ending]) -> Self {
        Self {
            routes: endings.iter().map(|ending| ending.route).collect(),
            texts: endings.iter().map(|ending| ending.text.as_deref()).collect(),
            results: endings.iter().map(|ending| ending.result.as_deref()).collect(),
        }
    }

    /// The parameters of the function `end_attempts`.
    pub(super) fn params(&self, endings: &[Ending], clock: &Clock) -> [Param<'_>; 9] {
        [
            Param::I16s(endings.iter().map(|ending| i16::from(ending.claim_slot.0)).collect()),
            Param::I64s(endings.iter().map(|ending| ending.nonce.0).collect()),
            Param::I64s(endings.iter().map(|ending| ending.receipt.get()).collect()),
            Param::I16s(endings.iter().map(|ending| ending.outcome as i16).collect()),
            Param::Texts(List::from(&self.routes)),
            Param::OptI64s(endings.iter().map(|ending| ending.delay_us).collect()),
            Param::OptTexts(List::from(&self.texts)),
            if self.results.iter().any(Option::is_some) {
                Param::opt_jsons(self.results.as_slice())
            } else {
                Param::Null(types::JSON_ARRAY)
            },
            clock.param(),
        ]
    }
}

/// Why a statement closed nothing.
enum Failed {
    /// Somebody is closing one of its attempts in an open transaction.
    Contended,
    /// Anything else.
    Other(StoreError),
}

impl Failed {
    fn of(error: PgError) -> Self {
        if error.kind() == StoreErrorKind::Contended {
            Self::Contended
        } else {
            Self::Other(error.into_store_error(OPERATION))
        }
    }
}

type Group = ((Slot, BatchId, Nonce), ReceiptSet);

/// The same work in two parts, or the one receipt that it consists of.
fn halves(groups: Vec<Group>) -> Result<[Vec<Group>; 2], ReceiptId> {
    if groups.len() > 1 {
        let mut left = groups;
        let right = left.split_off(left.len() / 2);
        return Ok([left, right]);
    }
    let [(key, receipts)] = <[Group; 1]>::try_from(groups).expect("there is one group");
    let ids: Vec<ReceiptId> = receipts.iter().collect();
    if let [id] = ids[..] {
        return Err(id);
    }
    let (left, right) = ids.split_at(ids.len() / 2);
    Ok([left, right].map(|part| vec![(key, part.iter().copied().collect())]))
}

fn way(closure: &Closure) -> Result<Way, StoreError> {
    match &closure.end {
        AttemptEnd::Complete => Ok(Way::Plain),
        AttemptEnd::Park { timeout } => {
            Ok(Way::Park(Parking { receipt: closure.receipt, timeout_us: micros_of(*timeout) }))
        }
        end => ending(closure.receipt, end).map(Way::Other),
    }
}

pub(super) fn ending(receipt: Receipt, end: &AttemptEnd) -> Result<Ending, StoreError> {
    let of = |outcome, route, delay_us, text: Option<&str>, result: Option<&str>| Ending {
        claim_slot: receipt.claim_slot,
        nonce: receipt.nonce,
        receipt: receipt.id,
        outcome,
        route,
        delay_us,
        text: text.map(str::to_owned),
        result: result.map(str::to_owned),
    };
    Ok(match end {
        AttemptEnd::Complete => of(Outcome::Completed, "completed", None, None, None),
        AttemptEnd::CompleteWith { result } => of(Outcome::Completed, "completed", None, None, Some(result.as_str())),
        AttemptEnd::Retry { delay, error } => {
            of(Outcome::Retried, "deferred", Some(micros_of(*delay)), Some(error.as_str()), None)
        }
        AttemptEnd::Snooze { delay } => of(Outcome::Snoozed, "deferred", Some(micros_of(*delay)), None, None),
        AttemptEnd::Release { delay } if delay.is_zero() => of(Outcome::Released, "carried", None, None, None),
        AttemptEnd::Release { delay } => of(Outcome::Released, "deferred", Some(micros_of(*delay)), None, None),
        AttemptEnd::Fail { error } => of(Outcome::Failed, "dead", None, Some(error.as_str()), None),
        AttemptEnd::Cancel { reason } => of(Outcome::Cancelled, "cancelled", None, Some(reason.as_str()), None),
        other => {
            return Err(StoreError::new(
                StoreErrorKind::Refused,
                OPERATION,
                format!("this store cannot end an attempt by {other:?}; nothing of the call was carried out"),
            ));
        }
    })
}

fn corrupt(what: String) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, OPERATION, what)
}

pub(super) fn receipt(raw: i64) -> Result<ReceiptId, StoreError> {
    ReceiptId::from_raw(raw).ok_or_else(|| corrupt(format!("{raw} is no receipt; nothing was guessed")))
}

pub(super) fn receipts(text: &str) -> Result<ReceiptSet, StoreError> {
    text.parse().map_err(|error| corrupt(format!("{error}; nothing was guessed")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema_name::SchemaName;
    use crate::sql::{RingSizes, Sql};

    /// The number and the name of every row that the migrations write into `attempt_outcomes`.
    fn stored(sql: &Sql) -> BTreeMap<i16, String> {
        let mut rows = BTreeMap::new();
        for migration in sql.migrations() {
            for rest in migration.text.split("attempt_outcomes (outcome, name) VALUES").skip(1) {
                for row in rest[..rest.find(';').unwrap()].split('(').skip(1) {
                    let (number, name) = row.split_once(',').unwrap();
                    let name =
                        name.trim().trim_end_matches([',', ')', '\n', ' ']).trim_end_matches(')').trim_matches('\'');
                    assert!(
                        rows.insert(number.trim().parse().unwrap(), name.to_owned()).is_none(),
                        "{number} is there twice"
                    );
                }
            }
        }
        rows
    }

    #[test]
    fn the_table_of_outcomes_has_every_number_that_is_written_and_no_other() {
        // A new one has to be put here to compile.
        let next = |outcome| match outcome {
            Outcome::Completed => Some(Outcome::Retried),
            Outcome::Retried => Some(Outcome::Snoozed),
            Outcome::Snoozed => Some(Outcome::Failed),
            Outcome::Failed => Some(Outcome::Cancelled),
            Outcome::Cancelled => Some(Outcome::Released),
            Outcome::Released => Some(Outcome::StaleRescued),
            Outcome::StaleRescued => Some(Outcome::DeadlineExpired),
            Outcome::DeadlineExpired => Some(Outcome::CallbackTimedOut),
            Outcome::CallbackTimedOut => None,
        };
        let sql = Sql::new(&SchemaName::default(), RingSizes::default());
        let mut rows = stored(&sql);
        for outcome in std::iter::successors(Some(Outcome::Completed), |outcome| next(*outcome)) {
            let name: String = format!("{outcome:?}")
                .chars()
                .flat_map(|c| c.is_ascii_uppercase().then_some('_').into_iter().chain([c.to_ascii_lowercase()]))
                .collect();
            assert_eq!(rows.remove(&(outcome as i16)).as_deref(), Some(&name[1..]));
        }
        // The rest is written by functions of the schema, as literals.
        for (number, name) in rows {
            let literal = format!("{number}::smallint");
            assert!(
                sql.objects().iter().any(|object| object.text.contains(&literal)),
                "nobody writes {number}, {name}"
            );
        }
    }
}
