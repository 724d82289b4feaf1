//! What people and files hand to the command, fed with what comes. `BOLERO_RANDOM_TEST_TIME_MS` feeds each for longer.

use std::io::Cursor;

use awa_core::{JobKind, QueueName};
use bolero::check;

use crate::job_lines::{Defaults, JobLines};
use crate::length::{parse_length, parse_moment, parse_positive_length};
use crate::output::{one_line, printable};

/// The first microsecond of the year 0.
const YEAR_0: i64 = -62_167_219_200_000_000;

/// A text of these words and of single characters.
fn spelled(words: &[&str], bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut bytes = bytes.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            0..=239 => text.extend(words[usize::from(*byte) % words.len()].as_bytes()),
            _ => text.extend(bytes.next()),
        }
    }
    text
}

#[test]
fn every_line_of_jobs_is_a_job_or_is_named_with_its_number() {
    let words = [
        "{\"args\":",
        "{\"args\":{}",
        "\"queue\":\"a\"",
        "\"kind\":\"b\"",
        "\"priority\":",
        "\"run_at\":",
        "\"delay_s\":",
        "\"max_attempts\":",
        "\"metadata\":",
        "\"unique_key\":",
        "\"ordering_key\":",
        "\"1970-01-01T00:00:00Z\"",
        "1",
        "-1",
        "1e308",
        "0.5",
        "[]",
        "{}",
        "}",
        "\n",
        "\n",
        ",",
        "\"x\"",
        "null",
        " ",
        "\u{feff}",
        "\r",
        "\\u0000",
    ];
    let defaults = Defaults {
        queue: Some(QueueName::new("q").unwrap()),
        kind: Some(JobKind::new("k").unwrap()),
        ..Defaults::default()
    };
    check!().for_each(|bytes: &[u8]| {
        for text in [bytes.to_vec(), spelled(&words, bytes)] {
            let lines = text.split(|byte| *byte == b'\n').count() as u64;
            let mut last = 0;
            for outcome in JobLines::new(Cursor::new(&text), &defaults) {
                let number = match outcome.expect("memory is always read") {
                    Ok(job) => {
                        assert!(String::from_utf8_lossy(&text).contains(job.job.args().as_str()), "byte for byte");
                        job.line
                    }
                    Err(bad) => bad.line,
                };
                assert!(last < number && number <= lines, "each line once, in order");
                last = number;
            }
        }
    });
}

#[test]
fn lengths_and_moments_are_read_or_refused() {
    let words = [
        "1",
        "9",
        "0",
        "99999999999999999999",
        "s",
        "ms",
        "us",
        "h",
        "d",
        "y",
        "mo",
        "w",
        " ",
        "-",
        "+",
        ".",
        "P",
        "T",
        ":",
        "Z",
    ];
    check!().for_each(|bytes: &[u8]| {
        let text = spelled(&words, bytes);
        let text = String::from_utf8_lossy(&text);
        drop((parse_length(&text), parse_positive_length(&text)));
        for text in [text.to_string(), format!("2026-01-31T09:00:00{text}"), format!("{text}-01-31T09:00:00Z")] {
            // RFC 3339 knows no year before 0.
            if let Ok(moment) = parse_moment(&text)
                && moment.as_micros() >= YEAR_0
            {
                assert_eq!(parse_moment(&moment.to_string()), Ok(moment), "{text}");
            }
        }
    });
}

#[test]
fn no_text_of_a_job_steers_the_terminal() {
    check!().with_type::<(String, u8)>().for_each(|(text, width)| {
        let width = usize::from(*width);
        assert!(printable(text).chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
        let line = one_line(text, width);
        assert!(line.chars().all(|c| !c.is_control()) && line.chars().count() <= width.max(1), "{line:?}");
    });
}
