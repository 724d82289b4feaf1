use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::options::{EnqueueOptions, WithOptions};

/// A type of job: the arguments as a struct or an enum, and what holds for all jobs of its kind.
///
/// Derive it ([`macro@crate::Job`]); the derive macro checks every value at compile time. An implementation by hand is
/// checked when a job is enqueued or a worker is built.
///
/// ```
/// use awa_runtime::Job;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Job)]
/// #[job(kind = "send_email", queue = "email", max_attempts = 5)]
/// struct SendEmail {
///     to: String,
/// }
///
/// assert_eq!((SendEmail::KIND, SendEmail::QUEUE, SendEmail::PRIORITY), ("send_email", "email", 2));
/// ```
pub trait Job: Serialize + DeserializeOwned + Send + 'static {
    /// The name by which a worker finds the handler. Stored with every job: changing it orphans what is enqueued.
    const KIND: &'static str;
    /// The queue that takes the job unless it is told otherwise.
    const QUEUE: &'static str = "default";
    /// The priority, 1 (urgent) to 4 (bulk).
    const PRIORITY: i16 = 2;
    /// The budget of charged attempts, 1 to 32,767.
    const MAX_ATTEMPTS: i64 = 25;

    /// This job with options of its own, to be enqueued in its stead.
    ///
    /// ```
    /// # use awa_runtime::Job;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize, Job)]
    /// # #[job(kind = "send_email")]
    /// # struct SendEmail { to: String }
    /// use std::time::Duration;
    ///
    /// let later = SendEmail { to: "ada@example.org".into() }.with().priority(1).delay(Duration::from_mins(1));
    /// ```
    fn with(self) -> WithOptions<Self>
    where
        Self: Sized,
    {
        WithOptions::new(self, EnqueueOptions::default())
    }
}
