//! Completing an attempt inside a transaction of the caller's.

use awa_core::attempt::{AttemptEnd, Receipt};
use awa_core::error::{NotCompleted, StoreErrorKind};
use awa_core::json::JsonText;
use awa_core::receipt::ReceiptSet;

use super::Clock;
use super::close::{Columns, ending};
use crate::session::{PgError, Session};
use crate::sql::Sql;
use crate::value::Param;

const OPERATION: &str = "complete_in";

/// Completes an attempt on a session, in the transaction that it is in: if and only if that commits, together with the rows of
/// the caller and the jobs that it enqueues there. The shared body of every driver's completion in the caller's own transaction.
///
/// The completion is fenced like any other (C3, C4): it succeeds only while the attempt is open, and from then on to the end of
/// the transaction nobody else can end the attempt; rescue, cancellation and other closers pass it over. When the transaction
/// is rolled back, the attempt is open as before. It delays no claim, no enqueue and no other attempt, however long the transaction
/// is open; a unique key that the job gives back is free when it commits.
///
/// # Errors
///
/// [`NotCompleted::Stale`] when the attempt has ended elsewhere: roll the transaction back, or its rows are written although somebody
/// else may run the job. [`NotCompleted::Contended`] when another open transaction is about to end it, and under REPEATABLE READ and
/// SERIALIZABLE when the snapshot cannot tell: roll back and run the transaction again. [`NotCompleted::Store`] as for every
/// call; like every error of PostgreSQL it leaves the transaction aborted.
pub async fn complete_on(
    session: &mut dyn Session,
    sql: &Sql,
    clock: &Clock,
    receipt: &Receipt,
    result: Option<&JsonText>,
) -> Result<(), NotCompleted> {
    let rows = match result {
        None => {
            let receipts = std::iter::once(receipt.id).collect::<ReceiptSet>().to_string();
            let params = [
                Param::I16s(vec![i16::from(receipt.claim_slot.0)].into()),
                Param::I64s(vec![receipt.id.batch().0].into()),
                Param::I64s(vec![receipt.nonce.0].into()),
                Param::Texts(vec![receipts.as_str()].into()),
                clock.param(),
            ];
            session.query(sql.statement("claims/complete"), &params).await
        }
        Some(result) => {
            let end = AttemptEnd::CompleteWith { result: result.clone() };
            let endings = [ending(*receipt, &end)?];
            let columns = Columns::of(&endings);
            session.query(sql.statement("claims/end"), &columns.params(&endings, clock)).await
        }
    };
    match rows {
        Ok(closed) if closed.is_empty() => Err(NotCompleted::Stale),
        Ok(_) => Ok(()),
        Err(error) => Err(not_completed(error)),
    }
}

fn not_completed(error: PgError) -> NotCompleted {
    if error.kind() == StoreErrorKind::Contended {
        NotCompleted::Contended
    } else {
        NotCompleted::Store(error.into_store_error(OPERATION))
    }
}
