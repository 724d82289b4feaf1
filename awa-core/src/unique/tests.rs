use super::*;
use crate::json::JsonText;
use crate::name::{JobKind, QueueName};

fn job(args: &str) -> NewJob {
    let (queue, kind) = (QueueName::new("email").unwrap(), JobKind::new("send").unwrap());
    NewJob::new(queue, kind, JsonText::new("args", args).unwrap())
}

fn canonical_of(args: &str) -> String {
    canonical::write(args).unwrap()
}

fn by_args(args: &str) -> UniqueKey {
    UniqueBy::kind().and_args().key_of(&job(args)).unwrap()
}

fn digest_of(document: &str) -> [u8; 32] {
    Sha256::digest(document.as_bytes()).into()
}

#[test]
fn one_value_has_one_spelling() {
    for (spelling, canonical) in [
        ("1", "1"),
        ("1.0", "1"),
        ("10e-1", "1"),
        ("0.1E1", "1"),
        ("-0", "0"),
        ("0.000e9", "0"),
        ("-0.50", "-5e-1"),
        ("1500", "15e2"),
        ("1.5e+3", "15e2"),
        ("1e400", "1e400"),
        ("9007199254740993", "9007199254740993"),
        ("0.10000000000000000000001", "10000000000000000000001e-23"),
        (" [ ] ", "[]"),
        ("{ }", "{}"),
        ("[null, true ,false]", "[null,true,false]"),
        (r#"{"b":1,"a":{"d":2,"c":3}}"#, r#"{"a":{"c":3,"d":2},"b":1}"#),
        (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
        (r#""\u00e9\u0041\/\u001f\n""#, "\"éA/\\u001f\\n\""),
        (r#"{"é":1,"z":2,"Z":3}"#, r#"{"Z":3,"z":2,"é":1}"#),
    ] {
        assert_eq!(canonical_of(spelling), canonical, "{spelling}");
    }
}

#[test]
fn equal_arguments_have_equal_keys_and_others_have_not() {
    assert_eq!(by_args(r#"{"a":1,"b":[1.0,"\u00e9"]}"#), by_args(r#"{ "b": [1, "é"], "a": 1e0 }"#));
    let different = [
        "{}",
        "[]",
        "null",
        r#"{"a":null}"#,
        r#"{"a":1}"#,
        r#"{"a":"1"}"#,
        r#"{"a":true}"#,
        r#"{"a":[1]}"#,
        r#"{"a":{}}"#,
        r#"{"b":1}"#,
        r#"{"a":1,"b":1}"#,
        "\"e\u{301}\"",
        "\"\u{e9}\"",
        "[1,2]",
        "[2,1]",
        "[12]",
    ];
    let mut keys: Vec<_> = different.iter().map(|args| by_args(args)).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), different.len());
}

#[test]
fn a_key_is_the_digest_of_the_chosen_parts() {
    let job = job(r#"{"user":7,"trace":"x","at":null}"#);
    let hour = Duration::from_hours(1);
    for (by, document) in [
        (UniqueBy::kind(), r#"{"kind":"send"}"#),
        (UniqueBy::kind().and_queue(), r#"{"kind":"send","queue":"email"}"#),
        (UniqueBy::kind().and_args(), r#"{"args":{"at":null,"trace":"x","user":7},"kind":"send"}"#),
        (UniqueBy::kind().and_fields(["user", "absent"]), r#"{"args":{"user":7},"kind":"send"}"#),
        (UniqueBy::kind().and_fields(["at"]), r#"{"args":{"at":null},"kind":"send"}"#),
        (UniqueBy::text("order 7"), r#"{"text":"order 7"}"#),
        (UniqueBy::text("order 7").and_kind(), r#"{"kind":"send","text":"order 7"}"#),
        (UniqueBy::kind().per(hour), r#"{"kind":"send","period_us":36e8}"#),
    ] {
        assert_eq!(by.key_of(&job).unwrap().digest(), &digest_of(document), "{document}");
    }
}

/// These bytes are what other languages are held to; a change of them would let duplicates in while versions are mixed.
#[test]
fn keys_of_the_test_vectors_never_change() {
    let vectors = [
        (
            UniqueBy::text("order 7").key_of(&job("{}")).unwrap(),
            "3e4fbacda9eb8a93e998f8d8abeb6f3ef0273796004fa1583d69af708ff9dbd4",
        ),
        (
            by_args(r#"{"b":[1.0,"\u00e9",null],"a":{"y":1e2,"x":""}}"#),
            "a53bc82d950a7ddf9de19fc5f67d2c4fa6b5d608e28a713dfc3b0b7897ab5d71",
        ),
    ];
    for (key, expected) in vectors {
        assert_eq!(hex(key.digest()), expected);
    }
}

#[test]
fn what_cannot_make_a_key_is_refused() {
    let object = job("{}");
    let deep = job(&format!("{}{}", "[".repeat(200), "]".repeat(200)));
    let huge = job("[1e9999999999999999999]");
    for (by, job, word) in [
        (UniqueBy::default(), &object, "no part"),
        (UniqueBy::default().per(MIN_PERIOD), &object, "no part"),
        (UniqueBy::text(""), &object, "empty"),
        (UniqueBy::text("a\0b"), &object, "U+0000"),
        (UniqueBy::text("x".repeat(MAX_KEY_TEXT_BYTES + 1)), &object, "limit"),
        (UniqueBy::kind().per(Duration::ZERO), &object, "period"),
        (UniqueBy::kind().per(Duration::from_millis(1500)), &object, "period"),
        (UniqueBy::kind().per(MAX_PERIOD + MIN_PERIOD), &object, "period"),
        (UniqueBy::kind().and_fields(Vec::<String>::new()), &object, "list"),
        (UniqueBy::kind().and_fields(["a"]), &job("[1]"), "object"),
        (UniqueBy::kind().and_args(), &deep, "compared"),
        (UniqueBy::kind().and_args(), &huge, "compared"),
    ] {
        let error = by.key_of(job).unwrap_err();
        assert!(error.field == "unique" && error.problem.contains(word), "{by:?}: {error}");
    }
}

#[test]
fn a_period_splits_a_key_at_fixed_borders() {
    let minute = Duration::from_mins(1);
    let key = UniqueBy::kind().per(minute).key_of(&job("{}")).unwrap();
    let at = |seconds: i64| key.at(Timestamp::from_micros(seconds * 1_000_000));
    assert_eq!(at(60), at(119));
    assert_ne!(at(59), at(61));
    assert_eq!((at(0).as_bytes().len(), &at(120).as_bytes()[32..]), (40, &2_i64.to_be_bytes()[..]));
    let plain = UniqueBy::kind().key_of(&job("{}")).unwrap();
    assert_eq!(plain.at(Timestamp::EPOCH).as_bytes(), plain.digest());
    let other = UniqueBy::kind().per(minute * 2).key_of(&job("{}")).unwrap();
    assert_ne!(other.at(Timestamp::EPOCH), key.at(Timestamp::EPOCH), "periods of different length do not collide");
}

#[test]
fn finished_states_hold_no_key_unless_asked_for() {
    let held: Vec<_> = JobState::ALL.into_iter().filter(|state| KeyStates::default().contains(*state)).collect();
    assert_eq!(held, [JobState::Ready, JobState::Running, JobState::Deferred, JobState::Waiting]);
    assert!(KeyStates::UNTIL_RESOLVED.contains(JobState::Dead));
}

#[test]
fn sets_that_cannot_be_kept_are_refused() {
    use JobState::{Completed, Dead, Deferred, Ready, Running, Waiting};
    assert_eq!(KeyStates::new(&[Deferred, Ready]), Ok(KeyStates::UNTIL_CLAIMED));
    assert_eq!(KeyStates::new(&[Ready, Ready, Running, Waiting, Deferred]), Ok(KeyStates::UNFINISHED));
    let bad: [&[JobState]; 5] = [
        &[],
        &[Ready],
        &[Ready, Deferred, Running],
        &[Ready, Deferred, Dead],
        &[Ready, Deferred, Running, Waiting, Completed],
    ];
    for states in bad {
        assert_eq!(KeyStates::new(states).unwrap_err().field, "unique", "{states:?}");
    }
}
