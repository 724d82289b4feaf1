//! What this process holds, from the answer of a claim to the confirmation of the end.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use awa_core::attempt::Receipt;
use awa_core::{BatchId, Nonce};

/// Open attempts by claim batch. A batch comes whole with one answer and leaves member by member, so a count per batch
/// says as much as a set of receipts, and costs one entry per claim instead of one per job.
#[derive(Debug, Default)]
pub(crate) struct Hands(Mutex<HashMap<(BatchId, Nonce), usize>>);

impl Hands {
    /// Takes attempts into this process's hands.
    pub(crate) fn take<'a>(&self, receipts: impl IntoIterator<Item = &'a Receipt>) {
        let mut batches = self.lock();
        in_runs(receipts, |batch, members| *batches.entry(batch).or_default() += members);
    }

    /// Lets go of attempts whose end was confirmed or refused.
    pub(crate) fn let_go<'a>(&self, receipts: impl IntoIterator<Item = &'a Receipt>) {
        let mut batches = self.lock();
        in_runs(receipts, |batch, members| {
            if let Some(held) = batches.get_mut(&batch) {
                *held = held.saturating_sub(members);
                if *held == 0 {
                    batches.remove(&batch);
                }
            }
        });
    }

    /// Whether the batch of `receipt` is held.
    pub(crate) fn hold(&self, receipt: &Receipt) -> bool {
        self.lock().contains_key(&key(receipt))
    }

    /// The number of attempts held.
    pub(crate) fn count(&self) -> usize {
        self.lock().values().sum()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(BatchId, Nonce), usize>> {
        // Nothing that can panic runs under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(receipt: &Receipt) -> (BatchId, Nonce) {
    (receipt.id.batch(), receipt.nonce)
}

/// Gives each stretch of receipts of one batch to `each`, as its key and length.
fn in_runs<'a>(receipts: impl IntoIterator<Item = &'a Receipt>, mut each: impl FnMut((BatchId, Nonce), usize)) {
    let mut run: Option<((BatchId, Nonce), usize)> = None;
    for receipt in receipts {
        match &mut run {
            Some((batch, members)) if *batch == key(receipt) => *members += 1,
            _ => {
                if let Some((batch, members)) = run.replace((key(receipt), 1)) {
                    each(batch, members);
                }
            }
        }
    }
    if let Some((batch, members)) = run {
        each(batch, members);
    }
}

#[cfg(test)]
mod tests {
    use awa_core::id::Slot;
    use awa_core::{JobId, ReceiptId, RunLease};

    use super::*;

    fn receipt(batch: i64, index: u16) -> Receipt {
        let id = ReceiptId::new(BatchId(batch), index);
        Receipt { id, claim_slot: Slot(0), nonce: Nonce(batch), job: JobId(1), run_lease: RunLease(1) }
    }

    #[test]
    fn a_batch_is_held_until_its_last_member_is_let_go() {
        let hands = Hands::default();
        let (a1, a2, b1) = (receipt(1, 1), receipt(1, 2), receipt(2, 1));
        hands.take([&a1, &a2, &b1]);
        hands.let_go([&a1, &b1]);
        assert!(hands.hold(&a2) && !hands.hold(&b1));
        assert_eq!(hands.count(), 1);
        hands.let_go([&a2]);
        assert!(!hands.hold(&a2) && hands.count() == 0);
    }

    #[test]
    fn another_claim_under_the_same_batch_id_is_not_held() {
        let hands = Hands::default();
        hands.take([&receipt(1, 1)]);
        assert!(!hands.hold(&Receipt { nonce: Nonce(99), ..receipt(1, 1) }));
    }
}
