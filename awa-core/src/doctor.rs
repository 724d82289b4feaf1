//! What a doctor thinks of a store: facts in, findings out.
//!
//! A store gathers [`Facts`] and [`examine`] judges them, by the same decisions that rotate and reclaim the rings. Each
//! check leaves at least one finding, so that a report also shows what was looked at and found in order.

mod facts;
mod rings;
mod server;
mod work;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use facts::{
    DeadRows, Facts, InstanceFacts, PreparedFacts, ReplicationSlotFacts, RingFacts, SchemaFacts, SequenceFacts,
    SlotReport, SnapshotFacts, WakeupFacts, WorkFacts,
};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// In order.
    Ok,
    /// Worth knowing; nothing has to be done.
    Notice,
    /// Somebody should act before it gets worse.
    Warning,
    /// Jobs are not run, or soon will not be.
    Critical,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Critical => "critical",
        })
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What was looked at, for example `queue ring slot 3`.
    pub object: String,
    /// What is the case.
    pub what: String,
    /// What to do about it; empty when there is nothing to do.
    pub action: String,
}

impl Finding {
    fn new(severity: Severity, object: impl Into<String>, what: impl Into<String>, action: impl Into<String>) -> Self {
        Self { severity, object: object.into(), what: what.into(), action: action.into() }
    }

    fn ok(object: impl Into<String>, what: impl Into<String>) -> Self {
        Self::new(Severity::Ok, object, what, "")
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<8}  {}: {}", self.severity, self.object, self.what)?;
        if self.action.is_empty() { Ok(()) } else { write!(f, "; {}", self.action) }
    }
}

/// All findings about a store, in the order in which it was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The worst severity of all findings.
    pub severity: Severity,
    /// The findings.
    pub findings: Vec<Finding>,
}

impl Report {
    /// The report with these findings.
    pub fn new(findings: Vec<Finding>) -> Self {
        let severity = findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Ok);
        Self { severity, findings }
    }
}

/// The findings, the worst first, each on a line.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut findings: Vec<_> = self.findings.iter().collect();
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        for (index, finding) in findings.into_iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{finding}")?;
        }
        Ok(())
    }
}

/// Judges what was observed.
pub fn examine(facts: &Facts) -> Report {
    let mut findings = vec![schema(&facts.schema)];
    if facts.is_foreign_cluster {
        findings.push(Finding::new(
            Severity::Critical,
            "cluster",
            "the schema was carried here from another PostgreSQL cluster, so jobs are neither taken nor given out",
            "run `awa repair`",
        ));
    } else if matches!(facts.schema, SchemaFacts::Fits { .. }) {
        findings.push(Finding::ok("cluster", "the schema is in the cluster that it was installed in"));
    }
    facts.rings.iter().for_each(|ring| rings::examine(ring, &mut findings));
    server::snapshots(&facts.snapshots, &mut findings);
    server::prepared(&facts.prepared, &mut findings);
    server::replication_slots(&facts.replication_slots, &mut findings);
    server::dead_rows(&facts.dead_rows, &mut findings);
    server::sequences(&facts.sequences, &mut findings);
    work::wakeups(&facts.wakeups, &mut findings);
    if let Some(work) = &facts.work {
        work::examine(work, &mut findings);
        work::instances(&facts.instances, work, &mut findings);
    }
    Report::new(findings)
}

fn schema(facts: &SchemaFacts) -> Finding {
    match facts {
        SchemaFacts::Missing => Finding::new(Severity::Critical, "schema", "it is not set up", "run `awa migrate`"),
        SchemaFacts::Unfit(why) => Finding::new(Severity::Critical, "schema", why.clone(), ""),
        SchemaFacts::Fits { version, program, server } => {
            Finding::ok("schema", format!("version {version}, set up by awa {program}, on PostgreSQL {server}"))
        }
    }
}

#[cfg(test)]
mod tests;
