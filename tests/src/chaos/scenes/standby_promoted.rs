//! The server is killed and its standby takes over. What was acknowledged had been replicated, so nothing acknowledged is lost. The
//! address of the database leads to the new server, and workers and producers go on by themselves.

use std::time::Duration;

use tokio::time::sleep;

use crate::chaos::Failure;
use crate::chaos::actors::{Actors, Harm};

pub(super) async fn play(actors: &mut Actors) -> Result<Harm, Failure> {
    let mut harm = Harm::default();
    sleep(actors.rest() / 2).await;
    let before = actors.producers.acknowledged();
    actors.with_cluster(|cluster| cluster.kill9()).await?;
    harm.kills = 1;
    // A failover is decided upon only after a while.
    sleep(Duration::from_millis(300 + actors.seed.below(700))).await;
    actors.servers.fail_over().await?;
    sleep(actors.rest().max(Duration::from_secs(2))).await;
    harm.must(before > 0, "nobody enqueued before the failover");
    harm.must(actors.producers.acknowledged() > before, "nobody enqueued after the failover");
    Ok(harm)
}
