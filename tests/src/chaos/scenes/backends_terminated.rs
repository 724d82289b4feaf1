//! Sessions of workers and producers are ended by the server at random, and statements of theirs are cancelled.

use std::time::Duration;

use sqlx::Row;
use tokio::time::sleep;

use crate::chaos::Failure;
use crate::chaos::actors::{Actors, Harm};

const VICTIMS: &str = "
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY pid";

pub(super) async fn play(actors: &mut Actors) -> Result<Harm, Failure> {
    let mut harm = Harm::default();
    let control = actors.control().await?;
    while actors.goes_on() {
        sleep(Duration::from_millis(50 + actors.seed.below(150))).await;
        let victims: Vec<i32> = sqlx::query(VICTIMS).fetch_all(&control).await?.iter().map(|row| row.get(0)).collect();
        if victims.is_empty() {
            continue;
        }
        let is_gentle = actors.seed.one_in(4);
        let sql = if is_gentle { "SELECT pg_cancel_backend($1)" } else { "SELECT pg_terminate_backend($1)" };
        let victim = *actors.seed.pick(&victims);
        // A victim that has gone meanwhile is none.
        harm.kills += u64::from(sqlx::query(sql).bind(victim).fetch_one(&control).await?.get::<bool, _>(0));
    }
    control.close().await;
    harm.must(harm.kills > 10, "hardly any session was ended");
    Ok(harm)
}
