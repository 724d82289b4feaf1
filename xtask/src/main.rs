//! The README's two commands, and the chores of the repository: `cargo xtask demo`, `cargo xtask test`, `cargo xtask prove`,
//! `cargo xtask chaos`, `cargo xtask ci`.
//!
//! Depends on nothing but the standard library, so that it is built in a second on a fresh machine.

mod chaos;
mod postgres;
mod run;

use std::env;
use std::process::ExitCode;

use run::{Cargo, Failure};

const USAGE: &str = "\
Usage: cargo xtask <COMMAND>

Commands:
  demo [ARGS]   make sure that PostgreSQL is there, build awa and run `awa demo ARGS`
  test [ARGS]   make sure that PostgreSQL is there, and run all tests; ARGS go to nextest, else to cargo test
  prove         explore the model of the storage protocol with large bounds, and print what was explored (minutes)
  chaos [ARGS]  kill, stop and cut off real workers and servers under load, and count afterwards; ARGS as --help says
  ci            format, lints, documentation and all tests, as they must pass before a merge

PostgreSQL is taken from AWA_PG_BIN, pg_config, /usr/lib/postgresql or AWA_EMBEDDED_POSTGRES. Where it is missing, it is
installed if that is possible (Debian and Ubuntu, as root). DATABASE_URL (demo) and AWA_TEST_DATABASE_URL (test) name a
server to use instead.";

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    let outcome = match command.as_str() {
        "demo" => demo(&rest),
        "test" => test(&rest),
        "prove" if rest.is_empty() => prove(),
        "chaos" => chaos::run(&rest),
        "ci" if rest.is_empty() => ci(),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(Failure::usage(USAGE)),
    };
    outcome.map_or_else(Failure::report, |()| ExitCode::SUCCESS)
}

/// Runs the demo on real PostgreSQL where that is possible; `awa demo` itself falls back to memory and says so.
fn demo(arguments: &[String]) -> Result<(), Failure> {
    if !run::is_set("DATABASE_URL") {
        postgres::ensure().unwrap_or_else(|problem| eprintln!("xtask: {problem}"));
    }
    let build = ["run", "--package", "awa-cli", "--bin", "awa", "--", "demo"];
    Cargo::new(build).arguments(arguments).run()
}

/// Runs all tests, doctests too.
fn test(arguments: &[String]) -> Result<(), Failure> {
    if !run::is_set("AWA_TEST_DATABASE_URL") {
        postgres::ensure().map_err(Failure::new)?;
        chaos::ensure_tools();
    }
    // Whoever names packages wants those and no others.
    let has_packages = arguments.iter().any(|argument| argument.starts_with("-p") || argument.starts_with("--package"));
    let scope = if has_packages { &[][..] } else { &["--workspace"][..] };
    // First, so that the summary of the many tests comes last.
    if !has_packages {
        Cargo::new(["test", "--workspace", "--doc"]).run()?;
    }
    if Cargo::new(["nextest", "--version"]).succeeds_silently() {
        return Cargo::new(["nextest", "run"]).arguments(scope).arguments(arguments).run();
    }
    let targets = ["test", "--lib", "--bins", "--tests", "--examples"];
    Cargo::new(targets).arguments(scope).arguments(arguments).run()
}

/// Marks the lines of a proof's table in what its tests print.
const PROOF_LINE: &str = "proof | ";

/// Model checking with large bounds, as a table.
fn prove() -> Result<(), Failure> {
    println!("{:<44} | {:>9} | {:>7} | verdict", "explored", "states", "seconds");
    let tests = ["test", "--release", "--package", "awa-core", "--test", "model_checking"];
    Cargo::new(tests.into_iter().chain(["--", "--nocapture", "--test-threads=1"]))
        .variable("AWA_PROVE", "large")
        .run_showing(|line| line.find(PROOF_LINE).map(|at| &line[at + PROOF_LINE.len()..]))
}

/// Everything that must hold before a merge.
fn ci() -> Result<(), Failure> {
    Cargo::new(["fmt", "--all", "--check"]).run()?;
    Cargo::new(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]).run()?;
    Cargo::new(["doc", "--workspace", "--no-deps"]).variable("RUSTDOCFLAGS", "-D warnings").run()?;
    test(&[])
}
