//! The frontier under random histories of transactions that begin, enqueue, commit late or roll back, with claims in
//! between, against a naive list of what was taken.

use std::collections::{BTreeMap, BTreeSet};

use awa_core::frontier::{Frontier, Probe, RowKey, Snapshot, Step, Stop};
use awa_core::id::{JobId, Xid};
use proptest::prelude::*;

/// A database with one lane in one slot.
struct Database {
    next_xid: u64,
    next_job: i64,
    latest_finished: u64,
    /// Running transactions and the jobs that each has appended.
    running: BTreeMap<Xid, Vec<JobId>>,
    /// The committed rows, each with a body, which is its job once more.
    rows: BTreeMap<RowKey, JobId>,
}

impl Database {
    fn new() -> Self {
        Self { next_xid: 10, next_job: 0, latest_finished: 9, running: BTreeMap::new(), rows: BTreeMap::new() }
    }

    fn begin(&mut self) -> Xid {
        let xid = Xid(self.next_xid);
        self.next_xid += 1;
        self.running.insert(xid, Vec::new());
        xid
    }

    fn enqueue(&mut self, xid: Xid, count: usize) {
        for _ in 0..count {
            self.next_job += 1;
            self.running.get_mut(&xid).unwrap().push(JobId(self.next_job));
        }
    }

    fn end(&mut self, xid: Xid, commit: bool) {
        let jobs = self.running.remove(&xid).unwrap();
        self.latest_finished = self.latest_finished.max(xid.get());
        if commit {
            self.rows.extend(jobs.into_iter().map(|job| (RowKey::new(xid, job), job)));
        }
    }

    /// What the database hands to `own`: its own number is left out of the running list, as in PostgreSQL.
    fn raw_snapshot(&self, own: Option<Xid>) -> (Xid, Vec<Xid>) {
        let xmax = Xid(self.latest_finished + 1);
        (xmax, self.running.keys().copied().filter(|xid| *xid < xmax && Some(*xid) != own).collect())
    }

    fn snapshot(&self, own: Xid, rule: OwnXid) -> Snapshot {
        let (xmax, running) = self.raw_snapshot(Some(own));
        Snapshot::of(xmax, running, (rule == OwnXid::CountsAsRunning).then_some(own))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OwnXid {
    CountsAsRunning,
    LooksFinished,
}

#[derive(Debug, Clone)]
struct ClaimPlan {
    max: usize,
    enqueues_before: usize,
    enqueues_after: usize,
    /// Transactions that begin and append while the claim's transaction runs; whether each commits at once.
    others: Vec<bool>,
    /// Read with the snapshot taken so many claims ago, when there is one: it is older than the lane's lock.
    old_snapshot: Option<usize>,
    commits: bool,
}

#[derive(Debug, Clone)]
enum Event {
    Begin,
    Enqueue { which: usize, count: usize },
    End { which: usize, commit: bool },
    Cancel { which: usize },
    Claim(ClaimPlan),
}

fn event() -> impl Strategy<Value = Event> {
    let claim = (
        1usize..5,
        prop_oneof![3 => Just(0), 1 => 1usize..3],
        prop_oneof![2 => Just(0), 1 => 1usize..3],
        prop::collection::vec(prop::bool::weighted(0.7), 0..3),
        prop::option::weighted(0.25, 0usize..4),
        prop::bool::weighted(0.9),
    );
    prop_oneof![
        6 => Just(Event::Begin),
        5 => (any::<usize>(), 1usize..4).prop_map(|(which, count)| Event::Enqueue { which, count }),
        5 => (any::<usize>(), prop::bool::weighted(0.85)).prop_map(|(which, commit)| Event::End { which, commit }),
        1 => any::<usize>().prop_map(|which| Event::Cancel { which }),
        5 => claim.prop_map(|(max, enqueues_before, enqueues_after, others, old_snapshot, commits)| {
            Event::Claim(ClaimPlan { max, enqueues_before, enqueues_after, others, old_snapshot, commits })
        }),
    ]
}

/// The lane: its frontier, and what a naive observer wrote down about it.
struct Lane {
    database: Database,
    rule: OwnXid,
    frontier: Frontier,
    snapshots: Vec<Snapshot>,
    open: Vec<Xid>,
    /// Rows that a tombstone keeps from being emitted.
    dead: BTreeSet<RowKey>,
    emitted: Vec<RowKey>,
    walked: BTreeSet<RowKey>,
}

type Check = Result<(), TestCaseError>;

impl Lane {
    fn new(rule: OwnXid) -> Self {
        Self {
            database: Database::new(),
            rule,
            frontier: Frontier::start(),
            snapshots: Vec::new(),
            open: Vec::new(),
            dead: BTreeSet::new(),
            emitted: Vec::new(),
            walked: BTreeSet::new(),
        }
    }

    fn apply(&mut self, event: &Event) -> Check {
        match event {
            Event::Begin => {
                let xid = self.database.begin();
                self.open.push(xid);
            }
            Event::Enqueue { which, count } if !self.open.is_empty() => {
                self.database.enqueue(self.open[which % self.open.len()], *count);
            }
            Event::End { which, commit } if !self.open.is_empty() => {
                let xid = self.open.swap_remove(which % self.open.len());
                self.database.end(xid, *commit);
            }
            Event::Cancel { which } => {
                let waiting: Vec<RowKey> =
                    self.database.rows.keys().copied().filter(|row| !self.frontier.passed(*row)).collect();
                self.dead.extend(waiting.get(which % waiting.len().max(1)));
            }
            Event::Claim(plan) => self.claim(plan)?,
            Event::Enqueue { .. } | Event::End { .. } => {}
        }
        self.check_passed_is_walked()
    }

    fn claim(&mut self, plan: &ClaimPlan) -> Check {
        let own = self.database.begin();
        self.database.enqueue(own, plan.enqueues_before);
        for commits in &plan.others {
            let other = self.database.begin();
            self.database.enqueue(other, 1);
            if *commits { self.database.end(other, true) } else { self.open.push(other) }
        }
        self.snapshots.push(self.database.snapshot(own, self.rule));
        let age = plan.old_snapshot.unwrap_or(0).min(self.snapshots.len() - 1);
        let snapshot = self.snapshots[self.snapshots.len() - 1 - age].clone();
        let (frontier, emitted, walked) = self.walk(&snapshot, plan.max)?;
        self.database.enqueue(own, plan.enqueues_after);
        self.database.end(own, plan.commits);
        if plan.commits {
            self.frontier = frontier;
            self.emitted.extend(emitted);
            self.walked.extend(walked);
        }
        Ok(())
    }

    fn walk(&self, snapshot: &Snapshot, max: usize) -> Result<(Frontier, Vec<RowKey>, Vec<RowKey>), TestCaseError> {
        let (mut emitted, mut walked) = (Vec::new(), Vec::new());
        let walk = self.frontier.walk(snapshot, &self.database.rows, |row, body| {
            assert_eq!(row.job, *body);
            walked.push(row);
            if !self.dead.contains(&row) {
                emitted.push(row);
            }
            if emitted.len() == max { Step::StopHere } else { Step::Continue }
        });
        let eligible = |row: &RowKey| snapshot.sees(row.xid) && !self.frontier.passed(*row);
        let expected: Vec<RowKey> = self
            .database
            .rows
            .keys()
            .copied()
            .filter(|row| eligible(row) && !self.dead.contains(row))
            .take(max)
            .collect();
        prop_assert_eq!(&emitted, &expected, "a claim is an exact prefix of what is eligible");
        prop_assert_eq!(walk.visited, walked.len());
        prop_assert_eq!(walk.exhausted, emitted.len() < max);
        Ok((walk.frontier, emitted, walked))
    }

    fn check_passed_is_walked(&self) -> Check {
        for row in self.database.rows.keys() {
            prop_assert_eq!(self.frontier.passed(*row), self.walked.contains(row), "passed is taken: {:?}", row);
            let unpassed = self.frontier.unpassed().iter().any(|probe| probe.covers(*row));
            prop_assert_eq!(unpassed, !self.frontier.passed(*row), "the draining probes find what is not passed");
        }
        let stored = Frontier::from_stored(self.frontier.seen().clone(), self.frontier.parts().to_vec());
        prop_assert_eq!(stored.as_ref(), Ok(&self.frontier));
        Ok(())
    }

    /// Ends every transaction and claims until nothing is left.
    fn finish(&mut self) -> Check {
        for xid in std::mem::take(&mut self.open) {
            self.database.end(xid, true);
        }
        let plan = ClaimPlan {
            max: 3,
            enqueues_before: 0,
            enqueues_after: 0,
            others: Vec::new(),
            old_snapshot: None,
            commits: true,
        };
        let claims = self.database.rows.len() / plan.max + 2;
        for _ in 0..claims {
            self.apply(&Event::Claim(plan.clone()))?;
        }
        let alive: Vec<RowKey> = self.database.rows.keys().copied().filter(|row| !self.dead.contains(row)).collect();
        self.emitted.sort_unstable();
        prop_assert_eq!(&self.emitted, &alive, "every job that is not cancelled is emitted exactly once");
        Ok(())
    }
}

fn run(events: &[Event], rule: OwnXid) -> Check {
    let mut lane = Lane::new(rule);
    for event in events {
        lane.apply(event)?;
    }
    lane.finish()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn every_history_emits_every_job_exactly_once_and_in_order(events in prop::collection::vec(event(), 1..120)) {
        run(&events, OwnXid::CountsAsRunning)?;
    }
}

#[test]
fn without_the_own_number_in_the_running_list_jobs_are_lost() {
    // The claim's transaction is older than another one that has finished, so its raw snapshot sees itself. What it
    // appends after the claim is then passed before it is visible.
    let claim = ClaimPlan {
        max: 1,
        enqueues_before: 0,
        enqueues_after: 1,
        others: vec![true],
        old_snapshot: None,
        commits: true,
    };
    let history = [Event::Claim(claim)];
    run(&history, OwnXid::CountsAsRunning).unwrap();
    assert!(run(&history, OwnXid::LooksFinished).is_err(), "the mutant must be caught");
}

#[test]
fn random_histories_catch_the_mutant_without_the_own_number() {
    use proptest::test_runner::{Config, TestError, TestRunner};
    let mut runner = TestRunner::new(Config { cases: 1_000, failure_persistence: None, ..Config::default() });
    let found = runner.run(&prop::collection::vec(event(), 1..120), |events| run(&events, OwnXid::LooksFinished));
    assert!(matches!(found, Err(TestError::Fail(..))), "1,000 histories did not catch the mutant");
}

#[test]
fn a_late_commit_is_in_the_very_next_claim_behind_one_big_transaction() {
    let mut lane = Lane::new(OwnXid::CountsAsRunning);
    let late = lane.database.begin();
    lane.database.enqueue(late, 1);
    let big = lane.database.begin();
    lane.database.enqueue(big, 5_000);
    lane.database.end(big, true);
    let claim = |lane: &mut Lane| {
        let own = lane.database.begin();
        let snapshot = lane.database.snapshot(own, lane.rule);
        let (frontier, emitted, _) = lane.walk(&snapshot, 100).unwrap();
        lane.database.end(own, true);
        lane.frontier = frontier;
        emitted
    };
    let first = claim(&mut lane);
    assert!(first.iter().all(|row| row.xid == big));
    lane.database.end(late, true);
    let second = claim(&mut lane);
    assert_eq!((second[0].xid, second.len()), (late, 100));
    assert_eq!(second[1].job.get(), first[99].job.get() + 1, "the big transaction goes on where it was left");
}

#[test]
fn the_plan_probes_members_from_their_part_and_goes_forward_between_running_transactions() {
    let frontier = Frontier::from_stored("4:10:4,6,9".parse().unwrap(), vec![RowKey::new(Xid(9), JobId(7))]).unwrap();
    let plan = frontier.candidates(&"6:20:6,12,13,19".parse().unwrap());
    assert_eq!(
        plan,
        [
            Probe::Member { xid: Xid(4), after: None },
            Probe::Member { xid: Xid(9), after: Some(JobId(7)) },
            Probe::Span { from: Xid(10), until: Xid(12) },
            Probe::Span { from: Xid(14), until: Xid(19) },
        ]
    );
    assert_eq!(
        frontier.unpassed(),
        [
            Probe::Member { xid: Xid(4), after: None },
            Probe::Member { xid: Xid(6), after: None },
            Probe::Member { xid: Xid(9), after: Some(JobId(7)) },
            Probe::Tail { from: Xid(10) },
        ]
    );
}

#[test]
fn frontiers_that_contradict_themselves_are_refused() {
    let seen: Snapshot = "4:10:4,6".parse().unwrap();
    let part = |xid, job| RowKey::new(Xid(xid), JobId(job));
    let refused = |parts| Frontier::from_stored(seen.clone(), parts).unwrap_err().to_string();
    assert!(refused(vec![part(5, 1)]).contains("transaction 5 is partially taken but not in the running list"));
    assert!(
        refused(vec![part(4, 2), part(6, 1), part(4, 1)]).contains("transaction 4 is partially taken in two places")
    );
}

#[test]
#[should_panic(expected = "not a candidate")]
fn a_stop_at_a_row_that_the_snapshot_does_not_see_is_refused() {
    let snapshot: Snapshot = "5:9:5".parse().unwrap();
    let _ = Frontier::start().advance(&snapshot, Stop::At(RowKey::new(Xid(5), JobId(1))));
}

const XIDS: u64 = 14;
const JOBS: i64 = 4;

fn snapshot() -> impl Strategy<Value = Snapshot> {
    (1..=XIDS + 1, prop::collection::btree_set(1..=XIDS, 0..8))
        .prop_map(|(xmax, running)| Snapshot::of(Xid(xmax), running.into_iter().map(Xid), None))
}

fn frontier() -> impl Strategy<Value = Frontier> {
    (snapshot(), prop::collection::vec(prop::option::of(0..JOBS), 8)).prop_map(|(seen, jobs)| {
        let parts = seen.running().iter().zip(jobs).filter_map(|(xid, job)| Some(RowKey::new(*xid, JobId(job?))));
        let parts = parts.collect();
        Frontier::from_stored(seen, parts).unwrap()
    })
}

fn all_rows() -> impl Iterator<Item = RowKey> {
    (1..=XIDS).flat_map(|xid| (0..JOBS).map(move |job| RowKey::new(Xid(xid), JobId(job))))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// For any frontier and any snapshot, however old: the plan covers what is visible and not passed, in order, and
    /// the new frontier has passed the old one's rows and the plan's up to the stop, no more and no less.
    #[test]
    fn advancing_passes_exactly_what_the_plan_covers_up_to_the_stop(
        frontier in frontier(),
        snapshot in snapshot(),
        at in any::<prop::sample::Index>(),
    ) {
        let plan = frontier.candidates(&snapshot);
        let eligible: Vec<RowKey> =
            all_rows().filter(|row| snapshot.sees(row.xid) && !frontier.passed(*row)).collect();
        let rows: BTreeMap<RowKey, JobId> = all_rows().map(|row| (row, row.job)).collect();
        let walked: Vec<RowKey> =
            plan.iter().flat_map(|probe| rows.range(probe.bounds())).map(|(row, _)| *row).collect();
        prop_assert_eq!(&walked, &eligible);
        for row in all_rows() {
            prop_assert_eq!(plan.iter().filter(|probe| probe.covers(row)).count(), usize::from(eligible.contains(&row)));
        }
        let stops = eligible.get(at.index(eligible.len().max(1))).map(|row| Stop::At(*row));
        for stop in stops.into_iter().chain([Stop::Exhausted]) {
            let next = frontier.advance(&snapshot, stop);
            for row in all_rows() {
                let newly = eligible.contains(&row) && match stop {
                    Stop::Exhausted => true,
                    Stop::At(last) => row <= last,
                };
                prop_assert_eq!(next.passed(row), frontier.passed(row) || newly, "{:?} {:?} {:?}", row, stop, next);
            }
            prop_assert!(next.seen().xmax() >= frontier.seen().xmax());
            prop_assert_eq!(Frontier::from_stored(next.seen().clone(), next.parts().to_vec()), Ok(next));
        }
    }
}
