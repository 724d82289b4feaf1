//! One worker's clock is ten minutes ahead, another's as far behind. Awa goes by the server's clock: nobody is taken for dead, no
//! job runs before its time, and none waits ten minutes.

use std::process::{Command, Stdio};

use sqlx::PgPool;
use tokio::time::sleep;

use crate::chaos::Failure;
use crate::chaos::actors::{Actors, Harm};
use crate::chaos::crew::Crew;

/// How far a clock is off, in seconds.
const OFF: i64 = 600;

const RESCUED: &str = "SELECT count(*) FROM audit.closures WHERE outcome = 7";

/// Whether there is a program that shows another time to another program.
pub(super) fn is_possible() -> bool {
    let mut probe = Command::new("faketime");
    probe.args(["-f", "+1s", "true"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

/// Starts a worker ahead, one behind and one on time.
pub(super) async fn start(crew: &mut Crew) -> Result<(), Failure> {
    crew.start_by(&["faketime", "-f", &format!("+{OFF}s")]).await?;
    crew.start_by(&["faketime", "-f", &format!("-{OFF}s")]).await?;
    crew.start().await
}

pub(super) async fn play(actors: &mut Actors) -> Result<Harm, Failure> {
    let mut harm = Harm::default();
    let clocks = [0, 1].map(|index| actors.crew.member(index).clock_ahead);
    let is_off = (clocks[0] - OFF).abs() < OFF / 10 && (clocks[1] + OFF).abs() < OFF / 10;
    harm.must(is_off, &format!("the clocks of the workers are {clocks:?} seconds off"));
    harm.kills = 2;
    sleep(actors.rest()).await;
    let control: PgPool = actors.control().await?;
    let rescued: i64 = sqlx::query_scalar(RESCUED).fetch_one(&control).await?;
    control.close().await;
    if rescued > 0 {
        harm.unmet.push(format!("{rescued} attempts of living workers were rescued"));
    }
    Ok(harm)
}
