//! Whose clock decides.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use awa_core::time::Timestamp;

use crate::value::{Param, types};

/// The clock of a store. Every statement that compares times takes the present as a parameter; NULL, the production
/// value, means the server's own clock.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Clock {
    /// The server's.
    #[default]
    Server,
    /// One that moves only when told, for tests: microseconds since the epoch, shared by all clones.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// A clock for tests that stands at `start`.
    pub fn manual(start: Timestamp) -> Self {
        Self::Manual(Arc::new(AtomicI64::new(start.as_micros())))
    }

    /// Moves a clock for tests forward. The server's clock is left alone.
    pub fn advance(&self, by: Duration) {
        if let Self::Manual(micros) = self {
            micros.fetch_add(micros_of(by), Ordering::SeqCst);
        }
    }

    /// The parameter that says what time it is.
    pub fn param(&self) -> Param<'static> {
        match self {
            Self::Server => Param::Null(types::TIMESTAMPTZ),
            Self::Manual(micros) => Param::Timestamp(Timestamp::from_micros(micros.load(Ordering::SeqCst))),
        }
    }
}

/// A length as the server takes it.
pub(crate) fn micros_of(length: Duration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX / 4)
}

/// A length as the server sends it.
pub(crate) fn length_of(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}
