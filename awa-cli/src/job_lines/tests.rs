use std::io::Cursor;
use std::time::Duration;

use awa_core::{JobKind, QueueName, RunAt, Timestamp};

use super::*;

fn defaults() -> Defaults {
    Defaults {
        queue: Some(QueueName::new("q").unwrap()),
        kind: Some(JobKind::new("k").unwrap()),
        ..Defaults::default()
    }
}

fn read_with(defaults: &Defaults, text: impl AsRef<[u8]>) -> Vec<Result<NumberedJob, BadLine>> {
    JobLines::new(Cursor::new(text), defaults).map(Result::unwrap).collect()
}

fn read(text: impl AsRef<[u8]>) -> Vec<Result<NumberedJob, BadLine>> {
    read_with(&defaults(), text)
}

fn one(text: &str) -> NewJob {
    let mut lines = read(text);
    assert_eq!(lines.len(), 1);
    lines.remove(0).unwrap().job
}

/// The field and the problem of the only line, which is bad.
fn refusal(text: impl AsRef<[u8]>) -> (String, String) {
    let bad = read(text).remove(0).unwrap_err();
    (bad.field, bad.problem)
}

#[test]
fn a_line_may_say_only_its_arguments() {
    let job = one(r#"{"args":{"b":1, "a":1e400}}"#);
    assert_eq!((job.queue().as_str(), job.kind().as_str()), ("q", "k"));
    assert_eq!(job.args().as_str(), r#"{"b":1, "a":1e400}"#);
    assert_eq!(job.run_at(), RunAt::Now);
    assert_eq!(one(r#"{"args":null}"#).args().as_str(), "null");
}

#[test]
fn a_line_may_say_everything_otherwise() {
    let job =
        one(r#" {"kind":"other","queue":"ü","priority":4,"delay_s":1.5,"max_attempts":3,"metadata":[ 1],"args":1} "#);
    assert_eq!((job.queue().as_str(), job.kind().as_str()), ("ü", "other"));
    assert_eq!((job.priority().get(), job.max_attempts().get()), (4, 3));
    assert_eq!(job.run_at(), RunAt::After(Duration::from_millis(1500)));
    assert_eq!(job.metadata().unwrap().as_str(), "[ 1]");
    let at = one(r#"{"args":1,"run_at":"1970-01-01T00:00:01Z"}"#);
    assert_eq!(at.run_at(), RunAt::At(Timestamp::from_micros(1_000_000)));
}

#[test]
fn a_line_may_have_a_key() {
    let job = one(r#"{"args":1,"unique_key":"order 7"}"#);
    assert_eq!(job.unique().unwrap().key, awa_core::UniqueBy::text("order 7").key_of(&job).unwrap());
    assert_eq!(one(r#"{"args":1}"#).unique(), None);
    for bad in
        [r#"{"args":1,"unique_key":""}"#, r#"{"args":1,"unique_key":"a\u0000b"}"#, r#"{"args":1,"unique_key":7}"#]
    {
        assert_eq!(refusal(bad).0, "unique_key", "{bad}");
    }
}

#[test]
fn a_line_may_have_an_ordering_key() {
    let job = one(r#"{"args":1,"ordering_key":"customer 7"}"#);
    assert_eq!(job.ordering_key(), Some(awa_core::OrderingKey::new("customer 7").unwrap()));
    assert_eq!(one(r#"{"args":1}"#).ordering_key(), None);
    for bad in [r#"{"args":1,"ordering_key":""}"#, r#"{"args":1,"ordering_key":7}"#] {
        assert_eq!(refusal(bad).0, "ordering_key", "{bad}");
    }
}

#[test]
fn a_line_wins_over_the_flags_also_in_when_it_runs() {
    let flags = Defaults { run_at: RunAt::After(Duration::from_secs(9)), ..defaults() };
    let lines = read_with(&flags, "{\"args\":1}\n{\"args\":1,\"delay_s\":0}");
    let run_at = |at: usize| lines[at].as_ref().unwrap().job.run_at();
    assert_eq!(run_at(0), RunAt::After(Duration::from_secs(9)));
    assert_eq!(run_at(1), RunAt::After(Duration::ZERO));
}

#[test]
fn lines_are_counted_from_one_and_blank_ones_passed_over() {
    let lines = read("\u{feff}{\"args\":1}\r\n\r\n  \n{\"args\":2}\nnonsense\n{\"args\":3}");
    let numbers: Vec<_> = lines.iter().map(|line| line.as_ref().map_or_else(|bad| bad.line, |job| job.line)).collect();
    assert_eq!(numbers, [1, 4, 5, 6]);
    assert!(lines[2].is_err());
}

#[test]
fn a_bad_line_names_its_field() {
    for (line, field, word) in [
        ("nonsense", "line", "not a JSON object"),
        ("[1]", "line", "not a JSON object"),
        ("{\"args\":1} x", "line", "not a JSON object"),
        ("{\"args\":{\"a\":}}", "line", "not a JSON object"),
        ("{}", "args", "missing"),
        ("{\"args\":\"\\u0000\"}", "args", "u0000"),
        ("{\"args\":\"\\ud800\"}", "args", "surrogate"),
        ("{\"args\":1,\"args\":2}", "args", "twice"),
        ("{\"args\":1,\"queue\":\"a b\"}", "queue", "not allowed"),
        ("{\"args\":1,\"queue\":5}", "queue", "invalid type"),
        ("{\"args\":1,\"queue\":\"\"}", "queue", "empty"),
        ("{\"args\":1,\"kind\":\"'; drop table x; --\"}", "kind", "not allowed"),
        ("{\"args\":1,\"priority\":9}", "priority", "outside"),
        ("{\"args\":1,\"priority\":\"1\"}", "priority", "invalid type"),
        ("{\"args\":1,\"priority\":99999999999}", "priority", "invalid value"),
        ("{\"args\":1,\"max_attempts\":0}", "max_attempts", "outside"),
        ("{\"args\":1,\"delay_s\":-1}", "delay_s", "from 0 on"),
        ("{\"args\":1,\"delay_s\":1e300}", "delay_s", "seconds"),
        ("{\"args\":1,\"delay_s\":1e18}", "delay_s", "1,000 years"),
        ("{\"args\":1,\"run_at\":\"tomorrow\"}", "run_at", "RFC 3339"),
        ("{\"args\":1,\"run_at\":\"1969-01-01T00:00:00Z\"}", "run_at", "1970"),
        ("{\"args\":1,\"run_at\":\"2026-01-01T00:00:00Z\",\"delay_s\":1}", "delay_s", "exclude"),
        ("{\"args\":1,\"metadata\":\"\\u0000\"}", "metadata", "u0000"),
        ("{\"args\":1,\"priorty\":1}", "priorty", "no such field"),
    ] {
        let (at, problem) = refusal(line);
        assert!(at == field && problem.contains(word), "{line}: {at}: {problem}");
    }
}

#[test]
fn a_line_needs_queue_and_kind_from_somewhere() {
    let nothing = Defaults::default();
    let bad = read_with(&nothing, "{\"args\":1}").remove(0).unwrap_err();
    assert_eq!(bad.field, "queue");
    assert!(bad.problem.contains("--queue"), "{}", bad.problem);
    assert!(read_with(&nothing, "{\"args\":1,\"queue\":\"q\",\"kind\":\"k\"}").remove(0).is_ok());
}

#[test]
fn bytes_that_are_not_text_are_a_bad_line_and_no_more() {
    let lines = read(b"{\"args\":\"\xff\"}\n{\"args\":1}\n");
    assert_eq!(lines[0].as_ref().unwrap_err().field, "line");
    assert!(lines[1].is_ok());
}

#[test]
fn a_line_without_end_is_passed_over_without_being_kept() {
    let mut text = vec![b'x'; MAX_LINE_BYTES * 3];
    text.extend_from_slice(b"\n{\"args\":1}\n");
    let lines = read(text);
    let bad = lines[0].as_ref().unwrap_err();
    assert!((bad.line, bad.field.as_str()) == (1, "line") && bad.problem.contains("more than"), "{bad:?}");
    assert_eq!(lines[1].as_ref().unwrap().line, 2);
    assert_eq!(lines.len(), 2);
}

#[test]
fn arguments_of_the_largest_size_fit_a_line_and_larger_ones_are_refused() {
    let line = |bytes: usize| format!("{{\"args\":\"{}\"}}", "x".repeat(bytes - 2));
    let limit = awa_core::json::DEFAULT_MAX_JSON_BYTES;
    assert!(read(line(limit)).remove(0).is_ok());
    let (field, problem) = refusal(line(limit + 1));
    assert!(field == "args" && problem.contains("limit"), "{problem}");
}

proptest::proptest! {
    #[test]
    fn no_input_stops_the_reader_and_every_line_has_its_number(
        lines in proptest::collection::vec("[^\r\n\u{feff}]{0,40}", 0..20),
    ) {
        let text = lines.join("\n");
        let numbered = (1..).zip(&lines);
        let filled: Vec<u64> =
            numbered.filter(|(_, line)| !line.trim_ascii().is_empty()).map(|(number, _)| number).collect();
        let read: Vec<u64> = read(&text)
            .iter()
            .map(|line| line.as_ref().map_or_else(|bad| bad.line, |job| job.line))
            .collect();
        proptest::prop_assert_eq!(read, filled);
    }
}
