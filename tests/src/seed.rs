//! Random numbers that can be replayed.

use std::time::{SystemTime, UNIX_EPOCH};

/// The variable that replays a run.
pub const VARIABLE: &str = "AWA_TEST_SEED";

/// A generator of random numbers (SplitMix64), printed when it starts.
#[derive(Debug, Clone)]
pub struct Seed(u64);

impl Seed {
    /// The seed of the variable `AWA_TEST_SEED`, else a new one; printed, so that a failure can be replayed.
    ///
    /// # Panics
    ///
    /// When the variable is set to something else than a number.
    pub fn announced() -> Self {
        let seed = if let Ok(text) = std::env::var(VARIABLE) {
            text.parse().expect("AWA_TEST_SEED is a number")
        } else {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is after 1970");
            now.as_micros() as u64 ^ u64::from(std::process::id()) << 40
        };
        println!("to replay: {VARIABLE}={seed}");
        Self(seed)
    }

    /// A generator from this number.
    pub fn of(number: u64) -> Self {
        Self(number)
    }

    /// A generator of its own, for a task beside others; the same numbers for the same seed and `name`.
    #[must_use]
    pub fn split(&self, name: u64) -> Self {
        let mut other = Self(self.0 ^ name.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        other.number();
        other
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// A number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound.max(1)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of `choices`.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn pick<'c, T>(&mut self, choices: &'c [T]) -> &'c T {
        &choices[self.below(choices.len() as u64) as usize]
    }
}
