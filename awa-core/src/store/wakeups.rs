use std::time::Duration;

use async_trait::async_trait;

use super::consumer::Horizon;
use crate::error::StoreError;
use crate::id::InstanceId;
use crate::name::QueueName;

/// A process's announcement that it is about to sleep over some queues.
///
/// An empty claim, or a [look](super::Consumer::peek) that finds nothing, which began after the announcement was answered and
/// has a horizon at or beyond [`Self::sound_from`], proves that no producer can have missed the announcement: from then on a
/// wake-up comes with every commit, its own or one of a commit that it overlaps, and the dispatcher of the queue may sleep
/// soundly until it comes. Until then it looks again, with a growing pause.
///
/// A wake-up is a hint all the same: where a producer leaves it to another and that one is aborted in the middle of its commit, none comes.
/// So whoever sleeps soundly looks again at its poll interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SleepTicket {
    /// The horizon an empty claim must reach.
    pub sound_from: Horizon,
    /// False when the store could not announce (no session of its own, connection lost): poll.
    pub announced: bool,
}

/// What a process hears that waits for wake-ups.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Woken {
    /// Nothing, for as long as it wanted to wait.
    Nothing,
    /// Jobs may have come to some of these queues, all of which it has announced: each may be one too many. Who enqueued
    /// beside the one that sent it may not have committed yet and sends none, so that a ticket for these queues proves nothing
    /// from now on: announce again for one that does. The announcement stands.
    Queues(Vec<QueueName>),
    /// None of its announcements stands any more, because the store lost what kept them: announce again.
    Void,
}

/// Hints that work exists (C13). A store without them answers [`Store::wakeups`](super::Store::wakeups) with `None`.
///
/// A process names itself, so that several on one store do not hear or withdraw for each other, and speaks for many queues
/// at once, so that ten thousand sleeping queues cost no more calls than one.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Wakeups: Send + Sync {
    /// Announces that `instance` is about to sleep over `queues`: producers that commit from now on send a wake-up.
    /// Announcing a queue again gives a new ticket.
    async fn announce(&self, instance: InstanceId, queues: &[QueueName]) -> Result<SleepTicket, StoreError>;

    /// Takes announcements of `instance` back: it is awake, and producers need not notify for it.
    async fn withdraw(&self, instance: InstanceId, queues: &[QueueName]) -> Result<(), StoreError>;

    /// Waits until a wake-up comes for a queue that `instance` has announced, or one has come that no call has told yet, or
    /// `at_most` is over. One call per instance at a time. Dropping the future loses nothing that the next call would need.
    async fn wait(&self, instance: InstanceId, at_most: Duration) -> Result<Woken, StoreError>;
}
