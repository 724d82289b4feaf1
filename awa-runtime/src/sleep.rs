//! How a dispatcher that found nothing waits for work, so that no wake-up is lost and no database is polled in vain.

use std::time::Duration;

use awa_core::store::{Horizon, SleepTicket, Wakeups};
use awa_core::{QueueName, Store};
use tokio::time::sleep;
use tracing::{info, warn};

use crate::backoff::{Backoff, varied};
use crate::call::bounded;

/// The sleep of one dispatcher.
///
/// A dispatcher announces that it will sleep and claims once more. An empty claim that saw everything which began before
/// the announcement proves that a wake-up will come with every later commit: only then it sleeps for a whole poll
/// interval. Until then it looks again after a growing pause. Without wake-ups it polls.
pub(crate) struct Sleep {
    queue: QueueName,
    poll: Duration,
    call_timeout: Duration,
    ticket: Option<SleepTicket>,
    /// An announcement was sent and not taken back. It outlives a call that was cut off, unlike the ticket.
    standing: bool,
    unsound: Backoff,
    /// A wake-up came, and the claim that follows it has not been answered.
    hinted: bool,
    /// That this queue is polled has been said.
    said_polling: bool,
}

impl Sleep {
    pub(crate) fn new(queue: QueueName, poll: Duration, call_timeout: Duration) -> Self {
        let unsound = Backoff::new(Duration::from_millis(2), Duration::from_millis(500));
        Self { queue, poll, call_timeout, ticket: None, standing: false, unsound, hinted: false, said_polling: false }
    }

    /// Waits after a claim that found `jobs` and left nothing behind, as far as it could see to its `horizon`. Then
    /// claim again.
    pub(crate) async fn after(&mut self, jobs: usize, horizon: Horizon, store: &dyn Store) {
        let Some(wakeups) = store.wakeups() else {
            sleep(varied(self.poll)).await;
            return;
        };
        if jobs > 0 || self.hinted {
            self.wake(wakeups).await;
        }
        let Some(ticket) = self.ticket else {
            self.announce(wakeups).await;
            return;
        };
        let pause = if horizon >= ticket.sound_from { varied(self.poll) } else { self.unsound.pause() };
        // The store bounds the wait itself; a store that does not is held to it here.
        let patience = pause + self.call_timeout;
        match bounded("wait for work", patience, wakeups.wait(&self.queue, pause)).await {
            Ok(hinted) => self.hinted = hinted,
            Err(error) => {
                self.say_polling(&error.to_string());
                self.wake(wakeups).await;
                sleep(varied(self.poll)).await;
            }
        }
    }

    /// The dispatcher looks again at once: producers need not notify for it.
    pub(crate) async fn stay_awake(&mut self, store: &dyn Store) {
        if self.standing
            && let Some(wakeups) = store.wakeups()
        {
            self.wake(wakeups).await;
        }
    }

    /// Takes the announcement back, when there is one: the dispatcher is busy, or ends.
    pub(crate) async fn wake(&mut self, wakeups: &dyn Wakeups) {
        self.hinted = false;
        self.unsound.reset();
        self.ticket = None;
        if std::mem::take(&mut self.standing) {
            // An announcement that stays costs producers a notification each, no more.
            let _ = bounded("withdraw", self.call_timeout, wakeups.withdraw(&self.queue)).await;
        }
    }

    async fn announce(&mut self, wakeups: &dyn Wakeups) {
        self.standing = true;
        match bounded("announce", self.call_timeout, wakeups.announce(&self.queue)).await {
            Ok(ticket) if ticket.announced => {
                if std::mem::take(&mut self.said_polling) {
                    info!(queue = %self.queue, "wake-ups work again");
                }
                self.ticket = Some(ticket);
            }
            answer => {
                self.standing = false;
                let why = answer.err().map_or_else(|| "no session for it".to_owned(), |error| error.to_string());
                self.say_polling(&why);
                sleep(varied(self.poll)).await;
            }
        }
    }

    fn say_polling(&mut self, why: &str) {
        if !std::mem::replace(&mut self.said_polling, true) {
            warn!(queue = %self.queue, why, interval = ?self.poll, "no wake-ups for this queue; it is polled");
        }
    }
}
