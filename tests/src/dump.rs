//! Whether the machine's `pg_dump` can read a server: some packages of PostgreSQL come without one.

use std::process::Command;

use awa_pg::cluster::Cluster;

/// Whether `pg_dump` is as new as the server. Where it is not, this says on standard error what is not covered, and the test
/// has nothing to carry.
///
/// # Panics
///
/// When there is no `pg_dump` at all.
pub fn reads(cluster: &Cluster) -> bool {
    let program = cluster.bin("pg_dump").expect("the clients of PostgreSQL are installed");
    let output = Command::new(program).arg("--version").output().expect("pg_dump can be run");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = printed.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let major = number.and_then(|number| number.split('.').next()?.parse::<u32>().ok()).expect("pg_dump has a version");
    let is_new_enough = major >= cluster.version().major;
    if !is_new_enough {
        eprintln!("not covered: pg_dump {major} does not read PostgreSQL {}", cluster.version());
    }
    is_new_enough
}
