use std::fmt;

use super::*;

#[test]
fn every_sqlstate_has_the_kind_that_tells_the_caller_what_to_do() {
    use StoreErrorKind::{Contended, Corrupt, Denied, Internal, NotReady, Refused, Unavailable};

    for (codes, kind) in [
        (&["08000", "08006", "57P01", "57P02", "57P03", "57P05", "25P03", "25P04", "25006", "40003"][..], Unavailable),
        (&["53000", "53100", "53200", "53300"], Unavailable),
        (&["40001", "40P01", "55P03", "57014"], Contended),
        (&["28000", "28P01", "42501"], Denied),
        (&["3D000", "3F000", "42P01", "42883", "42703", "AW001"], NotReady),
        (&["XX001", "XX002", "AW002"], Corrupt),
        (&["AW003", "22P02", "22P05", "23514", "25P02", "54000"], Refused),
        (&["XX000", "23505", "42601", "AW999", "P0001", ""], Internal),
    ] {
        for code in codes {
            assert_eq!(PgError::from_server(*code, "x").kind(), kind, "{code}");
        }
    }
    assert_eq!(PgError::connection_lost("x").kind(), Unavailable);
    assert_eq!(PgError::from_driver("x").kind(), Internal);
}

#[test]
fn a_session_is_over_when_it_is_lost_or_the_server_ends_it() {
    for code in ["57P01", "57P02", "08006", "25P03", "25P04"] {
        assert!(PgError::from_server(code, "x").ends_session(), "{code}");
    }
    assert!(PgError::connection_lost("x").ends_session());
    for code in ["57014", "40001", "53300", "25006", "25P02", "XX000"] {
        assert!(!PgError::from_server(code, "x").ends_session(), "{code}");
    }
    assert!(!PgError::from_driver("x").ends_session());
}

#[test]
fn a_store_error_is_one_sentence_with_the_next_step() {
    let missing = PgError::from_server("42P01", "relation \"awa.jobs\" does not exist").into_store_error("claim");
    assert_eq!(
        missing.to_string(),
        "claim failed: relation \"awa.jobs\" does not exist (SQLSTATE 42P01); run `awa migrate`"
    );
    assert_eq!(missing.operation(), "claim");
    assert!(missing.source().unwrap().is::<PgError>());

    let lost = PgError::connection_lost("Connection refused.").into_store_error("enqueue");
    assert!(lost.to_string().starts_with("enqueue failed: connection refused; check that PostgreSQL runs"), "{lost}");

    let tls = PgError::connection_lost("SSL is not enabled on the server").into_store_error("enqueue");
    assert!(tls.to_string().contains("failed: SSL is not enabled on the server;"), "{tls}");
}

#[test]
fn the_hint_of_a_function_of_awa_is_the_next_step() {
    let hint = "Run `awa repair` first.";
    let error = PgError::from_server("AW001", "the data come from another server").with_hint(Some(hint));
    assert_eq!(
        error.into_store_error("enqueue").to_string(),
        "enqueue failed: the data come from another server (SQLSTATE AW001); run `awa repair` first"
    );
    let foreign = PgError::from_server("42P01", "no table").with_hint(Some("perhaps you meant another"));
    assert!(foreign.into_store_error("claim").to_string().ends_with("run `awa migrate`"));
}

#[test]
fn data_of_a_row_stay_out_of_the_message() {
    let error = PgError::from_server("23505", "duplicate key value").with_detail(Some("Key (k)=(private) exists."));
    assert_eq!(error.detail(), Some("Key (k)=(private) exists."));
    assert!(!error.into_store_error("enqueue").to_string().contains("private"));
}

/// A driver's error that shows its URL where it is told to.
#[derive(Debug)]
struct DriverError {
    text: &'static str,
    _options: &'static str,
    cause: Option<Box<DriverError>>,
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

impl Error for DriverError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}

/// Everything that a log could print of an error.
fn printed(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error: &&(dyn Error + 'static)| (*error).source());
    causes.map(|error| format!("{error} {error:?} {error:#?}")).collect::<Vec<_>>().join("\n")
}

#[test]
fn no_password_appears_in_the_error_or_in_its_causes() {
    const URL: &str = "cannot reach postgres://me:secret@host/db";
    let plain = |text, options| DriverError { text, _options: options, cause: None };
    for source in [
        plain(URL, ""),
        plain("no url", "postgres://me:secret@host/db"),
        DriverError { text: "outer", _options: "", cause: Some(Box::new(plain(URL, ""))) },
    ] {
        let error = PgError::connection_lost(URL)
            .with_detail(Some(URL))
            .with_hint(Some(URL))
            .with_source(source)
            .into_store_error("claim");
        let printed = printed(&error);
        assert!(!printed.contains("secret"), "{printed}");
        assert!(printed.contains("postgres://me:***@host/db"), "{printed}");
    }
}

#[test]
fn a_cause_without_a_password_is_kept_as_it_is() {
    let source = DriverError { text: "timed out", _options: "", cause: None };
    let error = PgError::connection_lost("timed out").with_source(source);
    assert!(error.source().unwrap().is::<DriverError>());
}
