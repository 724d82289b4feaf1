use std::time::Duration;

use awa_core::job::MaxAttempts;
use awa_core::queue::OrderingKey;
use awa_core::unique::{KeyStates, OnConflict, Unique, UniqueBy};
use awa_core::{BadInput, JobKind, JsonText, NewJob, Priority, QueueName, RunAt, Timestamp};
use serde::Serialize;

use crate::job::Job;

/// What one enqueue wants otherwise than the job's type says. Values are checked when the job is enqueued, so that the
/// calls chain.
#[derive(Clone, Debug, Default)]
pub struct EnqueueOptions {
    queue: Option<String>,
    priority: Option<i16>,
    max_attempts: Option<i64>,
    start: Start,
    metadata: Option<Result<JsonText, BadInput>>,
    unique: Option<UniqueBy>,
    unique_states: KeyStates,
    on_conflict: OnConflict,
    ordering_key: Option<String>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Start {
    #[default]
    Now,
    At(Timestamp),
    After(Duration),
}

impl EnqueueOptions {
    /// Puts the job into another queue.
    #[must_use]
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = Some(queue.into());
        self
    }

    /// Gives the job another priority, 1 (urgent) to 4 (bulk).
    #[must_use]
    pub fn priority(mut self, priority: i16) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Gives the job another budget of charged attempts, 1 to 32,767.
    #[must_use]
    pub fn max_attempts(mut self, max_attempts: i64) -> Self {
        self.max_attempts = Some(max_attempts);
        self
    }

    /// Runs the job not before `delay` after the enqueue call, by the store's clock; at most 1,000 years.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.start = Start::After(delay);
        self
    }

    /// Runs the job not before the moment `at`.
    #[must_use]
    pub fn run_at(mut self, at: Timestamp) -> Self {
        self.start = Start::At(at);
        self
    }

    /// Attaches a document that travels with the job and that Awa does not interpret.
    #[must_use]
    pub fn metadata(mut self, document: &impl Serialize) -> Self {
        self.metadata = Some(JsonText::of("metadata", document));
        self
    }

    /// Lets the job exist only once: while another job with equal parts has not ended, it is not stored, and the answer names
    /// the other one. The parts are those of the job with all its options.
    #[must_use]
    pub fn unique(mut self, by: UniqueBy) -> Self {
        self.unique = Some(by);
        self
    }

    /// Lets a unique job hold its key in these states, by default until it ends.
    #[must_use]
    pub fn unique_while(mut self, states: KeyStates) -> Self {
        self.unique_states = states;
        self
    }

    /// Says what becomes of a unique job whose key another holds; by default it is skipped.
    #[must_use]
    pub fn on_conflict(mut self, on_conflict: OnConflict) -> Self {
        self.on_conflict = on_conflict;
        self
    }

    /// Keeps the job in order with the other jobs of this key, its queue and its priority: they are handed out in the order
    /// in which they were enqueued, over however many shards the queue is spread. 1 to 1,024 bytes.
    #[must_use]
    pub fn ordering_key(mut self, key: impl Into<String>) -> Self {
        self.ordering_key = Some(key.into());
        self
    }
}

/// A typed job with options, from [`Job::with`].
#[derive(Clone, Debug)]
pub struct WithOptions<J> {
    job: J,
    options: EnqueueOptions,
}

impl<J: Job> WithOptions<J> {
    /// `job` with `options`.
    pub fn new(job: J, options: EnqueueOptions) -> Self {
        Self { job, options }
    }

    /// See [`EnqueueOptions::queue`].
    #[must_use]
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.options = self.options.queue(queue);
        self
    }

    /// See [`EnqueueOptions::priority`].
    #[must_use]
    pub fn priority(mut self, priority: i16) -> Self {
        self.options = self.options.priority(priority);
        self
    }

    /// See [`EnqueueOptions::max_attempts`].
    #[must_use]
    pub fn max_attempts(mut self, max_attempts: i64) -> Self {
        self.options = self.options.max_attempts(max_attempts);
        self
    }

    /// See [`EnqueueOptions::delay`].
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.options = self.options.delay(delay);
        self
    }

    /// See [`EnqueueOptions::run_at`].
    #[must_use]
    pub fn run_at(mut self, at: Timestamp) -> Self {
        self.options = self.options.run_at(at);
        self
    }

    /// See [`EnqueueOptions::metadata`].
    #[must_use]
    pub fn metadata(mut self, document: &impl Serialize) -> Self {
        self.options = self.options.metadata(document);
        self
    }

    /// See [`EnqueueOptions::unique`].
    #[must_use]
    pub fn unique(mut self, by: UniqueBy) -> Self {
        self.options = self.options.unique(by);
        self
    }

    /// See [`EnqueueOptions::unique_while`].
    #[must_use]
    pub fn unique_while(mut self, states: KeyStates) -> Self {
        self.options = self.options.unique_while(states);
        self
    }

    /// See [`EnqueueOptions::on_conflict`].
    #[must_use]
    pub fn on_conflict(mut self, on_conflict: OnConflict) -> Self {
        self.options = self.options.on_conflict(on_conflict);
        self
    }

    /// See [`EnqueueOptions::ordering_key`].
    #[must_use]
    pub fn ordering_key(mut self, key: impl Into<String>) -> Self {
        self.options = self.options.ordering_key(key);
        self
    }
}

/// What can be enqueued: a typed job, plain or [with options](Job::with), or a [`NewJob`] made by hand.
pub trait IntoNewJob {
    /// The job as a store takes it.
    ///
    /// # Errors
    ///
    /// [`BadInput`] with the field at fault.
    fn into_new_job(self) -> Result<NewJob, BadInput>;
}

impl<J: Job> IntoNewJob for J {
    fn into_new_job(self) -> Result<NewJob, BadInput> {
        new_job(&self, &EnqueueOptions::default())
    }
}

impl<J: Job> IntoNewJob for WithOptions<J> {
    fn into_new_job(self) -> Result<NewJob, BadInput> {
        new_job(&self.job, &self.options)
    }
}

impl IntoNewJob for NewJob {
    fn into_new_job(self) -> Result<NewJob, BadInput> {
        Ok(self)
    }
}

/// The job as a store takes it: for enqueueing inside a transaction of the caller's, which is a method of each driver.
///
/// # Errors
///
/// [`BadInput`] with the field at fault, when an option is out of its range or the arguments do not serialize to JSON
/// that a store can keep.
pub fn new_job<J: Job>(job: &J, options: &EnqueueOptions) -> Result<NewJob, BadInput> {
    let queue = QueueName::new(options.queue.as_deref().unwrap_or(J::QUEUE))?;
    let new = NewJob::new(queue, JobKind::new(J::KIND)?, JsonText::of("args", job)?)
        .with_priority(Priority::new(options.priority.unwrap_or(J::PRIORITY))?)
        .with_max_attempts(MaxAttempts::new(options.max_attempts.unwrap_or(J::MAX_ATTEMPTS))?)
        .with_run_at(match options.start {
            Start::Now => RunAt::Now,
            Start::At(at) => RunAt::at(at)?,
            Start::After(delay) => RunAt::after(delay)?,
        });
    let new = match options.metadata.clone().transpose()? {
        Some(metadata) => new.with_metadata(metadata),
        None => new,
    };
    let new = match &options.ordering_key {
        Some(key) => new.with_ordering_key(OrderingKey::new(key)?),
        None => new,
    };
    Ok(match &options.unique {
        Some(by) => {
            let key = by.key_of(&new)?;
            new.with_unique(Unique { key, states: options.unique_states, on_conflict: options.on_conflict })
        }
        None => new,
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Plain {
        text: String,
    }

    impl Job for Plain {
        const KIND: &'static str = "plain";
    }

    fn plain() -> Plain {
        Plain { text: "x".into() }
    }

    #[test]
    fn a_plain_job_takes_what_its_type_says() {
        let job = plain().into_new_job().unwrap();
        assert_eq!((job.queue().as_str(), job.kind().as_str()), ("default", "plain"));
        assert_eq!((job.priority().get(), job.max_attempts().get()), (2, 25));
        assert_eq!((job.args().as_str(), job.run_at(), job.metadata()), (r#"{"text":"x"}"#, RunAt::Now, None));
    }

    #[test]
    fn every_option_reaches_the_job() {
        let minute = Duration::from_mins(1);
        let with = plain().with().queue("other").priority(4).max_attempts(1).delay(minute).metadata(&[1]);
        let job = with.into_new_job().unwrap();
        assert_eq!((job.queue().as_str(), job.priority().get(), job.max_attempts().get()), ("other", 4, 1));
        assert_eq!((job.run_at(), job.metadata().unwrap().as_str()), (RunAt::After(minute), "[1]"));
        let at = Timestamp::from_micros(5);
        assert_eq!(plain().with().run_at(at).into_new_job().unwrap().run_at(), RunAt::At(at));
        let ordered = plain().with().ordering_key("customer 7").into_new_job().unwrap();
        assert_eq!(ordered.ordering_key(), Some(OrderingKey::new("customer 7").unwrap()));
    }

    #[test]
    fn a_unique_job_has_the_key_of_what_it_is_with_all_options() {
        let by = UniqueBy::kind().and_queue().and_args();
        let with = plain().with().unique(by.clone()).queue("other").on_conflict(OnConflict::Error);
        let job = with.unique_while(KeyStates::UNTIL_CLAIMED).into_new_job().unwrap();
        let key = by.key_of(&plain().with().queue("other").into_new_job().unwrap()).unwrap();
        let expected = Unique::new(key).while_in(KeyStates::UNTIL_CLAIMED).on_conflict(OnConflict::Error);
        assert_eq!(job.unique(), Some(&expected));
        assert_eq!(plain().into_new_job().unwrap().unique(), None);
    }

    #[test]
    fn a_bad_option_is_refused_with_its_field() {
        let field = |with: WithOptions<Plain>| with.into_new_job().unwrap_err().field;
        assert_eq!(field(plain().with().queue("no spaces")), "queue");
        assert_eq!(field(plain().with().priority(0)), "priority");
        assert_eq!(field(plain().with().max_attempts(0)), "max_attempts");
        assert_eq!(field(plain().with().delay(Duration::MAX)), "run_at");
        assert_eq!(field(plain().with().metadata(&"\0")), "metadata");
        assert_eq!(field(plain().with().unique(UniqueBy::text(""))), "unique");
        assert_eq!(field(plain().with().ordering_key("")), "ordering_key");
        assert_eq!(Plain { text: "\0".into() }.into_new_job().unwrap_err().field, "args");
    }
}
