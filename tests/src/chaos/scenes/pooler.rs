//! `PgBouncer` in transaction mode stands between everybody and the server, with fewer connections than they have together. A worker
//! is killed now and then, and sessions of the pooler with the server are ended.

use std::time::Duration;

use tokio::time::sleep;

use super::backends_terminated::end_a_session;
use crate::chaos::Failure;
use crate::chaos::actors::{Actors, Harm};

pub(super) async fn play(actors: &mut Actors) -> Result<Harm, Failure> {
    let mut harm = Harm::default();
    let control = actors.control().await?;
    let before = actors.producers.acknowledged();
    while actors.goes_on() {
        sleep(actors.rest().min(Duration::from_millis(1_500))).await;
        harm.kills += u64::from(end_a_session(&control, &mut actors.seed).await?);
        if actors.seed.one_in(2) {
            let victim = actors.seed.below(actors.crew.len() as u64) as usize;
            actors.crew.kill(victim).await?;
            harm.kills += 1;
            actors.crew.start().await?;
        }
    }
    control.close().await;
    harm.must(actors.producers.acknowledged() > before, "nobody enqueued");
    Ok(harm)
}
