//! What is thought of the work that waits and of those who do it.

use std::time::Duration;

use super::facts::{InstanceFacts, WakeupFacts, WorkFacts};
use super::{Finding, Severity};

/// A process that was silent for longer is not at work.
const SILENCE: Duration = Duration::from_secs(30);
/// A wake-up that takes longer is no better than polling.
const SLOW_WAKEUP: Duration = Duration::from_millis(500);
/// A due job that still waits after so long is being promoted by nobody.
const LATE_PROMOTION: Duration = Duration::from_mins(1);
/// Rings that nobody has looked at for so long fill up.
const LATE_TICK: Duration = Duration::from_mins(5);
/// More dead jobs than this are a fault of the application rather than an accident.
const MANY_DEAD_JOBS: u64 = 1_000;
/// So many rows outside the rings are in the order of a few slots' worth.
const MANY_OUTSIDE: u64 = 10_000;
/// More hints than this mean that nobody folds them.
const MANY_HINTS: u64 = 1_000;

/// Judges the round trip of a wake-up.
pub(super) fn wakeups(facts: &WakeupFacts, findings: &mut Vec<Finding>) {
    let ms = |length: &Duration| format!("{:.1} ms", length.as_secs_f64() * 1_000.0);
    findings.push(match facts {
        WakeupFacts::Off => Finding::new(Severity::Notice, "wake-ups", "off, workers poll", ""),
        WakeupFacts::Heard(after) if *after <= SLOW_WAKEUP => {
            Finding::ok("wake-ups", format!("announced, sent and heard after {}", ms(after)))
        }
        WakeupFacts::Heard(after) => {
            let action = "look at the server's load and at slow readers of notifications";
            Finding::new(Severity::Warning, "wake-ups", format!("heard only after {}", ms(after)), action)
        }
        WakeupFacts::Silent(waited) => Finding::new(
            Severity::Warning,
            "wake-ups",
            format!("sent, and not heard for {}; workers poll", ms(waited)),
            "give a direct address of the server to listen on, not one of a pooler in transaction mode",
        ),
        WakeupFacts::Failed(why) => {
            let action = "give an address of the server that allows a session of its own";
            Finding::new(Severity::Warning, "wake-ups", format!("cannot listen: {why}"), action)
        }
    });
}

/// Judges what waits.
pub(super) fn examine(work: &WorkFacts, findings: &mut Vec<Finding>) {
    findings.push(match work.dead {
        0 => Finding::ok("dead-letter queue", "empty"),
        dead => {
            let severity = if dead > MANY_DEAD_JOBS { Severity::Warning } else { Severity::Notice };
            let action = "look at them by `awa jobs list --state dead`, then retry or leave them";
            Finding::new(severity, "dead-letter queue", format!("{dead} jobs failed for good"), action)
        }
    });
    let (overdue, longest) = (work.overdue, work.longest_overdue.as_secs());
    findings.push(if work.longest_overdue < LATE_PROMOTION {
        Finding::ok("deferred jobs", format!("{overdue} are due and about to be made ready"))
    } else {
        let what = format!("{overdue} are due, the first for {longest} s, and nobody makes them ready");
        Finding::new(Severity::Warning, "deferred jobs", what, "start a worker")
    });
    findings.push(match work.lane_hints {
        0 => Finding::ok("lanes", "all are made"),
        hints if hints <= MANY_HINTS => {
            let what = format!("{hints} hints of queues that were used before a worker opened them");
            Finding::new(Severity::Notice, "lanes", what, "any worker folds them within a minute")
        }
        hints => {
            let what = format!("{hints} hints wait to be folded, and nobody does");
            Finding::new(Severity::Warning, "lanes", what, "start a worker")
        }
    });
    findings.push(match work.lost_cursors {
        0 => Finding::ok("cursors", "every claim has its own"),
        lost => Finding::new(
            Severity::Critical,
            "cursors",
            format!("{lost} rows of ready_claim_attempt_batches were removed by hand; jobs may be handed out twice"),
            "pause the queues, and put the rows back from a backup or let the jobs end before you go on",
        ),
    });
    findings.push(outside(
        "carried jobs",
        work.carried,
        "wait outside the queue ring",
        "start workers for their queues",
    ));
    findings.push(outside(
        "leases",
        work.leases,
        "attempts run outside the claim ring",
        "see why so many run for so long",
    ));
    findings.push(match work.rings_tick_age {
        None => Finding::new(Severity::Notice, "maintenance", "no worker has ever run it", "start a worker"),
        Some(age) if age < LATE_TICK => Finding::ok("maintenance", format!("last ran {} s ago", age.as_secs())),
        Some(age) => {
            let what = format!("last ran {} s ago; rings fill up and dead workers are not noticed", age.as_secs());
            Finding::new(Severity::Warning, "maintenance", what, "start a worker")
        }
    });
}

/// What is outside the rings is deleted row by row, and meant for little.
fn outside(object: &str, count: u64, what: &str, action: &str) -> Finding {
    if count <= MANY_OUTSIDE {
        return Finding::ok(object, format!("{count} {what}"));
    }
    Finding::new(Severity::Notice, object, format!("{count} {what}, which costs vacuum"), action)
}

/// Judges who is there to work.
pub(super) fn instances(instances: &[InstanceFacts], work: &WorkFacts, findings: &mut Vec<Finding>) {
    let alive = instances.iter().filter(|instance| !instance.is_retired && instance.silent_for < SILENCE).count();
    let silent = instances.iter().filter(|instance| !instance.is_retired && instance.silent_for >= SILENCE).count();
    let retired = instances.len() - alive - silent;
    let what = format!("{alive} at work, {silent} fell silent, {retired} said goodbye");
    findings.push(if alive > 0 || (instances.is_empty() && work.overdue == 0) {
        Finding::ok("worker processes", what)
    } else {
        Finding::new(Severity::Notice, "worker processes", what, "start a worker")
    });
}
