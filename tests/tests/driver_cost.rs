//! What a driver costs: claims and completions through diesel take about as long as through sqlx.
//!
//! Only the ratio is held, and both drivers take turns in one run, so that a busy machine slows both.

use std::time::{Duration, Instant};

use awa_core::store::{BatchLimit, ClaimRequest, ClaimShape, Maintainer as _};
use awa_core::{AttemptEnd, Closure, ClosureAnswer, InstanceId, JobKind, JsonText, NewJob, Nonce, QueueName, Store};
use awa_tests::postgres::FreshStore;

const JOBS: usize = 500;
const ROUNDS: i64 = 40;
/// The first rounds prepare statements and fill caches.
const WARM_UP: usize = 5;
/// Diesel aims at 1.2; what is more than that by this much is a defect and no noise.
const MAX_RATIO: f64 = 1.5;

/// How long it takes to claim and complete [`JOBS`] jobs.
async fn round(store: &dyn Store, queue: &QueueName, number: i64) -> Duration {
    let kind = JobKind::new("cost").unwrap();
    let args = JsonText::new("args", r#"{"to":"ada@example.org","subject":"hello"}"#).unwrap();
    store.enqueue(&vec![NewJob::new(queue.clone(), kind, args); JOBS]).await.unwrap();
    let request = ClaimRequest {
        queue: queue.clone(),
        instance: InstanceId(1),
        nonce: Nonce(number),
        max_jobs: BatchLimit::new(JOBS).unwrap(),
        max_bytes: u64::MAX,
        deadline: None,
        aging: None,
        shape: ClaimShape::Compact,
    };
    let began = Instant::now();
    let jobs = store.claim(&request).await.unwrap().jobs;
    let closures: Vec<_> = jobs.iter().map(|job| Closure { receipt: job.receipt, end: AttemptEnd::Complete }).collect();
    let answers = store.close(&closures).await.unwrap();
    let took = began.elapsed();
    assert_eq!(answers, [ClosureAnswer::Closed; JOBS]);
    took
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.drain(..WARM_UP);
    times.sort_unstable();
    times[times.len() / 2]
}

#[tokio::test]
async fn claim_and_complete_through_diesel_take_about_as_long_as_through_sqlx() {
    let fresh = FreshStore::with_server_clock().await;
    let diesel = awa_store_diesel::DieselStore::connect(&fresh.database.url()).await.unwrap();
    let queue = QueueName::new("cost").unwrap();
    diesel.open_queue(&queue).await.unwrap();
    let mut times = [Vec::new(), Vec::new()];
    for number in 0..ROUNDS {
        let stores: [&dyn Store; 2] = [&fresh.store, &diesel];
        // Who goes first changes with every round.
        for turn in 0..2 {
            let which = (turn + number as usize) % 2;
            times[which].push(round(stores[which], &queue, number * 2 + turn as i64).await);
        }
    }
    let [sqlx, diesel] = times.map(median);
    let ratio = diesel.as_secs_f64() / sqlx.as_secs_f64();
    println!("claim and complete of {JOBS}: sqlx {sqlx:?}, diesel {diesel:?}, ratio {ratio:.3}");
    assert!(ratio < MAX_RATIO, "sqlx takes {sqlx:?} and diesel {diesel:?}, {ratio:.2} times as long");
}
