//! Ends of attempts on their way to the store.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use awa_core::Closure;
use awa_core::attempt::Receipt;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::settings::Settings;

/// Where handlers leave the ends of their attempts and the batcher collects them. Leaving one is short and never waits.
#[derive(Debug)]
pub(crate) struct Outbox {
    limits: Limits,
    shelf: Mutex<Shelf>,
    ripened: Notify,
    congested: watch::Sender<bool>,
    ended: Mutex<HashSet<Receipt>>,
    has_ended: AtomicBool,
}

/// When ends are collected, and when there are too many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// So many are collected at once.
    pub(crate) flush_at: usize,
    /// So long the oldest waits for company, while attempts are running that may bring it.
    pub(crate) linger: Duration,
    /// With more ends than this unconfirmed, claims stop.
    pub(crate) max_unconfirmed: usize,
}

#[derive(Debug)]
struct Shelf {
    ends: Vec<Closure>,
    /// When the oldest of them came.
    since: Instant,
    /// Collected, and not confirmed yet.
    sent: usize,
    /// Attempts of this process whose end is still to come.
    expected: usize,
    congested: bool,
}

/// When the batcher should collect next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ripe {
    Now,
    At(Instant),
    Empty,
}

impl Limits {
    pub(crate) fn of(settings: &Settings) -> Self {
        Self { flush_at: settings.flush_at, linger: settings.linger, max_unconfirmed: settings.max_unconfirmed }
    }
}

impl Outbox {
    pub(crate) fn new(limits: Limits) -> Self {
        let shelf = Shelf { ends: Vec::new(), since: Instant::now(), sent: 0, expected: 0, congested: false };
        Self {
            limits,
            shelf: Mutex::new(shelf),
            ripened: Notify::new(),
            congested: watch::Sender::new(false),
            ended: Mutex::default(),
            has_ended: AtomicBool::new(false),
        }
    }

    /// Notes that the handler of an attempt says that it has completed it itself.
    pub(crate) fn note_ended(&self, receipt: Receipt) {
        self.has_ended.store(true, Ordering::Release);
        self.ended().insert(receipt);
    }

    /// Whether that was noted, for the one who learns what the store says to it.
    pub(crate) fn take_ended(&self, receipt: &Receipt) -> bool {
        self.has_ended.load(Ordering::Acquire) && self.ended().remove(receipt)
    }

    fn ended(&self) -> MutexGuard<'_, HashSet<Receipt>> {
        // Nothing that can panic runs under this lock.
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces attempts whose ends will come.
    pub(crate) fn expect(&self, attempts: usize) {
        self.lock().expected += attempts;
    }

    /// Leaves the end of an announced attempt. The caller has taken the right to say it.
    pub(crate) fn put(&self, end: Closure) {
        let mut shelf = self.lock();
        if shelf.ends.is_empty() {
            shelf.since = Instant::now();
        }
        shelf.ends.push(end);
        shelf.expected = shelf.expected.saturating_sub(1);
        let (ends, expected) = (shelf.ends.len(), shelf.expected);
        self.note_congestion(&mut shelf);
        drop(shelf);
        if ends == 1 || ends == self.limits.flush_at || expected == 0 {
            self.ripened.notify_one();
        }
    }

    /// Whether the batcher should collect now.
    pub(crate) fn ripe(&self, now: Instant) -> Ripe {
        let shelf = self.lock();
        let due = shelf.since + self.limits.linger;
        match shelf.ends.len() {
            0 => Ripe::Empty,
            ends if ends >= self.limits.flush_at || shelf.expected == 0 || now >= due => Ripe::Now,
            _ => Ripe::At(due),
        }
    }

    /// Waits until [`Self::ripe`] may answer otherwise than by the clock alone.
    pub(crate) async fn ripened(&self) {
        self.ripened.notified().await;
    }

    /// Collects the oldest ends, at most one batch.
    pub(crate) fn collect(&self) -> Vec<Closure> {
        let mut shelf = self.lock();
        let batch = if shelf.ends.len() <= self.limits.flush_at {
            let room = Vec::with_capacity(shelf.ends.len());
            std::mem::replace(&mut shelf.ends, room)
        } else {
            let rest = shelf.ends.split_off(self.limits.flush_at);
            std::mem::replace(&mut shelf.ends, rest)
        };
        shelf.sent += batch.len();
        batch
    }

    /// Notes that ends which were collected have been confirmed or refused.
    pub(crate) fn confirmed(&self, ends: usize) {
        let mut shelf = self.lock();
        shelf.sent = shelf.sent.saturating_sub(ends);
        self.note_congestion(&mut shelf);
    }

    /// Ends that have come and are not confirmed.
    pub(crate) fn unconfirmed(&self) -> usize {
        self.lock().unconfirmed()
    }

    /// Waits until few enough ends are unconfirmed for another claim.
    pub(crate) async fn wait_for_room(&self) {
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.congested.subscribe().wait_for(|congested| !congested).await;
    }

    /// Tells the dispatchers when the number of unconfirmed ends crosses its bound, and only then.
    fn note_congestion(&self, shelf: &mut Shelf) {
        let congested = shelf.unconfirmed() > self.limits.max_unconfirmed;
        if std::mem::replace(&mut shelf.congested, congested) != congested {
            self.congested.send_replace(congested);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf {
    fn unconfirmed(&self) -> usize {
        self.ends.len() + self.sent
    }
}

#[cfg(test)]
mod tests {
    use awa_core::AttemptEnd;
    use futures::FutureExt;

    use super::*;
    use crate::testing::claimed;

    fn outbox(flush_at: usize, max_unconfirmed: usize) -> Outbox {
        Outbox::new(Limits { flush_at, linger: Duration::from_millis(1), max_unconfirmed })
    }

    fn end(number: u16) -> Closure {
        Closure { receipt: claimed(number).receipt, end: AttemptEnd::Complete }
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_waits_for_company_while_other_attempts_run() {
        let outbox = outbox(3, 100);
        outbox.expect(4);
        assert_eq!(outbox.ripe(Instant::now()), Ripe::Empty);
        outbox.put(end(1));
        let due = Instant::now() + Duration::from_millis(1);
        assert_eq!(outbox.ripe(Instant::now()), Ripe::At(due));
        assert_eq!(outbox.ripe(due), Ripe::Now);
        outbox.put(end(2));
        outbox.put(end(3));
        assert_eq!(outbox.ripe(Instant::now()), Ripe::Now, "the batch is full");
        assert_eq!(outbox.collect().len(), 3);
        outbox.put(end(4));
        assert_eq!(outbox.ripe(Instant::now()), Ripe::Now, "nothing else runs");
    }

    #[tokio::test]
    async fn a_full_outbox_is_collected_in_batches_oldest_first() {
        let outbox = outbox(2, 100);
        (1..=5).for_each(|number| outbox.put(end(number)));
        let jobs = |batch: Vec<Closure>| batch.iter().map(|end| end.receipt.job.get()).collect::<Vec<_>>();
        assert_eq!(jobs(outbox.collect()), [1, 2]);
        assert_eq!(jobs(outbox.collect()), [3, 4]);
        assert_eq!(jobs(outbox.collect()), [5]);
        assert_eq!(outbox.unconfirmed(), 5, "what was sent counts until it is confirmed");
        outbox.confirmed(5);
        assert_eq!(outbox.unconfirmed(), 0);
    }

    #[tokio::test]
    async fn claims_wait_while_too_many_ends_are_unconfirmed() {
        let outbox = outbox(10, 2);
        (1..=3).for_each(|number| outbox.put(end(number)));
        let mut room = Box::pin(outbox.wait_for_room());
        assert!(room.as_mut().now_or_never().is_none());
        outbox.collect();
        assert!(room.as_mut().now_or_never().is_none());
        outbox.confirmed(1);
        assert!(room.now_or_never().is_some());
    }
}
