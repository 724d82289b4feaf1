//! Every peer in every scenario, with a few hundred jobs.

use std::io::Write as _;
use std::time::Duration;

use awa_peers::plan::Plan;
use awa_peers::scenario::Scenario;
use awa_peers::server::{Route, Server};
use awa_peers::table::Report;
use awa_peers::{peers, rounds};

#[tokio::test(flavor = "multi_thread")]
async fn every_peer_runs_all_jobs_of_every_scenario_and_loses_none() {
    let plan = Plan {
        jobs: 400,
        batch: 50,
        length: Duration::from_millis(300),
        patience: Duration::from_secs(20),
        ..Plan::default()
    };
    let scenarios = [
        Scenario::EnqueueSingle(1),
        Scenario::EnqueueSingle(4),
        Scenario::EnqueueBulk,
        Scenario::Drain,
        Scenario::Saturate,
        Scenario::Steady(200),
    ];
    let server = Server::start(Route::Socket).await.expect("a server can be started");
    let mut measured = Vec::new();
    for peer in peers::all() {
        match peer.missing(&server).await.expect("the server answers") {
            // Written past the capture of the test's output, so that it is seen also when the test passes.
            Some(reason) => writeln!(std::io::stderr(), "SKIPPED: {}, because {reason}", peer.name()).unwrap(),
            None => measured.push(peer),
        }
    }
    assert!(measured.len() >= 3, "hardly anybody can be measured here");
    let mut results = rounds::run(&server, &measured, &scenarios, 1, &plan, |line| println!("{line}")).await.unwrap();
    for ((scenario, peer), rounds) in &mut results {
        let (scenario, peer) = (scenarios[*scenario], &*measured[*peer]);
        // Somebody else's queue may stall now and then on a busy machine; that it never works would be our mistake.
        let again = if peer.name() == peers::OURS { 0 } else { 2 };
        for _ in 0..again {
            if rounds.iter().any(|round| round.as_ref().is_ok_and(|one| one.faults.is_empty())) {
                break;
            }
            rounds.push(scenario.measure(&server, peer, &plan).await.map_err(|error| format!("{error:#}")));
        }
        // The last attempt is the one that went well, or as bad as the others.
        rounds.drain(..rounds.len() - 1);
    }
    let report = Report::of(&measured, &scenarios, &results, &plan);
    assert_eq!(report.lines.len(), scenarios.len() * measured.len());
    for line in &report.lines {
        assert!(line.faults.is_empty(), "{} {}: {:?}", line.scenario, line.peer, line.faults);
        assert!(line.rate > 0.0 && line.wal_per_job > 0.0 || line.peer == peers::FLOOR, "{line:?}");
    }
    for form in [report.text(), report.markdown(), report.json().to_string()] {
        assert!(measured.iter().all(|peer| form.contains(&peer.version())), "{form}");
    }
}
