use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use awa_core::{InstanceId, QueueName, Store};
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

use crate::builder::WorkerBuilder;
use crate::crew::{Crew, Plan};
use crate::error::RuntimeError;
#[cfg(any(test, feature = "testing"))]
use crate::executor::Executor;
use crate::handler::Handlers;
#[cfg(any(test, feature = "testing"))]
use crate::outbox::{Limits, Outbox};
use crate::queue::QueueConfig;
use crate::settings::Settings;
use crate::shutdown::ShutdownReport;
use crate::state::StateMap;
use crate::stats::{Counters, StatsHandle};
use crate::threads::OwnThreads;

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

    /// Works until `shutdown` is ready, then stops in order.
    ///
    /// Handlers run on the tokio runtime that this is called in. Stopping means: no more claims, jobs that were claimed
    /// and not started are handed back, handlers are told by their context and may go on for the grace period, every end
    /// is confirmed, what did not end is handed back uncharged, and the store is told that this instance is gone. It
    /// takes at most the grace period and a second; the report says what was left.
    ///
    /// A handler that blocks its thread and does not return keeps the *runtime* from ending, because tokio waits for its
    /// threads: end the process, or the runtime with `shutdown_background`.
    ///
    /// Dropping the future ends the worker at once and in disorder: handlers are dropped at their next await, and the
    /// jobs that were running are rescued after the staleness time.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`] when the worker could not start. A store that cannot be reached is waited for, also at the
    /// start; one that must be set up first is an error.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<ShutdownReport, RuntimeError> {
        let handlers = Handle::try_current().map_err(|_| RuntimeError::NoTokio)?;
        let Self { store, instance, queues, handlers: by_kind, state, settings, counters } = self;
        let threads = OwnThreads::start(settings.own_threads, &handlers)?;
        let mut crew = Crew::assemble(Plan { store, instance, queues, handlers: by_kind, state, settings, counters });
        let own = threads.handle();
        let mut shutdown = pin!(shutdown);
        // Calls of the store belong to the worker's own threads, also the first and the last.
        let mut announced = AbortOnDropHandle::new(own.spawn(crew.announce()));
        tokio::select! {
            () = &mut shutdown => {}
            announced = &mut announced => {
                announced.map_err(RuntimeError::from_end_of_threads)?.map_err(RuntimeError::Store)?;
                crew.start(own, &handlers);
                shutdown.await;
            }
        }
        AbortOnDropHandle::new(own.spawn(crew.stop())).await.map_err(RuntimeError::from_end_of_threads)
    }

    /// The same worker for unit tests: it runs jobs when it is told to, on the task that tells it.
    #[cfg(any(test, feature = "testing"))]
    pub fn inline(self) -> crate::testing::InlineWorker {
        let outbox = Arc::new(Outbox::new(Limits::of(&self.settings)));
        let executor =
            Executor::new(Arc::clone(&self.store), self.handlers, self.state, &self.settings, outbox, self.counters);
        crate::testing::InlineWorker { store: self.store, instance: self.instance, queues: self.queues, executor }
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
