//! The threads that carry the worker's own tasks.
//!
//! Handlers run on the runtime of the program, and may block it. The worker's own tasks (claims, ends, heartbeats,
//! maintenance) run on a small runtime of their own, so that connections which they open are also driven there, and
//! nothing a handler does delays them.

use tokio::runtime::{Builder, Handle, Runtime};

use crate::error::RuntimeError;

/// See the module. Dropping it ends its tasks without waiting for them.
#[derive(Debug)]
pub(crate) struct OwnThreads {
    runtime: Option<Runtime>,
    handle: Handle,
}

impl OwnThreads {
    /// Starts `threads` threads; with 0, tasks run on the runtime of the `caller`.
    pub(crate) fn start(threads: usize, caller: &Handle) -> Result<Self, RuntimeError> {
        if threads == 0 {
            return Ok(Self { runtime: None, handle: caller.clone() });
        }
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("awa-worker")
            .enable_all()
            .build()
            .map_err(RuntimeError::Threads)?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }

    /// Where to spawn the worker's own tasks.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for OwnThreads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
