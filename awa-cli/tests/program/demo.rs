//! `awa demo` on a small folder, in memory and on PostgreSQL.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::awa::{Awa, empty_database};

/// A folder with so many files, most of them small.
fn folder(files: usize) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..files {
        let place = folder.path().join(format!("part-{}", number % 7));
        fs::create_dir_all(&place).unwrap();
        let content = format!("file {number}\n").repeat(1 + number * number % 5_000);
        fs::write(place.join(format!("ü {number}")), content).unwrap();
    }
    folder
}

#[track_caller]
fn assert_proven(report: &Value, files: u64) {
    let number = |field: &str| report[field].as_u64().unwrap_or_else(|| panic!("{field} in {report}"));
    assert_eq!(number("files") + number("rolled_back"), files, "{report}");
    assert_eq!(number("completed"), number("files"), "{report}");
    for none in ["lost", "mismatched", "unexpected", "changed", "skipped"] {
        assert_eq!(number(none), 0, "{none} in {report}");
    }
    for some in ["rolled_back", "late", "retried", "transactions"] {
        assert!(number(some) > 0, "{some} in {report}");
    }
    for measured in ["jobs_per_s", "p50_ms", "p95_ms", "p99_ms"] {
        assert!(report[measured].as_f64().unwrap() > 0.0, "{measured} in {report}");
    }
}

#[test]
fn in_memory_every_result_is_right_although_a_worker_dies() {
    let folder = folder(400);
    let dir = folder.path().to_str().unwrap();
    let ended = Awa::alone().run(["demo", dir, "--store", "memory", "--seed", "1", "--json"]).ok();
    assert!(ended.stderr.contains("simulated"), "{}", ended.stderr);
    let report = ended.json();
    assert_proven(&report, 400);
    assert_eq!((&report["store"], &report["real_processes"]), (&"memory".into(), &false.into()));
}

#[test]
fn on_postgresql_every_result_is_right_although_a_worker_is_killed() {
    every_result_is_right_through("sqlx");
}

#[test]
fn through_diesel_every_result_is_right_although_a_worker_is_killed() {
    every_result_is_right_through("diesel");
}

fn every_result_is_right_through(driver: &str) {
    let database = empty_database();
    let folder = folder(1_000);
    let dir = folder.path().to_str().unwrap();
    let ended = Awa::on(database.url()).run(["demo", dir, "--driver", driver, "--seed", "1", "--json"]).ok();
    assert!(ended.stderr.contains(&format!("through {driver}")), "{}", ended.stderr);
    assert!(ended.stderr.contains("killed worker 1 of 2"), "{}", ended.stderr);
    let report = ended.json();
    assert_proven(&report, 1_000);
    assert_eq!((&report["store"], &report["real_processes"]), (&"postgres".into(), &true.into()));
    assert_eq!(report["driver"], driver);
    assert_ne!(report["rescued"], 0, "the worker was killed while it held jobs: {report}");
    // The hot tables are only ever appended to.
    let changed = database.psql(
        "SELECT pg_stat_force_next_flush(); \
         SELECT count(*), coalesce(sum(n_tup_upd + n_tup_del), -1) FROM pg_stat_user_tables \
         WHERE schemaname = 'awa_demo' AND relname ~ '^(ready_entries|lease_claim_batches|lease_claim_closure|receipt_completion)'",
    );
    let changed = changed.unwrap();
    let (tables, rows) = changed.lines().last().unwrap().split_once('|').unwrap();
    assert!(tables.parse::<u32>().unwrap() > 0, "no such tables: {changed}");
    assert_eq!(rows, "0");
}

#[test]
fn a_throw_away_server_is_started_when_no_database_is_given() {
    let folder = folder(60);
    let dir = folder.path().to_str().unwrap();
    let ended = Awa::alone().run(["demo", dir, "--store", "postgres"]).ok();
    assert!(ended.stderr.contains("throw-away PostgreSQL"), "{}", ended.stderr);
    assert!(ended.stdout.contains("nothing lost"), "{}", ended.stdout);
}

#[test]
fn without_the_programs_of_postgresql_it_works_in_memory_and_says_so() {
    let folder = folder(60);
    let dir = folder.path().to_str().unwrap();
    let none = Awa::alone().with("AWA_PG_BIN", "/nonexistent");
    let ended = none.run(["demo", dir, "--json"]).ok();
    assert!(ended.stderr.contains("no PostgreSQL") && ended.stderr.contains("simulated"), "{}", ended.stderr);
    assert_eq!(ended.json()["store"], "memory");
    none.run(["demo", dir, "--store", "postgres"]).failed(1, &["/nonexistent", "apt-get install postgresql"]);
}

#[test]
fn a_folder_without_files_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().to_str().unwrap();
    Awa::alone().run(["demo", dir, "--store", "memory"]).failed(1, &["no files"]);
    Awa::alone().run(["demo", "/nonexistent", "--store", "memory"]).failed(1, &["/nonexistent"]);
    Awa::alone().run(["demo", dir, "--workers", "1"]).failed(2, &["--workers"]);
}
