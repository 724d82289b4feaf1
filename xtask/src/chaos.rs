//! `cargo xtask chaos`: what it needs on the machine, and the run.

use crate::postgres;
use crate::run::{Cargo, Failure};

/// Programs that single scenes need, and the packages of Debian and Ubuntu that have them. A scene without its program is
/// skipped, and its line says so.
const TOOLS: [(&str, &str); 2] = [("pgbouncer", "pgbouncer"), ("faketime", "faketime")];

/// Plays the scenes with these arguments.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    postgres::ensure().map_err(Failure::new)?;
    ensure_tools();
    let program = ["run", "--quiet", "--package", "awa-tests", "--bin", "chaos", "--"];
    Cargo::new(program).arguments(arguments).run()
}

/// Installs the programs that are missing, where that is possible.
pub(crate) fn ensure_tools() {
    for (program, package) in TOOLS {
        postgres::ensure_program(program, package)
            .unwrap_or_else(|problem| eprintln!("xtask: {problem}; the scenes that need {program} are skipped"));
    }
}
