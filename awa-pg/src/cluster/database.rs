//! A database for one test.

use std::sync::atomic::{AtomicU32, Ordering};

use super::endpoint::Endpoint;
use super::error::ClusterError;

/// A database of its own for one test, dropped with the value; whoever is still connected is cut off.
#[derive(Debug)]
pub struct TestDatabase {
    endpoint: Endpoint,
    name: String,
}

impl TestDatabase {
    pub(super) fn create(endpoint: &Endpoint, template: Option<&str>) -> Result<Self, ClusterError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // On a server that outlives the runs, an earlier process of the same id may have left one behind.
        let name = format!("awa_test_{}_{number}", std::process::id());
        endpoint.drop_database(&name)?;
        endpoint.create_database(&name, template)?;
        Ok(Self { endpoint: endpoint.clone(), name })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The URL, over TCP.
    pub fn url(&self) -> String {
        self.endpoint.url(&self.name)
    }

    /// Runs a script by `psql`, as [`Cluster::psql`](super::Cluster::psql) does.
    pub fn psql(&self, sql: &str) -> Result<String, ClusterError> {
        self.endpoint.psql(&self.name, sql)
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        if let Err(error) = self.endpoint.drop_database(&self.name) {
            tracing::warn!(database = self.name, %error, "the database of a test could not be dropped");
        }
    }
}
