//! `awa bench`: what the queue costs and how fast it is, measured through what an application would write: the worker of
//! the runtime with typed handlers that do nothing, and the store's public calls, with every acknowledgement durable.
//!
//! Each result has a schema of its own, which is removed afterwards.

mod args;
mod backlog;
mod cost;
mod crew;
mod ends;
mod hold;
mod job;
mod latency;
mod load;
mod place;
mod plot;
mod process;
mod report;
mod result;
mod rig;
mod scenario;
mod site;

use crate::connect::ConnectionArgs;
use crate::failure::Failure;
use crate::output::{Format, complain};
use crate::signals::StopSignal;
pub(crate) use args::BenchArgs;
use ends::Ends;
use place::Place;
use report::Report;
use rig::Rig;

/// Measures, until all is measured or somebody stops it.
pub(crate) async fn run(connection: &ConnectionArgs, args: &BenchArgs, format: Format) -> Result<(), Failure> {
    let mut signals = StopSignal::listen()?;
    let ends = Ends::listen();
    let place = tokio::select! {
        place = Place::open(args, connection) => place?,
        () = signals.wait() => return Err(Failure::interrupted()),
    };
    complain(&format!("store: {}", place.describe()));
    let mut report = Report::new(&place, args).await?;
    for setup in scenario::planned(args)? {
        let rig = Rig::open(&place, args, &ends, setup.name()).await?;
        let measured = tokio::select! {
            measured = setup.measure(&rig) => measured,
            () = signals.wait() => Err(Failure::interrupted()),
        };
        // Also after a failure: the schema in a database of somebody's was made only for this.
        let removed = rig.remove().await;
        report.add(measured?);
        removed?;
    }
    if let Some(path) = &args.plot {
        plot::write(path, &report.panels())?;
    }
    format.answer(&report, Report::table)?;
    report.verdict()
}
