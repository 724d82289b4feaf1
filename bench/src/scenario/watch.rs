//! Waiting until everything is done, and looking whether it really is.

use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::time::sleep;

use crate::peer::Queue;
use crate::plan::Plan;
use crate::runs::Runs;

/// The pause between two looks at the book, which cost next to nothing.
const GLANCE: Duration = Duration::from_millis(1);
/// The pause between two looks at the peer's tables.
const LOOK: Duration = Duration::from_millis(2);

/// How the jobs of a measurement ended.
#[derive(Debug)]
pub(super) struct Watched {
    /// When all that are done were done.
    pub(super) at: Instant,
    /// What was wrong.
    pub(super) faults: Vec<String>,
}

/// Waits until `jobs` jobs were run, and then until they count as done, or until nothing moves any more.
///
/// The peer's tables are not looked at before every handler has run, so that looking costs the measurement nothing. The
/// moment of the end is when the look that found all jobs done was begun.
pub(super) async fn until_done(queue: &dyn Queue, runs: &Runs, jobs: u64, plan: &Plan) -> Result<Watched> {
    let mut faults = Vec::new();
    let mut seen = (runs.distinct(), Instant::now());
    while runs.distinct() < jobs {
        sleep(GLANCE).await;
        if runs.distinct() > seen.0 {
            seen = (runs.distinct(), Instant::now());
        } else if seen.1.elapsed() > plan.patience {
            faults.push(format!("LOST: {} of {jobs} jobs were never run", jobs - seen.0));
            break;
        }
    }
    let mut seen = (0, Instant::now());
    loop {
        let at = Instant::now();
        let done = queue.done(jobs).await?;
        if done >= jobs || !faults.is_empty() {
            return Ok(Watched { at, faults });
        }
        if done > seen.0 {
            seen = (done, at);
        } else if seen.1.elapsed() > plan.patience {
            faults.push(format!("LOST: {} of {jobs} jobs were run and don't count as done", jobs - done));
            return Ok(Watched { at: seen.1, faults });
        }
        sleep(LOOK).await;
    }
}

/// Counts the done jobs one by one, and adds what else the book knows.
pub(super) async fn audit(queue: &dyn Queue, runs: &Runs, jobs: u64, faults: &mut Vec<String>) -> Result<()> {
    let done = queue.audit(jobs).await?;
    if done != jobs && faults.is_empty() {
        faults.push(format!("LOST: {done} of {jobs} jobs count as done"));
    }
    if runs.again() > 0 {
        faults.push(format!("{} runs were repetitions", runs.again()));
    }
    if runs.foreign() > 0 {
        faults.push(format!("{} runs of jobs that nobody enqueued", runs.foreign()));
    }
    Ok(())
}
