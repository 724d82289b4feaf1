//! `awa doctor` and `awa repair` from outside: what they print and how they end.

use serde_json::json;

use crate::awa::{Awa, migrated};

#[test]
fn the_doctor_ends_by_the_worst_that_it_found() {
    let (awa, database) = migrated();
    let healthy = awa.run(["doctor", "--json"]);
    assert_eq!(healthy.code, Some(0), "{healthy:?}");
    let report = healthy.json();
    assert!(report["findings"].as_array().unwrap().len() > 10, "{report}");
    let wakeups =
        report["findings"].as_array().unwrap().iter().find(|finding| finding["object"] == "wake-ups").unwrap();
    assert_eq!(wakeups["severity"], "ok", "{wakeups}");

    database.psql("SELECT setval('awa.batch_id_seq', 9007199254740991 / 2 + 1);").unwrap();
    let warned = awa.run(["doctor"]);
    assert_eq!(warned.code, Some(1), "{warned:?}");
    assert!(warned.stdout.starts_with("warning   sequence batch_id_seq: it is at"), "{}", warned.stdout);

    let elsewhere =
        "CREATE OR REPLACE FUNCTION awa.home_cluster() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 1::bigint';";
    database.psql(elsewhere).unwrap();
    let critical = awa.run(["doctor"]);
    assert_eq!(critical.code, Some(2), "{critical:?}");
    assert!(critical.stdout.contains("run `awa repair`") && critical.stderr.is_empty(), "{critical:?}");
}

#[test]
fn a_database_that_cannot_be_looked_at_is_critical() {
    let ended = Awa::on("postgres://nobody@127.0.0.1:1/none").run(["doctor"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.starts_with("error: "), "{ended:?}");
}

#[test]
fn repair_says_what_it_did_and_lets_work_go_on() {
    let (awa, database) = migrated();
    let enqueue = ["enqueue", "--queue", "q", "--kind", "k", "--args", "1"];
    awa.run(enqueue).ok();
    let elsewhere =
        "CREATE OR REPLACE FUNCTION awa.home_cluster() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 1::bigint';";
    database.psql(elsewhere).unwrap();
    // A row beside a transaction that is older, of whatever database of this cluster, would be moved to be safe.
    let until_past = || {
        let is_past = "SELECT bool_and(xid < pg_snapshot_xmin(pg_current_snapshot())) FROM awa.ready_entries";
        assert!(
            (0..1_000).any(|_| database.psql(is_past).unwrap().trim() == "t"),
            "an older transaction goes on and on"
        );
    };
    until_past();
    let refused = awa.run(enqueue);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("run `awa repair`"), "{refused:?}");
    let repaired = awa.json(&["repair"]);
    let expected = json!({
        "schema": "awa", "was_carried": true, "moved_jobs": 0, "renumbered_jobs": 0, "moved_history": 0, "reopened": [], "raised": []
    });
    assert_eq!(repaired, expected);
    awa.run(enqueue).ok();
    until_past();
    assert_eq!(awa.run(["repair"]).ok().stdout, "schema \"awa\": nothing to repair\n");
}

#[test]
fn there_is_no_way_back() {
    let (awa, _database) = migrated();
    let refused = awa.run(["downgrade"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.stderr.contains("there is no way back") && refused.stderr.contains("docs/upgrade.md"),
        "{refused:?}"
    );
}

#[test]
fn a_ring_is_given_more_slots_and_never_fewer() {
    let (awa, _database) = migrated();
    let grow = |slots: &str| awa.run(["rings", "grow", "lease", "--slots", slots, "--json"]);
    assert_eq!(grow("6").ok().json(), json!({"ring": "lease", "from": 4, "to": 6}));
    assert_eq!(grow("6").ok().json(), json!({"ring": "lease", "from": 6, "to": 6}));
    let refused = grow("5");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("cannot be made smaller"), "{refused:?}");
    let said = awa.run(["rings", "grow", "claim", "--slots", "9"]).ok().stdout;
    assert_eq!(said, "the claim ring has 9 slots, before 8\n");
}
