//! The server is killed and its standby takes over. What was acknowledged had been replicated, so nothing acknowledged is lost. The
//! address of the database leads to the new server, and workers and producers go on by themselves.

use std::process::Command;
use std::time::Duration;

use awa_pg::cluster::Cluster;
use tokio::time::sleep;

use crate::chaos::Failure;
use crate::chaos::actors::{Actors, Harm};

/// How long producers may take until they go on.
const RECOVERY_LIMIT: Duration = Duration::from_secs(20);

/// Whether the server can be copied: by a program of its own version, which some packages leave out.
pub(super) fn is_possible(cluster: &Cluster) -> bool {
    let Ok(program) = cluster.bin("pg_basebackup") else { return false };
    let version = Command::new(program).arg("--version").output();
    let expected = format!(" {}.", cluster.version().major);
    version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(&expected))
}

pub(super) async fn play(actors: &mut Actors) -> Result<Harm, Failure> {
    let mut harm = Harm::default();
    sleep(actors.rest() / 2).await;
    let before = actors.producers.acknowledged();
    actors.with_cluster(|cluster| cluster.kill9()).await?;
    harm.kills = 1;
    // A failover is decided upon only after a while.
    sleep(Duration::from_millis(300 + actors.seed.below(700))).await;
    actors.servers.fail_over().await?;
    let goes_on = actors.producers.reach(before + 50, RECOVERY_LIMIT).await;
    sleep(actors.rest()).await;
    harm.must(before > 0, "nobody enqueued before the failover");
    harm.must(goes_on, "hardly anybody enqueued after the failover");
    Ok(harm)
}
