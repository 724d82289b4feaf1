//! Input that Awa refuses: before anything is written, with the field named.

use std::fs;

use crate::awa::{Awa, migrated};

const HOSTILE: [&str; 6] = ["", "'; drop table x; --", "a\"b", "a\nb", "🦀", "a b"];

#[test]
fn hostile_names_are_refused_on_the_command_line() {
    let long = "q".repeat(201);
    for name in HOSTILE.into_iter().chain([long.as_str()]) {
        Awa::alone().run(["enqueue", "--queue", name, "--kind", "k", "--args", "1"]).failed(2, &["--queue"]);
        Awa::alone().run(["enqueue", "--queue", "q", "--kind", name, "--args", "1"]).failed(2, &["--kind"]);
        Awa::alone().run(["queues", "pause", name]).failed(2, &[]);
    }
}

#[test]
fn arguments_that_no_database_could_keep_are_refused_with_the_field_named() {
    let large = format!("\"{}\"", "x".repeat(1 << 20));
    for args in ["", "{", "{\"a\":}", "\"\\u0000\"", "\"\\ud800\""] {
        Awa::alone().run(["enqueue", "--queue", "q", "--kind", "k", "--args", args]).failed(2, &["args refused"]);
    }
    // The command line itself has a limit, so what is too large comes in a file.
    let line = format!("{{\"args\":{large}}}");
    let awa = Awa::alone();
    let ended = awa.run_with_input(["enqueue", "--queue", "q", "--kind", "k", "--file", "-"], line.as_bytes());
    ended.failed(1, &["line 1", "args refused", "1048576"]);
}

#[test]
fn numbers_and_moments_out_of_range_are_refused_with_their_flag() {
    for (flag, value) in [
        ("--priority", "0"),
        ("--priority", "5"),
        ("--priority", "-1"),
        ("--max-attempts", "0"),
        ("--max-attempts", "32768"),
        ("--delay", "10"),
        ("--delay", "-5s"),
        ("--run-at", "tomorrow"),
    ] {
        let flagged = format!("{flag}={value}");
        Awa::alone().run(["enqueue", "--queue", "q", "--kind", "k", "--args", "1", &flagged]).failed(2, &[flag]);
    }
    let before_1970 = ["enqueue", "--queue", "q", "--kind", "k", "--args", "1", "--run-at", "1969-01-01T00:00:00Z"];
    Awa::alone().run(before_1970).failed(2, &["run_at refused"]);
}

const FILE: &str = "{\"args\":1}\nnonsense\n{\"args\":2,\"priority\":9}\n\n{\"args\":3,\"kind\":\"other\"}\n";

#[test]
fn one_bad_line_refuses_the_file_before_anything_is_written() {
    let (awa, database) = migrated();
    let command = ["enqueue", "--queue", "q", "--kind", "k", "--file", "-", "--json"];
    let ended = awa.run_with_input(command, FILE.as_bytes()).failed(1, &["line 2", "line 3: priority", "--skip-bad"]);
    let answer = ended.json();
    assert_eq!((&answer["enqueued"], &answer["refused_lines"]), (&0.into(), &2.into()));
    assert_eq!(answer["refused"][1]["line"], 3);
    assert_eq!(answer["refused"][1]["field"], "priority");
    assert_eq!(awa.json(&["jobs", "list"])["jobs"].as_array().unwrap().len(), 0);
    drop(database);
}

#[test]
fn the_other_lines_are_enqueued_when_bad_ones_are_to_be_skipped() {
    let (awa, _database) = migrated();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.jsonl");
    fs::write(&path, FILE).unwrap();
    let file = path.to_str().unwrap();
    let answer = awa.json(&["enqueue", "--queue", "q", "--kind", "k", "--file", file, "--skip-bad"]);
    assert_eq!((&answer["enqueued"], &answer["refused_lines"]), (&2.into(), &2.into()));
    let jobs = awa.json(&["jobs", "list"]);
    let kinds: Vec<_> = jobs["jobs"].as_array().unwrap().iter().map(|job| (&job["kind"], &job["args"])).collect();
    assert_eq!(kinds, [(&"other".into(), &3.into()), (&"k".into(), &1.into())]);
}

#[test]
fn a_file_of_more_than_a_batch_is_enqueued_as_a_whole_and_in_order() {
    let (awa, _database) = migrated();
    let lines: Vec<String> = (0..2_500).map(|n| format!("{{\"args\":{n}}}\n")).collect();
    let command = ["enqueue", "--queue", "q", "--kind", "k", "--file", "-", "--json"];
    let answer = awa.run_with_input(command, lines.concat().as_bytes()).ok().json();
    let ids: Vec<i64> = answer["ids"].as_array().unwrap().iter().map(|id| id.as_i64().unwrap()).collect();
    assert_eq!(ids.len(), 2_500);
    assert!(ids.is_sorted());
    let last = awa.json(&["jobs", "get", &ids[2_499].to_string()]);
    assert_eq!(last["args"], 2_499);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    Awa::alone().run(["enqueue", "--queue", "q", "--kind", "k", "--file", "/nonexistent"]).failed(1, &["/nonexistent"]);
    Awa::alone().run(["enqueue", "--queue", "q", "--kind", "k", "--file", "/"]).failed(1, &["folder"]);
}

#[test]
fn a_program_that_is_not_there_is_found_out_before_any_job_fails() {
    let (awa, _database) = migrated();
    awa.run(["work", "--queue", "q", "--exec", "no-such-program"]).failed(1, &["no-such-program", "--exec"]);
}
