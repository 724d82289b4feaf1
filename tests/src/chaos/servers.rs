//! The servers of a scene, and what stands between them and everybody else.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use awa_pg::cluster::{Cluster, ClusterError, ClusterOptions, Durability};
use tokio::task::spawn_blocking;

use super::bouncer::Bouncer;
use super::switch::Switch;
use super::{Failure, Scene};

/// How long a standby may take to follow.
const FOLLOW_LIMIT: Duration = Duration::from_secs(30);
/// The name of the standby.
const STANDBY: &str = "awa_standby";

/// The servers of a scene.
#[derive(Debug)]
pub(super) struct Servers {
    /// The one that takes writes.
    cluster: Arc<Cluster>,
    /// The one that follows it, until it takes over.
    standby: Option<Arc<Cluster>>,
    switch: Option<Switch>,
    bouncer: Option<Bouncer>,
}

/// Starts a server.
pub(super) async fn start_cluster() -> Result<Arc<Cluster>, Failure> {
    // Servers are killed here, machines are not.
    let options = ClusterOptions { durability: Durability::Relaxed, settings: Vec::new() };
    Ok(Arc::new(spawn_blocking(move || Cluster::start(options)).await??))
}

impl Servers {
    /// What a scene needs around `cluster`, which several scenes share.
    pub(super) async fn of(scene: Scene, cluster: &Arc<Cluster>, folder: &Path) -> Result<Self, Failure> {
        let mut servers = Self { cluster: Arc::clone(cluster), standby: None, switch: None, bouncer: None };
        match scene {
            Scene::Pooler => servers.bouncer = Some(Bouncer::start(cluster.port(), folder)?),
            Scene::StandbyPromoted => {
                let cluster = start_cluster().await?;
                let primary = Arc::clone(&cluster);
                servers.standby = Some(Arc::new(spawn_blocking(move || follow(&primary)).await??));
                servers.switch = Some(Switch::to(cluster.port()).await?);
                servers.cluster = cluster;
            }
            _ => {}
        }
        Ok(servers)
    }

    /// The server that takes writes.
    pub(super) fn cluster(&self) -> &Arc<Cluster> {
        &self.cluster
    }

    /// The address of a database for workers and producers, by way of whatever stands between.
    pub(super) fn address(&self, database: &str, role: &str) -> String {
        let bouncer = self.bouncer.as_ref().map(Bouncer::port);
        let port = bouncer.or(self.switch.as_ref().map(Switch::port)).unwrap_or_else(|| self.cluster.port());
        format!("postgres://{role}@127.0.0.1:{port}/{database}")
    }

    /// The address of a database straight at the server, for an administrator.
    pub(super) fn direct(&self, database: &str) -> String {
        self.cluster.url(database)
    }

    /// Lets the standby take over, and leads everybody there.
    pub(super) async fn fail_over(&mut self) -> Result<(), Failure> {
        let standby = self.standby.take().ok_or("there is no standby")?;
        let promoted = Arc::clone(&standby);
        spawn_blocking(move || promoted.promote()).await??;
        if let Some(switch) = &self.switch {
            switch.turn_to(standby.port());
        }
        self.cluster = standby;
        Ok(())
    }

    /// Takes away what keeps connections of its own.
    pub(super) fn dismiss_pooler(&mut self) {
        self.bouncer = None;
    }
}

/// A standby of `primary`, from which on nothing is acknowledged that it does not have.
fn follow(primary: &Cluster) -> Result<Cluster, ClusterError> {
    let standby = primary.start_standby(STANDBY)?;
    let settings = format!("ALTER SYSTEM SET synchronous_standby_names = '{STANDBY}';\nSELECT pg_reload_conf();");
    primary.psql("postgres", &settings)?;
    let deadline = Instant::now() + FOLLOW_LIMIT;
    while primary.psql("postgres", "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")? != "1" {
        if Instant::now() > deadline {
            let output = "the standby does not follow".to_owned();
            return Err(ClusterError::Failed { program: "replication".to_owned(), output });
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(standby)
}
