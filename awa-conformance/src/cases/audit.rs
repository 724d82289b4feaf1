//! A worker compares what the store believes it to hold with what it holds.

use std::time::Duration;

use awa_core::AttemptEnd;
use awa_core::attempt::Receipt;

use crate::Subject;
use crate::scene::{ME, OTHER, Scene, job};

impl Scene<'_> {
    async fn open_attempts(&self, instance: awa_core::InstanceId, limit: usize) -> Vec<Receipt> {
        self.store().open_attempts(instance, limit).await.expect("open_attempts")
    }
}

/// C7: after a claim whose answer was lost, its attempts are found under the instance, oldest first, and can be ended
/// with what is found.
pub async fn the_attempts_of_a_lost_claim_are_found(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let new: Vec<_> = (0..9).map(|n| job("email", &n.to_string())).collect();
    scene.enqueue(&new).await;
    let (mut mine, mut others) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        mine.extend(scene.claim("email", 2).await.iter().map(|job| job.receipt));
        others.extend(scene.claim_as(OTHER, "email", 1).await.iter().map(|job| job.receipt));
        scene.pass(Duration::from_secs(1)).await;
    }
    assert_eq!(scene.open_attempts(ME, 100).await, mine);
    assert_eq!(scene.open_attempts(OTHER, 100).await, others);
    assert_eq!(scene.open_attempts(ME, 4).await, mine[..4], "the limit holds, and the oldest come first");
    for receipt in scene.open_attempts(ME, 100).await {
        let answer = scene.close_receipt(receipt, AttemptEnd::Release { delay: Duration::ZERO }).await;
        assert_eq!(answer, awa_core::ClosureAnswer::Closed);
    }
    assert_eq!(scene.open_attempts(ME, 100).await, []);
    assert_eq!(scene.open_attempts(OTHER, 100).await, others);
}

/// C3: a worker learns which of its attempts were ended by somebody else, in the order in which it asked (bug class 94).
pub async fn a_worker_learns_which_attempts_were_ended(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let new: Vec<_> = (0..5).map(|n| job("email", &n.to_string())).collect();
    let ids = scene.enqueue(&new).await;
    let attempts = scene.claim("email", 5).await;
    scene.cancel(&ids[1..2]).await;
    scene.complete(&attempts[3..4]).await;
    let mut receipts: Vec<_> = attempts.iter().map(|job| job.receipt).collect();
    receipts.reverse();
    receipts.push(receipts[0]);
    let open = scene.store().are_open(&receipts).await.expect("are_open");
    assert_eq!(open, [true, false, true, false, true, true]);
    assert_eq!(scene.open_attempts(ME, 100).await.len(), 3);
}
