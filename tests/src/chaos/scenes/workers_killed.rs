//! A worker is killed every second, and another takes its place.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::chaos::Failure;
use crate::chaos::actors::{Actors, Harm};

pub(super) async fn play(actors: &mut Actors) -> Result<Harm, Failure> {
    let mut harm = Harm::default();
    let mut moments = interval(Duration::from_secs(1));
    moments.set_missed_tick_behavior(MissedTickBehavior::Delay);
    moments.tick().await;
    while actors.goes_on() {
        moments.tick().await;
        let victim = actors.seed.below(actors.crew.len() as u64) as usize;
        actors.crew.kill(victim).await?;
        harm.kills += 1;
        actors.crew.start().await?;
    }
    harm.must(harm.kills > 2, "hardly anybody was killed");
    Ok(harm)
}
