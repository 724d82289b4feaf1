//! Identities as newtypes, so that no two of them can be confused.
//!
//! A job has one [`JobId`] for life. Each claim of it raises its [`RunLease`] by one. One claim call on one lane
//! makes one batch ([`BatchId`]); its members are numbered from one, and batch and member together are the
//! [`ReceiptId`], the immutable name of one attempt.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $inner:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// The plain number.
            pub const fn get(self) -> $inner {
                self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl From<$inner> for $name {
            fn from(value: $inner) -> Self {
                Self(value)
            }
        }
    };
}

number!(
    /// A job, from one sequence per schema; never reused.
    JobId,
    i64
);
number!(
    /// How often a job has been claimed: 0 before its first claim, one more with each. The fence of every write
    /// that belongs to an attempt.
    RunLease,
    i64
);
number!(
    /// One claim call on one lane and slot.
    BatchId,
    i64
);
number!(
    /// A stretch of order inside a queue: a 64-bit hash of (queue, priority, shard), computed and never allocated.
    LaneId,
    i64
);
number!(
    /// A random number drawn by the claimer. A worker presents it with every closure, so that a batch id handed out
    /// again after a failover that lost data cannot be confused with the claim that was lost.
    Nonce,
    i64
);
number!(
    /// A transaction of the database, 64 bits wide and never reused in one cluster.
    Xid,
    u64
);
number!(
    /// The position of a partition in its ring, from 0.
    Slot,
    u8
);
number!(
    /// How often a ring has been rotated; each opening of a slot has a generation of its own.
    Generation,
    i64
);

impl Slot {
    /// Stands in the receipt of an attempt that was never in a slot of the claim ring, because it began as a lease.
    pub const LEASED: Self = Self(u8::MAX);
}

/// One process start of a worker: 64 random bits, never reused, so that a restart under the same host name is another
/// instance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InstanceId(pub i64);

impl fmt::Debug for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InstanceId({self})")
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The name of one attempt: `batch_id << 10 | index`, with the index from 1.
///
/// The ids of one batch are contiguous, so a whole batch closes as one range.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReceiptId(i64);

impl ReceiptId {
    /// Bits of the member index.
    pub const INDEX_BITS: u32 = 10;
    /// The largest number of members of one batch.
    pub const MAX_INDEX: u16 = (1 << Self::INDEX_BITS) - 1;
    /// The largest batch id that fits.
    pub const MAX_BATCH: i64 = i64::MAX >> Self::INDEX_BITS;

    /// The receipt of member `index` of `batch`.
    ///
    /// # Panics
    ///
    /// When the index is 0 or above [`Self::MAX_INDEX`], or the batch is negative or above [`Self::MAX_BATCH`]: two
    /// attempts would share a name.
    pub fn new(batch: BatchId, index: u16) -> Self {
        assert!((1..=Self::MAX_INDEX).contains(&index), "member index {index} is outside 1..={}", Self::MAX_INDEX);
        assert!((0..=Self::MAX_BATCH).contains(&batch.0), "batch id {batch} does not fit a receipt id");
        Self(batch.0 << Self::INDEX_BITS | i64::from(index))
    }

    /// The receipt with this number, or `None` when no batch could have issued it.
    pub fn from_raw(raw: i64) -> Option<Self> {
        (raw > 0 && raw & i64::from(Self::MAX_INDEX) != 0).then_some(Self(raw))
    }

    /// The plain number.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The batch that issued it.
    pub const fn batch(self) -> BatchId {
        BatchId(self.0 >> Self::INDEX_BITS)
    }

    /// The position in its batch, from 1.
    pub const fn index(self) -> u16 {
        (self.0 & Self::MAX_INDEX as i64) as u16
    }
}

impl fmt::Debug for ReceiptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReceiptId({}#{})", self.batch(), self.index())
    }
}

impl fmt::Display for ReceiptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_names_its_batch_and_its_index() {
        for index in [1, 2, 512, ReceiptId::MAX_INDEX] {
            for batch in [0, 1, 1 << 31, ReceiptId::MAX_BATCH] {
                let receipt = ReceiptId::new(BatchId(batch), index);
                assert_eq!((receipt.batch(), receipt.index()), (BatchId(batch), index));
                assert_eq!(ReceiptId::from_raw(receipt.get()), Some(receipt));
            }
        }
    }

    #[test]
    fn receipts_of_one_batch_are_contiguous_and_batches_do_not_touch() {
        let last = ReceiptId::new(BatchId(7), ReceiptId::MAX_INDEX).get();
        let first = ReceiptId::new(BatchId(8), 1).get();
        assert_eq!(ReceiptId::new(BatchId(7), 2).get(), ReceiptId::new(BatchId(7), 1).get() + 1);
        assert_eq!(first, last + 2, "the index 0 between two batches is never issued");
        assert_eq!(ReceiptId::from_raw(last + 1), None);
    }

    #[test]
    #[should_panic(expected = "member index")]
    fn a_member_beyond_the_width_is_refused() {
        let _ = ReceiptId::new(BatchId(1), ReceiptId::MAX_INDEX + 1);
    }
}
