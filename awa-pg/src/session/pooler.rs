//! A session through a pooler that lends a server connection for one transaction at a time.

use async_trait::async_trait;

use super::{PgError, Session, Statement};
use crate::value::{Param, Row};

/// A session behind a pooler in transaction mode, such as `PgBouncer`'s.
///
/// Such a pooler may take another connection to the server after each transaction, and a driver that prepares a statement in
/// one round trip and runs it in the next would find it gone, or somebody else's in its place. So each statement outside of a
/// transaction gets a transaction of its own, which costs two more round trips. The session below must not keep prepared
/// statements under a name: names of different clients meet on one connection.
///
/// Dropped while the end of a transaction is not known, it abandons the session below.
#[derive(Debug)]
pub struct BehindPooler<S: Session> {
    session: S,
    is_inside: bool,
}

impl<S: Session> BehindPooler<S> {
    /// The same connection, which is outside of a transaction.
    pub fn new(session: S) -> Self {
        Self { session, is_inside: false }
    }
}

#[async_trait]
impl<S: Session> Session for BehindPooler<S> {
    async fn query(&mut self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<Row>, PgError> {
        if self.is_inside {
            return self.session.query(statement, params).await;
        }
        self.batch("BEGIN").await?;
        match self.session.query(statement, params).await {
            Ok(rows) => self.batch("COMMIT").await.map(|()| rows),
            Err(error) => {
                // A rollback that fails leaves the session inside, and with that abandoned.
                drop(self.batch("ROLLBACK").await);
                Err(error)
            }
        }
    }

    /// Scripts are Awa's own (see [`super::Transaction`]): one that begins a transaction begins with that word, one that ends
    /// it ends with that word.
    async fn batch(&mut self, sql: &str) -> Result<(), PgError> {
        let begins = sql.starts_with("BEGIN");
        self.is_inside |= begins;
        let outcome = self.session.batch(sql).await;
        if outcome.is_ok() && (sql.ends_with("COMMIT") || sql.ends_with("ROLLBACK")) {
            self.is_inside = false;
        }
        outcome
    }

    fn abandon(&mut self) {
        self.session.abandon();
    }
}

impl<S: Session> Drop for BehindPooler<S> {
    fn drop(&mut self) {
        if self.is_inside {
            self.session.abandon();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::session::scripted::ScriptedSession;
    use crate::session::{Transaction, TransactionLimits};

    fn run<F: Future>(future: F) -> F::Output {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("a scripted session answers at once"),
        }
    }

    fn claim() -> Statement {
        Statement { name: "test/claim", text: "CLAIM".into() }
    }

    /// A session whose use ends before what it was asked is looked at.
    struct Watched<'s>(&'s mut ScriptedSession);

    #[async_trait]
    impl Session for Watched<'_> {
        async fn query(&mut self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<Row>, PgError> {
            self.0.query(statement, params).await
        }

        async fn batch(&mut self, sql: &str) -> Result<(), PgError> {
            self.0.batch(sql).await
        }

        fn abandon(&mut self) {
            self.0.abandon();
        }
    }

    #[test]
    fn a_statement_outside_of_a_transaction_gets_one_of_its_own() {
        let mut below = ScriptedSession::default();
        run(BehindPooler::new(Watched(&mut below)).query(&claim(), &[])).unwrap();
        assert_eq!(below.asked, ["BEGIN", "CLAIM", "COMMIT"]);
        assert!(!below.abandoned);
    }

    #[test]
    fn statements_inside_of_a_transaction_are_left_alone() {
        let mut below = ScriptedSession::default();
        run(async {
            let mut session = BehindPooler::new(Watched(&mut below));
            let mut transaction = Transaction::begin(&mut session, &TransactionLimits::default()).await.unwrap();
            transaction.session().query(&claim(), &[]).await.unwrap();
            transaction.commit().await.unwrap();
            session.query(&claim(), &[]).await.unwrap();
        });
        assert_eq!(below.asked[1..], ["CLAIM", "SELECT 1; COMMIT", "BEGIN", "CLAIM", "COMMIT"]);
        assert!(!below.abandoned);
    }

    #[test]
    fn an_error_is_rolled_back_and_the_session_is_kept() {
        let mut below =
            ScriptedSession::answering([Ok(Vec::new()), Err(PgError::from_server("55P03", "somebody is in the way"))]);
        let error = run(BehindPooler::new(Watched(&mut below)).query(&claim(), &[])).unwrap_err();
        assert_eq!(error.sqlstate(), Some("55P03"));
        assert_eq!(below.asked, ["BEGIN", "CLAIM", "ROLLBACK"]);
        assert!(!below.abandoned);
    }

    #[test]
    fn a_commit_whose_outcome_is_unknown_ends_the_session() {
        let lost = || Err(PgError::connection_lost("reset by peer"));
        let mut below = ScriptedSession::answering([Ok(Vec::new()), Ok(Vec::new()), lost()]);
        assert!(run(BehindPooler::new(Watched(&mut below)).query(&claim(), &[])).is_err());
        assert!(below.abandoned);
    }
}
