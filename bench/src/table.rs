//! The outcome of a run, for people, for pages and for programs.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use crate::peer::Peer;
use crate::peers::{FLOOR, OURS};
use crate::plan::Plan;
use crate::rounds::Results;
use crate::scenario::{Measured, Scenario};

/// A whole run.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The server's settings that matter.
    pub server: Vec<(String, String)>,
    /// The machine: processors, and its load before and after.
    pub machine: Vec<(String, String)>,
    /// The sizes of the measurements.
    pub plan: String,
    /// Name, version and settings of each peer.
    pub peers: Vec<(String, String, String)>,
    /// Who could not be measured, and why.
    pub missing: Vec<(String, String)>,
    /// A line per scenario and peer.
    pub lines: Vec<Line>,
}

/// One peer in one scenario: medians over the rounds.
#[derive(Debug, Serialize)]
pub struct Line {
    /// What was measured.
    pub scenario: String,
    /// Who.
    pub peer: String,
    /// Jobs per second.
    pub rate: f64,
    /// The slowest and the fastest round.
    pub rates: (f64, f64),
    /// How many times as fast Awa is: by rate, or by the 99th percentile where latency is what counts.
    pub awa_to_peer: Option<f64>,
    /// Which share of the floor's rate this is (of latencies: how many times the floor's).
    pub peer_to_floor: Option<f64>,
    /// Bytes of log per job.
    pub wal_per_job: f64,
    /// Median latency in milliseconds.
    pub p50_ms: Option<f64>,
    /// 99th percentile in milliseconds.
    pub p99_ms: Option<f64>,
    /// The deepest backlog.
    pub backlog: Option<f64>,
    /// What was wrong in any round.
    pub faults: Vec<String>,
}

impl Report {
    /// Condenses the rounds.
    pub fn of(peers: &[Box<dyn Peer>], scenarios: &[Scenario], results: &Results, plan: &Plan) -> Self {
        let mut lines = Vec::new();
        for (place, scenario) in scenarios.iter().enumerate() {
            let mut of_scenario: Vec<Line> = Vec::new();
            for (whose, peer) in peers.iter().enumerate() {
                if let Some(rounds) = results.get(&(place, whose)) {
                    of_scenario.push(Line::of(*scenario, peer.name(), rounds));
                }
            }
            compare(*scenario, &mut of_scenario);
            lines.append(&mut of_scenario);
        }
        let described = |peer: &Box<dyn Peer>| (peer.name().to_owned(), peer.version(), peer.settings().to_owned());
        Self {
            server: Vec::new(),
            machine: Vec::new(),
            plan: format!(
                "{} jobs with about 60 bytes of arguments, {} per call of a bulk enqueue, {} producers; single enqueues and \
                 steady loads for {:?}",
                plan.jobs, plan.batch, plan.producers, plan.length
            ),
            peers: peers.iter().map(described).collect(),
            missing: Vec::new(),
            lines,
        }
    }

    /// As one object.
    pub fn json(&self) -> Value {
        json!(self)
    }

    /// As a page.
    pub fn markdown(&self) -> String {
        let mut page = String::new();
        page.push_str("| | jobs/s | rounds | Awa is | of the floor | log/job | p50 ms | p99 ms | |\n");
        page.push_str("|---|--:|--:|--:|--:|--:|--:|--:|---|\n");
        for line in self.cells() {
            let _ = writeln!(page, "| {} |", line.join(" | "));
        }
        page.push('\n');
        self.say_circumstances(&mut page, "- ");
        page
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        let head = ["", "jobs/s", "rounds", "Awa is", "of floor", "log/job", "p50 ms", "p99 ms", ""];
        let cells: Vec<_> = std::iter::once(head.map(str::to_owned)).chain(self.cells()).collect();
        let width = |column: usize| cells.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for line in &cells {
            for (column, cell) in line.iter().enumerate() {
                let room = width(column);
                let _ = match column {
                    0 => write!(text, "{cell:<room$}"),
                    8 => write!(text, "  {cell}"),
                    _ => write!(text, "  {cell:>room$}"),
                };
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        text.push('\n');
        self.say_circumstances(&mut text, "");
        text
    }

    fn cells(&self) -> impl Iterator<Item = [String; 9]> {
        self.lines.iter().map(Line::cells)
    }

    fn say_circumstances(&self, text: &mut String, mark: &str) {
        let pairs = |pairs: &[(String, String)]| {
            pairs.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
        };
        let _ = writeln!(text, "{mark}Server: {}.", pairs(&self.server));
        let _ = writeln!(text, "{mark}Machine: {}.", pairs(&self.machine));
        let _ = writeln!(text, "{mark}Load: {}.", self.plan);
        for (name, version, settings) in &self.peers {
            let _ = writeln!(text, "{mark}{name} {version}: {settings}.");
        }
        for (name, reason) in &self.missing {
            let _ = writeln!(text, "{mark}NOT MEASURED: {name}, because {reason}.");
        }
    }
}

impl Line {
    fn of(scenario: Scenario, peer: &str, rounds: &[Result<Measured, String>]) -> Self {
        let good: Vec<&Measured> = rounds.iter().flatten().collect();
        let all = |value: fn(&Measured) -> Option<f64>| good.iter().filter_map(|one| value(one)).collect::<Vec<_>>();
        let rates = all(|one| Some(one.rate()));
        let mut faults: Vec<String> = good.iter().flat_map(|one| one.faults.clone()).collect();
        faults.extend(rounds.iter().filter_map(|one| one.as_ref().err()).map(|error| format!("FAILED: {error}")));
        faults.dedup();
        Self {
            scenario: scenario.to_string(),
            peer: peer.to_owned(),
            rate: median(rates.clone()).unwrap_or(0.0),
            rates: (
                rates.iter().copied().reduce(f64::min).unwrap_or(0.0),
                rates.iter().copied().reduce(f64::max).unwrap_or(0.0),
            ),
            awa_to_peer: None,
            peer_to_floor: None,
            wal_per_job: median(all(|one| Some(one.wal_per_job()))).unwrap_or(0.0),
            p50_ms: median(all(|one| Some(one.latency?.p50_ms))),
            p99_ms: median(all(|one| Some(one.latency?.p99_ms))),
            backlog: median(all(|one| Some(one.backlog? as f64))),
            faults,
        }
    }

    fn cells(&self) -> [String; 9] {
        let number = |value: f64| grouped(value.round() as u64);
        let some = |value: Option<f64>, shown: &dyn Fn(f64) -> String| value.map_or_else(String::new, shown);
        let is_latency = self.p99_ms.is_some();
        let mut notes = self.faults.clone();
        if let Some(backlog) = self.backlog {
            notes.push(format!("at most {} waiting", number(backlog)));
        }
        [
            format!("{} {}", self.scenario, self.peer),
            number(self.rate),
            format!("{}..{}", number(self.rates.0), number(self.rates.1)),
            some(self.awa_to_peer, &|times| format!("{times:.2}x")),
            some(self.peer_to_floor, &|share| {
                if is_latency { format!("{share:.1}x") } else { format!("{:.0} %", share * 100.0) }
            }),
            number(self.wal_per_job),
            some(self.p50_ms, &|ms| format!("{ms:.1}")),
            some(self.p99_ms, &|ms| format!("{ms:.1}")),
            notes.join("; "),
        ]
    }
}

/// Fills in the ratios of one scenario.
fn compare(scenario: Scenario, lines: &mut [Line]) {
    let worth = |line: &Line| {
        if scenario.is_about_latency() { line.p99_ms } else { Some(line.rate).filter(|rate| *rate > 0.0) }
    };
    let of = |name: &str| lines.iter().find(|line| line.peer == name).and_then(worth);
    let (ours, floor) = (of(OURS), of(FLOOR));
    for line in lines {
        let Some(theirs) = worth(line) else { continue };
        let times = |ours: f64| if scenario.is_about_latency() { theirs / ours } else { ours / theirs };
        line.awa_to_peer = ours.map(times);
        line.peer_to_floor = floor.map(|floor| theirs / floor);
    }
}

/// The middle value; of an even number the lower of the two.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len().checked_sub(1)? / 2).copied()
}

fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Latency;

    fn measured(jobs: u64, p99_ms: Option<f64>) -> Result<Measured, String> {
        let latency = p99_ms.map(|p99_ms| Latency { p50_ms: 1.0, p99_ms, max_ms: 100.0 });
        Ok(Measured { jobs, seconds: 1.0, wal_bytes: jobs * 300, latency, backlog: None, faults: vec![] })
    }

    #[test]
    fn ratios_say_how_many_times_as_fast_awa_is() {
        let line = |peer, rates: [u64; 3]| Line::of(Scenario::Drain, peer, &rates.map(|rate| measured(rate, None)));
        let mut lines = [line(OURS, [90, 100, 5_000]), line("other", [20, 25, 26]), line(FLOOR, [400, 400, 400])];
        compare(Scenario::Drain, &mut lines);
        assert_eq!((lines[1].awa_to_peer, lines[1].peer_to_floor), (Some(4.0), Some(0.0625)));
        assert_eq!(lines[0].cells()[..6], ["drain awa", "100", "90..5,000", "1.00x", "25 %", "300"].map(str::to_owned));
    }

    #[test]
    fn where_latency_counts_the_smaller_one_is_the_faster_one() {
        let scenario = Scenario::Steady(1_000);
        let line = |peer, p99| Line::of(scenario, peer, &[measured(1_000, Some(p99))]);
        let mut lines = [line(OURS, 5.0), line("other", 20.0)];
        compare(scenario, &mut lines);
        assert_eq!((lines[1].awa_to_peer, lines[1].peer_to_floor), (Some(4.0), None));
    }

    #[test]
    fn a_failure_is_shown_and_no_rate_is_made_up_for_it() {
        let mut lines = [
            Line::of(Scenario::Drain, OURS, &[measured(10, None)]),
            Line::of(Scenario::Drain, "x", &[Err("gone".into())]),
        ];
        compare(Scenario::Drain, &mut lines);
        assert_eq!(lines[1].awa_to_peer, None);
        assert_eq!(lines[1].faults, ["FAILED: gone"]);
    }
}
