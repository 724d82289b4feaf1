//! Every command does the same through either driver.

use serde_json::{Value, json};

use crate::awa::{Awa, empty_database};

/// What the commands answer on one database, through the driver that `awa` was given.
fn life(awa: &Awa) -> Vec<Value> {
    let migrated = awa.json(&["migrate"]);
    let enqueue = |more: &[&str]| {
        awa.json(&[&["enqueue", "--queue", "q", "--kind", "k", "--args", "{\"n\":1}"][..], more].concat())["ids"][0]
            .to_string()
    };
    let (now, later) = (enqueue(&[]), enqueue(&["--delay", "1h"]));
    awa.json(&["queues", "pause", "q"]);
    let paused = awa.json(&["queues"]);
    awa.json(&["queues", "resume", "q"]);
    let worker = awa.start(["work", "--queue", "q", "--json", "--exec", "sh", "-c", "cat >/dev/null; echo done"]);
    let result = awa.json_until(&["jobs", "get", &now], |job| job["state"] == "completed")["result"].clone();
    let ended = worker.stop().ok().json();
    let cancelled = awa.json(&["jobs", "cancel", &later]);
    let again = awa.run(["jobs", "retry", &later, "--json"]).failed(1, &[]).json();
    let listed = awa.json(&["jobs", "list", "--state", "cancelled"])["jobs"].as_array().map(Vec::len);
    let doctor = awa.run(["doctor", "--json"]).json();
    let objects: Vec<_> =
        doctor["findings"].as_array().unwrap().iter().map(|finding| finding["object"].clone()).collect();
    let repaired = awa.json(&["repair"]);
    awa.run(["downgrade"]).failed(1, &["no way back"]);
    vec![
        migrated,
        paused,
        result,
        ended["completed"].clone(),
        cancelled,
        again,
        json!(listed),
        json!(objects),
        repaired,
    ]
}

#[test]
fn every_command_answers_the_same_through_either_driver() {
    let (sqlx, diesel) = (empty_database(), empty_database());
    let by_variable = Awa::on(diesel.url()).with("AWA_DRIVER", "diesel");
    assert_eq!(life(&Awa::on(sqlx.url()).with("AWA_DRIVER", "sqlx")), life(&by_variable));
}

#[test]
fn the_driver_is_chosen_by_a_flag_and_an_unknown_one_is_refused() {
    let database = empty_database();
    let awa = Awa::on(database.url());
    awa.run(["migrate", "--driver", "diesel"]).ok();
    let listed = awa.run(["jobs", "list", "--driver", "diesel", "--json"]).ok().json();
    assert_eq!(listed, json!({"jobs": [], "next_before": null}));
    awa.run(["migrate", "--driver", "odbc"]).failed(2, &["odbc", "sqlx", "diesel"]);
}
