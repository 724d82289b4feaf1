//! Values for the unit tests of this crate.

use std::sync::Arc;

use awa_core::attempt::Receipt;
use awa_core::id::Slot;
use awa_core::job::MaxAttempts;
use awa_core::{
    BatchId, ClaimedJob, JobId, JobKind, JsonText, Nonce, Priority, QueueName, ReceiptId, RunLease, Timestamp,
};
use tokio::time::Instant;

use crate::attempt::Attempt;

/// The claimed job number `number`, of kind `plain`, in its first attempt of 25.
pub(crate) fn claimed(number: u16) -> ClaimedJob {
    ClaimedJob {
        receipt: Receipt {
            id: ReceiptId::new(BatchId(1), number),
            claim_slot: Slot(0),
            nonce: Nonce(7),
            job: JobId(number.into()),
            run_lease: RunLease(1),
        },
        queue: QueueName::new("default").unwrap(),
        kind: JobKind::new("plain").unwrap(),
        args: JsonText::new("args", "{}").unwrap(),
        metadata: None,
        priority: Priority::default(),
        attempt: 1,
        max_attempts: MaxAttempts::default(),
        created_at: Timestamp::EPOCH,
        claimed_at: Timestamp::EPOCH,
        deadline_at: None,
    }
}

/// Attempts at the first `count` jobs.
pub(crate) fn attempts(count: u16) -> Vec<Arc<Attempt>> {
    (1..=count).map(|number| Arc::new(Attempt::new(claimed(number), Instant::now(), None))).collect()
}
