use std::error::Error;
use std::fmt;

use awa_core::attempt::ErrorText;

/// Why a handler failed: any error, by `?` or `into()`. A text is an error too.
///
/// An ordinary error is tried again by the worker's retry policy until the budget of attempts is used up. [`Fatal`]
/// ends the job at once, and [`Interrupted`] hands it back uncharged.
///
/// Like other catch-all errors it does not implement [`Error`] itself, which is what lets `?` take every error.
pub struct JobError(Box<dyn Error + Send + Sync>);

/// Ends the job at once, whatever is left of its budget: it goes the way of exhausted jobs.
///
/// ```
/// use awa_runtime::{Fatal, JobError, Outcome};
///
/// fn charge(card: &str) -> Result<Outcome, JobError> {
///     if card.is_empty() {
///         return Err(Fatal::new("the order has no card").into());
///     }
///     Ok(Outcome::Done)
/// }
/// assert!(charge("").unwrap_err().is_fatal());
/// ```
#[derive(Debug)]
pub struct Fatal(Box<dyn Error + Send + Sync>);

/// The handler stopped because it was asked to, by [cancellation](crate::JobContext::cancellation) or because the worker
/// shuts down: the job is handed back, uncharged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the attempt was interrupted")]
pub struct Interrupted;

impl JobError {
    /// Whether the job ends at once.
    pub fn is_fatal(&self) -> bool {
        self.0.is::<Fatal>()
    }

    /// Whether the handler only stopped on demand.
    pub fn is_interrupted(&self) -> bool {
        self.0.is::<Interrupted>()
    }

    /// The error behind it.
    pub fn as_error(&self) -> &(dyn Error + Send + Sync + 'static) {
        self.0.as_ref()
    }

    /// The text that is kept with the job: the error and its causes, cleaned and cut.
    pub(crate) fn to_text(&self) -> ErrorText {
        ErrorText::new(self.to_string())
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for JobError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl fmt::Debug for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The error and its causes, each after a colon.
impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// A chain that is longer has a circle in it, or no reader.
        const MAX_CAUSES: usize = 32;
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        for _ in 0..MAX_CAUSES {
            let Some(error) = cause else { break };
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl Fatal {
    /// The reason.
    pub fn new(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for Fatal {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_and_every_text_becomes_a_job_error() {
        let by_question_mark = || -> Result<(), JobError> { Ok("x".parse::<i32>().map(drop)?) };
        assert!(by_question_mark().unwrap_err().to_string().contains("invalid digit"));
        assert_eq!(JobError::from("text").to_string(), "text");
        assert_eq!(JobError::from(String::from("text")).to_string(), "text");
        assert!(!JobError::from("text").is_fatal());
        assert!(JobError::from(Fatal::new("enough")).is_fatal());
        assert!(JobError::from(Interrupted).is_interrupted());
    }

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] std::num::ParseIntError);

    #[test]
    fn the_text_names_the_causes() {
        let cause = "x".parse::<i32>().unwrap_err();
        assert_eq!(JobError::from(Outer(cause)).to_string(), "outer: invalid digit found in string");
    }
}
