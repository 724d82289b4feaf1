//! What a stretch of work cost: log, rows, statements, CPU and memory.

use std::time::{Duration, Instant};

use awa_pg::store::Counters;

use super::process::{forget_peak_memory, own_cpu, peak_memory, tree_cpu};
use super::site::{Ground, Site};
use crate::failure::Failure;
use crate::output::complain;

/// What had been used when the stretch began.
#[derive(Debug)]
pub(super) struct Meter {
    began: Instant,
    own_cpu: Duration,
    server: Option<ServerMark>,
}

/// What had been used up to a moment.
#[derive(Clone, Copy, Debug)]
struct ServerMark {
    counters: Counters,
    statements: Option<i64>,
    cpu: Option<Duration>,
}

/// The stretch is over; what sessions did that are still there is not counted yet.
#[derive(Debug)]
pub(super) struct Stopped {
    meter: Meter,
    elapsed: Duration,
    own_cpu: Duration,
    peak_memory: Option<u64>,
    wal_bytes: Option<i64>,
    server_cpu: Option<Duration>,
}

/// What it cost in all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub(super) elapsed: Duration,
    /// CPU time of this process.
    pub(super) own_cpu: Duration,
    pub(super) peak_memory: Option<u64>,
    /// What only a server has.
    pub(super) server: Option<ServerCost>,
}

/// What it cost the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerCost {
    pub(super) wal_bytes: i64,
    pub(super) commits: i64,
    pub(super) statements: Option<i64>,
    pub(super) rows: i64,
    pub(super) dead_rows: i64,
    /// Only where the server is ours.
    pub(super) cpu: Option<Duration>,
}

impl Meter {
    /// Begins a stretch, when all that was done before has been written. Sessions that worked before are to be gone.
    pub(super) async fn start(site: &Site<'_>) -> Result<Self, Failure> {
        let server = match site {
            Site::Memory(_) => None,
            Site::Postgres(ground) => {
                ground.server.checkpoint().await?;
                Some(ServerMark::read(ground).await?)
            }
        };
        forget_peak_memory();
        Ok(Self { own_cpu: own_cpu(), server, began: Instant::now() })
    }

    /// Ends the stretch. Sessions are to be closed before [`Stopped::settle`].
    pub(super) async fn stop(self, site: &Site<'_>) -> Result<Stopped, Failure> {
        let (elapsed, own_cpu, peak_memory) = (self.began.elapsed(), own_cpu(), peak_memory());
        let (wal_bytes, server_cpu) = match site {
            Site::Memory(_) => (None, None),
            Site::Postgres(ground) => {
                let cpu = ground.cpu();
                (Some(ground.observer.measure().counters().await?.wal_bytes), cpu)
            }
        };
        Ok(Stopped { meter: self, elapsed, own_cpu, peak_memory, wal_bytes, server_cpu })
    }
}

impl Stopped {
    /// The cost, when all sessions have ended.
    pub(super) async fn settle(self, site: &Site<'_>) -> Result<Cost, Failure> {
        let server = match (site, self.meter.server) {
            (Site::Postgres(ground), Some(before)) => {
                ground.settle().await?;
                let after = ServerMark::read(ground).await?;
                let cpu = self.server_cpu.zip(before.cpu).map(|(after, before)| after.saturating_sub(before));
                let statements = after.statements.zip(before.statements).map(|(after, before)| after - before);
                let (a, b) = (after.counters, before.counters);
                let dead_rows = (a.updated - b.updated) + (a.deleted - b.deleted);
                Some(ServerCost {
                    wal_bytes: self.wal_bytes.unwrap_or(a.wal_bytes) - b.wal_bytes,
                    commits: a.commits - b.commits,
                    statements,
                    rows: (a.inserted - b.inserted) + dead_rows,
                    dead_rows,
                    cpu,
                })
            }
            _ => None,
        };
        let own_cpu = self.own_cpu.saturating_sub(self.meter.own_cpu);
        Ok(Cost { elapsed: self.elapsed, own_cpu, peak_memory: self.peak_memory, server })
    }
}

impl ServerMark {
    async fn read(ground: &Ground<'_>) -> Result<Self, Failure> {
        let measure = ground.observer.measure();
        let statements = match measure.statement_calls().await {
            Ok(calls) => calls,
            Err(error) => {
                complain(&format!("statements are not counted: {error}"));
                None
            }
        };
        Ok(Self { counters: measure.counters().await?, statements, cpu: ground.cpu() })
    }
}

impl Ground<'_> {
    /// The CPU time of the server's processes, when the server is ours.
    fn cpu(&self) -> Option<Duration> {
        tree_cpu(self.server.cluster.as_ref()?.postmaster_pid())
    }
}
