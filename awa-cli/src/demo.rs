//! `awa demo`: the whole of Awa on real files, with everything that goes wrong in production, and a proof at the end.
//!
//! One job per file is enqueued in transactions of mixed size, some of which stay open and commit late and some roll
//! back, while worker processes compute the files' SHA-256. Some jobs fail on their first try, and one worker is killed
//! in mid-run. At the end every result is compared with a direct computation.

mod count;
mod crew;
mod files;
mod gate;
mod hash_file;
mod monitor;
mod place;
mod plan;
pub(crate) mod process;
mod producer;
mod report;
mod verify;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use awa_core::QueueName;
use clap::{Args, ValueEnum};
use tokio::task::spawn_blocking;

use crate::connect::ConnectionArgs;
use crate::failure::Failure;
use crate::output::{Format, complain};
use crate::signals::StopSignal;
use crew::Crew;
use files::Found;
use monitor::Monitor;
use place::Place;
use producer::Production;
use report::{Report, Run};

const EXAMPLES: &str = "\
Examples:
  awa demo
  awa demo ~/src --workers 4
  DATABASE_URL=postgres://me@localhost/app awa demo --json

Stores: auto takes the database of --database-url or DATABASE_URL (there the schema awa_demo, unless --schema is given,
because the demo takes silent workers for dead after 2 s); without one it starts a throw-away PostgreSQL; without the
programs for that it works in memory, in one process, and the kill is simulated.

What is counted:
  files        files whose transaction committed: each has one job, and must have one result
  completed    jobs that completed
  lost         jobs of committed files without a completed job; must be 0
  mismatched   results that differ from a direct computation; must be 0
  unexpected   jobs that should not exist: of rolled-back transactions, or a second one for a file; must be 0
  changed      files that changed or vanished during the demo, so that their result proves nothing
  rescued      attempts that the killed worker held when it died, and that others ran again; it is made to stand
               still first, so that it dies with something in its hands
  retried      all other attempts that failed and were made again
  rolled_back  files whose transaction rolled back: they have no job
  late         files whose transaction stayed open and committed late
  jobs_per_s   completed jobs per second, from the first enqueue to the last end
  p50_ms ...   from enqueue to done by the clock of the store, without the late ones

Exit code 0 only if nothing was lost, mismatched or unexpected.";

/// See [`crate::args::Command::Demo`].
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// The folder whose files are hashed [default: the sources in cargo's registry, else /usr/share].
    dir: Option<PathBuf>,

    /// Where the queue lives.
    #[arg(long, value_enum, default_value_t = StoreChoice::Auto)]
    store: StoreChoice,

    /// How many workers; the first of them is killed.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=64))]
    workers: u8,

    /// At most so many files.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_files: u32,

    /// The seed of the transactions' sizes and fates, to run the same demo again.
    #[arg(long, value_name = "N")]
    seed: Option<u32>,
}

/// Where the queue lives.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StoreChoice {
    /// The given database, else a throw-away PostgreSQL, else memory.
    Auto,
    /// The memory of one process.
    Memory,
    /// The given database, else a throw-away PostgreSQL.
    Postgres,
}

/// Runs the demo, until it ends or somebody stops it.
pub(crate) async fn run(connection: &ConnectionArgs, args: &DemoArgs, format: Format) -> Result<(), Failure> {
    let mut signals = StopSignal::listen()?;
    let report = tokio::select! {
        // Dropping the demo kills its workers and removes its server.
        report = demonstrate(connection, args) => report?,
        () = signals.wait() => return Err(Failure::interrupted()),
    };
    format.answer(&report, Report::table)?;
    match report.verdict() {
        Ok(()) => Ok(()),
        Err(problem) => Err(Failure::new(problem)),
    }
}

async fn demonstrate(connection: &ConnectionArgs, args: &DemoArgs) -> Result<Report, Failure> {
    let dir = args.dir.clone().map_or_else(files::default_dir, Ok)?;
    let max_files = args.max_files as usize;
    let found = spawn_blocking(move || files::find(&dir, max_files)).await;
    let found = Arc::new(found.map_err(|error| Failure::of("looking for files", &error))??);
    complain(&found.describe());
    let seed = args.seed.unwrap_or_else(rand::random);
    let plan = plan::plan(found.files.len(), seed.into());
    let place = Place::open(args.store, connection).await?;
    complain(&format!("store: {} (seed {seed})", place.describe()));
    let queue = QueueName::new(format!("awa-demo-{:08x}", rand::random::<u32>()))?;
    let crew = Crew::start(&place, &queue, args.workers.into()).await?;
    let began = Instant::now();
    let production = Production::start(&place, &queue, &found, plan, crew.tally());
    let monitor = Monitor { store: place.store(), queue: queue.clone(), jobs: found.files.len() };
    let outcome = monitor.watch(crew, production).await?;
    let took = began.elapsed();
    let jobs = verify::read_queue(&*place.store(), &queue, found.files.len()).await?;
    let (files, produced) = (Arc::clone(&found), Arc::new(outcome.produced));
    let shared = Arc::clone(&produced);
    let findings = spawn_blocking(move || verify::compare(&files.files, &shared, &jobs, &outcome.held)).await;
    let findings = findings.map_err(|error| Failure::of("comparing results", &error))?;
    Ok(Report::new(&place, &found, &produced, findings, Run { workers: args.workers, seed, took }))
}

/// What the parts of the demo share about the files.
type Files = Arc<Found>;
