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
        let takes_one = |rest: u32| rest.checked_sub(1);
        if self.rest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, takes_one).is_ok() {
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

#[cfg(test)]
mod tests {
    use awa_core::{JobKind, JsonText, QueueName};

    use super::*;
    use crate::schema_name::SchemaName;
    use crate::session::scripted::ScriptedSession;
    use crate::sql::RingSizes;
    use crate::value::{Columns, Row};

    /// An answer of one number.
    fn number(number: i64) -> Vec<Row> {
        let columns = Columns::new([("number".to_owned(), types::INT8.oid())]);
        vec![Row::new(&columns, [Some(&number.to_be_bytes()[..])])]
    }

    fn nothing() -> Vec<Row> {
        Vec::new()
    }

    struct Asking {
        shortcut: Shortcut,
        sql: Sql,
        job: NewJob,
    }

    impl Asking {
        fn new() -> Self {
            let (queue, kind) = (QueueName::new("q").unwrap(), JobKind::new("k").unwrap());
            let job = NewJob::new(queue, kind, JsonText::new("args", "{}").unwrap());
            let sql = Sql::new(&SchemaName::default(), RingSizes { queue: 4, claim: 4, lease: 4 });
            Self { shortcut: Shortcut::default(), sql, job }
        }

        /// One call with these answers: the job, and for each statement its slot, `None` for a look at the ring.
        async fn store<const N: usize>(&self, answers: [Vec<Row>; N]) -> (Option<i64>, Vec<Option<u8>>) {
            let mut session = ScriptedSession::answering(answers.map(Ok));
            let stored = self.shortcut.store(&mut session, &self.sql, &Clock::Server, &self.job).await.unwrap();
            let put = |slot| &*self.sql.statement_for_slot("enqueue/put_in_slot_0", slot).unwrap().text;
            let slot = |text: &String| (0..4).find(|slot| put(*slot) == text);
            (stored.map(|stored| stored.id().get()), session.asked.iter().map(slot).collect())
        }
    }

    #[tokio::test]
    async fn it_follows_the_ring_and_looks_at_it_only_when_nothing_was_stored() {
        let asking = Asking::new();
        assert_eq!(asking.store([number(64)]).await, (None, vec![None]), "where the ring stands is not known yet");
        assert_eq!(asking.store([number(1)]).await, (Some(1), vec![Some(0)]));
        assert_eq!(asking.store([nothing(), number(129)]).await, (None, vec![Some(0), None]), "the ring has turned");
        assert_eq!(asking.store([number(2)]).await, (Some(2), vec![Some(1)]));
    }

    #[tokio::test]
    async fn where_it_is_of_no_use_it_costs_nothing_for_a_while() {
        // The ring has not turned; and it stands in a slot that has no statement here.
        for (pointer, first) in [(64, vec![Some(0), None]), (64 + 4, vec![None])] {
            let asking = Asking::new();
            asking.store([number(pointer)]).await;
            let answers = || if first.len() == 2 { [nothing(), number(pointer)] } else { [number(pointer), nothing()] };
            assert_eq!(asking.store(answers()).await, (None, first.clone()));
            for _ in 0..REST {
                assert_eq!(asking.store([]).await, (None, vec![]));
            }
            assert_eq!(asking.store(answers()).await, (None, first), "then it is tried again");
        }
    }
}
