//! One result: what was measured, and what it cost per job.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::cost::{Cost, ServerCost};
use super::ends::Probe;
use super::latency::{Latency, Point, Quantiles};

/// The name of a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Name {
    scenario: &'static str,
    variant: Option<String>,
}

/// How many jobs were enqueued, and how many of them the store says have come to where they should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Counted {
    pub(super) enqueued: u64,
    pub(super) ended: u64,
}

/// One result.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub(super) struct Measured {
    pub(super) scenario: &'static str,
    pub(super) variant: Option<String>,
    /// Jobs of the measurement.
    pub(super) jobs: u64,
    /// Jobs that the store does not find where they should be; must be 0.
    pub(super) lost: i64,
    pub(super) seconds: f64,
    pub(super) jobs_per_s: f64,
    pub(super) enqueue_ms: Option<Quantiles>,
    pub(super) start_ms: Option<Quantiles>,
    pub(super) done_ms: Option<Quantiles>,
    pub(super) claim_ms: Option<Quantiles>,
    pub(super) max_backlog: Option<u64>,
    pub(super) wal_bytes_per_job: Option<f64>,
    pub(super) commits_per_job: Option<f64>,
    pub(super) statements_per_job: Option<f64>,
    pub(super) rows_per_job: Option<f64>,
    pub(super) dead_tuples_per_job: Option<f64>,
    pub(super) statements_per_s: Option<f64>,
    pub(super) server_cpu_s_per_1000_jobs: Option<f64>,
    pub(super) worker_cpu_s_per_1000_jobs: Option<f64>,
    pub(super) worker_max_rss_bytes: Option<u64>,
    /// The course of the latency, for the plot.
    #[serde(skip)]
    pub(super) course: Vec<Point>,
}

impl Name {
    pub(super) fn plain(scenario: &'static str) -> Self {
        Self { scenario, variant: None }
    }

    pub(super) fn with(scenario: &'static str, variant: String) -> Self {
        Self { scenario, variant: Some(variant) }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scenario)?;
        self.variant.as_ref().map_or(Ok(()), |variant| write!(f, " {variant}"))
    }
}

impl Measured {
    /// A result without latencies.
    pub(super) fn new(name: Name, counted: Counted, cost: &Cost) -> Self {
        let jobs = counted.enqueued;
        let per_job = |of: f64| (jobs > 0).then(|| of / jobs as f64);
        let seconds = cost.elapsed.as_secs_f64();
        let server = cost.server;
        let of_server = |of: fn(&ServerCost) -> i64| server.as_ref().map(of).and_then(|of| per_job(of as f64));
        let statements = server.and_then(|server| server.statements);
        let cpu = |cpu: Duration| per_job(cpu.as_secs_f64() * 1_000.0);
        Self {
            scenario: name.scenario,
            variant: name.variant,
            jobs,
            lost: jobs as i64 - counted.ended as i64,
            seconds,
            jobs_per_s: jobs as f64 / seconds,
            enqueue_ms: None,
            start_ms: None,
            done_ms: None,
            claim_ms: None,
            max_backlog: None,
            wal_bytes_per_job: of_server(|server| server.wal_bytes),
            commits_per_job: of_server(|server| server.commits),
            statements_per_job: statements.and_then(|statements| per_job(statements as f64)),
            rows_per_job: of_server(|server| server.rows),
            dead_tuples_per_job: of_server(|server| server.dead_rows),
            statements_per_s: statements.map(|statements| statements as f64 / seconds),
            server_cpu_s_per_1000_jobs: server.and_then(|server| server.cpu).and_then(cpu),
            worker_cpu_s_per_1000_jobs: cpu(cost.own_cpu),
            worker_max_rss_bytes: cost.peak_memory,
            course: Vec::new(),
        }
    }

    /// The same with the lengths of the producers' calls.
    #[must_use]
    pub(super) fn with_calls(mut self, calls: &Latency) -> Self {
        self.enqueue_ms = calls.quantiles();
        self.course = calls.course();
        self
    }

    /// The same with the times of the jobs.
    #[must_use]
    pub(super) fn with_probe(mut self, probe: &Probe) -> Self {
        self.start_ms = probe.start.quantiles();
        self.done_ms = probe.done.quantiles();
        self.course = probe.done.course();
        self
    }

    /// The same with the lengths of claims, and their course.
    #[must_use]
    pub(super) fn with_claims(mut self, claims: &Latency) -> Self {
        self.claim_ms = claims.quantiles();
        self.course = claims.course();
        self
    }

    /// The same with the longest backlog.
    #[must_use]
    pub(super) fn with_backlog(mut self, max_backlog: Option<u64>) -> Self {
        self.max_backlog = max_backlog;
        self
    }

    /// Its name, for people.
    pub(super) fn name(&self) -> String {
        Name { scenario: self.scenario, variant: self.variant.clone() }.to_string()
    }
}
