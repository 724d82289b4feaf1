//! How random histories are drawn.

use awa_core::ring::RingKind;
use awa_core::store::{ClaimShape, PurgeScope};
use proptest::prelude::*;
use proptest::sample::select;

use super::step::{End, INSTANCES, LANES, NewStep, Pick, QUEUES, Step, TRANSACTIONS};

/// Random histories of `steps` steps, of which a few are left out, so that a history is made shorter step by step.
pub fn history(steps: usize) -> impl Strategy<Value = Vec<Step>> {
    let kept = |steps: Vec<Option<Step>>| steps.into_iter().flatten().collect::<Vec<_>>();
    prop::collection::vec(prop::option::weighted(0.98, step()), steps).prop_map(kept)
}

fn ring() -> impl Strategy<Value = RingKind> {
    select(RingKind::ALL.to_vec())
}

/// The latest mean more than the old.
fn pick() -> impl Strategy<Value = Pick> {
    prop_oneof![3 => 0_u8..6, 1 => 0_u8..60].prop_map(Pick)
}

fn picks() -> impl Strategy<Value = Vec<Pick>> {
    prop::collection::vec(pick(), 1..4)
}

fn job() -> impl Strategy<Value = NewStep> {
    let delay = prop_oneof![4 => Just(None), 1 => (1_u64..30).prop_map(Some)];
    let key = prop_oneof![4 => Just(None), 1 => (0_u8..3).prop_map(Some)];
    (delay, key, 1_i64..4, 0..LANES).prop_map(|(delay, key, max_attempts, lane)| NewStep {
        delay,
        key,
        max_attempts,
        lane,
    })
}

fn queue() -> impl Strategy<Value = u8> {
    0..QUEUES
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![8 => from_applications(), 15 => from_workers(), 5 => from_operators(), 10 => from_maintenance()]
}

fn from_applications() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (queue(), prop::collection::vec(job(), 1..5)).prop_map(|(queue, jobs)| Step::Enqueue { queue, jobs }),
        3 => (0..TRANSACTIONS, queue(), prop::collection::vec(job(), 1..4))
            .prop_map(|(transaction, queue, jobs)| Step::EnqueueIn { transaction, queue, jobs }),
        1 => (0..TRANSACTIONS, picks()).prop_map(|(transaction, jobs)| Step::CancelIn { transaction, jobs }),
        2 => (0..TRANSACTIONS, prop::bool::weighted(0.8))
            .prop_map(|(transaction, commit)| Step::EndTransaction { transaction, commit }),
        1 => pick().prop_map(|token| Step::Resume { token }),
    ]
}

fn from_workers() -> impl Strategy<Value = Step> {
    let jobs = prop_oneof![1_usize..4, Just(100)];
    let shape = select(vec![ClaimShape::Compact, ClaimShape::RowLocal]);
    let attempts = prop::collection::vec((pick(), select(End::ALL.to_vec())), 1..6);
    prop_oneof![
        10 => (queue(), INSTANCES, jobs, prop::bool::weighted(0.2), shape).prop_map(
            |(queue, instance, jobs, deadline, shape)| Step::Claim { queue, instance, jobs, deadline, shape }
        ),
        12 => attempts.prop_map(|attempts| Step::Close { attempts }),
        3 => (pick(), prop::option::of(0_u8..9), any::<bool>())
            .prop_map(|(attempt, progress, callback)| Step::Note { attempt, progress, callback }),
        2 => INSTANCES.prop_map(|instance| Step::Beat { instance }),
        1 => INSTANCES.prop_map(|instance| Step::Retire { instance }),
    ]
}

fn from_operators() -> impl Strategy<Value = Step> {
    let scope = select(vec![PurgeScope::Ready, PurgeScope::ReadyAndDeferred]);
    prop_oneof![
        3 => picks().prop_map(|jobs| Step::Cancel { jobs }),
        3 => picks().prop_map(|jobs| Step::Retry { jobs }),
        1 => picks().prop_map(|jobs| Step::Delete { jobs }),
        2 => (picks(), queue(), 0..LANES).prop_map(|(jobs, queue, lane)| Step::Move { jobs, queue, lane }),
        1 => (queue(), scope).prop_map(|(queue, scope)| Step::Purge { queue, scope }),
        2 => (queue(), prop::bool::weighted(0.3)).prop_map(|(queue, paused)| Step::Pause { queue, paused }),
    ]
}

fn from_maintenance() -> impl Strategy<Value = Step> {
    let prune = prop::option::of(ring());
    prop_oneof![
        // Seldom, because a ring that has grown costs a new database.
        1 => ring().prop_map(|ring| Step::Grow { ring }),
        16 => Just(Step::Rescue),
        32 => (1_u64..20).prop_map(|seconds| Step::Pass { seconds }),
        32 => (1_usize..5).prop_map(|limit| Step::Promote { limit }),
        64 => ring().prop_map(|ring| Step::Rotate { ring }),
        64 => (any::<bool>(), any::<bool>(), prune, any::<bool>())
            .prop_map(|(drain, unpin, prune, patient)| Step::Reclaim { drain, unpin, prune, patient }),
        16 => Just(Step::Tidy),
    ]
}
