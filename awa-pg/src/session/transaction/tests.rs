use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::session::Statement;
use crate::session::scripted::ScriptedSession;

/// Runs a future over a scripted session, which never waits.
fn run<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a scripted session answers at once"),
    }
}

fn insert() -> Statement {
    Statement { name: "test/insert", text: "INSERT".into() }
}

const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
                     SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL jit = off; \
                     SET LOCAL idle_in_transaction_session_timeout = 5000; SET LOCAL statement_timeout = 30000";

#[test]
fn a_transaction_begins_with_its_limits_in_one_round_trip() {
    assert_eq!(TransactionLimits::default().begin_script(), BEGIN);
    let limits = TransactionLimits { lock: Some(Duration::from_millis(50)), ..TransactionLimits::default() };
    assert_eq!(limits.begin_script(), format!("{BEGIN}; SET LOCAL lock_timeout = 50"));
}

#[test]
fn no_length_is_sent_as_zero_which_would_mean_no_limit() {
    for (length, sent) in [
        (Duration::ZERO, 1),
        (Duration::from_nanos(1), 1),
        (Duration::from_millis(7), 7),
        (Duration::from_micros(7_001), 8),
        (Duration::MAX, i32::MAX),
    ] {
        assert_eq!(millis(length), sent, "{length:?}");
    }
}

#[test]
fn success_commits_only_when_the_transaction_is_not_aborted() {
    let mut session = ScriptedSession::default();
    let outcome = run(async {
        let mut transaction = Transaction::begin(&mut session, &TransactionLimits::default()).await?;
        let rows = transaction.session().query(&insert(), &[]).await;
        transaction.finish(rows, std::convert::identity).await
    });
    assert_eq!(outcome.unwrap().len(), 0);
    assert_eq!(session.asked, [BEGIN, "INSERT", "SELECT 1; COMMIT"]);
    assert!(!session.abandoned);
}

#[test]
fn an_error_rolls_back_and_is_returned() {
    let refused = || PgError::from_server("23505", "duplicate");
    let mut session = ScriptedSession::answering([Ok(Vec::new()), Err(refused())]);
    let outcome = run(async {
        let mut transaction = Transaction::begin(&mut session, &TransactionLimits::default()).await?;
        let rows = transaction.session().query(&insert(), &[]).await;
        transaction.finish(rows, std::convert::identity).await
    });
    assert_eq!(outcome.unwrap_err().sqlstate(), Some("23505"));
    assert_eq!(session.asked, [BEGIN, "INSERT", "ROLLBACK"]);
    assert!(!session.abandoned);
}

#[test]
fn a_session_whose_transaction_did_not_end_is_abandoned() {
    let lost = || PgError::connection_lost("broken pipe");
    let limits = TransactionLimits::default();

    let mut dropped = ScriptedSession::default();
    drop(run(Transaction::begin(&mut dropped, &limits)));
    assert!(dropped.abandoned);

    let mut not_begun = ScriptedSession::answering([Err(lost())]);
    assert!(run(Transaction::begin(&mut not_begun, &limits)).is_err());
    assert!(not_begun.abandoned);

    let mut not_committed = ScriptedSession::answering([Ok(Vec::new()), Err(lost())]);
    assert!(run(async { Transaction::begin(&mut not_committed, &limits).await?.commit().await }).is_err());
    assert!(not_committed.abandoned);

    let mut not_rolled_back = ScriptedSession::answering([Ok(Vec::new()), Err(lost())]);
    let outcome = run(async {
        let transaction = Transaction::begin(&mut not_rolled_back, &limits).await?;
        transaction.finish(Err::<(), _>(PgError::from_driver("the first error")), std::convert::identity).await
    });
    assert_eq!(outcome.unwrap_err().message(), "the first error");
    assert!(not_rolled_back.abandoned);
}
