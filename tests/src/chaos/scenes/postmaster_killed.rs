//! The server is killed five times under load and started again on the same data: by turns the main process alone, whose sessions
//! go on until they notice, and all processes at once, as when the machine goes down.

use std::time::{Duration, Instant};

use awa_pg::cluster::{Cluster, ClusterError};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::sleep;

use crate::chaos::Failure;
use crate::chaos::actors::{Actors, Harm};

/// How often.
const TIMES: u64 = 5;
/// How long producers may take until they go on.
const RECOVERY_LIMIT: Duration = Duration::from_secs(20);
/// How long the server may take to start: sessions of the killed one may hold its memory for a while.
const RESTART_LIMIT: Duration = Duration::from_secs(40);

pub(super) async fn play(actors: &mut Actors) -> Result<Harm, Failure> {
    let mut harm = Harm::default();
    for time in 0..TIMES {
        let before = actors.producers.acknowledged();
        sleep(actors.rest() / u32::try_from(TIMES - time)?).await;
        let is_back = actors.producers.reach(before + 1, RECOVERY_LIMIT).await;
        harm.must(is_back, "nobody enqueued between two kills");
        if time % 2 == 0 {
            actors.with_cluster(kill_main_process).await??;
        } else {
            actors.with_cluster(Cluster::kill9).await?;
        }
        harm.kills += 1;
        // Clients meet a server that is not there for a while.
        sleep(Duration::from_millis(actors.seed.below(600))).await;
        actors.with_cluster(restart).await??;
    }
    Ok(harm)
}

fn kill_main_process(cluster: &Cluster) -> Result<(), Failure> {
    let pid = Pid::from_raw(i32::try_from(cluster.postmaster_pid())?).ok_or("the server has no process")?;
    Ok(kill_process(pid, Signal::KILL)?)
}

/// Starts the server again, which refuses while sessions of the killed one live, or while a client holds its port.
fn restart(cluster: &Cluster) -> Result<(), ClusterError> {
    let deadline = Instant::now() + RESTART_LIMIT;
    loop {
        match cluster.restart() {
            Err(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(100)),
            outcome => return outcome,
        }
    }
}
