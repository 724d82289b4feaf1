//! Every parser and decoder of outside bytes, fed with what comes.
//!
//! As ordinary tests each is fed for a second; `BOLERO_RANDOM_TEST_TIME_MS` makes that longer, `BOLERO_RANDOM_SEED` replays one
//! input, and `cargo bolero test -p awa-tests --test fuzz NAME` lets a fuzzer look for them.

use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::frontier::{Frontier, RowKey, Snapshot};
use awa_core::id::Xid;
use awa_core::receipt::ReceiptSet;
use awa_core::retry::RetryPolicy;
use awa_core::{
    CallbackToken, JobId, JobKind, JobState, JsonText, NewJob, OrderingKey, QueueName, QueueSettings, ShardCount,
    Timestamp, UniqueBy,
};
use awa_pg::SchemaName;
use awa_pg::session::{PgError, without_passwords};
use awa_pg::value::{Columns, FromCell, IsNull, Param, PgType, Row, types};
use bolero::check;

/// A text of these words and of single characters: what a parser knows, in any order.
fn spelled(words: &[&str], bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut bytes = bytes.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            0..=239 => text.push_str(words[usize::from(*byte) % words.len()]),
            _ => text.push(char::from(bytes.next().copied().unwrap_or_default())),
        }
    }
    text
}

#[test]
fn snapshots_are_refused_or_come_back_as_the_same() {
    let words = ["1", "2", "9", "0", "10", ":", ":", ",", "18446744073709551615", "-", "+", " "];
    check!().for_each(|bytes: &[u8]| {
        let text = spelled(&words, bytes);
        for text in [text.clone(), format!("1:{text}"), format!("3:99:{text}")] {
            let Ok(snapshot) = text.parse::<Snapshot>() else { continue };
            assert_eq!(snapshot.to_string().parse::<Snapshot>(), Ok(snapshot.clone()), "{text}");
            assert!(snapshot.running().iter().all(|xid| snapshot.is_running(*xid) && !snapshot.sees(*xid)));
        }
    });
}

#[test]
fn stored_cursors_are_refused_or_keep_their_parts() {
    check!().with_type::<(u64, Vec<u64>, Vec<(u64, i64)>)>().for_each(|(xmax, running, parts)| {
        let below = |xid: u64| Xid(1 + xid % 32);
        let seen = Snapshot::of(Xid(2 + xmax % 32), running.iter().map(|xid| below(*xid)), None);
        let parts: Vec<_> = parts.iter().map(|(xid, job)| RowKey::new(below(*xid), JobId(*job))).collect();
        let Ok(frontier) = Frontier::from_stored(seen.clone(), parts.clone()) else { return };
        assert_eq!((frontier.seen(), frontier.parts().len()), (&seen, parts.len()));
        for part in parts {
            assert!(frontier.passed(part), "what was taken last is passed");
        }
    });
}

#[test]
fn receipt_sets_are_refused_or_come_back_letter_by_letter() {
    let words = [
        "{",
        "}",
        "[",
        ")",
        ",",
        "),[",
        "1",
        "2",
        "1025",
        "1026,1027",
        "2049,2050",
        "+",
        "-",
        "0",
        "9223372036854775807",
        "-170141183460469231731687303715884105728",
    ];
    check!().for_each(|bytes: &[u8]| {
        let text = spelled(&words, bytes);
        for text in [text.clone(), format!("{{[{text})}}"), format!("{{[1025,{text})}}"), format!("{{[{text},1030)}}")]
        {
            let Ok(set) = text.parse::<ReceiptSet>() else { continue };
            assert_eq!(set.to_string(), text);
            assert_eq!(set.len(), set.iter().count() as u64);
            assert_eq!(set.iter().collect::<ReceiptSet>(), set);
        }
    });
}

#[test]
fn names_and_tokens_are_refused_or_come_back_as_they_were() {
    check!().for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        for part in [text.as_ref(), text.get(..text.len().min(32)).unwrap_or_default()] {
            if let Ok(name) = QueueName::new(part) {
                assert_eq!((name.as_str(), part.parse()), (part, Ok(name.clone())));
                let json = serde_json::to_string(&name).unwrap();
                assert_eq!(serde_json::from_str::<QueueName>(&json).unwrap(), name);
            }
            if let Ok(kind) = JobKind::new(part) {
                assert_eq!(kind.as_str(), part);
            }
            if let Ok(state) = part.parse::<JobState>() {
                assert_eq!(state.to_string(), part);
            }
            if let Ok(key) = OrderingKey::new(part) {
                assert!(key.shard(ShardCount::MAX).get() < 64);
            }
            let token = part.parse::<CallbackToken>();
            assert!(token.is_err() || token.unwrap().to_string() == part.to_ascii_lowercase());
        }
        // Half of all texts of 32 such digits are refused by nobody.
        if let Some(bits) = bytes.first_chunk::<16>() {
            let digits = format!("{:032x}", u128::from_be_bytes(*bits));
            assert_eq!(digits.parse::<CallbackToken>().unwrap().to_string(), digits);
        }
    });
}

#[test]
fn a_schema_cannot_end_its_own_quotes() {
    check!().for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let Ok(schema) = SchemaName::new(text.as_ref()) else { return };
        assert_eq!(schema.as_str(), text);
        let (quoted, literal) = (schema.quoted(), schema.quoted_text());
        let inside = |text: &str, ends: char| {
            let first = text.find(ends).expect("there is a quote");
            text[first + 1..text.len() - 1].to_owned()
        };
        let is_quiet = |c: char| c.is_alphanumeric() || "_-. \\+".contains(c);
        for inside in [inside(&quoted, '"'), inside(&literal, '\'')] {
            assert!(inside.chars().all(is_quiet), "{inside}");
        }
    });
}

#[test]
fn json_is_refused_or_kept_and_compared_without_a_panic() {
    let words = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"a\"",
        "\"\"",
        "1",
        "0.5",
        "-0",
        "1e",
        "e999999999999999999",
        "9",
        "E-9",
        "null",
        "true",
        "\"\\u0000\"",
        "\"\\ud800\"",
        "\\",
        " ",
        "\n",
        "\"b\":",
        "[[[[[[",
        "]]]]]]",
        "\u{e9}",
        "\0",
    ];
    check!().for_each(|bytes: &[u8]| {
        let text = spelled(&words, bytes);
        for text in [text.clone(), format!("[{text}]"), format!("{{\"a\":{text}}}"), format!("-{text}")] {
            let Ok(json) = JsonText::new("args", text.as_str()) else { continue };
            assert_eq!(json.as_str(), text);
            serde_json::from_str::<&serde_json::value::RawValue>(&text).expect("what is accepted is JSON");
            let job = |text: &str| {
                let (queue, kind) = (QueueName::new("q").unwrap(), JobKind::new("k").unwrap());
                NewJob::new(queue, kind, JsonText::new("args", text).unwrap())
            };
            let by = UniqueBy::kind().and_args();
            let (one, other) = (by.key_of(&job(&text)), by.key_of(&job(&format!(" {text}\n"))));
            assert_eq!(one.is_ok(), other.is_ok(), "white space around {text:?} makes no difference");
            if let (Ok(one), Ok(other)) = (one, other) {
                assert_eq!(one.digest(), other.digest());
            }
            drop(UniqueBy::kind().and_fields(["a", "b"]).key_of(&job(&text)));
        }
        drop(serde_json::from_str::<QueueSettings>(&text));
    });
}

#[test]
fn error_texts_are_clean_and_short_and_stay_as_they_are() {
    check!().for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        for text in [text.to_string(), text.repeat(9)] {
            let kept = ErrorText::new(&text);
            assert!(kept.as_str().len() <= ErrorText::MAX_BYTES && !kept.as_str().contains('\0'));
            assert_eq!(ErrorText::new(kept.as_str()), kept);
        }
    });
}

#[test]
fn retries_wait_no_longer_than_they_may() {
    check!().with_type::<(u64, u64, f64, f64, u32, f64)>().for_each(|&(base, cap, factor, jitter, attempt, random)| {
        let Ok(policy) = RetryPolicy::exponential(Duration::from_micros(base), Duration::from_micros(cap)) else {
            return;
        };
        let policy = policy.with_factor(factor).unwrap_or(policy);
        let policy = policy.with_jitter(jitter).unwrap_or(policy);
        assert!(policy.delay(attempt, random) <= Duration::from_micros(cap));
    });
}

#[test]
fn passwords_do_not_get_into_messages() {
    let words = ["@", ":", "/", "://", "'", "\"", "password=", "%20", "a", "\\", "?", "&", "\u{e9}"];
    check!().for_each(|bytes: &[u8]| {
        let tail = spelled(&words, &bytes[..bytes.len().min(200)]);
        drop(PgError::from_server_words(&tail, Some(&tail)).into_store_error("claim"));
        if !tail.contains(char::is_whitespace) {
            let url = format!("at postgres://me:s3cr3t{tail}@host/db: refused");
            assert!(!without_passwords(&url).contains("s3cr3t"), "{url}");
        }
        let setting = format!("{tail} password=s3cr3t");
        assert!(!without_passwords(&setting).contains("s3cr3t"), "{setting}");
    });
}

fn row(pg_type: PgType, bytes: &[u8]) -> Row {
    Row::new(&Columns::new([("value".to_owned(), pg_type.oid())]), [Some(bytes)])
}

/// Reads a cell, writes what was read, and reads that.
fn echo<T>(cell: &Row)
where
    T: for<'row> FromCell<'row> + Clone + PartialEq + std::fmt::Debug,
    Param<'static>: From<T>,
{
    let Ok(value) = cell.get::<T>(0) else { return };
    let param = Param::from(value.clone());
    let mut bytes = Vec::new();
    assert_eq!(param.encode(&mut bytes), IsNull::No);
    let pg_type = PgType::by_oid(param.oid()).expect("what is sent is known");
    assert_eq!(row(pg_type, &bytes).get::<T>(0).unwrap(), value);
}

#[test]
fn cells_are_refused_or_written_back_as_they_were_read() {
    check!().with_type::<(u8, Vec<(bool, i32)>, Vec<u8>)>().for_each(|(of, words, bytes)| {
        let pg_type = types::ALL[usize::from(*of) % types::ALL.len()];
        // The head of an array, so that its readers get past it; then words that are small more often than not.
        let element = types::ALL[words.len() % types::ALL.len()].oid().cast_signed();
        let head = [1, 1, element, i32::try_from(words.len()).unwrap_or(i32::MAX), 1];
        let rest = words.iter().flat_map(|(small, word)| [if *small { word % 9 } else { *word }, *word]);
        let array: Vec<u8> = head.into_iter().chain(rest).flat_map(i32::to_be_bytes).collect();
        for cell in [row(pg_type, bytes), row(pg_type, &array)] {
            echo::<bool>(&cell);
            echo::<i16>(&cell);
            echo::<i32>(&cell);
            echo::<i64>(&cell);
            echo::<u128>(&cell);
            echo::<Timestamp>(&cell);
            echo::<Vec<bool>>(&cell);
            echo::<Vec<i16>>(&cell);
            echo::<Vec<i32>>(&cell);
            echo::<Vec<i64>>(&cell);
            echo::<Vec<Option<i64>>>(&cell);
            echo::<Vec<Option<i32>>>(&cell);
            drop((cell.text(0), cell.bytea(0), cell.json_text(0), cell.opt_texts(0), cell.opt_json_texts(0)));
            drop((cell.byteas(0), cell.uuids(0), cell.opt_timestamps(0), cell.f64(0)));
        }
    });
}
