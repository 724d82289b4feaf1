//! The scenes, by what is done to whom.

mod backends_terminated;
mod clock_off;
mod pool_of_one;
mod pooler;
mod postmaster_killed;
mod standby_promoted;
mod timeouts;
mod worker_stopped;
mod workers_killed;

use awa_pg::cluster::Cluster;

use super::Failure;
use super::actors::{Actors, Harm};
use super::bouncer::Bouncer;

/// A scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scene {
    /// A worker is killed every second, and replaced.
    WorkersKilled,
    /// The server is killed five times, and started again on the same data.
    PostmasterKilled,
    /// Sessions of the server are ended at random.
    BackendsTerminated,
    /// A worker stands still until it is taken for dead, and then goes on.
    WorkerStopped,
    /// Every process has a single connection.
    PoolOfOne,
    /// `PgBouncer` in transaction mode stands between.
    Pooler,
    /// The role has short time-outs for statements and locks, and somebody holds locks longer.
    Timeouts,
    /// The clocks of workers are ten minutes off, in either direction.
    ClockOff,
    /// The server is killed and its standby takes over.
    StandbyPromoted,
}

impl Scene {
    /// All of them, in the order in which they are played.
    pub const ALL: [Self; 9] = [
        Self::WorkersKilled,
        Self::PostmasterKilled,
        Self::BackendsTerminated,
        Self::WorkerStopped,
        Self::PoolOfOne,
        Self::Pooler,
        Self::Timeouts,
        Self::ClockOff,
        Self::StandbyPromoted,
    ];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::WorkersKilled => "workers-killed",
            Self::PostmasterKilled => "postmaster-killed",
            Self::BackendsTerminated => "backends-terminated",
            Self::WorkerStopped => "worker-stopped",
            Self::PoolOfOne => "pool-of-one",
            Self::Pooler => "pooler",
            Self::Timeouts => "timeouts",
            Self::ClockOff => "clock-off",
            Self::StandbyPromoted => "standby-promoted",
        }
    }

    /// The scene of a name.
    pub(super) fn named(name: &str) -> Result<Self, Failure> {
        let names = || Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|scene| scene.name() == name);
        found.ok_or_else(|| format!("there is no scene {name}; there are {}", names()).into())
    }

    /// What this machine lacks to play it.
    pub(super) fn lacks(self, cluster: &Cluster) -> Option<&'static str> {
        match self {
            Self::ClockOff if !clock_off::is_possible() => Some("faketime is not installed (apt-get install faketime)"),
            Self::Pooler if !Bouncer::is_possible() => Some("pgbouncer is not installed (apt-get install pgbouncer)"),
            Self::StandbyPromoted if !standby_promoted::is_possible(cluster) => {
                Some("this installation of PostgreSQL has no pg_basebackup")
            }
            _ => None,
        }
    }

    /// How many connections each process of the scene has.
    pub(super) fn connections(self) -> u32 {
        if self == Self::PoolOfOne { 1 } else { 6 }
    }

    /// The role that workers and producers log in as.
    pub(super) fn role(self) -> &'static str {
        if self == Self::Timeouts { timeouts::ROLE } else { "postgres" }
    }

    /// What is set up in the database before anybody comes.
    pub(super) fn preparation(self) -> Option<&'static str> {
        (self == Self::Timeouts).then_some(timeouts::PREPARATION)
    }

    /// Starts the workers.
    pub(super) async fn start_crew(self, crew: &mut super::crew::Crew) -> Result<(), Failure> {
        match self {
            Self::ClockOff => clock_off::start(crew).await,
            _ => {
                for _ in 0..3 {
                    crew.start().await?;
                }
                Ok(())
            }
        }
    }

    /// Does the harm of the scene until its time is over, and heals what it must.
    pub(super) async fn play(self, actors: &mut Actors) -> Result<Harm, Failure> {
        match self {
            Self::WorkersKilled => workers_killed::play(actors).await,
            Self::PostmasterKilled => postmaster_killed::play(actors).await,
            Self::BackendsTerminated => backends_terminated::play(actors).await,
            Self::WorkerStopped => worker_stopped::play(actors).await,
            Self::PoolOfOne => pool_of_one::play(actors).await,
            Self::Pooler => pooler::play(actors).await,
            Self::Timeouts => timeouts::play(actors).await,
            Self::ClockOff => clock_off::play(actors).await,
            Self::StandbyPromoted => standby_promoted::play(actors).await,
        }
    }
}
