//! What is set per queue, and how its jobs are spread over lanes.
//!
//! A queue has one lane per priority and *shard*. Inside a lane jobs keep their order (C6), and one claimer at a time takes
//! from it; several shards let as many claimers work side by side. A job is given its shard when it is enqueued and keeps
//! it for its life: through retries, promotions, hand-backs, the dead-letter queue and changes of priority or queue.
//!
//! - A job with an [`OrderingKey`] goes to the shard that [`OrderingKey::shard`] names, so that jobs with one key, one queue
//!   and one priority are in one lane and are *handed out* in their order. An attempt that is retried joins the tail of its
//!   lane, as everywhere: who must not be overtaken by what comes later has to hold that back himself.
//! - A job without one goes to the shard that [`Shard::of_unordered`] names, so that a queue's jobs are spread evenly; there is
//!   then no order between jobs of different shards.
//!
//! # Changing the number of shards
//!
//! Jobs that wait stay where they are and claims take all lanes that a queue ever had, so that a change strands nothing,
//! neither upwards nor downwards. Only new jobs go by the new number. Going up from `n` to `m` shards, a key moves only *to* one
//! of the new shards, and `n` of `m` keys do not move at all: these keep their order through the change. Going down, the keys
//! of the removed shards move and no other does. Of a key that moves, jobs that waited before the change and jobs that come
//! after it are in two lanes, in no order between each other, until the former are taken. Who needs the order of every key
//! changes the number while nothing of the queue waits.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::BadInput;
use crate::id::JobId;

/// The longest ordering key, in bytes.
pub const MAX_ORDERING_KEY_BYTES: usize = 1024;

/// One of the lanes that a priority of a queue has, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Shard(u8);

impl Shard {
    /// The shard of a job without an ordering key: the ids take turns.
    pub const fn of_unordered(job: JobId, shards: ShardCount) -> Self {
        // Ids are positive, and the remainder is below 64.
        Self(job.0.rem_euclid(shards.0 as i64) as u8)
    }

    /// The number, from 0 to 63.
    pub const fn get(self) -> i16 {
        self.0 as i16
    }
}

/// Over how many shards the new jobs of a queue are spread, 1 to 64; 1 unless told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct ShardCount(u8);

impl ShardCount {
    /// The most shards that a queue can have.
    pub const MAX: Self = Self(64);

    /// The count `number`, 1 to 64.
    ///
    /// # Errors
    ///
    /// [`BadInput`] of the field `enqueue_shards` outside that range.
    pub fn new(number: i64) -> Result<Self, BadInput> {
        match u8::try_from(number) {
            Ok(count) if (1..=Self::MAX.0).contains(&count) => Ok(Self(count)),
            _ => Err(BadInput::new("enqueue_shards", format!("{number} is outside 1 to {}", Self::MAX.0))),
        }
    }

    /// The number, 1 to 64.
    pub const fn get(self) -> i16 {
        self.0 as i16
    }

    /// The shards, in order.
    pub fn shards(self) -> impl Iterator<Item = Shard> {
        (0..self.0).map(Shard)
    }
}

impl Default for ShardCount {
    fn default() -> Self {
        Self(1)
    }
}

impl TryFrom<i64> for ShardCount {
    type Error = BadInput;

    fn try_from(number: i64) -> Result<Self, BadInput> {
        Self::new(number)
    }
}

impl From<ShardCount> for i64 {
    fn from(count: ShardCount) -> Self {
        Self::from(count.0)
    }
}

/// What keeps jobs in order among each other. Only a number made of the text is kept: the first 8 bytes of its SHA-256, most
/// significant first, modulo 2^31 - 2, plus 1. Two texts with one number share their order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OrderingKey(u32);

impl OrderingKey {
    /// The modulus of the generator by which a key jumps from shard to shard, 2^31 - 1.
    const MODULUS: u64 = (1 << 31) - 1;

    /// The key of `text`, which has 1 to [`MAX_ORDERING_KEY_BYTES`] bytes.
    ///
    /// # Errors
    ///
    /// [`BadInput`] of the field `ordering_key` when it is empty or longer.
    pub fn new(text: impl AsRef<str>) -> Result<Self, BadInput> {
        let text = text.as_ref();
        if !(1..=MAX_ORDERING_KEY_BYTES).contains(&text.len()) {
            let problem = format!("it has {} bytes; a key has 1 to {MAX_ORDERING_KEY_BYTES}", text.len());
            return Err(BadInput::new("ordering_key", problem));
        }
        let digest = Sha256::digest(text.as_bytes());
        let head = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        let number = head % (Self::MODULUS - 1) + 1;
        Ok(Self(u32::try_from(number).expect("it is below the modulus")))
    }

    /// The number of the key, from 1 to 2^31 - 2.
    pub const fn number(self) -> i32 {
        self.0 as i32
    }

    /// The shard of the jobs with this key: a jump consistent hash. With each shard that is added, the key either moves to that
    /// one or stays.
    pub fn shard(self, shards: ShardCount) -> Shard {
        let (mut shard, mut state) = (0, u64::from(self.0));
        loop {
            state = state * 48_271 % Self::MODULUS;
            let next = (shard + 1) * Self::MODULUS / state;
            if next >= u64::from(shards.0) {
                return Shard(u8::try_from(shard).expect("it is below 64"));
            }
            shard = next;
        }
    }
}

/// What is set for one queue. A queue for which nothing was set has the defaults.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QueueSettings {
    /// Over how many shards its new jobs are spread, 1 unless told; see [the module](self) about changing it. Each shard costs
    /// every claim of the queue a look.
    pub enqueue_shards: ShardCount,
    /// Whether jobs that fail for good are held in the dead-letter queue, as they are unless told. Without, they end as
    /// [`Failed`](crate::JobState::Failed) in the history of finished jobs, and leave with it. A change holds for jobs that
    /// fail from then on.
    pub dead_letter: bool,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self { enqueue_shards: ShardCount::default(), dead_letter: true }
    }
}

impl QueueSettings {
    /// Spreads new jobs over so many shards.
    #[must_use]
    pub const fn with_enqueue_shards(mut self, shards: ShardCount) -> Self {
        self.enqueue_shards = shards;
        self
    }

    /// Holds jobs that fail for good in the dead-letter queue, or files them as failed.
    #[must_use]
    pub const fn with_dead_letter(mut self, dead_letter: bool) -> Self {
        self.dead_letter = dead_letter;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(count: u32) -> impl Iterator<Item = OrderingKey> {
        (0..count).map(|number| OrderingKey::new(format!("customer {number}")).unwrap())
    }

    #[test]
    fn counts_and_keys_have_a_range() {
        for number in [i64::MIN, -1, 0, 65, 256 + 1, i64::MAX] {
            assert_eq!(ShardCount::new(number).unwrap_err().field, "enqueue_shards");
        }
        assert_eq!(ShardCount::new(64), Ok(ShardCount::MAX));
        for text in ["", &"x".repeat(MAX_ORDERING_KEY_BYTES + 1)] {
            assert_eq!(OrderingKey::new(text).unwrap_err().field, "ordering_key");
        }
    }

    #[test]
    fn the_number_of_a_key_is_the_same_in_every_version() {
        // Jobs of one key must meet, whichever version of a producer has enqueued them.
        assert_eq!(OrderingKey::new("customer 7").unwrap().number(), 754_773_528);
        let shards: Vec<i16> = keys(8).map(|key| key.shard(ShardCount::MAX).get()).collect();
        assert_eq!(shards, [52, 54, 56, 59, 30, 58, 9, 44]);
    }

    #[test]
    fn keys_are_spread_evenly() {
        for count in [2_i64, 3, 7, 16, 64] {
            let shards = ShardCount::new(count).unwrap();
            let mut jobs = vec![0_i64; usize::try_from(count).unwrap()];
            for key in keys(32_000) {
                jobs[usize::try_from(key.shard(shards).get()).unwrap()] += 1;
            }
            let fair = 32_000 / count;
            assert!(jobs.iter().all(|jobs| (jobs - fair).abs() * 4 < fair), "{count} shards: {jobs:?}");
        }
    }

    #[test]
    fn a_key_moves_only_to_a_shard_that_is_new() {
        for key in keys(2_000) {
            let mut before = Shard(0);
            for count in 2..=64 {
                let after = key.shard(ShardCount::new(count).unwrap());
                assert!(after == before || i64::from(after.get()) == count - 1, "{before:?} to {after:?} of {count}");
                before = after;
            }
        }
    }

    #[test]
    fn jobs_without_a_key_take_turns() {
        let three = ShardCount::new(3).unwrap();
        let shards: Vec<i16> = (1..8).map(|id| Shard::of_unordered(JobId(id), three).get()).collect();
        assert_eq!(shards, [1, 2, 0, 1, 2, 0, 1]);
        assert_eq!(three.shards().map(Shard::get).collect::<Vec<_>>(), [0, 1, 2]);
    }
}
