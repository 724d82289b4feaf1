//! A small application: people sign up, and are sent a letter.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use awa_core::store::Producer;
use awa_core::{StoreError, UniqueBy};
use awa_runtime::{HandlerResult, Job, JobContext, Outcome, StoreExt};
use serde::{Deserialize, Serialize};

/// The letter that greets a new member.
#[derive(Serialize, Deserialize, Job, Clone, Debug, PartialEq, Eq)]
#[job(kind = "send_welcome", queue = "email", max_attempts = 3)]
pub struct SendWelcome {
    /// Where it goes.
    pub to: String,
}

/// A reminder, three days later.
#[derive(Serialize, Deserialize, Job, Clone, Debug, PartialEq, Eq)]
#[job(kind = "send_reminder", queue = "email")]
pub struct SendReminder {
    /// Where it goes.
    pub to: String,
}

/// What sends letters.
#[async_trait]
pub trait Post: Send + Sync + 'static {
    /// Sends one.
    ///
    /// # Errors
    ///
    /// When it could not be sent.
    async fn send(&self, to: &str, text: &str) -> Result<(), std::io::Error>;
}

/// The post office that a worker was given.
pub type Office = Arc<dyn Post>;

/// Signs somebody up: a letter at once, a reminder later; once per address, however often it is called.
///
/// # Errors
///
/// The store's.
pub async fn sign_up(jobs: &(impl Producer + ?Sized), address: &str) -> Result<(), StoreError> {
    let to = address.to_owned();
    jobs.enqueue_job(SendWelcome { to: to.clone() }.with().unique(UniqueBy::kind().and_args())).await?;
    jobs.enqueue_job(SendReminder { to }.with().delay(Duration::from_hours(72))).await?;
    Ok(())
}

/// The handler of [`SendWelcome`]: the last attempt gives up in peace.
///
/// # Errors
///
/// When the letter could not be sent.
pub async fn send_welcome(job: SendWelcome, cx: JobContext) -> HandlerResult {
    let office = cx.state::<Office>()?;
    match office.send(&job.to, "welcome").await {
        Err(_) if cx.is_last_attempt() => Ok(Outcome::Cancel(format!("no letter reaches {}", job.to))),
        Err(error) => Err(error.into()),
        Ok(()) => Ok(Outcome::done_with("sent")),
    }
}

/// The handler of [`SendReminder`].
///
/// # Errors
///
/// When the letter could not be sent.
pub async fn send_reminder(job: SendReminder, cx: JobContext) -> HandlerResult {
    cx.state::<Office>()?.send(&job.to, "do you still like us?").await?;
    Ok(Outcome::Done)
}
