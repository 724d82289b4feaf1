//! What is measured, and with how much.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::length::parse_positive_length;

const EXAMPLES: &str = "\
Examples:
  awa bench                                    the scenarios that take seconds, in a throw-away PostgreSQL
  awa bench drain --jobs 2000000 --json
  awa bench steady --rate 5000 --duration 5m
  DATABASE_URL=postgres://me@localhost/test awa bench saturate --concurrency 512

Without --database-url and DATABASE_URL a throw-away PostgreSQL is started with its default settings, fsync included, but
for the number of connections and, when it is there, the module pg_stat_statements. In a given database the run has a
schema of its own, which is removed afterwards. All numbers are of this machine: server, producers and workers share it.

What is counted:
  jobs/s       jobs per second, from the first call to the last durable completion (enqueue-...: to the last commit)
  enqueue      length of one call of enqueue, until it is acknowledged
  start        from the moment a job was due to be enqueued until its handler begins
  done         until the store has confirmed its completion
  WAL          bytes of write-ahead log per job, of the whole server
  commits, statements, rows, dead   per job; statements only where pg_stat_statements counts them
  server, worker   CPU milliseconds per job: the server's processes, and this process (producers included)
  RSS          the largest memory of this process during the measurement

Exit code 0 only if every job that was enqueued was completed, once.";

/// See [`crate::args::Command::Bench`].
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    /// What to measure [default: those that take seconds].
    #[arg(value_enum, value_name = "SCENARIO")]
    pub(super) scenarios: Vec<Scenario>,

    /// Where the queue lives.
    #[arg(long, value_enum, default_value_t = StoreChoice::Postgres)]
    pub(super) store: StoreChoice,

    #[command(flatten)]
    pub(super) load: LoadArgs,

    #[command(flatten)]
    pub(super) workers: WorkerArgs,

    /// Draw the course of the latencies: enqueue to done, and of producers alone the length of their calls.
    #[arg(long, value_name = "FILE.svg")]
    pub(super) plot: Option<PathBuf>,

    /// A setting of the throw-away server, such as max_wal_size=4GB; may be given several times.
    #[arg(long = "server-setting", value_name = "NAME=VALUE", value_parser = parse_setting)]
    pub(super) server_settings: Vec<(String, String)>,
}

/// What the producers do.
#[derive(Args, Clone, Debug)]
pub(super) struct LoadArgs {
    /// So many jobs, in scenarios that run a number of jobs; in others they end with this many.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(super) jobs: Option<u64>,

    /// How long scenarios take that run for a time [default: 10s].
    #[arg(long, value_name = "LENGTH", value_parser = parse_positive_length)]
    pub(super) duration: Option<Duration>,

    /// The bytes of a job's arguments.
    #[arg(long, value_name = "BYTES", default_value_t = 60, value_parser = clap::value_parser!(u32).range(31..=1_000_000))]
    pub(super) payload: u32,

    /// Jobs per second of the paced scenarios; may be given several times, each is measured [default: 20 1000 5000].
    #[arg(long = "rate", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) rates: Vec<u32>,

    /// Producers that enqueue at a time, each on a connection of its own; may be given several times, each is measured by
    /// enqueue-single [default: 1 and 16; in other scenarios 2, 16 where jobs are enqueued one by one or paced].
    #[arg(long = "connections", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=150))]
    pub(super) connections: Vec<u16>,

    /// Jobs per call where jobs are enqueued in bulk.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) bulk: u32,

    /// How many jobs wait in backlog; may be given several times, each is measured [default: 10000 1000000 10000000].
    #[arg(long = "waiting", value_name = "N", value_parser = clap::value_parser!(u64).range(2..=1_000_000_000))]
    pub(super) waiting: Vec<u64>,

    /// How many queues there are in queues.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) queues: u32,

    /// Where producers and workers run together, producers pause while so many jobs wait.
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) max_backlog: u64,
}

/// How the jobs are run.
#[derive(Args, Clone, Debug)]
pub(super) struct WorkerArgs {
    /// Worker runtimes in this process, each with connections of its own.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(super) workers: u8,

    /// Handlers at a time, per worker; in queues 16 per queue, in ramp by steps.
    #[arg(long, value_name = "N", default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) concurrency: u32,

    /// Jobs that are claimed beyond those that run, per worker [default: the runtime's].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub(super) prefetch: Option<u32>,

    /// The largest number of jobs of one claim [default: the runtime's].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_023))]
    pub(super) claim_batch: Option<u16>,

    /// The largest number of completions of one call [default: the runtime's].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_023))]
    pub(super) flush_at: Option<u16>,

    /// Connections per worker.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) worker_connections: u32,

    /// Leave maintenance to others: what a worker costs that is one of many.
    #[arg(long)]
    pub(super) no_maintenance: bool,

    /// Threads for each worker's own tasks [default: the runtime's].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=64))]
    pub(super) own_threads: Option<u8>,
}

/// Where the queue lives.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StoreChoice {
    /// The given database, else a throw-away PostgreSQL.
    Postgres,
    /// The memory of this process.
    Memory,
}

/// What can be measured.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scenario {
    /// One job per call.
    EnqueueSingle,
    /// Many jobs per call.
    EnqueueBulk,
    /// Jobs that wait already are run.
    Drain,
    /// A number of jobs per second, and workers beside.
    Steady,
    /// Producers and workers as fast as they can, with a bounded backlog.
    Saturate,
    /// Steady and saturate, without and with an open snapshot at REPEATABLE READ beside.
    Pinned,
    /// One job per call, without and with an open transaction that has enqueued beside.
    OpenTx,
    /// What a claim costs while many jobs wait.
    Backlog,
    /// Many queues, first all idle, then one in a hundred with jobs.
    Queues,
    /// Waiting jobs, run by one handler at a time up to many.
    Ramp,
}

impl LoadArgs {
    /// The jobs that were asked for, else `default`.
    pub(super) fn jobs_or(&self, default: u64) -> u64 {
        self.jobs.unwrap_or(default)
    }

    /// How long a scenario takes that runs for a time.
    pub(super) fn duration(&self) -> Duration {
        const DEFAULT: Duration = Duration::from_secs(10);
        self.duration.unwrap_or(DEFAULT)
    }

    /// The rates that were asked for, else one with no load to speak of and two with some.
    pub(super) fn rates(&self) -> Vec<u32> {
        if self.rates.is_empty() { vec![20, 1_000, 5_000] } else { self.rates.clone() }
    }

    /// How many jobs wait in turn.
    pub(super) fn waiting(&self) -> Vec<u64> {
        if self.waiting.is_empty() { vec![10_000, 1_000_000, 10_000_000] } else { self.waiting.clone() }
    }

    /// The numbers of producers that were asked for, else `defaults`.
    pub(super) fn connections_or(&self, defaults: &[u16]) -> Vec<u16> {
        if self.connections.is_empty() { defaults.to_vec() } else { self.connections.clone() }
    }

    /// The number of producers of a scenario that has one number.
    pub(super) fn producers_or(&self, default: u16) -> u16 {
        self.connections.first().copied().unwrap_or(default)
    }
}

fn parse_setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err(format!("{text:?} is no setting; write NAME=VALUE")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_has_a_name_and_a_value() {
        assert_eq!(parse_setting("a.b = c=d"), Ok(("a.b".to_owned(), "c=d".to_owned())));
        assert!(parse_setting("fsync").is_err());
        assert!(parse_setting("=1").is_err());
    }
}
