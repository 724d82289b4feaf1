//! The README is true: its program is the one that is compiled and run here.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use awa_tests::postgres::FreshStore;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_mins(1);

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are a folder of the workspace")
}

#[test]
fn the_program_in_the_readme_is_the_one_that_is_tested() {
    let readme = fs::read_to_string(root().join("README.md")).expect("there is a README");
    let source = fs::read_to_string(root().join("tests/src/bin/first_job.rs")).expect("there is a first program");
    let program = source.split_once("\n\n").expect("a comment comes first").1;
    assert!(readme.contains(&format!("```rust\n{program}```")), "the README does not show tests/src/bin/first_job.rs");
}

#[tokio::test]
async fn the_first_program_runs_its_job_and_ends_when_asked() {
    let fresh = FreshStore::with_server_clock().await;
    let mut program = Command::new(env!("CARGO_BIN_EXE_first_job"))
        .env("DATABASE_URL", fresh.database.url())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the program starts");
    let mut lines = BufReader::new(program.stdout.take().expect("stdout is piped")).lines();
    let line = timeout(PATIENCE, lines.next_line()).await.expect("a job runs in time").expect("stdout can be read");
    assert_eq!(line.as_deref(), Some("mail to ada@example.org"));
    let pid = program.id().and_then(|pid| i32::try_from(pid).ok()).and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(pid.expect("the program runs"), rustix::process::Signal::INT)
        .expect("it can be asked");
    let status = timeout(PATIENCE, program.wait()).await.expect("it ends in time").expect("it can be waited for");
    assert!(status.success(), "{status}");
    let census = awa_core::store::Operator::census(&fresh.store).await.expect("the census can be taken");
    let completed = census.iter().find(|count| count.state == awa_core::JobState::Completed);
    assert_eq!(completed.map(|count| count.jobs), Some(1));
}
