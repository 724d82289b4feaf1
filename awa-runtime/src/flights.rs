//! Claim calls whose answer has not come yet.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    next: AtomicU64,
    open: Mutex<BTreeSet<u64>>,
    landed: Notify,
}

/// One claim call, from before it is sent until its jobs are in this process's hands, or it has failed. Dropping it
/// lands it, whatever happened.
#[derive(Debug)]
pub(crate) struct Flight {
    flights: Arc<Flights>,
    number: u64,
}

impl Flights {
    /// Notes that a claim call is about to be sent.
    pub(crate) fn take_off(self: &Arc<Self>) -> Flight {
        let mut open = self.lock();
        let number = self.next.fetch_add(1, Ordering::AcqRel);
        open.insert(number);
        drop(open);
        Flight { flights: Arc::clone(self), number }
    }

    /// Waits until every call that is in flight now has landed.
    pub(crate) async fn landed(&self) {
        let newest = self.next.load(Ordering::Acquire);
        loop {
            let landing = self.landed.notified();
            if self.lock().first().is_none_or(|&oldest| oldest >= newest) {
                return;
            }
            landing.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.flights.lock().remove(&self.number);
        self.flights.landed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn the_wait_is_for_the_flights_of_its_beginning_only() {
        let flights = Arc::<Flights>::default();
        let (first, second) = (flights.take_off(), flights.take_off());
        let mut wait = Box::pin(flights.landed());
        assert!(wait.as_mut().now_or_never().is_none());
        let later = flights.take_off();
        drop(second);
        assert!(wait.as_mut().now_or_never().is_none());
        drop(first);
        assert!(wait.now_or_never().is_some(), "the later flight is none of its business");
        drop(later);
        assert!(flights.landed().now_or_never().is_some());
    }
}
