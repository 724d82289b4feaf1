//! What is measured, each in its own way.

use std::sync::Arc;

use super::args::{BenchArgs, Scenario, StoreChoice, WorkerArgs};
use super::backlog;
use super::crew::Tally;
use super::hold::Beside;
use super::load::{Load, Pace};
use super::result::{Measured, Name};
use super::rig::{Rig, only_queue};
use crate::failure::Failure;

/// Those that are measured when none is named: they take seconds each.
const QUICK: [Scenario; 7] = [
    Scenario::EnqueueSingle,
    Scenario::EnqueueBulk,
    Scenario::Drain,
    Scenario::Steady,
    Scenario::Saturate,
    Scenario::Pinned,
    Scenario::OpenTx,
];
/// Producers that enqueue many jobs per call.
const BULK_PRODUCERS: u16 = 2;
/// Producers that enqueue one by one, or what is due.
const SINGLE_PRODUCERS: u16 = 16;
/// The jobs of scenarios that run a number of them.
const JOBS: u64 = 500_000;
/// The rate at which a snapshot is held.
const PINNED_RATE: u32 = 5_000;
/// The rate of the queues that have jobs, together.
const QUEUES_RATE: u32 = 100;
/// Of so many queues one has jobs.
const ONE_BUSY_OF: usize = 100;
/// Handlers per queue where there are many queues.
const HANDLERS_PER_QUEUE: u32 = 16;
/// The steps of the ramp.
const RAMP: [u32; 6] = [1, 4, 16, 64, 256, 1_024];

/// One measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Setup {
    EnqueueSingle { connections: u16 },
    EnqueueBulk,
    Drain,
    Steady { rate: u32 },
    Saturate,
    PinnedSteady { rate: u32, beside: Beside },
    PinnedSaturate { beside: Beside },
    OpenTx { beside: Beside },
    Backlog { waiting: u64 },
    IdleQueues,
    BusyQueues { rate: u32 },
    Ramp { handlers: u32 },
}

/// The measurements that were asked for, in order.
///
/// # Errors
///
/// When the store cannot do what was named.
pub(super) fn planned(args: &BenchArgs) -> Result<Vec<Setup>, Failure> {
    let has_snapshots = args.store == StoreChoice::Postgres;
    if !has_snapshots && args.scenarios.contains(&Scenario::Pinned) {
        return Err(Failure::usage("pinned needs a store with snapshots; leave --store memory out"));
    }
    let quick = QUICK.into_iter().filter(|scenario| has_snapshots || *scenario != Scenario::Pinned);
    let scenarios = if args.scenarios.is_empty() { quick.collect() } else { args.scenarios.clone() };
    Ok(scenarios.into_iter().flat_map(|scenario| setups(scenario, args)).collect())
}

fn setups(scenario: Scenario, args: &BenchArgs) -> Vec<Setup> {
    const WITHOUT_AND_WITH: [Beside; 2] = [Beside::Nothing, Beside::Snapshot];
    let rate_or = |default: u32| args.load.rates.first().copied().unwrap_or(default);
    match scenario {
        Scenario::EnqueueSingle => {
            let connections = args.load.connections_or(&[1, SINGLE_PRODUCERS]).into_iter();
            connections.map(|connections| Setup::EnqueueSingle { connections }).collect()
        }
        Scenario::EnqueueBulk => vec![Setup::EnqueueBulk],
        Scenario::Drain => vec![Setup::Drain],
        Scenario::Steady => args.load.rates().into_iter().map(|rate| Setup::Steady { rate }).collect(),
        Scenario::Saturate => vec![Setup::Saturate],
        Scenario::Pinned => {
            let rate = rate_or(PINNED_RATE);
            let steady = WITHOUT_AND_WITH.map(|beside| Setup::PinnedSteady { rate, beside });
            let saturate = WITHOUT_AND_WITH.map(|beside| Setup::PinnedSaturate { beside });
            steady.into_iter().chain(saturate).collect()
        }
        Scenario::OpenTx => [Beside::Nothing, Beside::Enqueueing].map(|beside| Setup::OpenTx { beside }).to_vec(),
        Scenario::Backlog => args.load.waiting().into_iter().map(|waiting| Setup::Backlog { waiting }).collect(),
        Scenario::Queues => vec![Setup::IdleQueues, Setup::BusyQueues { rate: rate_or(QUEUES_RATE) }],
        Scenario::Ramp => RAMP.map(|handlers| Setup::Ramp { handlers }).to_vec(),
    }
}

impl Setup {
    /// What the result is called.
    pub(super) fn name(self) -> Name {
        let beside = |beside| match beside {
            Beside::Nothing => "nothing open",
            Beside::Snapshot => "snapshot open",
            Beside::Enqueueing => "transaction open",
        };
        match self {
            Self::EnqueueSingle { connections: 1 } => Name::with("enqueue-single", "1 connection".to_owned()),
            Self::EnqueueSingle { connections } => Name::with("enqueue-single", format!("{connections} connections")),
            Self::EnqueueBulk => Name::plain("enqueue-bulk"),
            Self::Drain => Name::plain("drain"),
            Self::Steady { rate } => Name::with("steady", format!("{rate}/s")),
            Self::Saturate => Name::plain("saturate"),
            Self::PinnedSteady { rate, beside: open } => Name::with("pinned", format!("{rate}/s, {}", beside(open))),
            Self::PinnedSaturate { beside: open } => Name::with("pinned", format!("saturate, {}", beside(open))),
            Self::OpenTx { beside: open } => Name::with("open-tx", beside(open).to_owned()),
            Self::Backlog { waiting } => Name::with("backlog", format!("{waiting} waiting")),
            Self::IdleQueues => Name::with("queues", "idle".to_owned()),
            Self::BusyQueues { .. } => Name::with("queues", "1 % busy".to_owned()),
            Self::Ramp { handlers: 1 } => Name::with("ramp", "1 handler".to_owned()),
            Self::Ramp { handlers } => Name::with("ramp", format!("{handlers} handlers")),
        }
    }

    /// Measures.
    pub(super) async fn measure(self, rig: &Rig<'_>) -> Result<Measured, Failure> {
        let (args, workers) = (rig.args, &rig.args.workers);
        match self {
            Self::EnqueueSingle { connections } => rig.produce(one_by_one(args, connections), Beside::Nothing).await,
            Self::EnqueueBulk => rig.produce(bulk(args), Beside::Nothing).await,
            Self::Drain => {
                let jobs = args.load.jobs_or(JOBS);
                rig.preload(jobs).await?;
                rig.drain(jobs, workers, None).await
            }
            Self::Steady { rate } => run_steady(rig, rate, Beside::Nothing).await,
            Self::PinnedSteady { rate, beside } => run_steady(rig, rate, beside).await,
            Self::Saturate => run_saturated(rig, Beside::Nothing).await,
            Self::PinnedSaturate { beside } => run_saturated(rig, beside).await,
            Self::OpenTx { beside } => {
                rig.produce(one_by_one(args, args.load.producers_or(SINGLE_PRODUCERS)), beside).await
            }
            Self::Backlog { waiting } => backlog::measure(rig, waiting).await,
            Self::IdleQueues => rig.idle(&few_handlers(workers), &queues(args)).await,
            Self::BusyQueues { rate } => {
                let all = queues(args);
                let busy: Arc<[String]> = all.iter().step_by(ONE_BUSY_OF).cloned().collect();
                let load = Load { queues: busy, ..steady(args, rate) };
                rig.run(&few_handlers(workers), &all, Beside::Nothing, |_| load).await
            }
            Self::Ramp { handlers } => {
                let jobs = args.load.jobs_or(JOBS);
                rig.preload(jobs).await?;
                let workers = WorkerArgs { concurrency: handlers, ..workers.clone() };
                rig.drain(jobs, &workers, Some(args.load.duration())).await
            }
        }
    }
}

async fn run_steady(rig: &Rig<'_>, rate: u32, beside: Beside) -> Result<Measured, Failure> {
    rig.run(&rig.args.workers, &only_queue(), beside, |_| steady(rig.args, rate)).await
}

async fn run_saturated(rig: &Rig<'_>, beside: Beside) -> Result<Measured, Failure> {
    rig.run(&rig.args.workers, &only_queue(), beside, |crew| saturating(rig.args, crew.tally())).await
}

fn queues(args: &BenchArgs) -> Vec<String> {
    (0..args.load.queues).map(|number| format!("bench-{number:05}")).collect()
}

fn few_handlers(workers: &WorkerArgs) -> WorkerArgs {
    WorkerArgs { concurrency: HANDLERS_PER_QUEUE, ..workers.clone() }
}

fn one_by_one(args: &BenchArgs, producers: u16) -> Load {
    until_over(args, producers, Pace::Flat { batch: 1 })
}

fn bulk(args: &BenchArgs) -> Load {
    let pace = Pace::Flat { batch: args.load.bulk };
    let load = until_over(args, args.load.producers_or(BULK_PRODUCERS), pace);
    Load { jobs: Some(args.load.jobs_or(JOBS)), duration: None, ..load }
}

fn steady(args: &BenchArgs, rate: u32) -> Load {
    until_over(args, args.load.producers_or(SINGLE_PRODUCERS), Pace::Steady { rate })
}

fn saturating(args: &BenchArgs, tally: Tally) -> Load {
    let pace = Pace::Bounded { batch: args.load.bulk, max_backlog: args.load.max_backlog, tally };
    until_over(args, args.load.producers_or(BULK_PRODUCERS), pace)
}

/// A load that ends when its time is over, or with the jobs that were asked for.
fn until_over(args: &BenchArgs, producers: u16, pace: Pace) -> Load {
    let load = &args.load;
    Load {
        producers,
        pace,
        jobs: load.jobs,
        duration: Some(load.duration()),
        payload: load.payload,
        queues: only_queue(),
    }
}
