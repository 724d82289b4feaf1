//! What the handlers of one worker process ran: a line per start and end of an attempt, in a file that is only appended to.
//!
//! Each line is one write, which a kill of the process cannot take back.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

use awa_core::attempt::Receipt;
use serde::{Deserialize, Serialize};

use super::Failure;

/// A line of a journal.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    /// The number that the producer gave the job.
    pub(super) number: u64,
    /// The id of the job.
    pub(super) job: i64,
    /// The id of the attempt's receipt.
    pub(super) receipt: i64,
    pub(super) what: What,
}

/// What happened to an attempt.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub(super) enum What {
    Start,
    /// Its handler is about to return that it went well.
    Done,
    /// Its handler is about to return that it went badly for good.
    Fatal,
    /// Its handler is about to return something else.
    Again,
}

/// A journal that is being written.
#[derive(Debug)]
pub(super) struct Journal(File);

impl Journal {
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        Ok(Self(OpenOptions::new().create(true).append(true).open(path)?))
    }

    /// Writes a line.
    pub(super) fn note(&self, number: u64, receipt: &Receipt, what: What) -> Result<(), Failure> {
        let entry = Entry { number, job: receipt.job.0, receipt: receipt.id.get(), what };
        let line = serde_json::to_string(&entry)? + "\n";
        Ok((&self.0).write_all(line.as_bytes())?)
    }
}

/// The lines of all journals in a folder.
pub(super) fn read_all(folder: &Path) -> Result<Vec<Entry>, Failure> {
    let mut entries = Vec::new();
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        if path.extension().is_some_and(|ending| ending == ENDING) {
            let text = fs::read_to_string(&path)?;
            // What follows the last line end was never written in full.
            let whole = text.rfind('\n').map_or(0, |end| end + 1);
            for line in text[..whole].lines() {
                entries.push(serde_json::from_str(line)?);
            }
        }
    }
    Ok(entries)
}

/// How the names of journals end.
pub(super) const ENDING: &str = "journal";
