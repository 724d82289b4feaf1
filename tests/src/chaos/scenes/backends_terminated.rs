//! Sessions of workers and producers are ended by the server at random, and statements of theirs are cancelled.

use std::time::Duration;

use sqlx::{PgPool, Row};
use tokio::time::sleep;

use crate::chaos::Failure;
use crate::chaos::actors::{Actors, Harm};
use crate::seed::Seed;

const VICTIMS: &str = "
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY pid";

pub(super) async fn play(actors: &mut Actors) -> Result<Harm, Failure> {
    let mut harm = Harm::default();
    let control = actors.control().await?;
    while actors.goes_on() {
        sleep(Duration::from_millis(50 + actors.seed.below(150))).await;
        harm.kills += u64::from(end_a_session(&control, &mut actors.seed).await?);
    }
    control.close().await;
    harm.must(harm.kills > 10, "hardly any session was ended");
    Ok(harm)
}

/// Ends a session of the database, or cancels its statement; gives whether there was one.
pub(super) async fn end_a_session(control: &PgPool, seed: &mut Seed) -> Result<bool, Failure> {
    let victims: Vec<i32> = sqlx::query(VICTIMS).fetch_all(control).await?.iter().map(|row| row.get(0)).collect();
    if victims.is_empty() {
        return Ok(false);
    }
    let is_gentle = seed.one_in(4);
    let sql = if is_gentle { "SELECT pg_cancel_backend($1)" } else { "SELECT pg_terminate_backend($1)" };
    // A victim that has gone meanwhile is none.
    Ok(sqlx::query(sql).bind(*seed.pick(&victims)).fetch_one(control).await?.get(0))
}
