//! Wake-ups inside one process: a bell per instance, which rings for the queues that it listens for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use awa_core::store::Woken;
use awa_core::{InstanceId, QueueName};
use tokio::sync::Notify;
use tokio::time::timeout;

/// One bell per instance that has listened.
#[derive(Default)]
pub(super) struct Bells {
    bells: Mutex<BTreeMap<InstanceId, Bell>>,
}

#[derive(Default)]
struct Bell {
    listens_for: BTreeSet<QueueName>,
    /// For what it has rung and was not heard yet.
    rung: BTreeSet<QueueName>,
    stroke: Arc<Notify>,
}

impl Bells {
    /// Rings for these queues.
    pub(super) fn ring(&self, queues: &BTreeSet<QueueName>) {
        if queues.is_empty() {
            return;
        }
        for bell in self.lock().values_mut() {
            let before = bell.rung.len();
            bell.rung.extend(queues.intersection(&bell.listens_for).cloned());
            if bell.rung.len() > before {
                bell.stroke.notify_one();
            }
        }
    }

    /// From now on an instance listens for these queues as well.
    pub(super) fn listen(&self, instance: InstanceId, queues: &[QueueName]) {
        self.lock().entry(instance).or_default().listens_for.extend(queues.iter().cloned());
    }

    /// It listens no more for these.
    pub(super) fn ignore(&self, instance: InstanceId, queues: &[QueueName]) {
        if let Some(bell) = self.lock().get_mut(&instance) {
            for queue in queues {
                bell.listens_for.remove(queue);
                bell.rung.remove(queue);
            }
        }
    }

    /// Waits until the bell of an instance rings, has rung unheard, or `at_most` is over.
    pub(super) async fn wait(&self, instance: InstanceId, at_most: Duration) -> Woken {
        let stroke = Arc::clone(&self.lock().entry(instance).or_default().stroke);
        let heard = async {
            loop {
                let rung = self.lock().get_mut(&instance).map(|bell| std::mem::take(&mut bell.rung));
                match rung {
                    Some(rung) if !rung.is_empty() => return Woken::Queues(rung.into_iter().collect()),
                    // A stroke in between is kept for the next who waits for one.
                    _ => stroke.notified().await,
                }
            }
        };
        timeout(at_most, heard).await.unwrap_or(Woken::Nothing)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<InstanceId, Bell>> {
        // No code that may panic runs with the lock held, so a poisoned one still guards a whole map.
        self.bells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
