//! Runs handlers: one runner per seat, each attempt fenced, its end left in the outbox.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use awa_core::attempt::ErrorText;
use awa_core::retry::RetryPolicy;
use awa_core::{AttemptEnd, Closure, Store};
use tokio::runtime::Handle;
use tokio::task::coop::consume_budget;
use tracing::{Span, error, info_span, warn};

use crate::attempt::{Attempt, CancelCause};
use crate::context::JobContext;
use crate::desk::Desk;
use crate::handler::{ErasedHandler, Handlers};
use crate::outbox::Outbox;
use crate::outcome::{HandlerResult, Outcome};
use crate::panic::{Payload, caught, dropped, message};
use crate::seats::Seat;
use crate::settings::Settings;
use crate::state::StateMap;
use crate::stats::Counters;
use crate::verdict::Circumstances;
use crate::warned::WarnedKinds;

/// What runs attempts. One for all queues.
#[derive(Debug)]
pub(crate) struct Executor {
    pub(crate) handlers: Handlers,
    pub(crate) state: Arc<StateMap>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) retry: RetryPolicy,
    pub(crate) unknown_kind_delay: Duration,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) counters: Arc<Counters>,
    /// Kinds without a handler that have been warned of.
    pub(crate) unknown: WarnedKinds,
    /// Kinds that have been warned of because their handler blocks.
    pub(crate) blocking: WarnedKinds,
    pub(crate) handed_back: AtomicUsize,
}

/// What became of a handler.
enum Fate {
    Ended(AttemptEnd),
    Panicked(Payload),
    /// Somebody else has ended the attempt, and the handler is to be dropped.
    Stopped,
}

/// Starts a runner on each of `seats`, on the runtime of the handlers.
pub(crate) fn start_runners(executor: &Arc<Executor>, seats: Vec<Seat>, handlers: &Handle) {
    let mut runners: Vec<Runner> =
        seats.into_iter().map(|seat| Runner { seat, executor: Arc::clone(executor) }).collect();
    match runners.len() {
        0 => {}
        1 => drop(handlers.spawn(runners.remove(0).run())),
        // From inside its runtime a task is spawned onto the thread's own queue, which costs less than from outside.
        _ => drop(handlers.spawn(async move {
            for runner in runners {
                tokio::spawn(runner.run());
            }
        })),
    }
}

/// Runs attempts on one seat for as long as some wait. Dropping it at any point gives the seat back, and hands back the
/// attempt it was at.
struct Runner {
    seat: Seat,
    executor: Arc<Executor>,
}

impl Runner {
    async fn run(mut self) {
        while let Some(attempt) = self.seat.next() {
            self.executor.run(&attempt).await;
            // Handlers that never wait would keep this thread from its other tasks.
            consume_budget().await;
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        if let Some(attempt) = self.seat.vacate() {
            self.executor.end(&attempt, AttemptEnd::Release { delay: Duration::ZERO });
        }
    }
}

impl Executor {
    /// An executor that leaves ends in `outbox`.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        handlers: Handlers,
        state: StateMap,
        settings: &Settings,
        outbox: Arc<Outbox>,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            handlers,
            state: Arc::new(state),
            desk: Arc::new(Desk::new(store, settings.call_timeout)),
            retry: settings.retry,
            unknown_kind_delay: settings.unknown_kind_delay,
            outbox,
            counters,
            unknown: WarnedKinds::default(),
            blocking: WarnedKinds::default(),
            handed_back: AtomicUsize::new(0),
        }
    }

    /// Runs one attempt to its end, which it leaves in the outbox.
    pub(crate) async fn run(&self, attempt: &Arc<Attempt>) {
        if is_too_late(attempt) {
            // It was never tried, so it is not charged.
            self.end(attempt, AttemptEnd::Release { delay: Duration::ZERO });
            return;
        }
        let Some(handler) = self.handlers.find(&attempt.job.kind) else {
            self.release_unknown(attempt);
            return;
        };
        let job = &attempt.job;
        let span = info_span!(
            "attempt", job = job.receipt.job.get(), kind = %job.kind, queue = %job.queue, attempt = job.attempt
        );
        let end = match self.drive(handler, attempt, &span).await {
            Fate::Ended(end) => end,
            Fate::Panicked(payload) => {
                self.counters.add_panicked();
                let text = format!("the handler panicked: {}", message(payload));
                span.in_scope(|| error!("{text}"));
                self.circumstances(attempt).failure(ErrorText::new(text), None)
            }
            Fate::Stopped => return,
        };
        self.end(attempt, end);
    }

    /// Leaves `end` in the outbox, unless the attempt has ended before.
    pub(crate) fn end(&self, attempt: &Attempt, end: AttemptEnd) {
        if attempt.take_end() {
            self.outbox.put(Closure { receipt: attempt.job.receipt, end });
        }
    }

    /// Ends an attempt whose deadline is over, and stops its handler.
    pub(crate) fn expire(&self, attempt: &Attempt, after: Duration) {
        let text = format!("the deadline of {after:?} was over");
        attempt.cancel(CancelCause::Deadline);
        self.end(attempt, self.circumstances(attempt).failure(ErrorText::new(text), None));
        attempt.stop();
    }

    /// Hands back an attempt that did not end in time, and stops its handler. False when it has just ended.
    pub(crate) fn abandon(&self, attempt: &Attempt) -> bool {
        let taken = attempt.take_end();
        if taken {
            let end = AttemptEnd::Release { delay: Duration::ZERO };
            self.outbox.put(Closure { receipt: attempt.job.receipt, end });
        }
        attempt.stop();
        taken
    }

    /// Hands back attempts that were not started, because the worker stops.
    pub(crate) fn hand_back(&self, unstarted: &[Arc<Attempt>]) {
        self.handed_back.fetch_add(unstarted.len(), Ordering::AcqRel);
        self.release(unstarted);
    }

    /// Leaves attempts that were not started to other processes, uncharged.
    pub(crate) fn release(&self, unstarted: &[Arc<Attempt>]) {
        for attempt in unstarted {
            self.end(attempt, AttemptEnd::Release { delay: Duration::ZERO });
        }
    }

    /// How many attempts [`Self::hand_back`] has seen.
    pub(crate) fn handed_back(&self) -> usize {
        self.handed_back.load(Ordering::Acquire)
    }

    fn circumstances<'a>(&'a self, attempt: &'a Attempt) -> Circumstances<'a> {
        Circumstances {
            job: &attempt.job,
            retry: &self.retry,
            random: rand::random(),
            interrupted: attempt.cancelled() == Some(CancelCause::Shutdown) && attempt.has_listened(),
            has_callback: attempt.has_callback(),
        }
    }

    fn verdict(&self, attempt: &Attempt, result: HandlerResult) -> AttemptEnd {
        if matches!(result, Ok(Outcome::Ended)) {
            self.outbox.note_ended(attempt.job.receipt);
        }
        self.circumstances(attempt).end(result)
    }

    fn release_unknown(&self, attempt: &Attempt) {
        let kind = &attempt.job.kind;
        self.counters.add_unknown_kind();
        if self.unknown.first_time(kind) {
            warn!(
                %kind, queue = %attempt.job.queue,
                "no handler for this kind of job: jobs of it are released, uncharged; register a handler, or deploy a \
                 worker that has one"
            );
        }
        self.end(attempt, AttemptEnd::Release { delay: self.unknown_kind_delay });
    }

    /// Starts the handler and polls it to its fate. A panic anywhere in it is caught: when it starts, in a poll, while
    /// its result becomes text, and when it is dropped.
    async fn drive(&self, handler: &dyn ErasedHandler, attempt: &Arc<Attempt>, span: &Span) -> Fate {
        let cx = JobContext::new(Arc::clone(attempt), Arc::clone(&self.state), Arc::clone(&self.desk));
        let mut running = match span.in_scope(|| caught(|| handler.start(cx))) {
            Ok(running) => running,
            Err(payload) => return Fate::Panicked(payload),
        };
        let may_stop = handler.ends_when_dropped();
        let fate = poll_fn(|task| {
            if may_stop && attempt.is_stopped() {
                return Poll::Ready(Fate::Stopped);
            }
            let began = Instant::now();
            let polled =
                span.in_scope(|| caught(|| running.as_mut().poll(task).map(|result| self.verdict(attempt, result))));
            self.note_length_of_poll(attempt, began.elapsed());
            match polled {
                Ok(Poll::Ready(end)) => Poll::Ready(Fate::Ended(end)),
                Err(payload) => Poll::Ready(Fate::Panicked(payload)),
                Ok(Poll::Pending) if may_stop && attempt.is_stopped_or_wakes(task.waker()) => {
                    Poll::Ready(Fate::Stopped)
                }
                Ok(Poll::Pending) => Poll::Pending,
            }
        })
        .await;
        match (span.in_scope(|| dropped(running)), fate) {
            (Err(payload), Fate::Ended(_)) => Fate::Panicked(payload),
            (Err(payload), fate) => {
                span.in_scope(|| warn!("the handler panicked when it was dropped: {}", message(payload)));
                fate
            }
            (Ok(()), fate) => fate,
        }
    }

    /// Warns of a handler that keeps a thread from all other tasks, once per kind.
    fn note_length_of_poll(&self, attempt: &Attempt, length: Duration) {
        /// A handler that waits returns to the runtime within microseconds.
        const TOO_LONG: Duration = Duration::from_secs(1);
        if length < TOO_LONG {
            return;
        }
        let kind = &attempt.job.kind;
        if self.blocking.first_time(kind) {
            warn!(
                %kind, ?length,
                "a handler of this kind blocked its thread: handlers of other jobs, timers and connections of its runtime \
                 stood still; register it as a blocking handler"
            );
        }
    }
}

/// Whether there is no use any more in starting an attempt that waited for its seat.
fn is_too_late(attempt: &Attempt) -> bool {
    attempt.cancelled().is_some() || attempt.deadline.is_some_and(|deadline| deadline.at <= tokio::time::Instant::now())
}
