use std::io;

use awa_core::{BadInput, JobKind, QueueName, StoreError};
use tokio::task::JoinError;

/// Why a worker could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A worker that claims needs a queue.
    #[error("the worker has no queue; add one with .queue(name, config), or .claims(false) for maintenance only")]
    NoQueue,
    /// A worker that claims needs a handler.
    #[error("the worker has no handler; add one with .handler(..), or .claims(false) for maintenance only")]
    NoHandler,
    /// A worker that neither claims nor maintains does nothing.
    #[error("the worker neither claims nor maintains; leave one of .claims(..) and .maintenance(..) on")]
    NoRole,
    /// Two configurations of one queue.
    #[error("queue {0} is configured twice; keep one")]
    DuplicateQueue(QueueName),
    /// Two handlers of one kind.
    #[error("kind {0} has two handlers; keep one")]
    DuplicateHandler(JobKind),
    /// Two fallback handlers.
    #[error("the worker has two fallback handlers; keep one")]
    DuplicateFallback,
    /// Two values of one type of state.
    #[error("the worker has two values of state of type {0}; keep one, or wrap them in types of their own")]
    DuplicateState(&'static str),
    /// A name or a number out of its range.
    #[error("the worker cannot be built: {0}")]
    BadSetting(#[from] BadInput),
    /// A setting of one queue out of its range.
    #[error("queue {queue} cannot be served: {problem}")]
    BadQueue {
        /// The queue.
        queue: QueueName,
        /// The setting at fault.
        problem: BadInput,
    },
}

/// Why a worker could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// There is no tokio runtime to run handlers on.
    #[error("the worker needs a tokio runtime; call run_until inside one")]
    NoTokio,
    /// The threads of the worker's own could not be started, or ended before it.
    #[error("the threads of the worker could not be started or ended before it; check the limits of the process")]
    Threads(#[source] io::Error),
    /// The store refused the worker at its start, and will refuse it until somebody acts.
    #[error("the store refused the worker at its start: {0}")]
    Store(#[source] StoreError),
}

impl RuntimeError {
    /// A task of the worker's own did not end by itself.
    pub(crate) fn from_end_of_threads(error: JoinError) -> Self {
        Self::Threads(io::Error::other(error))
    }
}
