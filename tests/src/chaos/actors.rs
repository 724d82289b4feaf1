//! Who is on the stage while harm is done.

use std::sync::Arc;
use std::time::{Duration, Instant};

use awa_pg::cluster::Cluster;
use sqlx::postgres::PgPoolOptions;
use sqlx::{PgPool, Row};
use tokio::task::spawn_blocking;

use super::Failure;
use super::crew::Crew;
use super::producers::Producers;
use super::servers::Servers;
use crate::seed::Seed;

/// Everybody of a scene, for whoever does harm.
pub(super) struct Actors {
    pub(super) servers: Servers,
    /// The database of the scene.
    pub(super) database: String,
    pub(super) crew: Crew,
    pub(super) producers: Producers,
    pub(super) seed: Seed,
    /// When the harm ends.
    pub(super) until: Instant,
}

/// What was done.
#[derive(Debug, Default)]
pub(super) struct Harm {
    /// How often.
    pub(super) kills: u64,
    /// Whether an end must have been refused for the scene to prove something.
    pub(super) expects_refusal: bool,
    /// What must have happened for the scene to prove something, and has not, in words.
    pub(super) unmet: Vec<String>,
}

impl Harm {
    /// Says that the scene proves nothing unless something has happened.
    pub(super) fn must(&mut self, has_happened: bool, what: &str) {
        if !has_happened {
            self.unmet.push(format!("the scene proves nothing: {what}"));
        }
    }
}

impl Actors {
    /// Whether there is time for more harm.
    pub(super) fn goes_on(&self) -> bool {
        Instant::now() < self.until
    }

    /// What is left of the time for harm.
    pub(super) fn rest(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// A pool of one connection to the database of the scene, straight to the server.
    pub(super) async fn control(&self) -> Result<PgPool, Failure> {
        control(&self.servers.direct(&self.database)).await
    }

    /// Does something to the server beside the tasks of the runtime.
    pub(super) async fn with_cluster<T: Send + 'static>(
        &self,
        action: impl FnOnce(&Cluster) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let cluster = Arc::clone(self.servers.cluster());
        Ok(spawn_blocking(move || action(&cluster)).await?)
    }

    /// Waits until a number of the database reaches a bound, or the limit is over; gives whether it did.
    pub(super) async fn reaches(
        &self,
        pool: &PgPool,
        sql: &'static str,
        argument: i64,
        bound: i64,
        limit: Duration,
    ) -> Result<bool, Failure> {
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline {
            let found: i64 = sqlx::query(sql).bind(argument).fetch_one(pool).await?.get(0);
            if found >= bound {
                return Ok(true);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(false)
    }
}

/// A pool of one connection.
pub(super) async fn control(url: &str) -> Result<PgPool, Failure> {
    Ok(PgPoolOptions::new().max_connections(1).acquire_timeout(Duration::from_secs(20)).connect(url).await?)
}
