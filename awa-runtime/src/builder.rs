use std::any::type_name;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use awa_core::retry::RetryPolicy;
use awa_core::{ClaimedJob, JobKind, QueueName, Store};

use crate::context::JobContext;
use crate::error::BuildError;
use crate::handler::{Blocking, ByType, ErasedHandler, Handlers, JobHandler, Raw, Typed};
use crate::job::Job;
use crate::maintenance_config::MaintenanceConfig;
use crate::outcome::HandlerResult;
use crate::queue::QueueConfig;
use crate::settings::{Roles, Settings};
use crate::state::StateMap;
use crate::worker::Worker;

/// Puts a [`Worker`] together. Mistakes are reported by [`Self::build`], so that the calls chain.
pub struct WorkerBuilder {
    store: Arc<dyn Store>,
    control: Option<Arc<dyn Store>>,
    queues: Vec<(QueueName, QueueConfig)>,
    handlers: Handlers,
    state: StateMap,
    settings: Settings,
    problem: Option<BuildError>,
}

impl WorkerBuilder {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            control: None,
            queues: Vec::new(),
            handlers: Handlers::default(),
            state: StateMap::default(),
            settings: Settings::default(),
            problem: None,
        }
    }

    /// Serves a queue.
    #[must_use]
    pub fn queue(mut self, name: impl AsRef<str>, config: QueueConfig) -> Self {
        match QueueName::new(name) {
            Ok(name) if self.queues.iter().any(|(other, _)| *other == name) => {
                self.fail(BuildError::DuplicateQueue(name));
            }
            Ok(name) => self.queues.push((name, config)),
            Err(refusal) => self.fail(refusal.into()),
        }
        self
    }

    /// Runs jobs of type `J` with an async closure or function. Its future needs to be `Send`, not `Sync`.
    ///
    /// Arguments that do not decode fail the attempt by the ordinary route. A handler that panics fails its attempt
    /// with the panic's message; with `panic = "abort"` the process dies instead, and the attempt is rescued.
    #[must_use]
    pub fn handler<J, F, Fut>(self, handler: F) -> Self
    where
        J: Job,
        F: Fn(J, JobContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = HandlerResult> + Send + 'static,
    {
        self.register(J::KIND, Arc::new(Typed::new(handler)))
    }

    /// Runs jobs of type `H::Job` with a type that implements [`JobHandler`].
    #[must_use]
    pub fn job_handler<H: JobHandler>(self, handler: H) -> Self {
        self.register(H::Job::KIND, Arc::new(ByType::new(handler)))
    }

    /// Runs jobs of type `J` with a closure or function that blocks its thread, on tokio's threads for blocking work.
    ///
    /// Nothing can stop such a thread from outside: it holds its permit until it returns. Look at
    /// [`JobContext::cancelled`] in long work.
    #[must_use]
    pub fn blocking_handler<J, F>(self, handler: F) -> Self
    where
        J: Job,
        F: Fn(J, JobContext) -> HandlerResult + Send + Sync + 'static,
    {
        self.register(J::KIND, Arc::new(Blocking::<J, F>::new(handler)))
    }

    /// Runs jobs of `kind` with an async closure or function that takes the claimed job untyped.
    #[must_use]
    pub fn raw_handler<F, Fut>(self, kind: impl AsRef<str>, handler: F) -> Self
    where
        F: Fn(ClaimedJob, JobContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = HandlerResult> + Send + 'static,
    {
        self.register(kind.as_ref(), Arc::new(Raw(handler)))
    }

    /// Runs jobs of every kind that has no handler of its own. Without it, such jobs are released after a short delay,
    /// uncharged, so that another worker can run them.
    #[must_use]
    pub fn fallback_handler<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(ClaimedJob, JobContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = HandlerResult> + Send + 'static,
    {
        if self.handlers.fallback.replace(Arc::new(Raw(handler))).is_some() {
            self.fail(BuildError::DuplicateFallback);
        }
        self
    }

    /// Gives handlers a value, which they read with [`JobContext::state`]; one per type.
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(mut self, value: Arc<T>) -> Self {
        if self.state.insert(value) {
            self.fail(BuildError::DuplicateState(type_name::<T>()));
        }
        self
    }

    /// When a failed attempt is tried again, whether a handler or a rescue ended it.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.settings.retry = policy;
        self
    }

    /// How often the process shows that it is alive; 5 s unless told. As often it asks whether its running attempts
    /// are still its own.
    #[must_use]
    pub fn heartbeat_interval(mut self, interval: Duration) -> Self {
        self.settings.heartbeat = interval;
        self
    }

    /// The age of its last sign of life from which on this process may be taken for dead, and its attempts rescued;
    /// 30 s unless told, at least three heartbeat intervals.
    #[must_use]
    pub fn staleness(mut self, age: Duration) -> Self {
        self.settings.staleness = age;
        self
    }

    /// How long handlers may go on after the signal to stop; 30 s unless told. The worker ends at most a second later.
    #[must_use]
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.settings.grace = grace;
        self
    }

    /// How long one call of the store may take before its outcome counts as unknown; 30 s unless told.
    #[must_use]
    pub fn call_timeout(mut self, limit: Duration) -> Self {
        self.settings.call_timeout = limit;
        self
    }

    /// The largest number of ends that one call confirms, 1 to 1,023; 1,000 unless told.
    #[must_use]
    pub fn flush_at(mut self, ends: usize) -> Self {
        self.settings.flush_at = ends;
        self
    }

    /// How many ends may wait for their confirmation before claims stop; 5,000 unless told.
    #[must_use]
    pub fn max_unconfirmed(mut self, ends: usize) -> Self {
        self.settings.max_unconfirmed = ends;
        self
    }

    /// Whether this process keeps the store in order beside its other work; on unless told. At least one process of a
    /// fleet must.
    #[must_use]
    pub fn maintenance(mut self, on: bool) -> Self {
        self.settings.roles.maintenance = on;
        self
    }

    /// How this process maintains. Its retry policy and staleness time are replaced by the worker's.
    #[must_use]
    pub fn maintenance_config(mut self, config: MaintenanceConfig) -> Self {
        self.settings.maintenance = config;
        self
    }

    /// Whether this process claims jobs; on unless told.
    #[must_use]
    pub fn claims(mut self, on: bool) -> Self {
        self.settings.roles.claims = on;
        self
    }

    /// A second handle on the same store, for all calls of the worker's own: claims, ends, heartbeats, maintenance.
    ///
    /// A database connection lives on the runtime that made it. When handlers enqueue through the worker's store, a
    /// connection made on the handlers' runtime may be lent to a heartbeat, and stand still while handlers block that
    /// runtime; or handlers may use up the pool. A handle with a pool of its own, used by nobody else and connecting
    /// when first used, rules out both.
    #[must_use]
    pub fn control_store(mut self, store: Arc<dyn Store>) -> Self {
        self.control = Some(store);
        self
    }

    /// The number of threads that carry the worker's own tasks, 0 to 64; 2 unless told.
    ///
    /// Handlers run on the runtime that calls [`Worker::run_until`], the worker's own tasks on these threads, so that
    /// handlers that block their runtime starve neither heartbeats nor the flush of results. With 0, all runs on the
    /// caller's runtime: for tests with a paused clock, and for programs that never block.
    #[must_use]
    pub fn own_threads(mut self, threads: usize) -> Self {
        self.settings.own_threads = threads;
        self
    }

    /// The worker.
    ///
    /// # Errors
    ///
    /// The first mistake made.
    pub fn build(self) -> Result<Worker, BuildError> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        self.settings.check()?;
        let Roles { claims, maintenance } = self.settings.roles;
        for (queue, config) in &self.queues {
            config.check().map_err(|problem| BuildError::BadQueue { queue: queue.clone(), problem })?;
        }
        match () {
            () if !claims && !maintenance => return Err(BuildError::NoRole),
            () if claims && self.queues.is_empty() => return Err(BuildError::NoQueue),
            () if claims && self.handlers.is_empty() => return Err(BuildError::NoHandler),
            () => {}
        }
        Ok(Worker::new(self.control.unwrap_or(self.store), self.queues, self.handlers, self.state, self.settings))
    }

    fn register(mut self, kind: &str, handler: Arc<dyn ErasedHandler>) -> Self {
        match JobKind::new(kind) {
            Ok(kind) if self.handlers.by_kind.contains_key(&kind) => self.fail(BuildError::DuplicateHandler(kind)),
            Ok(kind) => {
                self.handlers.by_kind.insert(kind, handler);
            }
            Err(refusal) => self.fail(refusal.into()),
        }
        self
    }

    fn fail(&mut self, problem: BuildError) {
        self.problem.get_or_insert(problem);
    }
}

impl fmt::Debug for WorkerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerBuilder")
            .field("store", &self.store.describe())
            .field("queues", &self.queues)
            .field("handlers", &self.handlers)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
