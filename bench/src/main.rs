//! `cargo run --release --manifest-path bench/Cargo.toml -- --help`

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use awa_peers::plan::Plan;
use awa_peers::scenario::Scenario;
use awa_peers::server::{Route, Server};
use awa_peers::table::Report;
use awa_peers::{peers, rounds};
use clap::Parser;

/// Measures Awa and other job queues on one throw-away PostgreSQL server, in alternation.
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    /// Jobs of a bulk enqueue, a drain and a saturation.
    #[arg(long, default_value_t = Plan::default().jobs)]
    jobs: u64,
    /// Rounds; the table shows medians over them.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Only these peers, in this order.
    #[arg(long, value_delimiter = ',')]
    peers: Vec<String>,
    /// Only these scenarios: enqueue-single-N, enqueue-bulk, drain, saturate, steady-RATE.
    #[arg(long, value_delimiter = ',')]
    scenarios: Vec<Scenario>,
    /// Jobs of one call of a bulk enqueue.
    #[arg(long, default_value_t = Plan::default().batch)]
    batch: usize,
    /// Producers of a bulk enqueue and of a saturation.
    #[arg(long, default_value_t = Plan::default().producers)]
    producers: usize,
    /// Seconds of a single enqueue and of a steady load.
    #[arg(long, default_value_t = Plan::default().length.as_secs())]
    seconds: u64,
    /// How everybody connects.
    #[arg(long, value_enum, default_value_t = Route::Socket)]
    route: Route,
    /// Prints one JSON object instead of the table.
    #[arg(long)]
    json: bool,
    /// Also writes the table as Markdown to this file.
    #[arg(long)]
    markdown: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    if options.jobs == 0 || options.rounds == 0 || options.batch == 0 || options.producers == 0 || options.seconds == 0
    {
        bail!("jobs, rounds, batch, producers and seconds must be at least 1");
    }
    let plan = Plan {
        jobs: options.jobs,
        batch: options.batch,
        producers: options.producers,
        length: Duration::from_secs(options.seconds),
        ..Plan::default()
    };
    let scenarios = if options.scenarios.is_empty() { Scenario::ALL.to_vec() } else { options.scenarios.clone() };
    let server = Server::start(options.route).await?;
    let (mut measured, mut missing) = (Vec::new(), Vec::new());
    for peer in peers::chosen(&options.peers)? {
        match peer.missing(&server).await? {
            Some(reason) => {
                eprintln!("NOT MEASURED: {}, because {reason}", peer.name());
                missing.push((peer.name().to_owned(), reason));
            }
            None => measured.push(peer),
        }
    }
    let load_before = load();
    let results =
        rounds::run(&server, &measured, &scenarios, options.rounds, &plan, |line| eprintln!("{line}")).await?;
    let mut report = Report::of(&measured, &scenarios, &results, &plan);
    report.server = server.settings().await?;
    let processors = std::thread::available_parallelism()?.to_string();
    report.machine = vec![
        ("processors".to_owned(), processors),
        ("rounds".to_owned(), options.rounds.to_string()),
        ("load before".to_owned(), load_before),
        ("load after".to_owned(), load()),
    ];
    report.missing = missing;
    if let Some(path) = &options.markdown {
        fs::write(path, report.markdown()).with_context(|| format!("writing {}", path.display()))?;
    }
    if options.json {
        println!("{}", report.json())
    } else {
        print!("{}", report.text())
    }
    Ok(())
}

/// The machine's load over 1, 5 and 15 minutes, where the system tells.
fn load() -> String {
    let told = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let three: Vec<_> = told.split_whitespace().take(3).collect();
    if three.is_empty() { "unknown".to_owned() } else { three.join(" / ") }
}
