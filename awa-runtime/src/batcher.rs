//! Collects the ends of all queues and keeps a few batches of them on their way to the store.

use futures::stream::{FuturesUnordered, StreamExt};
use tokio::time::{Instant, sleep_until};

use crate::flush::Flusher;
use crate::outbox::Ripe;

/// Runs until the flusher's `draining` fires and every end that came by then or later is confirmed.
///
/// At most `flights` batches are on their way at a time. Ends that proved to be in the way of others travel alone.
pub(crate) async fn run(flusher: Flusher, flights: usize) {
    let (outbox, draining) = (flusher.outbox.clone(), flusher.draining.clone());
    let (mut flying, mut alone) = (FuturesUnordered::new(), FuturesUnordered::new());
    loop {
        let room = flying.len() < flights;
        let ripe = if room { outbox.ripe(Instant::now()) } else { Ripe::Empty };
        // At the end nothing waits for company.
        if ripe == Ripe::Now || (draining.is_cancelled() && ripe != Ripe::Empty) {
            flying.push(flusher.clone().flush(outbox.collect()));
            continue;
        }
        if draining.is_cancelled() && outbox.unconfirmed() == 0 {
            return;
        }
        let due = match ripe {
            Ripe::At(due) => Some(due),
            _ => None,
        };
        tokio::select! {
            Some(in_the_way) = flying.next(), if !flying.is_empty() => {
                alone.extend(in_the_way.into_iter().map(|end| flusher.clone().send_alone(end)));
            }
            Some(()) = alone.next(), if !alone.is_empty() => {}
            () = outbox.ripened(), if room => {}
            () = async { sleep_until(due.unwrap_or_else(Instant::now)).await }, if due.is_some() => {}
            () = draining.cancelled(), if !draining.is_cancelled() => {}
        }
    }
}
