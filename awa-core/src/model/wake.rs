//! Hints that work exists: who sleeps, and whom a commit wakes.

use std::collections::BTreeSet;
use std::mem;

use super::Model;
use crate::id::InstanceId;
use crate::name::QueueName;
use crate::store::{Horizon, SleepTicket};

impl Model {
    /// A process is about to sleep over some queues. See [`Wakeups::announce`](crate::store::Wakeups::announce).
    ///
    /// Every transaction that begins to write after this finds the sleeper; those that began before have a smaller
    /// number than the ticket's, and a claim at its horizon has seen them all.
    pub fn announce(&mut self, instance: InstanceId, queues: &[QueueName]) -> SleepTicket {
        for queue in queues {
            self.sleepers.entry(queue.clone()).or_default().insert(instance);
        }
        let xid = self.transactions.write_and_commit();
        SleepTicket { sound_from: Horizon(xid.0), announced: true }
    }

    /// A process is awake again.
    pub fn withdraw(&mut self, instance: InstanceId, queues: &[QueueName]) {
        for queue in queues {
            if let Some(sleepers) = self.sleepers.get_mut(queue) {
                sleepers.remove(&instance);
                if sleepers.is_empty() {
                    self.sleepers.remove(queue);
                }
            }
        }
    }

    /// Takes the queues whose sleepers are to be woken now.
    #[must_use]
    pub fn take_wakes(&mut self) -> BTreeSet<QueueName> {
        mem::take(&mut self.wakes)
    }

    /// Wakes the sleepers of a queue, if there are any.
    pub(super) fn wake(&mut self, queue: &QueueName) {
        if self.sleepers.contains_key(queue) {
            self.wakes.insert(queue.clone());
        }
    }
}
