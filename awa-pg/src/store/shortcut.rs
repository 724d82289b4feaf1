//! Plain single jobs, written by a prepared statement instead of by a function.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use awa_core::error::StoreError;
use awa_core::id::JobId;
use awa_core::job::{Enqueued, NewJob};

use super::{Clock, only_row, undecodable};
use crate::session::{PgError, Session};
use crate::sql::Sql;
use crate::value::{Param, types};

const OPERATION: &str = "enqueue";
/// So many calls go to the functions after a job was not stored though the ring stands where it was thought to: its queue is not
/// plain, or the session is new.
const REST: u32 = 256;
/// No ring stands there.
const UNKNOWN: i64 = i64::MIN;

/// What is known of the ring.
#[derive(Debug)]
pub(super) struct Shortcut {
    /// Where it stood when somebody looked. The statement looks again behind its lock.
    pointer: AtomicI64,
    /// Calls that are still to be left to the functions.
    rest: AtomicU32,
}

impl Default for Shortcut {
    fn default() -> Self {
        Self { pointer: AtomicI64::new(UNKNOWN), rest: AtomicU32::new(0) }
    }
}

impl Shortcut {
    /// Stores a job [that goes with others](super::gather::Gathering::takes), if it can be. In a session outside of any
    /// transaction.
    pub(super) async fn store(
        &self,
        session: &mut dyn Session,
        sql: &Sql,
        clock: &Clock,
        job: &NewJob,
    ) -> Result<Option<Enqueued>, StoreError> {
        let lost = |error: PgError| error.into_store_error(OPERATION);
        // Two calls at a time may both take the last: nobody counts on it.
        let rest = self.rest.load(Ordering::Relaxed);
        if rest > 0 {
            self.rest.store(rest - 1, Ordering::Relaxed);
            return Ok(None);
        }
        let pointer = self.pointer.load(Ordering::Relaxed);
        let slot = u8::try_from(pointer & 63).expect("a slot is below 64");
        if pointer != UNKNOWN
            && let Some(statement) = sql.statement_for_slot("enqueue/put_in_slot_0", slot)
        {
            let params = [
                Param::Text(job.queue().as_str().into()),
                Param::I16(job.priority().get()),
                Param::Text(job.kind().as_str().into()),
                Param::json(job.args().as_str()),
                Param::I16(job.max_attempts().get()),
                job.metadata().map_or(Param::Null(types::JSON), |metadata| Param::json(metadata.as_str())),
                Param::I64(pointer),
                clock.param(),
            ];
            let rows = session.query(statement, &params).await.map_err(lost)?;
            if let Some(row) = rows.first() {
                let id = row.get(0).map_err(undecodable(OPERATION))?;
                return Ok(Some(Enqueued::Inserted(JobId(id))));
            }
        }
        let rows = session.query(sql.statement("enqueue/ring_pointer"), &[]).await.map_err(lost)?;
        let now = only_row(OPERATION, &rows)?.get(0).map_err(undecodable(OPERATION))?;
        if now == pointer {
            self.rest.store(REST, Ordering::Relaxed);
        }
        self.pointer.store(now, Ordering::Relaxed);
        Ok(None)
    }
}
