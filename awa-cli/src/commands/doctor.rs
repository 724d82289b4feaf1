//! `awa doctor`: looks at everything that can go wrong.

use std::time::Duration;

use awa_core::doctor::{Report, Severity};
use awa_pg::store::DoctorOptions;
use awa_runtime::MaintenanceConfig;
use clap::Args;

use crate::connect::ConnectionArgs;
use crate::failure::Failure;
use crate::output::{Format, printable};

const EXAMPLES: &str = "\
Examples:
  awa doctor
  awa doctor --json

Exit codes: 0 in order or worth a notice, 1 a warning, 2 critical (or nothing could be looked at).
JSON: {\"severity\":\"warning\",\"findings\":[{\"severity\":\"warning\",\"object\":\"...\",\"what\":\"...\",\"action\":\"...\"}]}";

/// How long the doctor waits for its own wake-up.
const WAKEUP_PATIENCE: Duration = Duration::from_secs(5);

/// See [`crate::args::Command::Doctor`].
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {}

/// Looks, says what was found, and fails by its severity.
pub(super) async fn run(connection: &ConnectionArgs, _: &DoctorArgs, format: Format) -> Result<(), Failure> {
    let report = look(connection).await.map_err(Failure::critical)?;
    format.answer(&report, |report| printable(&report.to_string()))?;
    match report.severity {
        Severity::Ok | Severity::Notice => Ok(()),
        Severity::Warning => Err(Failure::said()),
        Severity::Critical => Err(Failure::said().critical()),
    }
}

async fn look(connection: &ConnectionArgs) -> Result<Report, Failure> {
    // What the workers of this version do unless told otherwise.
    let workers = MaintenanceConfig::default();
    let options = DoctorOptions {
        queue_rotation: workers.queue_rotation,
        claim_rotation: workers.claim_rotation,
        lease_rotation: workers.lease_rotation,
        retention: workers.retention,
        wakeup_patience: WAKEUP_PATIENCE,
    };
    Ok(connection.connect().await?.doctor(&options).await?)
}
