//! Putting left-overs in order is never urgent, so it must be in nobody's way and wait for nobody.

use std::time::Duration;

use awa_core::store::Maintainer;
use awa_tests::postgres::FreshStore;

/// A statement that reads the ring holds its slots from being reclaimed for as long as it runs, and it runs in every process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_nobody_has_been_silent_for_a_day_tidying_does_not_touch_the_claim_ring() {
    let fresh = FreshStore::with_server_clock().await;
    let mut holder = fresh.store.pool().begin().await.expect("a transaction begins");
    let lock = "LOCK TABLE awa.lease_claim_batches, awa.lease_claims, awa.lease_claim_closure_batches,
                awa.lease_claim_closures, awa.leases IN ACCESS EXCLUSIVE MODE";
    sqlx::raw_sql(lock).execute(&mut *holder).await.expect("nobody else is here");
    let tidied = tokio::time::timeout(Duration::from_secs(20), fresh.store.tidy()).await;
    tidied.expect("tidying waits for nobody").expect("and fails for nobody");
    holder.rollback().await.expect("the transaction ends");
}
