//! Workers on jobs that wait already.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;

use super::{Measured, enqueue, watch};
use crate::peer::Queue;
use crate::plan::Plan;
use crate::runs::Runs;
use crate::server::Server;

/// From the start of the workers to the durable end of the last job.
pub(super) async fn measure(server: &Server, queue: &dyn Queue, plan: &Plan) -> Result<Measured> {
    enqueue::all(enqueue::producers(queue, plan).await?, plan, None).await?;
    server.analyze().await?;
    let runs = Arc::new(Runs::new(plan.jobs));
    let before = server.wal().await?;
    let start = Instant::now();
    let crew = queue.work(Arc::clone(&runs)).await?;
    let mut watched = watch::until_done(queue, &runs, plan.jobs, plan).await?;
    let wal_bytes = server.wal().await?.since(before);
    crew.stop().await?;
    watch::audit(queue, &runs, plan.jobs, &mut watched.faults).await?;
    let seconds = watched.at.saturating_duration_since(start).as_secs_f64();
    Ok(Measured { jobs: runs.distinct(), seconds, wal_bytes, latency: None, backlog: None, faults: watched.faults })
}
