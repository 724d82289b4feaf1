//! The model behind a lock.

mod bells;
mod traits;

use std::fmt;
use std::sync::{Arc, Mutex};

use awa_core::model::{Model, RingSizes};
use awa_core::{StoreError, StoreErrorKind, Timestamp};

use crate::clock::{Clock, ManualClock, SystemClock};
use crate::transaction::MemTransaction;
use bells::Bells;

/// A store in the memory of this process. Clones share it.
///
/// It keeps clauses C2 to C14 of the [contract](awa_core::store) and not C1: nothing survives the process. All methods
/// may be called from many tasks and threads at once; each is one atomic step.
#[derive(Clone)]
pub struct MemStore {
    shared: Arc<Shared>,
}

struct Shared {
    model: Mutex<Model>,
    clock: Arc<dyn Clock>,
    bells: Bells,
}

impl MemStore {
    /// An empty store with rings of the usual sizes, on the computer's clock.
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock), RingSizes::default())
    }

    /// An empty store with rings of the usual sizes, and the clock on which it runs.
    pub fn with_manual_clock() -> (Self, ManualClock) {
        let clock = ManualClock::at(SystemClock.now());
        (Self::with_clock(Arc::new(clock.clone()), RingSizes::default()), clock)
    }

    /// An empty store on `clock` with rings of these sizes.
    ///
    /// # Panics
    ///
    /// When a ring has fewer than 2 slots or more than 64.
    pub fn with_clock(clock: Arc<dyn Clock>, rings: RingSizes) -> Self {
        let model = Mutex::new(Model::new(rings, clock.now()));
        Self { shared: Arc::new(Shared { model, clock, bells: Bells::default() }) }
    }

    /// Begins a transaction. Its jobs exist when it commits, and nobody waits for it meanwhile (C9, C10).
    ///
    /// # Errors
    ///
    /// As for every call of a store.
    pub fn begin(&self) -> Result<MemTransaction, StoreError> {
        let transaction = self.step("begin", |model, _| model.begin())?;
        Ok(MemTransaction::new(self.clone(), transaction))
    }

    /// A copy of the model as it is now, to look at or to check.
    ///
    /// # Errors
    ///
    /// As for every call of a store.
    pub fn model(&self) -> Result<Model, StoreError> {
        self.step("model", |model, _| model.clone())
    }

    /// Takes one step of the model and wakes whom it wakes.
    pub(crate) fn step<T>(
        &self,
        operation: &'static str,
        step: impl FnOnce(&mut Model, Timestamp) -> T,
    ) -> Result<T, StoreError> {
        let mut model = self.shared.model.lock().map_err(|_| {
            let message = "the memory store broke off an earlier call and may contradict itself; begin with a new one";
            StoreError::new(StoreErrorKind::Corrupt, operation, message)
        })?;
        let answer = step(&mut model, self.shared.clock.now());
        let woken = model.take_wakes();
        drop(model);
        self.shared.bells.ring(&woken);
        Ok(answer)
    }
}

impl Default for MemStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemStore").field("clock", &self.shared.clock).finish_non_exhaustive()
    }
}
