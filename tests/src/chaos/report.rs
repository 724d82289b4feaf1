//! The table that a run prints.

use std::time::Duration;

use serde::Serialize;

use super::census::Census;

/// How a scene ended.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// Its name.
    pub scene: &'static str,
    /// Repeats it, as far as processes can be made to repeat themselves.
    pub seed: u64,
    /// How long it took, healing and counting included.
    pub seconds: u64,
    /// Jobs whose commit was acknowledged.
    pub jobs: usize,
    /// Processes killed or stopped, sessions ended, locks taken: whatever the scene's harm is.
    pub kills: u64,
    /// Attempts that a rescuer ended.
    pub rescued: usize,
    /// Acknowledged jobs that are nowhere.
    pub lost: usize,
    /// Attempts and jobs that ended twice.
    pub doubled: usize,
    /// Jobs and attempts that do not end.
    pub stuck: usize,
    /// `clean`, `skipped: why`, or what is wrong.
    pub verdict: String,
}

impl Line {
    /// The line of a scene that was played to its end.
    pub(super) fn of(scene: &'static str, seed: u64, took: Duration, kills: u64, census: &Census) -> Self {
        let verdict = if census.is_clean() {
            CLEAN.to_owned()
        } else {
            let problems = census.problems.join("; ");
            if problems.is_empty() { "not clean".to_owned() } else { problems }
        };
        let (seconds, jobs, rescued) = (took.as_secs(), census.jobs, census.rescued);
        let (lost, doubled, stuck) = (census.lost, census.doubled, census.stuck);
        Self { scene, seed, seconds, jobs, kills, rescued, lost, doubled, stuck, verdict }
    }

    /// The line of a scene that was not played.
    pub(super) fn without_census(scene: &'static str, seed: u64, took: Duration, verdict: String) -> Self {
        Self { verdict, ..Self::of(scene, seed, took, 0, &Census::default()) }
    }

    /// Whether everything was as it must be.
    pub fn is_clean(&self) -> bool {
        self.verdict == CLEAN
    }

    /// Whether the scene could not be played on this machine.
    pub fn is_skipped(&self) -> bool {
        self.verdict.starts_with(SKIPPED)
    }

    /// The titles of the columns.
    pub fn titles() -> String {
        row("scene", "seed", ["seconds", "jobs", "kills", "rescued", "lost", "doubled", "stuck"], "verdict")
    }
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let numbers = [self.seconds, self.jobs as u64, self.kills, self.rescued as u64, self.lost as u64];
        let numbers = numbers.into_iter().chain([self.doubled as u64, self.stuck as u64]);
        let texts: Vec<String> = numbers.map(|number| number.to_string()).collect();
        let columns: [&str; 7] = std::array::from_fn(|column| texts[column].as_str());
        f.write_str(&row(self.scene, &self.seed.to_string(), columns, &self.verdict))
    }
}

const CLEAN: &str = "clean";
pub(super) const SKIPPED: &str = "skipped: ";

fn row(scene: &str, seed: &str, columns: [&str; 7], verdict: &str) -> String {
    let columns: Vec<_> = columns.iter().map(|column| format!("{column:>7}")).collect();
    format!("{scene:<20} | {seed:>20} | {} | {verdict}", columns.join(" | "))
}
