//! What the instances on one store have announced, and what came for them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use awa_core::id::InstanceId;
use awa_core::name::QueueName;
use awa_core::store::Woken;
use tokio::sync::Notify;

/// A queue and the bucket that it belongs to.
pub(super) type Placed = (usize, QueueName);

/// One ear per instance that has announced or waited.
#[derive(Debug, Default)]
pub(super) struct Ears {
    ears: Mutex<HashMap<InstanceId, Ear>>,
}

#[derive(Debug, Default)]
struct Ear {
    /// Announced queues, by bucket.
    announced: HashMap<usize, HashSet<QueueName>>,
    /// Buckets for which a wake-up came that was not told yet.
    rung: BTreeSet<usize>,
    /// What was announced stands no more, which was not told yet.
    is_void: bool,
    came: Arc<Notify>,
}

impl Ears {
    /// An instance hears what comes for these queues.
    pub(super) fn listen(&self, instance: InstanceId, queues: Vec<Placed>) {
        let mut ears = self.lock();
        let ear = ears.entry(instance).or_default();
        for (bucket, queue) in queues {
            ear.announced.entry(bucket).or_default().insert(queue);
        }
    }

    /// It hears no more of these; the buckets among theirs that nobody listens to any more.
    pub(super) fn ignore(&self, instance: InstanceId, queues: &[Placed]) -> BTreeSet<usize> {
        let mut ears = self.lock();
        if let Some(ear) = ears.get_mut(&instance) {
            for (bucket, queue) in queues {
                if let Some(announced) = ear.announced.get_mut(bucket) {
                    announced.remove(queue);
                    if announced.is_empty() {
                        ear.announced.remove(bucket);
                    }
                }
            }
        }
        let is_deserted = |bucket: &usize| !ears.values().any(|ear| ear.announced.contains_key(bucket));
        queues.iter().map(|(bucket, _)| *bucket).filter(is_deserted).collect()
    }

    /// A wake-up came for a bucket.
    pub(super) fn ring(&self, bucket: usize) {
        for ear in self.lock().values_mut().filter(|ear| ear.announced.contains_key(&bucket)) {
            ear.rung.insert(bucket);
            ear.came.notify_one();
        }
    }

    /// All announcements are lost.
    pub(super) fn make_void(&self) {
        for ear in self.lock().values_mut() {
            ear.announced.clear();
            ear.rung.clear();
            ear.is_void = true;
            ear.came.notify_one();
        }
    }

    /// Waits for what is to be told to an instance.
    pub(super) async fn hear(&self, instance: InstanceId) -> Woken {
        let came = Arc::clone(&self.lock().entry(instance).or_default().came);
        loop {
            if let Some(woken) = self.lock().get_mut(&instance).and_then(Ear::take) {
                return woken;
            }
            // One that comes in between is kept for whoever waits next.
            came.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<InstanceId, Ear>> {
        // No code that may panic runs with the lock held, so a poisoned one still guards whole ears.
        self.ears.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ear {
    fn take(&mut self) -> Option<Woken> {
        if std::mem::take(&mut self.is_void) {
            return Some(Woken::Void);
        }
        let rung = std::mem::take(&mut self.rung);
        let queues: Vec<_> = rung.iter().filter_map(|bucket| self.announced.get(bucket)).flatten().cloned().collect();
        (!queues.is_empty()).then_some(Woken::Queues(queues))
    }
}
