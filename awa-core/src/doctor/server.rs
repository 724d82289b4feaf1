//! What is thought of the server around a store.

use std::time::Duration;

use super::facts::{DeadRows, PreparedFacts, ReplicationSlotFacts, SequenceFacts, SnapshotFacts};
use super::{Finding, Severity};

/// Transactions younger than this are nobody's business.
const SHORT_TRANSACTION: Duration = Duration::from_mins(1);
/// Transactions older than this make tables grow.
const LONG_TRANSACTION: Duration = Duration::from_mins(10);
/// A connected replication slot may lag by so many transactions.
const REPLICATION_LAG: u64 = 1_000_000;
/// A table that vacuum keeps up with has fewer dead rows.
const MANY_DEAD_ROWS: u64 = 10_000;

/// Judges what keeps dead rows from being removed, and slots from being drained.
pub(super) fn snapshots(snapshots: &[SnapshotFacts], findings: &mut Vec<Finding>) {
    let old: Vec<_> = snapshots.iter().filter(|snapshot| snapshot.age >= SHORT_TRANSACTION).collect();
    if old.is_empty() {
        findings
            .push(Finding::ok("oldest transaction", format!("none is older than {} s", SHORT_TRANSACTION.as_secs())));
    }
    for snapshot in old {
        let SnapshotFacts { pid, who, state, age } = snapshot;
        findings.push(Finding::new(
            by_age(*age),
            format!("transaction of process {pid}"),
            format!("{who} has been {state} for {} s; dead rows younger than that stay", age.as_secs()),
            "end it, or have the server end it by pg_terminate_backend",
        ));
    }
}

/// Judges prepared transactions, which outlive their session and every restart.
pub(super) fn prepared(prepared: &[PreparedFacts], findings: &mut Vec<Finding>) {
    let old: Vec<_> = prepared.iter().filter(|prepared| prepared.age >= SHORT_TRANSACTION).collect();
    if old.is_empty() {
        findings.push(Finding::ok("prepared transactions", format!("{}, none of them old", prepared.len())));
    }
    for PreparedFacts { gid, database, age } in old {
        findings.push(Finding::new(
            by_age(*age),
            format!("prepared transaction {gid:?}"),
            format!("it has been waiting in database {database:?} for {} s", age.as_secs()),
            "commit or roll back what its coordinator forgot (COMMIT PREPARED, ROLLBACK PREPARED)",
        ));
    }
}

/// Judges replication slots that keep rows or log of nobody.
pub(super) fn replication_slots(slots: &[ReplicationSlotFacts], findings: &mut Vec<Finding>) {
    let before = findings.len();
    for slot in slots {
        let lag = slot.pinned_transactions.unwrap_or(0);
        let (severity, what) = match (slot.pinned_transactions, slot.is_active) {
            (Some(_), false) => (Severity::Warning, "nobody is connected to it, and it keeps rows"),
            (Some(_), true) if lag > REPLICATION_LAG => {
                (Severity::Warning, "its reader is far behind, and it keeps rows")
            }
            (None, false) => (Severity::Notice, "nobody is connected to it, and it keeps log"),
            _ => continue,
        };
        findings.push(Finding::new(
            severity,
            format!("replication slot {:?}", slot.name),
            format!("{what} (back to {lag} transactions ago, {} bytes of log)", slot.log_bytes),
            "bring its reader back, or drop the slot (pg_drop_replication_slot)",
        ));
    }
    if findings.len() == before {
        findings.push(Finding::ok("replication slots", format!("{}, none in the way", slots.len())));
    }
}

/// Judges dead rows. Ring tables have none but those of producers that rolled back.
pub(super) fn dead_rows(tables: &[DeadRows], findings: &mut Vec<Finding>) {
    let before = findings.len();
    for table in tables {
        let DeadRows { table: name, is_ring, live, dead } = table;
        if *is_ring && *dead > 0 {
            let severity = if *dead > MANY_DEAD_ROWS { Severity::Warning } else { Severity::Notice };
            let action = "they go when the slot is emptied; look for producers that roll back";
            findings.push(Finding::new(
                severity,
                format!("table {name}"),
                format!("{dead} dead rows in a ring"),
                action,
            ));
        } else if *dead > MANY_DEAD_ROWS && dead / 2 > *live {
            findings.push(Finding::new(
                Severity::Warning,
                format!("table {name}"),
                format!("{dead} dead rows beside {live}; vacuum does not keep up"),
                "see the oldest transactions, and whether autovacuum is on",
            ));
        }
    }
    if findings.len() == before {
        let dead: u64 = tables.iter().map(|table| table.dead).sum();
        findings.push(Finding::ok("dead rows", format!("{dead} in all tables of the schema")));
    }
}

/// Judges sequences: past half of their range somebody should know.
pub(super) fn sequences(sequences: &[SequenceFacts], findings: &mut Vec<Finding>) {
    let before = findings.len();
    for SequenceFacts { name, last, max } in sequences {
        if *last > *max / 2 {
            let severity = if *last > *max / 10 * 9 { Severity::Critical } else { Severity::Warning };
            findings.push(Finding::new(
                severity,
                format!("sequence {name}"),
                format!("it is at {last} of {max}"),
                "plan a move to a new schema before it is used up",
            ));
        }
    }
    if findings.len() == before {
        findings.push(Finding::ok("sequences", format!("{}, all below half of their range", sequences.len())));
    }
}

fn by_age(age: Duration) -> Severity {
    if age >= LONG_TRANSACTION { Severity::Warning } else { Severity::Notice }
}
