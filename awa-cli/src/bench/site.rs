//! One fresh store for one result: a schema of its own, which is removed afterwards.

use std::sync::Arc;
use std::time::{Duration, Instant};

use awa_core::Store;
use awa_pg::SchemaName;
use awa_store_mem::MemStore;
use tokio::time::sleep;

use super::place::{Place, Server};
use crate::driver::Database;
use crate::failure::Failure;

/// See the module.
#[derive(Debug)]
pub(super) enum Site<'p> {
    Memory(MemStore),
    Postgres(Box<Ground<'p>>),
}

/// A schema on a server.
#[derive(Debug)]
pub(super) struct Ground<'p> {
    pub(super) server: &'p Server,
    schema: SchemaName,
    /// Looks on, and does none of the work.
    pub(super) observer: Database,
}

/// A store for some part of the work, with connections of its own.
#[derive(Clone, Debug)]
pub(super) enum Hand {
    Memory(MemStore),
    Postgres(Database),
}

impl<'p> Site<'p> {
    /// A fresh store.
    pub(super) async fn open(place: &'p Place) -> Result<Self, Failure> {
        let server = match place {
            Place::Memory => return Ok(Self::Memory(MemStore::new())),
            Place::Postgres(server) => server,
        };
        let schema = SchemaName::new(format!("awa_bench_{:08x}", rand::random::<u32>()))?;
        // What the installation wrote is counted when its sessions are gone, which must be before anything is measured.
        let installer = server.connect(&schema, 1).await?;
        let prepared = installer.prepare_schema().await;
        installer.close().await;
        let observer = server.connect(&schema, 1).await?;
        let ground = Ground { server, schema, observer };
        if let Err(error) = prepared {
            ground.remove().await?;
            return Err(error.into());
        }
        ground.settle().await?;
        Ok(Self::Postgres(Box::new(ground)))
    }

    /// A store with at most so many connections.
    pub(super) async fn hand(&self, connections: u32) -> Result<Hand, Failure> {
        Ok(match self {
            Self::Memory(store) => Hand::Memory(store.clone()),
            Self::Postgres(ground) => Hand::Postgres(ground.server.connect(&ground.schema, connections).await?),
        })
    }

    /// The store, to look at.
    pub(super) fn look(&self) -> &dyn Store {
        match self {
            Self::Memory(store) => store,
            Self::Postgres(ground) => &*ground.observer,
        }
    }

    /// Waits until everything that was done by sessions which have been closed is counted.
    pub(super) async fn settle(&self) -> Result<(), Failure> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Postgres(ground) => ground.settle().await,
        }
    }

    /// Removes the store with all that is in it.
    pub(super) async fn remove(self) -> Result<(), Failure> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Postgres(ground) => ground.remove().await,
        }
    }
}

impl Ground<'_> {
    async fn remove(&self) -> Result<(), Failure> {
        self.settle().await?;
        let removed = self.observer.measure().drop_schema().await;
        self.observer.close().await;
        Ok(removed?)
    }

    /// Waits until the sessions that worked are gone, because only then the server has counted all that they did; for a moment
    /// at most, because in a database of somebody's others may work in the name of the same role.
    pub(super) async fn settle(&self) -> Result<(), Failure> {
        const PATIENCE: Duration = Duration::from_secs(5);
        const PAUSE: Duration = Duration::from_millis(10);
        let began = Instant::now();
        while !self.observer.measure().sessions().await?.is_empty() && began.elapsed() < PATIENCE {
            sleep(PAUSE).await;
        }
        Ok(())
    }
}

impl Hand {
    /// The store.
    pub(super) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Memory(store) => Arc::new(store.clone()),
            Self::Postgres(database) => database.shared(),
        }
    }

    /// Closes its connections.
    pub(super) async fn close(self) {
        if let Self::Postgres(database) = self {
            database.close().await;
        }
    }
}
