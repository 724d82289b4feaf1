//! Two minutes of chaos with real processes; ten and more by `cargo xtask chaos --minutes 10`.

use std::process::Command;

use awa_tests::seed::Seed;

#[test]
fn nothing_is_lost_doubled_or_stuck_when_workers_servers_and_connections_die() {
    // Read as a number by the program, whose table has it for each scene.
    let seed = Seed::announced().number().to_string();
    let run = Command::new(env!("CARGO_BIN_EXE_chaos")).args(["--minutes", "2", "--seed", &seed]).output();
    let run = run.expect("the program of this package can be run");
    let (table, messages) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    // What was skipped, and why, is in the table.
    println!("{table}");
    assert!(run.status.success(), "{table}\n{messages}");
    let clean = table.lines().filter(|line| line.ends_with("| clean")).count();
    assert!(clean >= 7, "only {clean} scenes were played:\n{table}");
}
