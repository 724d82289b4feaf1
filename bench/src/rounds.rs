//! All peers in turn, round after round.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::peer::Peer;
use crate::plan::Plan;
use crate::scenario::{Measured, Scenario};
use crate::server::Server;

/// What was measured: by scenario and peer (their places in the lists), a result per round.
pub type Results = BTreeMap<(usize, usize), Vec<Result<Measured, String>>>;

/// Measures every peer in every scenario once per round. Who comes first changes from round to round, so that no peer has
/// always the cooler machine. A measurement that fails is a result as well.
pub async fn run(
    server: &Server,
    peers: &[Box<dyn Peer>],
    scenarios: &[Scenario],
    rounds: usize,
    plan: &Plan,
    progress: impl Fn(&str),
) -> Result<Results> {
    let mut results = Results::new();
    let all = rounds * scenarios.len() * peers.len();
    let mut count = 0;
    for round in 0..rounds {
        for (place, scenario) in scenarios.iter().enumerate() {
            for turn in 0..peers.len() {
                let whose = (turn + round) % peers.len();
                let peer = &*peers[whose];
                let result = scenario.measure(server, peer, plan).await.map_err(|error| format!("{error:#}"));
                count += 1;
                progress(&format!("[{count}/{all}] round {} {scenario} {}: {}", round + 1, peer.name(), said(&result)));
                results.entry((place, whose)).or_default().push(result);
            }
        }
    }
    Ok(results)
}

fn said(result: &Result<Measured, String>) -> String {
    match result {
        Err(error) => format!("FAILED: {error}"),
        Ok(measured) => {
            let mut said = format!("{:.0}/s, {:.0} bytes of log per job", measured.rate(), measured.wal_per_job());
            if let Some(latency) = measured.latency {
                said += &format!(", p50 {:.1} ms, p99 {:.1} ms", latency.p50_ms, latency.p99_ms);
            }
            if let Some(backlog) = measured.backlog {
                said += &format!(", at most {backlog} waiting");
            }
            for fault in &measured.faults {
                said += &format!("; {fault}");
            }
            said
        }
    }
}
