//! The jobs of the load: each says how its attempts go.

use awa_core::{NewJob, QueueName};
use awa_runtime::{IntoNewJob, Job};
use serde::{Deserialize, Serialize};

use super::Failure;
use crate::seed::Seed;

/// The queues of the load.
pub(super) const QUEUES: [&str; 2] = ["hot", "cold"];

/// A job of the load.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub(super) struct Errand {
    /// Unique in a scene.
    pub(super) number: u64,
    pub(super) course: Course,
}

impl Job for Errand {
    const KIND: &'static str = "errand";
}

/// How the attempts of a job go.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub(super) enum Course {
    /// Well, at once.
    Quick,
    /// Well, after so many milliseconds.
    Slow(u64),
    /// Well, with a result that is kept.
    WithResult,
    /// Badly so many times, then well.
    FailsFirst(u32),
    /// Put off by its first attempt, then well.
    PutOff,
    /// Noted how far it has come, which takes the attempt out of the ring of claims; then well.
    Notes,
    /// Badly for good.
    Fatal,
}

impl Errand {
    /// A job as the numbers have it.
    pub(super) fn random(number: u64, seed: &mut Seed) -> Self {
        let course = match seed.below(20) {
            0..=9 => Course::Quick,
            10..=13 => Course::Slow(seed.below(400)),
            14 => Course::WithResult,
            15 | 16 => Course::FailsFirst(1 + seed.below(2) as u32),
            17 => Course::PutOff,
            18 => Course::Notes,
            _ if seed.one_in(4) => Course::Fatal,
            _ => Course::Slow(1_500),
        };
        Self { number, course }
    }

    /// The same as a store takes it, in one of the queues.
    pub(super) fn into_job(self, seed: &mut Seed) -> Result<NewJob, Failure> {
        let queue = QueueName::new(*seed.pick(&QUEUES))?;
        let priority = 1 + seed.below(4) as i16;
        let mut with = self.with().queue(queue.as_str()).priority(priority).max_attempts(1_000);
        if seed.one_in(10) {
            with = with.delay(std::time::Duration::from_millis(seed.below(800)));
        }
        Ok(with.into_new_job()?)
    }
}
