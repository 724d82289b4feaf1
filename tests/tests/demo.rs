//! The main job end to end: real files, real processes, one of them killed; then a look at what it left in the tables.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use awa_tests::postgres::FreshStore;
use sqlx::Row;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are a folder of the workspace")
}

/// The `awa` command, built in the same profile as this test.
fn awa() -> PathBuf {
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "awa-cli"])
        .current_dir(root())
        .status()
        .expect("cargo can be run");
    assert!(status.success(), "awa does not build");
    let test = std::env::current_exe().expect("this test has a path");
    test.parent().and_then(Path::parent).expect("tests are two levels below").join("awa")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demo_changes_no_row_of_a_ring_and_leaves_no_dead_one() {
    let fresh = FreshStore::with_server_clock().await;
    let url = fresh.database.url();
    let output = tokio::task::spawn_blocking(move || {
        Command::new(awa())
            .args(["demo", "--json", "--max-files", "800"])
            .arg(root().join("awa-core"))
            .env("DATABASE_URL", url)
            .output()
            .expect("awa can be run")
    })
    .await
    .expect("running awa panicked");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("the report is JSON");
    let number = |name: &str| report[name].as_u64().unwrap_or_else(|| panic!("{name} is missing in {report}"));
    assert_eq!(report["store"], "postgres");
    assert!(number("files") > 30 && number("files") == number("completed"), "{report}");
    assert_eq!((number("lost"), number("mismatched")), (0, 0), "{report}");

    let rings = "SELECT relname, n_tup_ins, n_tup_upd, n_tup_del, n_dead_tup FROM pg_stat_user_tables
                 WHERE relname ~ '^(ready_entries|ready_claim_attempt_batches|receipt_completion_batches|done_entries|lease_claim_batches|lease_claim_closure_batches)_[0-9]+$'";
    // Backends report what they did when they end, which is a moment after their programs ended.
    let mut seen = 0;
    let mut moments = tokio::time::interval(Duration::from_millis(100));
    for _ in 0..100 {
        moments.tick().await;
        let rows = sqlx::query(rings).fetch_all(fresh.store.pool()).await.expect("the statistics can be read");
        seen = rows.iter().map(|row| row.get::<i64, _>(1)).sum();
        for row in &rows {
            let changed = (row.get::<i64, _>(2), row.get::<i64, _>(3));
            assert_eq!(changed, (0, 0), "updates and deletes of {}", row.get::<String, _>(0));
        }
        // Rows of the demo's rolled-back transactions are dead in ready_entries, and nowhere else.
        for row in rows.iter().filter(|row| !row.get::<String, _>(0).starts_with("ready_entries_")) {
            assert_eq!(row.get::<i64, _>(4), 0, "dead rows in {}", row.get::<String, _>(0));
        }
        if seen > i64::try_from(2 * number("files")).expect("the number of files fits") {
            return;
        }
    }
    panic!("the statistics show only {seen} rows");
}
