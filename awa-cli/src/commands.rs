//! The commands, each in its own file.

pub(crate) mod doctor;
mod downgrade;
pub(crate) mod enqueue;
pub(crate) mod jobs;
mod migrate;
pub(crate) mod queues;
mod repair;
pub(crate) mod rings;
pub(crate) mod work;

use tokio::runtime::Builder;

use crate::args::{Cli, Command};
use crate::bench;
use crate::demo;
use crate::failure::Failure;

/// Carries out what the command line asks for.
pub(crate) fn run(cli: Cli) -> Result<(), Failure> {
    let runtime = Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::of("starting threads", &error))?;
    let format = cli.format();
    let connection = cli.connection;
    let outcome = runtime.block_on(async {
        match cli.command {
            Command::Demo(args) => demo::run(&connection, &args, format).await,
            Command::Bench(args) => bench::run(&connection, &args, format).await,
            Command::Migrate => migrate::run(&connection, format).await,
            Command::Doctor(args) => doctor::run(&connection, &args, format).await,
            Command::Downgrade => downgrade::run(&connection).await,
            Command::Repair => repair::run(&connection, format).await,
            Command::Rings(command) => rings::run(&connection, &command, format).await,
            Command::Enqueue(args) => enqueue::run(&connection, &args, format).await,
            Command::Work(args) => work::run(&connection, args, format).await,
            Command::Jobs(command) => jobs::run(&connection, &command, format).await,
            Command::Queues(args) => queues::run(&connection, &args, format).await,
            Command::DemoWorker(args) => demo::process::work(&connection, &args).await,
        }
    });
    // A thread that still blocks, in a handler or on standard input, must not keep the program from ending.
    runtime.shutdown_background();
    outcome
}
