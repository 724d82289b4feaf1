//! The whole way of jobs through the program: enqueued, run by a shell, looked at, cancelled, retried, held back.

use std::fs;

use serde_json::{Value, json};

use crate::awa::{Awa, migrated};

fn enqueue(awa: &Awa, kind: &str, args: &str, more: &[&str]) -> String {
    let answer = awa.json(&[&["enqueue", "--queue", "q", "--kind", kind, "--args", args][..], more].concat());
    answer["ids"][0].as_i64().unwrap().to_string()
}

fn in_state(state: &'static str) -> impl Fn(&Value) -> bool {
    move |job| job["state"] == state
}

/// A shell script as a program of `awa work`.
fn work<'a>(script: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["work", "--queue", "q", "--json"][..], more, &["--exec", "sh", "-c", script]].concat()
}

#[test]
fn a_program_gets_the_job_on_its_input_and_its_output_is_the_result() {
    let (awa, _database) = migrated();
    let id = enqueue(&awa, "echo", "{\"b\":1.500, \"a\":12345678901234567890}", &["--priority", "1"]);
    let worker = awa.start(work("cat", &[]));
    let job = awa.json_until(&["jobs", "get", &id], in_state("completed"));
    let seen = &job["result"];
    assert_eq!(seen["id"].to_string(), id);
    let printed = awa.run(["jobs", "get", &id, "--json"]).ok().stdout;
    let to_the_byte = r#""args":{"b":1.500, "a":12345678901234567890},"#;
    assert_eq!(printed.matches(to_the_byte).count(), 2, "as the arguments and inside the result: {printed}");
    assert_eq!((&seen["queue"], &seen["kind"], &seen["priority"]), (&json!("q"), &json!("echo"), &json!(1)));
    assert_eq!((&seen["attempt"], &seen["max_attempts"], &seen["metadata"]), (&json!(1), &json!(25), &Value::Null));
    let ended = worker.stop().ok().json();
    assert_eq!((&ended["completed"], &ended["abandoned"]), (&json!(1), &json!([])));
}

#[test]
fn the_exit_code_decides_and_standard_error_says_why() {
    let (awa, _database) = migrated();
    let text = enqueue(&awa, "text", "1", &[]);
    let silent = enqueue(&awa, "silent", "1", &[]);
    let fails = enqueue(&awa, "fails", "1", &["--max-attempts", "1"]);
    let again = enqueue(&awa, "again", "1", &[]);
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let script = format!(
        r#"job=$(cat)
        case $job in
        *'"kind":"text"'*) echo 'plain text' ;;
        *'"kind":"silent"'*) ;;
        *'"kind":"fails"'*) echo 'no such customer' >&2; exit 3 ;;
        *) [ -e '{0}' ] || {{ touch '{0}'; exit 1; }} ;;
        esac"#,
        mark.display()
    );
    let worker = awa.start(work(&script, &[]));
    let text = awa.json_until(&["jobs", "get", &text], in_state("completed"));
    assert_eq!(text["result"], "plain text");
    let silent = awa.json_until(&["jobs", "get", &silent], in_state("completed"));
    assert_eq!(silent["result"], Value::Null);
    let fails = awa.json_until(&["jobs", "get", &fails], |job| job["state"] == "dead" || job["state"] == "failed");
    assert_eq!(fails["error"], "the program exited with code 3: no such customer");
    let again = awa.json_until(&["jobs", "get", &again], in_state("completed"));
    assert_eq!(again["attempt"], 2);
    worker.stop().ok();
    assert!(fs::exists(&mark).unwrap());
}

#[test]
fn claims_are_recorded_in_the_shape_that_was_asked_for() {
    let (awa, database) = migrated();
    for (shape, rows, batches) in [("compact", "0", "1"), ("row-local", "1", "1")] {
        let id = enqueue(&awa, "k", "1", &[]);
        let worker = awa.start(work("cat >/dev/null", &["--claim-shape", shape]));
        awa.json_until(&["jobs", "get", &id], in_state("completed"));
        worker.stop().ok();
        for (table, expected) in [("lease_claims", rows), ("lease_claim_batches", batches)] {
            let counted = database.psql(&format!("SELECT count(*) FROM awa.{table}")).unwrap();
            assert_eq!(counted.trim(), expected, "{table} after {shape}");
        }
    }
    awa.run(["work", "--queue", "q", "--claim-shape", "round", "--exec", "true"]).failed(2, &["--claim-shape"]);
}

#[test]
fn a_program_that_takes_too_long_is_ended_with_its_children() {
    let (awa, _database) = migrated();
    let id = enqueue(&awa, "slow", "1", &["--max-attempts", "1"]);
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("child");
    let script = format!("sleep 60 & echo $! > '{}'; echo stuck >&2; wait", mark.display());
    let worker = awa.start(work(&script, &["--timeout", "500ms"]));
    let job = awa.json_until(&["jobs", "get", &id], |job| job["state"] == "dead" || job["state"] == "failed");
    assert_eq!(job["error"], "the program was ended after its time-out of 500ms: stuck");
    worker.stop().ok();
    let child: u32 = fs::read_to_string(&mark).unwrap().trim().parse().unwrap();
    let status = fs::read_to_string(format!("/proc/{child}/status")).unwrap_or_default();
    assert!(status.is_empty() || status.contains("State:\tZ"), "the child goes on: {status}");
}

#[test]
fn a_job_that_is_cancelled_while_it_runs_is_told_to_stop() {
    let (awa, _database) = migrated();
    let id = enqueue(&awa, "long", "1", &[]);
    let folder = tempfile::tempdir().unwrap();
    let ended = folder.path().join("ended");
    let script = format!("trap 'touch {}; exit 1' TERM; sleep 60 & wait", ended.display());
    let worker = awa.start(work(&script, &[]));
    awa.json_until(&["jobs", "get", &id], in_state("running"));
    let answer = awa.json(&["jobs", "cancel", &id, "--reason", "no longer wanted"]);
    assert_eq!(answer["jobs"][0]["state"], "running");
    let job = awa.json(&["jobs", "get", &id]);
    assert_eq!((&job["state"], &job["error"]), (&json!("cancelled"), &json!("no longer wanted")));
    // The worker hears of it with its next heartbeat; the signal reaches the program before the worker can stop.
    awa.json_until(&["queues"], |_| ended.exists());
    worker.stop().ok();
    let answer = awa.json(&["jobs", "delete", &id]);
    assert_eq!((&answer["jobs"][0]["done"], &answer["jobs"][0]["state"]), (&json!(true), &json!("cancelled")));
    assert_eq!(awa.json(&["jobs", "list"])["jobs"], json!([]));
}

#[test]
fn a_worker_that_is_stopped_lets_its_programs_finish() {
    let (awa, _database) = migrated();
    let id = enqueue(&awa, "slow", "1", &[]);
    let folder = tempfile::tempdir().unwrap();
    let (begun, go) = (folder.path().join("begun"), folder.path().join("go"));
    let script =
        format!("touch '{}'; while [ ! -e '{}' ]; do sleep 0.05; done; echo finished", begun.display(), go.display());
    let worker = awa.start(work(&script, &[]));
    awa.json_until(&["jobs", "get", &id], |_| begun.exists());
    let stopping = std::thread::spawn(move || worker.stop());
    fs::write(&go, "").unwrap();
    assert_eq!(stopping.join().unwrap().ok().json()["completed"], 1);
    assert_eq!(awa.json(&["jobs", "get", &id])["result"], "finished");
}

#[test]
fn jobs_are_listed_by_pages_and_filters_newest_first() {
    let (awa, _database) = migrated();
    let ids: Vec<String> = (0..5).map(|n| enqueue(&awa, "k", &n.to_string(), &[])).collect();
    let other = enqueue(&awa, "other", "1", &["--delay", "1h"]);
    let listed = |arguments: &[&str]| {
        let page = awa.json(&[&["jobs", "list"][..], arguments].concat());
        let jobs = page["jobs"].as_array().unwrap();
        let ids: Vec<String> = jobs.iter().map(|job| job["id"].to_string()).collect();
        (ids, page["next_before"].clone())
    };
    let (first, before) = listed(&["--kind", "k", "--limit", "3"]);
    assert_eq!(first, [&ids[4][..], &ids[3], &ids[2]]);
    let (rest, end) = listed(&["--kind", "k", "--limit", "3", "--before", &before.to_string()]);
    assert_eq!((rest, end), (vec![ids[1].clone(), ids[0].clone()], Value::Null));
    assert_eq!(listed(&["--state", "deferred"]).0, std::slice::from_ref(&other));
    assert_eq!(listed(&["--queue", "nobody"]).0, Vec::<String>::new());
    let text = awa.run(["jobs", "list"]).ok().stdout;
    assert!(text.contains("deferred") && text.contains("scheduled until"), "{text}");
    let one = awa.run(["jobs", "get", &other]).ok().stdout;
    assert!(one.contains("waits for  scheduled"), "{one}");
}

#[test]
fn cancelling_and_retrying_answer_for_each_id() {
    let (awa, _database) = migrated();
    let (ready, later) = (enqueue(&awa, "k", "1", &[]), enqueue(&awa, "k", "1", &["--delay", "1h"]));
    let ended = awa.run(["jobs", "cancel", &ready, "999999", &ready, "--json"]).failed(1, &["1 of 3 jobs"]);
    let answer = ended.json();
    assert_eq!((&answer["jobs"][0]["done"], &answer["jobs"][0]["state"]), (&json!(true), &json!("ready")));
    assert_eq!(answer["jobs"][1], json!({"id": 999_999, "done": false, "state": null, "refused": "not_found"}));
    assert_eq!(answer["jobs"][2], answer["jobs"][0]);
    let again = awa.run(["jobs", "cancel", &ready]).failed(1, &[]);
    assert!(again.stdout.contains("because it is cancelled"), "{}", again.stdout);
    assert_eq!(awa.json(&["jobs", "retry", &later])["jobs"][0]["state"], "deferred");
    assert_eq!(awa.json(&["jobs", "get", &later])["state"], "ready");
    awa.run(["jobs", "get", "999999"]).failed(1, &["no job 999999"]);
}

#[test]
fn a_paused_queue_waits_until_it_is_resumed() {
    let (awa, _database) = migrated();
    assert_eq!(awa.json(&["queues", "pause", "q"]), json!({"queue": "q", "paused": true}));
    let id = enqueue(&awa, "k", "1", &[]);
    let queues = awa.json(&["queues"]);
    assert_eq!((&queues["queues"][0]["paused"], &queues["queues"][0]["ready"]), (&json!(true), &json!(1)));
    let worker = awa.start(work("true", &[]));
    assert_eq!(awa.json(&["queues", "resume", "q"])["paused"], false);
    awa.json_until(&["jobs", "get", &id], in_state("completed"));
    worker.stop().ok();
    assert!(awa.run(["queues"]).ok().stdout.contains("finished"));
}
