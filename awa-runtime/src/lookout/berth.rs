use std::fmt;
use std::sync::Arc;

use awa_core::store::Horizon;
use tokio::sync::Notify;

use super::Lookout;
use super::beds::Place;

/// What a dispatcher has of the lookout: its own place to sleep.
#[derive(Clone)]
pub(crate) struct Berth {
    pub(super) lookout: Arc<Lookout>,
    pub(super) place: Place,
    pub(super) call: Arc<Notify>,
}

impl Berth {
    /// A claim is about to be sent.
    pub(crate) fn begin_claim(&self) {
        self.lookout.beds().begin_claim(self.place);
    }

    /// It is answered.
    pub(crate) fn end_claim(&self) {
        self.lookout.beds().end_claim(self.place);
    }

    /// Sleeps until there is something to claim: after a claim that left nothing behind as far as its `horizon` goes, or before
    /// the first one. Returns at once when a wake-up came since that claim began. Dropping the future loses nothing, because
    /// whoever claims is taken for awake.
    pub(crate) async fn rest(&self, horizon: Option<Horizon>) {
        if !self.lookout.lie_down(self.place, horizon) {
            return;
        }
        while self.lookout.beds().is_asleep(self.place) {
            self.call.notified().await;
        }
    }
}

impl fmt::Debug for Berth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Berth").field("place", &self.place).finish_non_exhaustive()
    }
}
