use std::fmt;
use std::sync::Arc;

use awa_core::{InstanceId, QueueName, Store};

use crate::builder::WorkerBuilder;
use crate::error::RuntimeError;
use crate::handler::Handlers;
use crate::queue::QueueConfig;
use crate::settings::Settings;
use crate::shutdown::ShutdownReport;
use crate::state::StateMap;
use crate::stats::{Counters, StatsHandle};

/// A process's share of the work: claims jobs of its queues, runs their handlers and keeps the store in order.
pub struct Worker {
    store: Arc<dyn Store>,
    instance: InstanceId,
    queues: Vec<(QueueName, QueueConfig)>,
    handlers: Handlers,
    state: StateMap,
    settings: Settings,
    counters: Arc<Counters>,
}

impl Worker {
    /// Begins to build a worker on `store`.
    pub fn builder(store: Arc<dyn Store>) -> WorkerBuilder {
        WorkerBuilder::new(store)
    }

    pub(crate) fn new(
        store: Arc<dyn Store>,
        queues: Vec<(QueueName, QueueConfig)>,
        handlers: Handlers,
        state: StateMap,
        settings: Settings,
    ) -> Self {
        let instance = InstanceId(rand::random());
        Self { store, instance, queues, handlers, state, settings, counters: Arc::default() }
    }

    /// The name of this process start in the store: random, never used again.
    pub fn instance(&self) -> InstanceId {
        self.instance
    }

    /// The counters, readable while the worker runs.
    pub fn stats(&self) -> StatsHandle {
        StatsHandle(Arc::clone(&self.counters))
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("store", &self.store.describe())
            .field("instance", &self.instance)
            .field("queues", &self.queues)
            .field("handlers", &self.handlers)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
