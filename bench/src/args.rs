//! What a job carries.

use serde::{Deserialize, Serialize};

/// The arguments of every job: about 60 bytes as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Args {
    /// Which job of the measurement this is, from 0.
    pub seq: u64,
    /// Something to carry.
    pub note: String,
}

const NOTE: &str = "a parcel that waits for its collector";

impl Args {
    /// The arguments of job `seq`.
    pub fn new(seq: u64) -> Self {
        Self { seq, note: NOTE.to_owned() }
    }

    /// The arguments of these jobs.
    pub fn many(seqs: impl Iterator<Item = u64>) -> Vec<Self> {
        seqs.map(Self::new).collect()
    }

    /// The text that travels to the server.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("a number and a text serialize")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_about_sixty_bytes() {
        let json = Args::new(123_456).json();
        assert!((55..=65).contains(&json.len()), "{json}");
        assert_eq!(serde_json::from_str::<Args>(&json).unwrap(), Args::new(123_456));
    }
}
