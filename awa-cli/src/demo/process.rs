//! A worker of the demo in a process of its own, from the inside.
//!
//! It is told the database by the variable `DATABASE_URL`, works until its standard input ends, which also happens when
//! the demo dies, and stands still from the line `hold` on. It tells on its standard output what it does: one JSON
//! object per line.

use std::io::Write;
use std::time::Duration;

use awa_core::{InstanceId, QueueName};
use awa_runtime::StatsHandle;
use clap::Args;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::gate::Gate;
use super::worker;
use crate::connect::ConnectionArgs;
use crate::failure::Failure;
use crate::log;

/// How often a worker tells its count.
const TELL_EVERY: Duration = Duration::from_millis(50);
/// Connections of a worker.
const CONNECTIONS: u32 = 8;

/// See [`crate::args::Command::DemoWorker`].
#[derive(Args, Debug)]
pub(crate) struct DemoWorkerArgs {
    #[arg(long)]
    queue: QueueName,
}

/// The line that makes a worker stand still.
pub(super) const HOLD: &str = "hold";

/// What a worker tells.
#[derive(Serialize, Deserialize, PartialEq, Eq, Clone, Copy, Debug)]
#[serde(rename_all = "snake_case")]
pub(super) enum Told {
    /// It begins to work under this name.
    Started(InstanceId),
    /// It has completed so many jobs so far.
    Completed(u64),
}

/// Works until the end of standard input.
pub(crate) async fn work(connection: &ConnectionArgs, args: &DemoWorkerArgs) -> Result<(), Failure> {
    log::to_stderr("error");
    let store = connection.connect_ready(CONNECTIONS).await?;
    let gate = Gate::default();
    let worker = worker::build(store.shared(), &args.queue, gate.clone())?;
    tell(Told::Started(worker.instance()))?;
    let stats = worker.stats();
    let telling = tokio::spawn(keep_telling(stats.clone()));
    worker.run_until(obey(gate)).await?;
    telling.abort();
    tell(Told::Completed(stats.read().completed))
}

async fn keep_telling(stats: StatsHandle) {
    let mut told = 0;
    loop {
        tokio::time::sleep(TELL_EVERY).await;
        let completed = stats.read().completed;
        // When nobody listens any more, the end of standard input comes with it.
        if completed != told && tell(Told::Completed(completed)).is_ok() {
            told = completed;
        }
    }
}

/// Does what standard input says, until its end. An error is an end.
async fn obey(gate: Gate) {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if line == HOLD {
            gate.close();
        }
    }
}

fn tell(what: Told) -> Result<(), Failure> {
    let line = serde_json::to_string(&what).map_err(|error| Failure::of("telling the demo", &error))?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| Failure::of("telling the demo", &error))
}
