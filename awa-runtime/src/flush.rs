//! One batch of ends on its way to the store: kept until each is confirmed or refused, and split when one is in the way.

use std::sync::Arc;
use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::{AttemptEnd, Closure, ClosureAnswer, Store, StoreError, StoreErrorKind};
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use crate::backoff::{Backoff, Trouble};
use crate::call::{bounded, waits_for_an_operator};
use crate::hands::Hands;
use crate::outbox::Outbox;
use crate::stats::Counters;

/// What a flush needs.
#[derive(Clone)]
pub(crate) struct Flusher {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) hands: Arc<Hands>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) call_timeout: Duration,
    /// Ends that are in the way are sent one by one, one at a time.
    pub(crate) single_file: Arc<Semaphore>,
    /// Fired when the worker stops and this is all it waits for.
    pub(crate) draining: CancellationToken,
}

/// What one call for a batch led to.
enum Sent {
    /// One answer each.
    Answered(Vec<ClosureAnswer>),
    /// Something in the batch is in the way of the rest.
    Split(StoreError),
}

impl Flusher {
    /// Sends `batch` until each of its ends is confirmed or refused, or proves to be in the way of the others; those
    /// come back.
    ///
    /// While the store is away, the same call is repeated with growing pauses, for as long as it takes. A batch that is
    /// refused as a whole, or that waits for somebody's lock, is halved until the one at fault stands alone.
    pub(crate) async fn flush(self, batch: Vec<Closure>) -> Vec<Closure> {
        let (mut parts, mut in_the_way) = (vec![batch], Vec::new());
        while let Some(mut part) = parts.pop() {
            match self.send_patiently(&part).await {
                Sent::Answered(answers) => in_the_way.append(&mut self.settle(part, &answers)),
                Sent::Split(error) if part.len() > 1 => {
                    debug!(%error, ends = part.len(), "a batch of ends is split, because it was refused as a whole");
                    parts.push(part.split_off(part.len() / 2));
                    parts.push(part);
                }
                Sent::Split(_) => in_the_way.append(&mut part),
            }
        }
        in_the_way
    }

    /// Sends one end that is in the way of others, alone and with growing pauses, until it is confirmed or refused as
    /// stale.
    ///
    /// What the store refuses for its content is sent with other content: a job whose result cannot be kept has failed,
    /// and an error text makes room for one that says so. An end without content is repeated, because running the
    /// handler again would be worse.
    pub(crate) async fn send_alone(self, mut end: Closure) {
        let mut backoff = Backoff::new(Duration::from_millis(20), Duration::from_secs(5));
        let mut trouble = Trouble::default();
        loop {
            self.pause(&mut backoff).await;
            let turn = self.single_file.acquire().await;
            let sent = self.send_patiently(std::slice::from_ref(&end)).await;
            drop(turn);
            match sent {
                Sent::Answered(answers) => match self.settle(vec![end], &answers).pop() {
                    Some(contended) => end = contended,
                    None => return,
                },
                Sent::Split(refusal) => {
                    if let Some(failures) = trouble.failed().filter(|_| refusal.kind() != StoreErrorKind::Contended) {
                        error!(
                            job = end.receipt.job.get(), %refusal, failures,
                            "the end of an attempt is refused by the store; it is sent again until it is taken"
                        );
                    }
                    if refusal.kind() == StoreErrorKind::Refused {
                        end.end = with_other_content(end.end, &refusal);
                    }
                }
            }
        }
    }

    /// One call, repeated while the store is away or waits for an operator.
    async fn send_patiently(&self, part: &[Closure]) -> Sent {
        let (mut backoff, mut trouble) = (Backoff::for_trouble(), Trouble::default());
        loop {
            let error = match bounded("close", self.call_timeout, self.store.close(part)).await {
                Ok(answers) if answers.len() == part.len() => {
                    if let Some(failures) = trouble.over() {
                        info!(failures, ends = part.len(), "ends of attempts are confirmed again");
                    }
                    return Sent::Answered(answers);
                }
                Ok(answers) => {
                    let problem =
                        format!("{} answers for {} ends; this is a fault of the store", answers.len(), part.len());
                    return Sent::Split(StoreError::new(StoreErrorKind::Internal, "close", problem));
                }
                Err(error) if error.kind() == StoreErrorKind::Unavailable || waits_for_an_operator(&error) => error,
                Err(error) => return Sent::Split(error),
            };
            if let Some(failures) = trouble.failed() {
                warn!(%error, failures, ends = part.len(), "ends of attempts wait for the store; none is lost");
            }
            self.pause(&mut backoff).await;
        }
    }

    /// Pauses before the next call; a worker that stops is in a hurry.
    async fn pause(&self, backoff: &mut Backoff) {
        const LONGEST_IN_A_HURRY: Duration = Duration::from_millis(250);
        let pause = backoff.pause();
        if self.draining.run_until_cancelled(sleep(pause)).await.is_none() {
            sleep(pause.min(LONGEST_IN_A_HURRY)).await;
        }
    }

    /// Takes the answers to `part`. Ends that somebody's open transaction is in the way of come back.
    fn settle(&self, part: Vec<Closure>, answers: &[ClosureAnswer]) -> Vec<Closure> {
        let mut contended = Vec::new();
        let mut answers = answers.iter();
        let mut settled = part;
        settled.retain(|end| {
            let answer = answers.next().copied().unwrap_or(ClosureAnswer::Contended);
            if answer == ClosureAnswer::Contended {
                contended.push(end.clone());
                return false;
            }
            let closed = answer == ClosureAnswer::Closed;
            if self.outbox.take_ended(&end.receipt) && !closed {
                self.counters.add_end(&AttemptEnd::Complete, true);
                debug!(job = end.receipt.job.get(), "attempt completed in a transaction of its handler's");
            } else {
                self.counters.add_end(&end.end, closed);
                announce(end, closed);
            }
            true
        });
        self.hands.let_go(settled.iter().map(|end| &end.receipt));
        self.counters.add_gone(settled.len());
        self.outbox.confirmed(settled.len());
        contended
    }
}

/// The event for one end of an attempt.
fn announce(end: &Closure, closed: bool) {
    let (job, run_lease) = (end.receipt.job.get(), end.receipt.run_lease.get());
    if !closed {
        debug!(job, run_lease, "attempt had ended before; its result was refused");
        return;
    }
    match &end.end {
        AttemptEnd::Complete | AttemptEnd::CompleteWith { .. } => debug!(job, run_lease, "attempt completed"),
        AttemptEnd::Retry { delay, error } => info!(job, run_lease, ?delay, %error, "attempt failed, to be retried"),
        AttemptEnd::Fail { error } => warn!(job, run_lease, %error, "attempt failed for good"),
        AttemptEnd::Snooze { delay } => debug!(job, run_lease, ?delay, "attempt snoozed"),
        AttemptEnd::Park { timeout } => debug!(job, run_lease, ?timeout, "attempt waits for a callback"),
        AttemptEnd::Cancel { reason } => info!(job, run_lease, %reason, "attempt cancelled its job"),
        AttemptEnd::Release { delay } => debug!(job, run_lease, ?delay, "attempt released"),
        other => debug!(job, run_lease, end = ?other, "attempt ended"),
    }
}

/// The same end without the content that a store refused.
fn with_other_content(end: AttemptEnd, refusal: &StoreError) -> AttemptEnd {
    let error = ErrorText::new(format!("the store refused what the attempt left: {refusal}"));
    match end {
        // The handler did its work, so it must not run again: an operator decides.
        AttemptEnd::CompleteWith { .. } | AttemptEnd::Fail { .. } => AttemptEnd::Fail { error },
        AttemptEnd::Retry { delay, .. } => AttemptEnd::Retry { delay, error },
        AttemptEnd::Cancel { .. } => AttemptEnd::Cancel { reason: error },
        plain => plain,
    }
}
