//! How a command fails: one sentence on standard error, and an exit code.

use std::error::Error;
use std::io;
use std::process::ExitCode;

use awa_core::{BadInput, StoreError};
use awa_pg::session::without_passwords;

use crate::output;

/// The exit codes of `awa`, which scripts may rely on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    /// The command could not do what it was asked to do.
    Failed = 1,
    /// The command was not understood: a flag, a value or a combination of them. Of `awa doctor` also: what it found is
    /// critical.
    Usage = 2,
    /// The command was interrupted from the keyboard, as shells report it.
    Interrupted = 130,
}

/// Why a command ended without success.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    /// What to say; empty when all has been said.
    message: String,
}

impl Failure {
    /// The command could not do its work, for the reason `message`.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, message: message.into() }
    }

    /// The command makes no sense, for the reason `message`.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into() }
    }

    /// The same failure with the exit code for what is critical.
    #[must_use]
    pub(crate) fn critical(mut self) -> Self {
        self.exit = Exit::Usage;
        self
    }

    /// Everything that there is to say has been said.
    pub(crate) fn said() -> Self {
        Self::new("")
    }

    /// Somebody pressed Ctrl-C.
    pub(crate) fn interrupted() -> Self {
        Self { exit: Exit::Interrupted, message: "interrupted".to_owned() }
    }

    /// The failure of something named `what`, with its causes.
    pub(crate) fn of(what: &str, error: &(dyn Error + 'static)) -> Self {
        Self::new(format!("{what}: {}", chain(error)))
    }

    /// The same failure with a further half sentence.
    #[must_use]
    pub(crate) fn with(mut self, more: &str) -> Self {
        self.message = format!("{}; {more}", self.message);
        self
    }

    /// What will be said.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Says why on standard error, and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        if !self.message.is_empty() {
            output::complain(&format!("error: {}", without_passwords(&self.message)));
        }
        ExitCode::from(self.exit as u8)
    }
}

/// An error and its causes, each said once.
fn chain(error: &(dyn Error + 'static)) -> String {
    /// A chain that is longer has a circle in it, or no reader.
    const MAX_CAUSES: usize = 16;
    let mut text = error.to_string();
    let mut cause = error.source();
    for _ in 0..MAX_CAUSES {
        let Some(error) = cause else { break };
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        if error.is::<StoreError>() {
            break;
        }
        cause = error.source();
    }
    text
}

/// A store says what happened and what helps in one sentence; what its driver said is for logs.
impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(error.to_string())
    }
}

/// Input from the command line that Awa refuses is a usage error.
impl From<BadInput> for Failure {
    fn from(refusal: BadInput) -> Self {
        Self::usage(refusal.to_string())
    }
}

/// A closed pipe is the reader's wish, and [`output`] has dealt with it before this is asked for.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new(chain(&error))
    }
}

impl From<awa_pg::cluster::ClusterError> for Failure {
    fn from(error: awa_pg::cluster::ClusterError) -> Self {
        Self::new(chain(&error))
    }
}

impl From<awa_runtime::BuildError> for Failure {
    fn from(error: awa_runtime::BuildError) -> Self {
        Self::usage(chain(&error))
    }
}

impl From<awa_runtime::RuntimeError> for Failure {
    fn from(error: awa_runtime::RuntimeError) -> Self {
        Self::new(chain(&error))
    }
}

#[cfg(test)]
mod tests {
    use awa_core::StoreErrorKind;

    use super::*;

    #[test]
    fn a_failure_names_its_causes_once() {
        let failure = |cause: &str| {
            let outer = io::Error::other(awa_runtime::RuntimeError::Threads(io::Error::other(cause.to_owned())));
            Failure::of("working", &outer)
        };
        assert!(failure("too many threads").message().ends_with("limits of the process: too many threads"));
        assert!(failure("limits of the process").message().ends_with("check the limits of the process"));
    }

    #[test]
    fn a_failure_of_a_store_is_its_own_sentence() {
        let cause = io::Error::other("what the driver said");
        let error = StoreError::new(StoreErrorKind::NotReady, "claim", "no schema; make one").with_source(cause);
        assert_eq!(Failure::of("x", &awa_runtime::RuntimeError::Store(error)).message().matches("driver").count(), 0);
        let error = StoreError::new(StoreErrorKind::NotReady, "claim", "no schema; make one");
        assert_eq!(Failure::from(error).message(), "claim failed: no schema; make one");
    }

    #[test]
    fn refused_input_is_a_usage_error_that_names_the_field() {
        let failure = Failure::from(BadInput::new("priority", "9 is outside 1 to 4"));
        assert_eq!((failure.exit, failure.message()), (Exit::Usage, "priority refused: 9 is outside 1 to 4"));
    }
}
