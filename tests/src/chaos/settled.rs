//! After the harm: everything ends by itself, nobody leaves anything behind, and the rings can be emptied.

use std::time::{Duration, Instant};

use awa_core::ring::{RingKind, RotationPolicy};
use awa_core::store::{Maintainer, RetentionPolicy};
use awa_store_sqlx::SqlxStore;
use sqlx::PgPool;
use tokio::time::sleep;

use super::Failure;
use super::census::number;

/// How long what is left may take to end: rescues, retries and their delays included, on a slow machine.
const DRAIN_LIMIT: Duration = Duration::from_secs(60);
/// How long the server may take to notice that a client is gone.
const LEAVE_LIMIT: Duration = Duration::from_secs(15);
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(200);

const LEFT: &str = "
    SELECT coalesce(sum(jobs), 0)::bigint FROM awa.count_states() WHERE state IN ('ready', 'running', 'deferred', 'waiting')";
const CONNECTIONS: &str = "
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
const LOCKS: &str = "
    SELECT count(*) FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
    WHERE d.datname = current_database() AND l.pid IS DISTINCT FROM pg_backend_pid()";
const PREPARED: &str = "SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()";
const SLOTS_IN_USE: &str = "
    SELECT (SELECT count(*) FROM awa.queue_ring_slots WHERE state IN ('sealed', 'drained'))
         + (SELECT count(*) FROM awa.claim_ring_slots WHERE state = 'sealed')
         + (SELECT count(*) FROM awa.lease_ring_slots WHERE state = 'sealed')";
const ROWS_IN_RINGS: &str = "
    SELECT (SELECT count(*) FROM awa.ready_entries) + (SELECT count(*) FROM awa.ready_claim_attempt_batches)
         + (SELECT count(*) FROM awa.lease_claim_batches) + (SELECT count(*) FROM awa.lease_claims)
         + (SELECT count(*) FROM awa.lease_claim_closure_batches) + (SELECT count(*) FROM awa.lease_claim_closures)
         + (SELECT count(*) FROM awa.leases) + (SELECT count(*) FROM awa.carried_entries)
         + (SELECT count(*) FROM awa.attempt_state AS s WHERE NOT EXISTS (
               SELECT FROM awa.dlq_entries AS d WHERE d.job_id = s.job_id))";

/// Waits until every job has ended; gives how many have not when the time is over.
pub(super) async fn wait_until_drained(pool: &PgPool) -> Result<usize, Failure> {
    wait_for_none(pool, LEFT, DRAIN_LIMIT).await
}

/// What clients left behind that are gone, in words.
pub(super) async fn left_behind(pool: &PgPool) -> Result<Vec<String>, Failure> {
    let mut problems = Vec::new();
    for (what, sql) in [("connections", CONNECTIONS), ("locks", LOCKS), ("prepared transactions", PREPARED)] {
        let left = wait_for_none(pool, sql, LEAVE_LIMIT).await?;
        if left > 0 {
            problems.push(format!("{left} {what} are left behind"));
        }
    }
    Ok(problems)
}

/// Turns every ring and prunes it to nothing; what is in the way, in words. Everything has ended.
pub(super) async fn empty_the_rings(store: &SqlxStore) -> Result<Vec<String>, Failure> {
    let rotation = RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 };
    let nothing = RetentionPolicy::NONE;
    let mut problems = Vec::new();
    // A ring without a free slot turns only after a first pass.
    for _ in 0..2 {
        for ring in RingKind::ALL {
            store.rotate(ring, &rotation).await?;
        }
        store.drain().await?;
        for ring in RingKind::ALL {
            store.prune(ring, &nothing).await?;
        }
    }
    for ring in RingKind::ALL {
        let kept = store.prune(ring, &nothing).await?.into_iter().filter(|report| report.kept.is_some());
        problems.extend(kept.map(|report| format!("a slot of the {ring} ring is kept: {report:?}")));
    }
    for (what, sql) in [("slots are in use", SLOTS_IN_USE), ("rows are in the rings", ROWS_IN_RINGS)] {
        let left = number(store.pool(), sql).await?;
        if left > 0 {
            problems.push(format!("{left} {what} after everything was pruned"));
        }
    }
    Ok(problems)
}

/// Waits until a query counts nothing; gives what it counts when the time is over.
async fn wait_for_none(pool: &PgPool, sql: &'static str, limit: Duration) -> Result<usize, Failure> {
    let deadline = Instant::now() + limit;
    loop {
        let left = number(pool, sql).await?;
        if left == 0 || Instant::now() > deadline {
            return Ok(left);
        }
        sleep(PAUSE).await;
    }
}
