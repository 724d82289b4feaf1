//! What the producers know about the jobs that they enqueued, in a file that is only appended to: a line per transaction, written
//! when its outcome is known to the producer and before anything else is done.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Failure;

/// How a transaction ended, as far as its producer can know.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// The server said that it has committed.
    Acknowledged,
    /// The connection broke in the commit.
    Unknown,
    /// It was not asked to commit, or rolled back on purpose.
    NotCommitted,
}

/// A line of the ledger.
#[derive(Serialize, Deserialize, Debug)]
struct Line {
    outcome: Outcome,
    jobs: Vec<i64>,
}

/// The ledger of a scene.
#[derive(Debug)]
pub(super) struct Ledger {
    path: PathBuf,
    file: File,
}

impl Ledger {
    pub(super) fn open(folder: &Path) -> Result<Self, Failure> {
        let path = folder.join("ledger");
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        Ok(Self { path, file })
    }

    pub(super) fn write(&self, outcome: Outcome, jobs: Vec<i64>) -> Result<(), Failure> {
        let line = serde_json::to_string(&Line { outcome, jobs })? + "\n";
        Ok((&self.file).write_all(line.as_bytes())?)
    }

    /// What was written.
    pub(super) fn read(&self) -> Result<Known, Failure> {
        let mut known = Known::default();
        for line in fs::read_to_string(&self.path)?.lines() {
            let line: Line = serde_json::from_str(line)?;
            let jobs = match line.outcome {
                Outcome::Acknowledged => &mut known.acknowledged,
                Outcome::Unknown => &mut known.unknown,
                Outcome::NotCommitted => &mut known.not_committed,
            };
            jobs.extend(line.jobs);
        }
        Ok(known)
    }
}

/// Jobs by what is known about their transactions.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) acknowledged: BTreeSet<i64>,
    pub(super) unknown: BTreeSet<i64>,
    pub(super) not_committed: BTreeSet<i64>,
}
