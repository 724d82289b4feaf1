//! What is measured.

mod drain;
mod enqueue;
mod saturate;
mod steady;
mod watch;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Result, bail};
use serde::Serialize;

use crate::peer::Peer;
use crate::plan::Plan;
use crate::server::Server;

/// One kind of measurement.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Scenario {
    /// One job per call and transaction, over so many connections at a time.
    EnqueueSingle(usize),
    /// Many jobs per call, from a few producers.
    EnqueueBulk,
    /// Workers on jobs that wait already, until the last is durably done.
    Drain,
    /// Producers and workers together, until the last is durably done.
    Saturate,
    /// So many jobs per second: how long from the enqueue to the handler.
    Steady(u64),
}

impl Scenario {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 7] = [
        Self::EnqueueSingle(1),
        Self::EnqueueSingle(16),
        Self::EnqueueBulk,
        Self::Drain,
        Self::Saturate,
        Self::Steady(1_000),
        Self::Steady(5_000),
    ];

    /// Measures `peer` once, in a fresh database.
    pub async fn measure(self, server: &Server, peer: &dyn Peer, plan: &Plan) -> Result<Measured> {
        let url = server.fresh_database(peer).await?;
        let producers = match self {
            Self::EnqueueSingle(connections) => connections,
            _ => plan.producers,
        };
        let queue = peer.open(&url, producers.max(steady::PRODUCERS)).await?;
        let measured = match self {
            Self::EnqueueSingle(connections) => enqueue::single(server, &*queue, plan, connections).await,
            Self::EnqueueBulk => enqueue::bulk(server, &*queue, plan).await,
            Self::Drain => drain::measure(server, &*queue, plan).await,
            Self::Saturate => saturate::measure(server, &*queue, plan).await,
            Self::Steady(rate) => steady::measure(server, &*queue, plan, rate).await,
        };
        queue.close().await;
        server.drop_database().await?;
        measured
    }

    /// Whether the latency is what counts, not the rate.
    pub fn is_about_latency(self) -> bool {
        matches!(self, Self::Steady(_))
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EnqueueSingle(connections) => write!(f, "enqueue-single-{connections}"),
            Self::EnqueueBulk => f.write_str("enqueue-bulk"),
            Self::Drain => f.write_str("drain"),
            Self::Saturate => f.write_str("saturate"),
            Self::Steady(rate) => write!(f, "steady-{rate}"),
        }
    }
}

impl FromStr for Scenario {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        let number =
            |prefix: &str| name.strip_prefix(prefix).and_then(|rest: &str| rest.parse::<u32>().ok().filter(|n| *n > 0));
        Ok(match name {
            "enqueue-bulk" => Self::EnqueueBulk,
            "drain" => Self::Drain,
            "saturate" => Self::Saturate,
            _ => match (number("enqueue-single-"), number("steady-")) {
                (Some(connections), _) => Self::EnqueueSingle(connections as usize),
                (_, Some(rate)) => Self::Steady(rate.into()),
                _ => bail!(
                    "no scenario {name}; there are enqueue-single-N, enqueue-bulk, drain, saturate and steady-RATE"
                ),
            },
        })
    }
}

/// The outcome of one measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Jobs that were enqueued or done, as the scenario has it.
    pub jobs: u64,
    /// How long it took.
    pub seconds: f64,
    /// What the server wrote into its log meanwhile.
    pub wal_bytes: u64,
    /// From the moment in which the enqueue was due to the handler.
    pub latency: Option<Latency>,
    /// The most jobs that were enqueued and not run yet.
    pub backlog: Option<u64>,
    /// What was wrong: jobs lost, run twice, or not counted as done.
    pub faults: Vec<String>,
}

/// Percentiles in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Latency {
    /// Half of the jobs were at a handler by then.
    pub p50_ms: f64,
    /// 99 of 100 were.
    pub p99_ms: f64,
    /// All were.
    pub max_ms: f64,
}

impl Latency {
    /// Of lags in ascending order; `None` when there are none.
    fn of(sorted: &[Duration]) -> Option<Self> {
        let last = sorted.len().checked_sub(1)?;
        let at = |share: f64| sorted[((last as f64 * share).round() as usize).min(last)].as_secs_f64() * 1e3;
        Some(Self { p50_ms: at(0.5), p99_ms: at(0.99), max_ms: at(1.0) })
    }
}

impl Measured {
    /// Jobs per second.
    pub fn rate(&self) -> f64 {
        self.jobs as f64 / self.seconds
    }

    /// Bytes of log per job.
    pub fn wal_per_job(&self) -> f64 {
        self.wal_bytes as f64 / (self.jobs.max(1)) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_is_found_by_its_name() {
        for scenario in Scenario::ALL {
            assert_eq!(scenario.to_string().parse::<Scenario>().unwrap(), scenario);
        }
        assert!("steady-0".parse::<Scenario>().is_err() && "drain2".parse::<Scenario>().is_err());
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_lags() {
        let lags: Vec<_> = (0..=100).map(Duration::from_millis).collect();
        let latency = Latency::of(&lags).unwrap();
        assert_eq!((latency.p50_ms, latency.p99_ms, latency.max_ms), (50.0, 99.0, 100.0));
        assert!(Latency::of(&[]).is_none());
    }
}
