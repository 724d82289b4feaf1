//! Wake-ups inside one process: a bell per queue.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use awa_core::QueueName;
use tokio::sync::Notify;
use tokio::time::timeout;

/// One bell per queue that somebody has listened to.
#[derive(Default)]
pub(super) struct Bells {
    bells: Mutex<BTreeMap<QueueName, Arc<Bell>>>,
}

#[derive(Default)]
struct Bell {
    strokes: Mutex<Strokes>,
    notify: Notify,
}

/// How often the bell has been rung, and up to which stroke a listener has heard it.
#[derive(Default)]
struct Strokes {
    rung: u64,
    heard: u64,
}

impl Bells {
    /// Rings the bells of these queues.
    pub(super) fn ring(&self, queues: &BTreeSet<QueueName>) {
        for queue in queues {
            let bell = self.of(queue);
            bell.with_strokes(|strokes| strokes.rung += 1);
            bell.notify.notify_waiters();
        }
    }

    /// Forgets strokes that came before now.
    pub(super) fn listen(&self, queue: &QueueName) {
        self.of(queue).with_strokes(Strokes::hear);
    }

    /// Waits until the bell has been rung since the last call of [`Self::listen`] or of this, or `at_most` is over.
    pub(super) async fn wait(&self, queue: &QueueName, at_most: Duration) -> bool {
        let bell = self.of(queue);
        // Enabled before the strokes are read, so that a stroke in between is not missed.
        let mut stroke = std::pin::pin!(bell.notify.notified());
        stroke.as_mut().enable();
        if bell.with_strokes(Strokes::hear) {
            return true;
        }
        let rung = timeout(at_most, stroke).await.is_ok();
        bell.with_strokes(Strokes::hear) || rung
    }

    fn of(&self, queue: &QueueName) -> Arc<Bell> {
        // No code that may panic runs with the lock held, so a poisoned one still guards a whole map.
        let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(bells.entry(queue.clone()).or_default())
    }
}

impl Bell {
    fn with_strokes<T>(&self, change: impl FnOnce(&mut Strokes) -> T) -> T {
        change(&mut self.strokes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Strokes {
    /// Marks all strokes as heard; whether there was a new one.
    fn hear(&mut self) -> bool {
        let is_new = self.rung > self.heard;
        self.heard = self.rung;
        is_new
    }
}
