use std::time::Duration;

use async_trait::async_trait;

use super::consumer::Horizon;
use crate::error::StoreError;
use crate::name::QueueName;

/// A dispatcher's announcement that it is about to sleep.
///
/// An empty claim with a horizon at or beyond [`Self::sound_from`] proves that no producer can have missed the
/// announcement: from then on a wake-up comes with every commit, and the dispatcher may sleep soundly. Until then it
/// polls, with a growing pause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SleepTicket {
    /// The horizon an empty claim must reach.
    pub sound_from: Horizon,
    /// False when the store could not announce (no session of its own, connection lost): poll.
    pub announced: bool,
}

/// Hints that work exists (C13). A store without them answers [`Store::wakeups`](super::Store::wakeups) with `None`.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Wakeups: Send + Sync {
    /// Announces that a dispatcher of `queue` is about to sleep: producers that commit from now on send a wake-up.
    async fn announce(&self, queue: &QueueName) -> Result<SleepTicket, StoreError>;

    /// Takes the announcement back: the dispatcher is awake, and producers need not notify for it.
    async fn withdraw(&self, queue: &QueueName) -> Result<(), StoreError>;

    /// Waits until a wake-up for `queue` comes, one came since the last [`Self::announce`], or `at_most` is over.
    /// Returns whether one came. Dropping the future loses nothing that the next call would need.
    async fn wait(&self, queue: &QueueName, at_most: Duration) -> Result<bool, StoreError>;
}
