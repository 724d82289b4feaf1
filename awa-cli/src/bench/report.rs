//! What `awa bench` tells at its end.

use std::collections::BTreeMap;

use serde::Serialize;

use super::args::{BenchArgs, StoreChoice};
use super::latency::Quantiles;
use super::place::Place;
use super::plot::Panel;
use super::result::Measured;
use crate::failure::Failure;
use crate::table::{Column, Table};

/// The answer of `awa bench --json`.
#[derive(Serialize, Debug)]
pub(super) struct Report {
    awa: &'static str,
    store: &'static str,
    driver: Option<&'static str>,
    /// Whether the server was started for this and shares the machine with the workers.
    throw_away: bool,
    postgresql: Option<String>,
    settings: Option<BTreeMap<String, String>>,
    options: Options,
    results: Vec<Measured>,
}

/// What was asked for, with what was not said filled in.
#[derive(Serialize, Debug)]
struct Options {
    payload_bytes: u32,
    bulk: u32,
    max_backlog: u64,
    duration_s: f64,
    jobs: Option<u64>,
    workers: u8,
    concurrency: u32,
    prefetch: Option<u32>,
    claim_batch: Option<u16>,
    flush_at: Option<u16>,
    worker_connections: u32,
    own_threads: Option<u8>,
    cpus: usize,
}

impl Report {
    /// A report without results.
    pub(super) async fn new(place: &Place, args: &BenchArgs) -> Result<Self, Failure> {
        let server = match place {
            Place::Memory => None,
            Place::Postgres(server) => Some(server),
        };
        let mut settings = match server {
            Some(server) => Some(server.settings().await?),
            None => None,
        };
        let (load, workers) = (&args.load, &args.workers);
        Ok(Self {
            awa: env!("CARGO_PKG_VERSION"),
            store: if args.store == StoreChoice::Memory { "memory" } else { "postgres" },
            driver: server.map(|server| server.driver.as_str()),
            throw_away: server.is_some_and(|server| server.cluster.is_some()),
            postgresql: settings.as_mut().and_then(|settings| settings.remove("server_version")),
            settings,
            options: Options {
                payload_bytes: load.payload,
                bulk: load.bulk,
                max_backlog: load.max_backlog,
                duration_s: load.duration().as_secs_f64(),
                jobs: load.jobs,
                workers: workers.workers,
                concurrency: workers.concurrency,
                prefetch: workers.prefetch,
                claim_batch: workers.claim_batch,
                flush_at: workers.flush_at,
                worker_connections: workers.worker_connections,
                own_threads: workers.own_threads,
                cpus: std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
            },
            results: Vec::new(),
        })
    }

    /// Adds a result.
    pub(super) fn add(&mut self, result: Measured) {
        self.results.push(result);
    }

    /// What is drawn.
    pub(super) fn panels(&self) -> Vec<Panel> {
        let panel = |result: &Measured| Panel { title: result.name(), course: result.course.clone() };
        self.results.iter().map(panel).collect()
    }

    /// Whether every job came to where it should be.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        let lost = |result: &&Measured| result.lost != 0;
        match self.results.iter().find(lost) {
            None => Ok(()),
            Some(result) => Err(Failure::new(format!(
                "{}: of {} jobs the store counts {} less than it should; this is a fault of the store",
                result.name(),
                result.jobs,
                result.lost
            ))),
        }
    }

    /// The tables for people.
    pub(super) fn table(&self) -> String {
        let Self { postgresql, settings, .. } = self;
        let setting =
            |name: &str| settings.as_ref().and_then(|settings| settings.get(name)).cloned().unwrap_or_default();
        let server = postgresql.as_ref().map(|version| {
            format!(
                "PostgreSQL {version}, fsync {}, synchronous_commit {}, full_page_writes {}, shared_buffers {}, \
                 max_wal_size {}\n\n",
                setting("fsync"),
                setting("synchronous_commit"),
                setting("full_page_writes"),
                setting("shared_buffers"),
                setting("max_wal_size")
            )
        });
        format!("{}{}\n\n{}", server.unwrap_or_default(), self.speed().render(), self.costs().render())
    }

    fn speed(&self) -> Table {
        use Column::{Number, Text};
        let mut table = Table::new([
            Text("scenario"),
            Number("jobs"),
            Number("seconds"),
            Number("jobs/s"),
            Number("enqueue p50/p95/p99/max ms"),
            Number("start p50/p95/p99/max ms"),
            Number("done p50/p95/p99/max ms"),
            Number("claim p50/p95/p99/max ms"),
        ]);
        for result in &self.results {
            table.row([
                result.name(),
                result.jobs.to_string(),
                format!("{:.2}", result.seconds),
                format!("{:.0}", result.jobs_per_s),
                quantiles(result.enqueue_ms),
                quantiles(result.start_ms),
                quantiles(result.done_ms),
                quantiles(result.claim_ms),
            ]);
        }
        table
    }

    fn costs(&self) -> Table {
        use Column::{Number, Text};
        let mut table = Table::new([
            Text("per job"),
            Number("WAL bytes"),
            Number("commits"),
            Number("statements"),
            Number("rows"),
            Number("dead"),
            Number("statements/s"),
            Number("server ms"),
            Number("worker ms"),
            Number("RSS MiB"),
            Number("most waiting"),
        ]);
        for result in &self.results {
            // Seconds per thousand jobs are milliseconds per job.
            table.row([
                result.name(),
                number(result.wal_bytes_per_job, 0),
                number(result.commits_per_job, 4),
                number(result.statements_per_job, 4),
                number(result.rows_per_job, 3),
                number(result.dead_tuples_per_job, 4),
                number(result.statements_per_s, 1),
                number(result.server_cpu_s_per_1000_jobs, 4),
                number(result.worker_cpu_s_per_1000_jobs, 4),
                number(result.worker_max_rss_bytes.map(|bytes| bytes as f64 / f64::from(1 << 20)), 0),
                result.max_backlog.map_or_else(|| "-".to_owned(), |jobs| jobs.to_string()),
            ]);
        }
        table
    }
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

fn quantiles(quantiles: Option<Quantiles>) -> String {
    quantiles.map_or_else(
        || "-".to_owned(),
        |Quantiles { p50, p95, p99, max }| format!("{p50:.2}/{p95:.2}/{p99:.2}/{max:.2}"),
    )
}
