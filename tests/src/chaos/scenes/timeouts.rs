//! The role has short time-outs, and somebody holds locks on tables of the rings for longer.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};
use tokio::time::sleep;

use crate::chaos::Failure;
use crate::chaos::actors::{Actors, Harm};

pub(super) const ROLE: &str = "hurried";
/// The role owns nothing and may do everything, so that only its time-outs tell it apart.
pub(super) const PREPARATION: &str = "
    DROP ROLE IF EXISTS hurried;
    CREATE ROLE hurried LOGIN SUPERUSER;
    ALTER ROLE hurried SET statement_timeout = '250ms';
    ALTER ROLE hurried SET lock_timeout = '50ms';
    ALTER ROLE hurried SET idle_in_transaction_session_timeout = '1s';";

/// Tables of the rings, one per slot.
const TABLES: &str = "
    SELECT relname::text FROM pg_class
    WHERE relnamespace = 'awa'::regnamespace AND relkind = 'r'
      AND relname ~ '^(ready_entries|lease_claim_batches|lease_claim_closure_batches|lease_claims|leases)_[0-9]+$'
    ORDER BY relname";
/// How many statements of the role have been cancelled or refused: what shows that the time-outs were met.
const ROLLED_BACK: &str = "SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()";

pub(super) async fn play(actors: &mut Actors) -> Result<Harm, Failure> {
    let mut harm = Harm::default();
    let mut session = PgConnection::connect(&actors.servers.direct(&actors.database)).await?;
    let tables: Vec<String> = sqlx::query(TABLES).fetch_all(&mut session).await?.iter().map(|row| row.get(0)).collect();
    let before: i64 = sqlx::query(ROLLED_BACK).fetch_one(&mut session).await?.get(0);
    while actors.goes_on() {
        let mut transaction = session.begin().await?;
        // A writer in each slot of a kind, so that the open one is among them.
        let kind = actors.seed.pick(&tables).rsplit_once('_').map(|(kind, _)| kind.to_owned()).unwrap_or_default();
        let of_kind = tables.iter().filter(|table| table.rsplit_once('_').is_some_and(|(stem, _)| stem == kind));
        let names: Vec<String> = of_kind.map(|table| format!("awa.{table}")).collect();
        let lock = format!("SET LOCAL lock_timeout = '2s'; LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", names.join(", "));
        if sqlx::raw_sql(AssertSqlSafe(lock)).execute(&mut *transaction).await.is_ok() {
            harm.kills += 1;
            sleep(Duration::from_millis(100 + actors.seed.below(500))).await;
        }
        transaction.rollback().await?;
        sleep(Duration::from_millis(actors.seed.below(200))).await;
    }
    let after: i64 = sqlx::query(ROLLED_BACK).fetch_one(&mut session).await?.get(0);
    session.close().await?;
    harm.must(harm.kills > 3 && after > before, "no time-out was met");
    Ok(harm)
}
