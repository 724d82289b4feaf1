//! `awa rings`: gives a ring more slots.

use awa_core::ring::RingKind;
use awa_core::store::Grown;
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;

use crate::connect::ConnectionArgs;
use crate::failure::Failure;
use crate::output::Format;

const EXAMPLES: &str = "\
Examples:
  awa rings grow queue --slots 24
  awa rings grow claim --slots 12 --json

Workers, producers and open transactions go on meanwhile. A ring has at most 64 slots and never shrinks.
JSON: {\"ring\":\"queue\",\"from\":16,\"to\":24}.";

/// What to do with rings.
#[derive(Subcommand, Debug)]
pub(crate) enum RingsCommand {
    /// Give a ring more slots, when the doctor says that none is free. Safe to repeat.
    #[command(after_help = EXAMPLES)]
    Grow(GrowArgs),
}

/// See [`RingsCommand::Grow`].
#[derive(Args, Debug)]
pub(crate) struct GrowArgs {
    /// The ring.
    #[arg(value_enum)]
    ring: RingName,
    /// How many slots it is to have in all.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    slots: u8,
}

/// A ring on the command line.
#[derive(ValueEnum, Clone, Copy, Debug)]
enum RingName {
    /// Waiting jobs and history.
    Queue,
    /// Claims and closures.
    Claim,
    /// Long attempts.
    Lease,
}

impl From<RingName> for RingKind {
    fn from(name: RingName) -> Self {
        match name {
            RingName::Queue => Self::Queue,
            RingName::Claim => Self::Claim,
            RingName::Lease => Self::Lease,
        }
    }
}

/// The answer of `awa rings grow --json`.
#[derive(Serialize, Debug)]
struct Answer {
    ring: String,
    /// Slots before.
    from: u8,
    /// Slots now.
    to: u8,
}

/// Carries out a command about rings.
pub(super) async fn run(connection: &ConnectionArgs, command: &RingsCommand, format: Format) -> Result<(), Failure> {
    let RingsCommand::Grow(GrowArgs { ring, slots }) = command;
    let ring = RingKind::from(*ring);
    match connection.connect_ready(1).await?.grow_ring(ring, *slots).await? {
        Grown::Done { from, to } => {
            format.answer(&Answer { ring: ring.to_string(), from, to }, |answer| said(&answer.ring, from, to))
        }
        Grown::Refused(refusal) => Err(Failure::new(format!("growing the {ring} ring refused: {refusal}"))),
        // A later version of the trait may answer more.
        other => Err(Failure::new(format!("growing the {ring} ring ended in a way that is not known: {other:?}"))),
    }
}

fn said(ring: &str, from: u8, to: u8) -> String {
    if from == to {
        format!("the {ring} ring has {to} slots already")
    } else {
        format!("the {ring} ring has {to} slots, before {from}")
    }
}
