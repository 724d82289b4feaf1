//! Every process has one connection for everything but wake-ups; a worker is killed now and then.

use std::time::Duration;

use tokio::time::sleep;

use crate::chaos::Failure;
use crate::chaos::actors::{Actors, Harm};

pub(super) async fn play(actors: &mut Actors) -> Result<Harm, Failure> {
    let mut harm = Harm::default();
    let before = actors.producers.acknowledged();
    while actors.goes_on() {
        sleep(actors.rest().min(Duration::from_secs(3))).await;
        let victim = actors.seed.below(actors.crew.len() as u64) as usize;
        actors.crew.kill(victim).await?;
        harm.kills += 1;
        actors.crew.start().await?;
    }
    harm.must(actors.producers.acknowledged() > before, "nobody enqueued");
    Ok(harm)
}
