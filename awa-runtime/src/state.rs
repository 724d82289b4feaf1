use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// What a program hands to its handlers: one value per type.
#[derive(Default, Clone)]
pub(crate) struct StateMap(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

/// A handler asked for state that its worker was not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the worker has no state of type {type_name}; give it with WorkerBuilder::state")]
pub struct MissingState {
    /// The type that was asked for.
    pub type_name: &'static str,
}

impl StateMap {
    /// Keeps `value`; true when there was one of its type.
    pub(crate) fn insert<T: Send + Sync + 'static>(&mut self, value: Arc<T>) -> bool {
        self.0.insert(TypeId::of::<T>(), value).is_some()
    }

    /// The value of type `T`.
    pub(crate) fn get<T: Send + Sync + 'static>(&self) -> Result<Arc<T>, MissingState> {
        let missing = MissingState { type_name: type_name::<T>() };
        let value = self.0.get(&TypeId::of::<T>()).cloned().ok_or(missing)?;
        value.downcast().map_err(|_| missing)
    }
}

impl fmt::Debug for StateMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StateMap({} types)", self.0.len())
    }
}
