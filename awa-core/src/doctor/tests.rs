use std::time::Duration;

use super::*;
use crate::id::{Generation, Slot};
use crate::prune::{KeepReason, PruneDecision};
use crate::ring::{
    self, BadRing, DrainKeep, OpenSlotFacts, Pointer, RingKind, RingView, RotationPolicy, SlotState, SlotView,
};

const MINUTE: Duration = Duration::from_mins(1);

fn healthy() -> Facts {
    let schema = SchemaFacts::Fits { version: 1, program: "0.1.0".to_owned(), server: "15.6".to_owned() };
    Facts {
        rings: vec![ring(&[SlotState::Open, SlotState::Free, SlotState::Free, SlotState::Free], at(1, 0))],
        wakeups: WakeupFacts::Heard(Duration::from_millis(2)),
        work: Some(WorkFacts { rings_tick_age: Some(Duration::from_secs(1)), ..WorkFacts::default() }),
        ..Facts::of_schema(schema)
    }
}

fn at(generation: i64, slot: u8) -> Pointer {
    Pointer::new(Generation(generation), Slot(slot))
}

/// A queue ring with slots of these states; the open one is of generation 1, the others are older.
fn ring(states: &[SlotState], pointer: Pointer) -> RingFacts {
    let generation = |state| Generation(i64::from(state == SlotState::Open));
    let view = states.iter().map(|state| SlotView { generation: generation(*state), state: *state, has_pages: true });
    let policy = RotationPolicy { min_age: MINUTE, max_bytes: 1 << 20 };
    let open = OpenSlotFacts { age: 2 * MINUTE, bytes: 1, is_empty: false };
    let rotation =
        RingView::new(view.collect(), pointer).map(|view| (view.ledger(), ring::rotate(&view, &policy, &open)));
    let slots = states.iter().zip(0..).map(|(state, slot)| SlotReport {
        slot: Pointer { generation: generation(*state), slot: Slot(slot) },
        state: *state,
        bytes: if *state == SlotState::Free { 0 } else { 8192 },
        age: MINUTE,
        undrained: None,
        decision: None,
    });
    RingFacts { ring: RingKind::Queue, pointer, rotation, slots: slots.collect() }
}

/// The worst finding of these facts.
fn worst(facts: &Facts) -> Finding {
    let report = examine(facts);
    let worst = report.findings.iter().find(|finding| finding.severity == report.severity);
    worst.expect("a report has findings").clone()
}

#[track_caller]
fn check(change: impl FnOnce(&mut Facts), severity: Severity, object: &str, words: &str) {
    let mut facts = healthy();
    change(&mut facts);
    let finding = worst(&facts);
    assert_eq!((finding.severity, finding.object.as_str()), (severity, object), "{finding}");
    assert!(finding.to_string().contains(words), "{finding}");
}

#[test]
fn a_healthy_store_has_a_line_for_each_check_and_nothing_to_do() {
    let report = examine(&healthy());
    assert_eq!(report.severity, Severity::Ok, "{report}");
    assert!(report.findings.iter().all(|finding| finding.action.is_empty()), "{report}");
    for object in [
        "schema",
        "cluster",
        "queue ring",
        "oldest transaction",
        "prepared transactions",
        "replication slots",
        "dead rows",
        "sequences",
        "wake-ups",
        "dead-letter queue",
        "deferred jobs",
        "lanes",
        "maintenance",
        "worker processes",
    ] {
        assert_eq!(report.findings.iter().filter(|finding| finding.object == object).count(), 1, "{object}: {report}");
    }
}

#[test]
fn a_store_that_cannot_be_used_is_critical_and_names_the_command() {
    check(|facts| *facts = Facts::of_schema(SchemaFacts::Missing), Severity::Critical, "schema", "run `awa migrate`");
    let unfit = "set up by a newer awa; update this program";
    check(|facts| facts.schema = SchemaFacts::Unfit(unfit.to_owned()), Severity::Critical, "schema", unfit);
    check(|facts| facts.is_foreign_cluster = true, Severity::Critical, "cluster", "run `awa repair`");
}

#[test]
fn a_pointer_that_the_ledger_does_not_know_is_told_by_how_it_is_mended() {
    use SlotState::{Drained, Free, Open, Sealed};
    let states = [Open, Sealed, Drained, Free];
    check(|facts| facts.rings = vec![ring(&states, at(5, 1))], Severity::Critical, "queue ring", "run `awa repair`");
    check(|facts| facts.rings = vec![ring(&states, at(0, 3))], Severity::Critical, "queue ring", "behind the ledger");
    check(|facts| facts.rings = vec![ring(&states, at(2, 3))], Severity::Notice, "queue ring", "next tick");
    let full = [Open, Sealed, Drained, Sealed];
    check(|facts| facts.rings = vec![ring(&full, at(1, 0))], Severity::Warning, "queue ring", "no slot is free");
    let damaged = ring(&[Open, Open, Free, Free], at(1, 0));
    assert_eq!(damaged.rotation, Err(BadRing::OpenSlots(2)));
    check(|facts| facts.rings = vec![damaged], Severity::Critical, "queue ring", "2 slots are open");
}

#[test]
fn a_slot_tells_why_it_is_kept_and_matters_more_when_few_are_free() {
    use SlotState::{Drained, Free, Open, Sealed};
    let kept = |states: &[SlotState], slot: usize, kept: KeepReason, undrained: Option<DrainKeep>| {
        let mut ring = ring(states, at(1, 0));
        ring.slots[slot].decision = Some(PruneDecision::Keep(kept));
        ring.slots[slot].undrained = undrained;
        move |facts: &mut Facts| facts.rings = vec![ring]
    };
    let roomy = [Open, Drained, Sealed, Free, Free];
    let tight = [Open, Drained, Sealed, Drained, Free];
    let (object, claims) = ("queue ring slot 1", KeepReason::OpenClaims(3));
    check(kept(&roomy, 1, claims, None), Severity::Notice, object, "3 claimed jobs");
    check(kept(&tight, 1, claims, None), Severity::Warning, object, "3 claimed jobs");
    let waits = KeepReason::WrongState { is: Sealed, needs: Drained };
    let (object, rows) = ("queue ring slot 2", Some(DrainKeep::UnpassedRows));
    check(kept(&roomy, 2, waits, rows), Severity::Notice, object, "resume paused ones");
    check(kept(&tight, 2, waits, rows), Severity::Warning, object, "waiting to be claimed");
    let mut undrain = ring(&roomy, at(1, 0));
    undrain.slots[1].decision = Some(PruneDecision::Undrain);
    check(|facts| facts.rings = vec![undrain], Severity::Warning, "queue ring slot 1", "marked as drained");
    let mut facts = healthy();
    kept(&roomy, 1, KeepReason::Retained(MINUTE), None)(&mut facts);
    assert_eq!(examine(&facts).severity, Severity::Ok, "history that is kept on purpose is no news");
}

#[test]
fn a_writer_that_has_been_in_a_sealed_slot_for_long_is_a_warning() {
    use SlotState::{Drained, Free, Open, Sealed};
    let mut ring = ring(&[Open, Sealed, Free, Free], at(1, 0));
    ring.slots[1].decision = Some(PruneDecision::Keep(KeepReason::WrongState { is: Sealed, needs: Drained }));
    ring.slots[1].undrained = Some(DrainKeep::WritersInFlight);
    let mut later = ring.clone();
    later.slots[1].age = Duration::from_hours(1);
    check(|facts| facts.rings = vec![ring], Severity::Notice, "queue ring slot 1", "still open");
    check(|facts| facts.rings = vec![later], Severity::Warning, "queue ring slot 1", "oldest transactions");
}

#[test]
fn a_free_slot_with_pages_is_a_stray_unless_the_pointer_is_on_it() {
    let mut ring = ring(&[SlotState::Open, SlotState::Free, SlotState::Free, SlotState::Free], at(1, 0));
    ring.slots[2].bytes = 8192;
    let mut pointed = ring.clone();
    check(|facts| facts.rings = vec![ring], Severity::Notice, "queue ring slot 2", "a stray");
    pointed.pointer = at(2, 2);
    let report = examine(&Facts { rings: vec![pointed], ..healthy() });
    assert!(report.findings.iter().all(|finding| !finding.what.contains("stray")), "{report}");
}

#[test]
fn what_pins_the_horizon_is_named_so_that_it_can_be_ended() {
    let snapshot = |age| SnapshotFacts { pid: 42, who: "app".to_owned(), state: "idle in transaction".to_owned(), age };
    let object = "transaction of process 42";
    check(
        |facts| facts.snapshots = vec![snapshot(2 * MINUTE)],
        Severity::Notice,
        object,
        "idle in transaction for 120 s",
    );
    check(|facts| facts.snapshots = vec![snapshot(20 * MINUTE)], Severity::Warning, object, "pg_terminate_backend");
    let prepared = PreparedFacts { gid: "order 7".to_owned(), database: "shop".to_owned(), age: 20 * MINUTE };
    let object = "prepared transaction \"order 7\"";
    check(|facts| facts.prepared = vec![prepared], Severity::Warning, object, "ROLLBACK PREPARED");
    let slot = |is_active, pinned_transactions| ReplicationSlotFacts {
        name: "standby".to_owned(),
        is_active,
        pinned_transactions,
        log_bytes: 1,
    };
    let object = "replication slot \"standby\"";
    check(|facts| facts.replication_slots = vec![slot(false, Some(5))], Severity::Warning, object, "keeps rows");
    check(|facts| facts.replication_slots = vec![slot(true, Some(2_000_000))], Severity::Warning, object, "far behind");
    check(|facts| facts.replication_slots = vec![slot(false, None)], Severity::Notice, object, "keeps log");
    let report = examine(&Facts { replication_slots: vec![slot(true, Some(5))], ..healthy() });
    assert_eq!(report.severity, Severity::Ok);
}

#[test]
fn dead_rows_are_judged_by_where_they_are() {
    let table = |is_ring, live, dead| vec![DeadRows { table: "t".to_owned(), is_ring, live, dead }];
    check(|facts| facts.dead_rows = table(true, 5, 1), Severity::Notice, "table t", "roll back");
    check(|facts| facts.dead_rows = table(true, 5, 20_000), Severity::Warning, "table t", "20000 dead rows in a ring");
    check(|facts| facts.dead_rows = table(false, 5, 20_000), Severity::Warning, "table t", "does not keep up");
    let report = examine(&Facts { dead_rows: table(false, 20_000, 20_000), ..healthy() });
    assert_eq!(report.severity, Severity::Ok, "as many dead as live rows are what vacuum leaves by default");
}

#[test]
fn a_cursor_row_that_is_gone_is_critical() {
    let lost = |facts: &mut Facts| facts.work.as_mut().expect("a healthy store has work").lost_cursors = 2;
    check(lost, Severity::Critical, "cursors", "2 rows of ready_claim_attempt_batches were removed");
}

#[test]
fn a_sequence_is_told_of_from_half_of_its_range() {
    let sequence = |last| vec![SequenceFacts { name: "job_id_seq".to_owned(), last, max: i64::MAX }];
    let object = "sequence job_id_seq";
    let report = examine(&Facts { sequences: sequence(i64::MAX / 2), ..healthy() });
    assert_eq!(report.severity, Severity::Ok);
    check(|facts| facts.sequences = sequence(i64::MAX / 2 + 1), Severity::Warning, object, "plan a move");
    check(|facts| facts.sequences = sequence(i64::MAX / 10 * 9 + 1), Severity::Critical, object, "plan a move");
}

#[test]
fn wake_ups_that_do_not_come_are_told_with_the_usual_cause() {
    let object = "wake-ups";
    let waited = Duration::from_secs(2);
    check(|facts| facts.wakeups = WakeupFacts::Off, Severity::Notice, object, "poll");
    check(|facts| facts.wakeups = WakeupFacts::Silent(waited), Severity::Warning, object, "pooler");
    check(|facts| facts.wakeups = WakeupFacts::Heard(waited), Severity::Warning, object, "2000.0 ms");
    check(|facts| facts.wakeups = WakeupFacts::Failed("no".to_owned()), Severity::Warning, object, "cannot listen: no");
}

#[test]
fn work_that_nobody_does_is_told() {
    let work = |change: fn(&mut WorkFacts)| {
        move |facts: &mut Facts| change(facts.work.as_mut().expect("a healthy store was read"))
    };
    check(work(|work| work.dead = 1), Severity::Notice, "dead-letter queue", "awa jobs list");
    check(work(|work| work.dead = 1_001), Severity::Warning, "dead-letter queue", "1001 jobs");
    let late = |work: &mut WorkFacts| (work.overdue, work.longest_overdue) = (3, 2 * MINUTE);
    check(work(late), Severity::Warning, "deferred jobs", "3 are due, the first for 120 s");
    check(work(|work| work.lane_hints = 2), Severity::Notice, "lanes", "2 hints");
    check(work(|work| work.rings_tick_age = None), Severity::Notice, "maintenance", "no worker has ever run it");
    check(work(|work| work.rings_tick_age = Some(6 * MINUTE)), Severity::Warning, "maintenance", "360 s ago");
    check(work(|work| work.carried = 10_001), Severity::Notice, "carried jobs", "10001 wait outside the queue ring");
    check(work(|work| work.leases = 10_001), Severity::Notice, "leases", "10001 attempts run outside the claim ring");
    let silent = InstanceFacts { silent_for: MINUTE, is_retired: false };
    check(|facts| facts.instances = vec![silent], Severity::Notice, "worker processes", "1 fell silent");
    let alive = InstanceFacts { silent_for: Duration::ZERO, is_retired: false };
    assert_eq!(examine(&Facts { instances: vec![silent, alive], ..healthy() }).severity, Severity::Ok);
}

/// Programs read the objects and the keys of a report; what stands in `what` and `action` is for people.
#[test]
fn the_json_of_a_report_has_stable_keys_and_objects() {
    let mut facts = healthy();
    let of = |ring_kind| RingFacts { ring: ring_kind, ..ring(&[SlotState::Open, SlotState::Sealed], at(1, 0)) };
    facts.rings = RingKind::ALL.into_iter().map(of).collect();
    for ring in &mut facts.rings {
        ring.slots[1].decision = Some(PruneDecision::Keep(KeepReason::OpenClaims(1)));
    }
    let json = serde_json::to_value(examine(&facts)).unwrap();
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&json), ["findings", "severity"]);
    let findings = json["findings"].as_array().unwrap();
    assert!(findings.iter().all(|finding| keys(finding) == ["action", "object", "severity", "what"]), "{json}");
    let objects: Vec<_> = findings.iter().map(|finding| finding["object"].as_str().unwrap()).collect();
    let expected = [
        "schema",
        "cluster",
        "queue ring",
        "queue ring slot 1",
        "claim ring",
        "claim ring slot 1",
        "lease ring",
        "lease ring slot 1",
        "oldest transaction",
        "prepared transactions",
        "replication slots",
        "dead rows",
        "sequences",
        "wake-ups",
        "dead-letter queue",
        "deferred jobs",
        "lanes",
        "cursors",
        "carried jobs",
        "leases",
        "maintenance",
        "worker processes",
    ];
    assert_eq!(objects, expected);
    for severity in [Severity::Ok, Severity::Notice, Severity::Warning, Severity::Critical] {
        assert_eq!(serde_json::to_value(severity).unwrap(), severity.to_string());
    }
}

#[test]
fn a_report_shows_the_worst_first_and_keeps_its_order_in_json() {
    let report = Report::new(vec![Finding::ok("a", "fine"), Finding::new(Severity::Warning, "b", "bad", "mend it")]);
    assert_eq!(report.to_string(), "warning   b: bad; mend it\nok        a: fine");
    let json = serde_json::to_string(&report).unwrap();
    assert!(json.starts_with(r#"{"severity":"warning","findings":[{"severity":"ok","object":"a""#), "{json}");
    assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
}
