//! What the demo reports.

use std::time::Duration;

use serde::Serialize;

use super::files::Found;
use super::place::Place;
use super::producer::Produced;
use super::verify::Findings;

/// The answer of `awa demo --json`; see the help of the command for what each field counts.
#[derive(Serialize, Debug)]
pub(super) struct Report {
    store: &'static str,
    /// Of PostgreSQL.
    driver: Option<&'static str>,
    /// Whether the workers were processes, and the kill a real one.
    real_processes: bool,
    workers: u8,
    seed: u32,
    dir: String,
    files: usize,
    completed: usize,
    lost: usize,
    mismatched: usize,
    unexpected: usize,
    changed: usize,
    rescued: usize,
    retried: usize,
    rolled_back: usize,
    late: usize,
    transactions: usize,
    skipped: usize,
    capped: bool,
    seconds: f64,
    jobs_per_s: f64,
    p50_ms: f64,
    p95_ms: f64,
    p99_ms: f64,
    problems: Vec<String>,
}

/// The circumstances of one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) workers: u8,
    pub(super) seed: u32,
    /// From the start of the producers to the end of the workers.
    pub(super) took: Duration,
}

impl Report {
    /// Puts the report together.
    pub(super) fn new(place: &Place, found: &Found, produced: &Produced, findings: Findings, run: Run) -> Self {
        let percentile = |share| milliseconds(percentile(&findings.latencies, share));
        let (p50_ms, p95_ms, p99_ms) = (percentile(0.50), percentile(0.95), percentile(0.99));
        let seconds = findings.span.as_secs_f64();
        let jobs_per_s = if seconds > 0.0 { rounded(findings.completed as f64 / seconds) } else { 0.0 };
        Self {
            store: place.name(),
            driver: place.driver(),
            real_processes: matches!(place, Place::Postgres(_)),
            workers: run.workers,
            seed: run.seed,
            dir: found.dir.display().to_string(),
            files: produced.committed.len(),
            completed: findings.completed,
            lost: findings.lost,
            mismatched: findings.mismatched,
            unexpected: findings.unexpected,
            changed: findings.changed,
            rescued: findings.rescued,
            retried: findings.retried,
            rolled_back: produced.rolled_back,
            late: produced.committed.iter().filter(|job| job.is_late).count(),
            transactions: produced.transactions,
            skipped: found.skipped,
            capped: found.capped,
            seconds: rounded(run.took.as_secs_f64()),
            jobs_per_s,
            p50_ms,
            p95_ms,
            p99_ms,
            problems: findings.problems,
        }
    }

    /// Whether the demo proved what it is to prove.
    ///
    /// # Errors
    ///
    /// What is wrong, in a sentence.
    pub(super) fn verdict(&self) -> Result<(), String> {
        let Self { files, completed, lost, mismatched, unexpected, problems, .. } = self;
        if *lost == 0 && *mismatched == 0 && *unexpected == 0 && completed == files {
            return Ok(());
        }
        let first = problems.first().map_or_else(String::new, |problem| format!("; first: {problem}"));
        Err(format!(
            "the demo failed: of {files} files {completed} completed, {lost} lost, {mismatched} mismatched, \
             {unexpected} unexpected{first}"
        ))
    }

    /// The report as a table for people.
    pub(super) fn table(&self) -> String {
        let kill = if self.real_processes { "killed with SIGKILL" } else { "killed, simulated" };
        let rows = [
            ("files", self.files.to_string(), "committed, in all transactions but those that rolled back"),
            ("completed", self.completed.to_string(), "every result compared with a direct computation"),
            ("retried", self.retried.to_string(), "failed on a try and were tried again"),
            ("rescued", self.rescued.to_string(), kill),
            ("lost", self.lost.to_string(), ""),
            ("mismatched", self.mismatched.to_string(), ""),
            ("unexpected", self.unexpected.to_string(), ""),
            ("changed", self.changed.to_string(), "files that changed meanwhile and prove nothing"),
            ("late", self.late.to_string(), "files in transactions that stayed open"),
            ("rolled back", self.rolled_back.to_string(), "files without a job"),
            ("transactions", self.transactions.to_string(), ""),
            ("jobs/s", format!("{:.0}", self.jobs_per_s), ""),
            ("p50", format!("{:.1} ms", self.p50_ms), "from enqueue to done"),
            ("p95", format!("{:.1} ms", self.p95_ms), ""),
            ("p99", format!("{:.1} ms", self.p99_ms), ""),
        ];
        let lines = rows.map(|(name, value, note)| format!("{name:<13} {value:>12}  {note}").trim_end().to_owned());
        let verdict = match self.verdict() {
            Ok(()) => "verified: nothing lost, nothing run to two ends, every result is right".to_owned(),
            Err(problem) => problem,
        };
        format!("store         {:>12}  {} workers\n{}\n{verdict}", self.store, self.workers, lines.join("\n"))
    }
}

/// The smallest value that at least this share of the values does not exceed; zero when there are none.
fn percentile(sorted: &[Duration], share: f64) -> Duration {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or_default()
}

fn milliseconds(length: Duration) -> f64 {
    rounded(length.as_secs_f64() * 1e3)
}

/// To a tenth.
fn rounded(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            store: "postgres",
            driver: None,
            real_processes: true,
            workers: 2,
            seed: 7,
            dir: "/tmp".into(),
            files: 10,
            completed: 10,
            lost: 0,
            mismatched: 0,
            unexpected: 0,
            changed: 0,
            rescued: 3,
            retried: 1,
            rolled_back: 2,
            late: 2,
            transactions: 7,
            skipped: 0,
            capped: false,
            seconds: 1.5,
            jobs_per_s: 6.7,
            p50_ms: 1.0,
            p95_ms: 2.0,
            p99_ms: 3.0,
            problems: Vec::new(),
        }
    }

    #[test]
    fn only_a_run_without_any_fault_passes() {
        assert_eq!(report().verdict(), Ok(()));
        let problems = vec!["job 5 is gone".to_owned()];
        for broken in [
            Report { lost: 1, completed: 9, problems, ..report() },
            Report { mismatched: 1, ..report() },
            Report { unexpected: 1, ..report() },
            Report { completed: 9, ..report() },
        ] {
            let verdict = broken.verdict().unwrap_err();
            assert!(broken.table().ends_with(&verdict), "{verdict}");
        }
    }

    #[test]
    fn the_report_has_a_stable_shape() {
        let text = serde_json::to_string(&report()).unwrap();
        let expected = concat!(
            r#"{"store":"postgres","driver":null,"real_processes":true,"workers":2,"seed":7,"dir":"/tmp","files":10,"completed":10,"lost":0,"#,
            r#""mismatched":0,"unexpected":0,"changed":0,"rescued":3,"retried":1,"rolled_back":2,"late":2,"#,
            r#""transactions":7,"skipped":0,"capped":false,"seconds":1.5,"jobs_per_s":6.7,"p50_ms":1.0,"p95_ms":2.0,"#,
            r#""p99_ms":3.0,"problems":[]}"#
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let ms = |n: u64| Duration::from_millis(n);
        let hundred: Vec<Duration> = (1..=100).map(ms).collect();
        for (share, value) in [(0.5, 50), (0.95, 95), (0.99, 99), (1.0, 100), (0.0, 1)] {
            assert_eq!(percentile(&hundred, share), ms(value));
        }
        assert_eq!(percentile(&[], 0.5), Duration::ZERO);
        assert_eq!(percentile(&[ms(7)], 0.99), ms(7));
    }
}
