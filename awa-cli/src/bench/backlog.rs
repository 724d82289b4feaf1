//! What a claim costs beside a long backlog: the store's own calls, one after the other, so that nothing else is timed.

use std::time::Duration;

use awa_core::store::{BatchLimit, ClaimRequest, ClaimShape};
use awa_core::{AttemptEnd, Closure, ClosureAnswer, InstanceId, Nonce, QueueName};
use awa_runtime::{Job, Worker};
use tokio::sync::oneshot;

use super::cost::Meter;
use super::ends::Probe;
use super::job::{EPOCH, Noop};
use super::latency::{Latency, between};
use super::result::{Counted, Measured};
use super::rig::Rig;
use crate::failure::Failure;

/// Claims that are timed, at most.
const ROUNDS: u64 = 200;
/// Jobs of one claim, at most.
const BATCH: u64 = 100;
/// After so long without a sign of life the claims may be rescued.
const STALENESS: Duration = Duration::from_hours(1);

/// Times claims while `size` jobs wait and a worker without claims keeps the store in order. At most half of them are
/// claimed, so that the backlog stays one.
pub(super) async fn measure(rig: &Rig<'_>, size: u64) -> Result<Measured, Failure> {
    let keeper = rig.site.hand(2).await?;
    let (stop, stopped) = oneshot::channel::<()>();
    let upkeep = Worker::builder(keeper.store()).claims(false).build()?;
    let upkeep = tokio::spawn(upkeep.run_until(async move {
        // A sender that is gone means the same.
        let _ = stopped.await;
    }));
    rig.preload(size).await?;
    let hand = rig.site.hand(1).await?;
    let store = hand.store();
    let request = ClaimRequest {
        queue: QueueName::new(Noop::QUEUE)?,
        instance: InstanceId(rand::random()),
        nonce: Nonce(0),
        max_jobs: BatchLimit::clamped((size / 2).min(BATCH) as usize),
        max_bytes: u64::MAX >> 1,
        deadline: None,
        aging: None,
        shape: ClaimShape::Compact,
    };
    store.beat(request.instance, STALENESS).await?;
    let (claims, probe) = (Latency::default(), Probe::new());
    let rounds = ROUNDS.min(size / 2 / u64::from(request.max_jobs.get()).max(1));
    let meter = Meter::start(&rig.site).await?;
    let (mut claimed, mut closed) = (0, 0);
    for _ in 0..rounds {
        let called = probe.now();
        let nonce = Nonce(rand::random());
        let answer = store.claim(&ClaimRequest { nonce, ..request.clone() }).await?;
        let now = probe.now();
        claims.record(between(called, now), between(EPOCH, now));
        let end = |job: &awa_core::ClaimedJob| Closure { receipt: job.receipt, end: AttemptEnd::Complete };
        let closures: Vec<_> = answer.jobs.iter().map(end).collect();
        let answers = store.close(&closures).await?;
        claimed += closures.len() as u64;
        closed += answers.iter().filter(|answer| **answer == ClosureAnswer::Closed).count() as u64;
    }
    let stopped = meter.stop(&rig.site).await?;
    store.retire(request.instance).await?;
    drop(store);
    hand.close().await;
    drop(stop);
    upkeep.await.map_err(|error| Failure::of("the upkeep broke off", &error))??;
    keeper.close().await;
    let measured = rig.conclude(Counted { enqueued: claimed, ended: closed }, stopped).await?;
    Ok(measured.with_claims(&claims))
}
