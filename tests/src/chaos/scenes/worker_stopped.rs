//! A worker stands still with jobs in its hands until it is taken for dead and its attempts are rescued; then it goes on, and what
//! it says about them must be refused.

use std::time::Duration;

use tokio::time::sleep;

use crate::chaos::Failure;
use crate::chaos::actors::{Actors, Harm};
use crate::chaos::worker::STALENESS;

/// Attempts that an instance holds in the ring of claims.
const HELD: &str = "SELECT count(*) FROM awa.open_claims WHERE instance_id = $1 AND open <> '{}'";
/// Attempts that were taken from dead workers so far. The argument is not needed.
const RESCUED: &str = "SELECT count(*) FROM audit.closures WHERE outcome = 7 AND $1 = $1";

pub(super) async fn play(actors: &mut Actors) -> Result<Harm, Failure> {
    let mut harm = Harm { expects_refusal: true, ..Harm::default() };
    let control = actors.control().await?;
    let mut rescues = 0;
    while actors.goes_on() || rescues == 0 {
        let victim = actors.seed.below(actors.crew.len() as u64) as usize;
        let instance = actors.crew.member(victim).instance;
        let limit = Duration::from_secs(10);
        let holds = actors.reaches(&control, HELD, instance, 1, limit).await?;
        actors.crew.freeze(victim)?;
        harm.kills += 1;
        let before: i64 = sqlx::query_scalar(RESCUED).bind(0_i64).fetch_one(&control).await?;
        // What it held is taken away only when it held something in the very moment in which it was stopped.
        let is_rescued = actors.reaches(&control, RESCUED, 0, before + 1, STALENESS * 3).await?;
        rescues += u64::from(holds && is_rescued);
        actors.crew.thaw(victim)?;
        sleep(Duration::from_millis(300)).await;
        if harm.kills > 20 {
            break;
        }
    }
    control.close().await;
    harm.must(rescues > 0, "nothing was rescued from a worker that stood still");
    Ok(harm)
}
