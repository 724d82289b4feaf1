//! Watches the queues of all dispatchers of a process that sleep, so that ten thousand idle queues cost no more calls than
//! one, and no wake-up is lost.
//!
//! A dispatcher that found nothing lies down (`Berth`). What happens to it then is done for all together: announcements, looks
//! once per poll interval, and looks after a wake-up, which may be meant for any of many queues. Only dispatchers whose queue
//! has something are called. For few queues a claim is as cheap as a look and comes sooner, so these are called at once.

mod beds;
mod berth;
mod opening;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use awa_core::store::{Horizon, Wakeups, Woken};
use awa_core::{InstanceId, QueueName, Store};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::backoff::{Backoff, Trouble};
use crate::call::bounded;
use beds::{Beds, Place};
pub(crate) use berth::Berth;
pub(crate) use opening::Opening;

/// See the module.
pub(crate) struct Lookout {
    store: Arc<dyn Store>,
    instance: InstanceId,
    call_timeout: Duration,
    stop: CancellationToken,
    beds: Mutex<Beds>,
    /// Somebody lay down for whom nothing is announced, or got up.
    changed: Notify,
    /// Somebody is due before the round means to come again.
    sooner: Notify,
    /// The queues have been opened, or it was tried once.
    opened: CancellationToken,
    has_announced: AtomicBool,
    looks: Mutex<Looks>,
}

/// How looks go.
struct Looks {
    trouble: Trouble,
    backoff: Backoff,
}

impl Lookout {
    /// So many dispatchers are called without a look: a claim in vain costs about what a look does.
    const FEW: usize = 2;
    /// Queues of one look.
    const PAGE: usize = 10_000;
    /// The shortest time between looks at many queues that sleep soundly.
    const BETWEEN_LOOKS: Duration = Duration::from_secs(2);
    /// Rounds take at most this part of the time.
    const SHARE_OF_TIME: u32 = 20;
    /// How long one call waits for wake-ups.
    const WATCH: Duration = Duration::from_mins(1);

    /// A lookout for these queues with their poll intervals.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        instance: InstanceId,
        queues: impl Iterator<Item = (QueueName, Duration)>,
        call_timeout: Duration,
        stop: CancellationToken,
    ) -> Self {
        let beds = Mutex::new(Beds::new(queues, store.wakeups().is_some()));
        let (changed, sooner, opened) = (Notify::new(), Notify::new(), CancellationToken::new());
        let looks = Mutex::new(Looks { trouble: Trouble::default(), backoff: Backoff::for_trouble() });
        let has_announced = AtomicBool::new(false);
        Self { store, instance, call_timeout, stop, beds, changed, sooner, opened, has_announced, looks }
    }

    /// The place of the queue with this number to sleep in.
    pub(crate) fn berth(self: &Arc<Self>, place: Place) -> Berth {
        let call = self.beds().call_of(place);
        Berth { lookout: Arc::clone(self), place, call }
    }

    /// Announces for those who lie down, and withdraws for those who stay up, until the worker stops.
    pub(crate) async fn announce(self: Arc<Self>) {
        let Some(wakeups) = self.store.wakeups() else { return };
        self.stop.run_until_cancelled(self.keep_announced(wakeups)).await;
        // One that was cut off may stand as well.
        if self.has_announced.load(Ordering::Relaxed) {
            self.withdraw(wakeups, &self.all_queues()).await;
        }
    }

    async fn keep_announced(&self, wakeups: &dyn Wakeups) {
        let _ = timeout(Opening::PATIENCE, self.opened.cancelled()).await;
        let mut is_polling = false;
        loop {
            let ((risen, next), newcomers) = {
                let mut beds = self.beds();
                (beds.take_risen(), beds.take_newcomers())
            };
            self.withdraw(wakeups, &risen).await;
            if !newcomers.is_empty() {
                self.announce_for(wakeups, &newcomers, &mut is_polling).await;
            } else if let Some(next) = next {
                let _ = timeout_at(next, self.changed.notified()).await;
            } else {
                self.changed.notified().await;
            }
        }
    }

    /// Announces for sleepers, and looks for them, because what came before the announcement was not told.
    async fn announce_for(&self, wakeups: &dyn Wakeups, newcomers: &[Place], is_polling: &mut bool) {
        let announcement = self.beds().begin_announcement(newcomers);
        self.has_announced.store(true, Ordering::Relaxed);
        let call = wakeups.announce(self.instance, &announcement.queues);
        let announced = bounded("announce", self.call_timeout, call).await;
        match announced {
            Ok(ticket) if ticket.announced => {
                if std::mem::take(is_polling) {
                    info!("wake-ups work again");
                }
                let stands = self.beds().promise(&announcement, ticket.sound_from);
                if stands {
                    self.look_for(newcomers).await;
                }
            }
            answer => {
                if !std::mem::replace(is_polling, true) {
                    let why = answer.err().map_or_else(|| "no session for it".to_owned(), |error| error.to_string());
                    warn!(why, queues = newcomers.len(), "no wake-ups; queues are polled");
                }
                let due = self.beds().refuse(newcomers);
                self.look_for(&due).await;
                self.sooner.notify_one();
            }
        }
    }

    async fn withdraw(&self, wakeups: &dyn Wakeups, queues: &[QueueName]) {
        if !queues.is_empty() {
            // An announcement that stays costs producers a notification each, no more.
            let _ = bounded("withdraw", self.call_timeout, wakeups.withdraw(self.instance, queues)).await;
        }
    }

    /// Looks for all who are due, until the worker stops.
    pub(crate) async fn go_round(self: Arc<Self>) {
        self.stop.run_until_cancelled(self.keep_going_round()).await;
    }

    async fn keep_going_round(&self) {
        if self.store.wakeups().is_none() {
            let _ = timeout(Opening::PATIENCE, self.opened.cancelled()).await;
        }
        // When many may be looked for again, in a hurry or not.
        let (mut soonest, mut calmly) = (Instant::now(), Instant::now());
        loop {
            let round = self.beds().round();
            if round.has_newcomers {
                self.changed.notify_one();
            }
            let is_crowd = round.due.len() > Self::FEW;
            let from = match round.is_urgent {
                _ if !is_crowd => Instant::now(),
                true => soonest,
                false => calmly,
            };
            if round.due.is_empty() || from > Instant::now() {
                let until = if round.due.is_empty() { round.next } else { round.next.map(|next| next.min(from)) };
                let sooner = self.sooner.notified();
                match until {
                    Some(until) => drop(timeout_at(until, sooner).await),
                    None => sooner.await,
                }
                continue;
            }
            let began = Instant::now();
            self.look_for(&round.due).await;
            if is_crowd {
                soonest = Instant::now() + began.elapsed() * (Self::SHARE_OF_TIME - 1);
                calmly = soonest.max(began + Self::BETWEEN_LOOKS);
            }
        }
    }

    /// Hears wake-ups, until the worker stops.
    pub(crate) async fn listen(self: Arc<Self>) {
        let Some(wakeups) = self.store.wakeups() else { return };
        self.stop.run_until_cancelled(self.keep_listening(wakeups)).await;
    }

    async fn keep_listening(&self, wakeups: &dyn Wakeups) {
        let (mut backoff, mut trouble) = (Backoff::for_trouble(), Trouble::default());
        loop {
            // The store bounds the wait itself; a store that does not is held to it here.
            let patience = Self::WATCH + self.call_timeout;
            let woken = bounded("wait for work", patience, wakeups.wait(self.instance, Self::WATCH)).await;
            match woken {
                Ok(Woken::Queues(queues)) => {
                    let sleepers = self.beds().hint(&queues);
                    self.look_for(&sleepers).await;
                }
                Ok(Woken::Nothing) => {}
                // Also what a later core may say is answered by announcing anew.
                Ok(_) => self.lose(),
                Err(error) => {
                    if let Some(failures) = trouble.failed() {
                        warn!(%error, failures, "wake-ups do not come; queues are polled");
                    }
                    self.lose();
                    sleep(backoff.pause()).await;
                    continue;
                }
            }
            backoff.reset();
            trouble.over();
        }
    }

    fn lose(&self) {
        self.beds().lose();
        self.changed.notify_one();
    }

    /// Calls the sleepers among these whose queues have something; a few are called at once, and find out by a claim.
    async fn look_for(&self, places: &[Place]) {
        if places.len() <= Self::FEW {
            let mut beds = self.beds();
            for place in places {
                beds.call(*place);
            }
            drop(beds);
            self.changed.notify_one();
            return;
        }
        for page in places.chunks(Self::PAGE) {
            let look = self.beds().begin_look(page);
            if look.queues.is_empty() {
                continue;
            }
            match bounded("peek", self.call_timeout, self.store.peek(&look.queues)).await {
                Ok(peeked) => {
                    self.beds().end_look(&look, &peeked.waiting, peeked.horizon);
                    let failures = self.looks().went_well();
                    if let Some(failures) = failures {
                        info!(failures, "looks for work get through again");
                    }
                }
                Err(error) => {
                    let (pause, failures) = self.looks().failed();
                    if let Some(failures) = failures {
                        warn!(%error, failures, "looks for work fail; they are repeated");
                    }
                    self.beds().put_off(&look, pause);
                }
            }
        }
        self.sooner.notify_one();
        self.changed.notify_one();
    }

    fn lie_down(&self, place: Place, horizon: Option<Horizon>) -> bool {
        let mut beds = self.beds();
        let lies = beds.lie_down(place, horizon);
        let (is_sooner, needs_ticket) = (beds.is_due_sooner(place), beds.is_newcomer(place));
        drop(beds);
        if needs_ticket {
            self.changed.notify_one();
        }
        if is_sooner {
            self.sooner.notify_one();
        }
        lies
    }

    fn all_queues(&self) -> Vec<QueueName> {
        self.beds().queues().cloned().collect()
    }

    fn beds(&self) -> MutexGuard<'_, Beds> {
        // Every change is whole before anything can panic.
        self.beds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn looks(&self) -> MutexGuard<'_, Looks> {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Looks {
    /// How many failures ended, if any.
    fn went_well(&mut self) -> Option<u64> {
        self.backoff.reset();
        self.trouble.over()
    }

    /// The pause before the next look, and the number of failures when they are worth a line.
    fn failed(&mut self) -> (Duration, Option<u64>) {
        (self.backoff.pause(), self.trouble.failed())
    }
}
