//! The `awa` command: the demo, the migration, and a window on jobs and queues for people and scripts.

mod args;
mod bench;
mod commands;
mod connect;
mod demo;
mod driver;
mod exec;
mod failure;
mod job_lines;
mod length;
mod log;
mod output;
mod progress;
mod shape;
mod signals;
mod table;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match commands::run(args::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
