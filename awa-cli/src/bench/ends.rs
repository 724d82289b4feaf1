//! The moment at which the store has confirmed the end of an attempt, as the runtime tells it: by its event
//! `attempt completed`.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use awa_core::JobId;
use tracing::field::{Field, Visit};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber, callsite};
use tracing_subscriber::layer::{Context, Filter, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use super::job::{EPOCH, Moment};
use super::latency::{Latency, between};

/// Where the runtime says so.
const TARGET: &str = "awa_runtime::flush";
const MESSAGE: &str = "attempt completed";

/// Tells a probe of ends. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Ends(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    is_on: AtomicBool,
    probe: RwLock<Option<Arc<Probe>>>,
}

impl Ends {
    /// Listens from now on, beside the log of errors and of warnings of the runtime on standard error. At most once per
    /// process.
    pub(super) fn listen() -> Self {
        let ends = Self::default();
        let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("error,awa_runtime=warn"));
        let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_filter(filter);
        let layer = EndLayer(ends.clone()).with_filter(OnlyWhenOn(ends.clone()));
        tracing_subscriber::registry().with(log).with(layer).init();
        ends
    }

    /// Tells `probe` from now on. Nothing is told, and costs nothing, without one.
    pub(super) fn tell(&self, probe: Option<Arc<Probe>>) {
        self.0.is_on.store(probe.is_some(), Ordering::Release);
        *self.0.probe.write().unwrap_or_else(PoisonError::into_inner) = probe;
        callsite::rebuild_interest_cache();
    }
}

/// The runtime's events are made only while somebody wants them.
struct OnlyWhenOn(Ends);

impl<S> Filter<S> for OnlyWhenOn {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        self.0.0.is_on.load(Ordering::Acquire) && metadata.target() == TARGET && *metadata.level() == Level::DEBUG
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        let is_wanted =
            self.0.0.is_on.load(Ordering::Acquire) && metadata.target() == TARGET && *metadata.level() == Level::DEBUG;
        if is_wanted { Interest::always() } else { Interest::never() }
    }
}

struct EndLayer(Ends);

impl<S: Subscriber> Layer<S> for EndLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut read = EndEvent::default();
        event.record(&mut read);
        let (Some(job), true) = (read.job, read.is_completion) else { return };
        if let Some(probe) = &*self.0.0.probe.read().unwrap_or_else(PoisonError::into_inner) {
            probe.done(job);
        }
    }
}

/// What an event says.
#[derive(Default)]
struct EndEvent {
    job: Option<JobId>,
    is_completion: bool,
}

impl Visit for EndEvent {
    fn record_i64(&mut self, field: &Field, value: i64) {
        if field.name() == "job" {
            self.job = Some(JobId(value));
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            let mut rest = Rest(Some(MESSAGE));
            self.is_completion = write!(rest, "{value:?}").is_ok() && rest.0 == Some("");
        }
    }
}

/// Compares what is written with a text, without keeping it.
struct Rest(Option<&'static str>);

impl fmt::Write for Rest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.and_then(|rest| rest.strip_prefix(text));
        self.0.map(drop).ok_or(fmt::Error)
    }
}

/// Takes the times of jobs between the moment they were due and their ends.
#[derive(Debug)]
pub(super) struct Probe {
    epoch: Instant,
    /// From the moment a job was due until its handler began.
    pub(super) start: Latency,
    /// Until the store confirmed its end.
    pub(super) done: Latency,
    /// When those that run were due.
    running: [Mutex<HashMap<JobId, Moment>>; SHARDS],
}

/// Handlers end on several threads.
const SHARDS: usize = 16;

impl Probe {
    /// A probe whose run begins now.
    pub(super) fn new() -> Self {
        let running = std::array::from_fn(|_| Mutex::default());
        Self { epoch: Instant::now(), start: Latency::default(), done: Latency::default(), running }
    }

    /// This moment.
    pub(super) fn now(&self) -> Moment {
        Moment(EPOCH.0 + u64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// The handler of a job begins that was due at `due`.
    pub(super) fn started(&self, job: JobId, due: Moment) {
        let now = self.now();
        self.start.record(between(due, now), between(EPOCH, now));
        self.shard(job).lock().unwrap_or_else(PoisonError::into_inner).insert(job, due);
    }

    /// The end of a job's attempt is confirmed.
    fn done(&self, job: JobId) {
        let due = self.shard(job).lock().unwrap_or_else(PoisonError::into_inner).remove(&job);
        if let Some(due) = due {
            let now = self.now();
            self.done.record(between(due, now), between(EPOCH, now));
        }
    }

    fn shard(&self, job: JobId) -> &Mutex<HashMap<JobId, Moment>> {
        &self.running[job.get().unsigned_abs() as usize % SHARDS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_compared_in_pieces() {
        let is_same = |pieces: &[&str]| {
            let mut rest = Rest(Some(MESSAGE));
            pieces.iter().all(|piece| rest.write_str(piece).is_ok()) && rest.0 == Some("")
        };
        assert!(is_same(&[MESSAGE]));
        assert!(is_same(&["attempt", " completed"]));
        assert!(!is_same(&["attempt"]));
        assert!(!is_same(&["attempt failed"]));
        assert!(!is_same(&[MESSAGE, "!"]));
    }

    #[test]
    fn a_job_is_done_once() {
        let probe = Probe::new();
        probe.started(JobId(7), probe.now());
        probe.done(JobId(7));
        probe.done(JobId(7));
        probe.done(JobId(8));
        assert_eq!((probe.start.count(), probe.done.count()), (1, 1));
    }
}
