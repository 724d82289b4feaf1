//! How an attempt ends, from what its handler did: pure decisions.

use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::retry::{AttemptBudget, Disposition, RetryPolicy};
use awa_core::{AttemptEnd, ClaimedJob};

use crate::outcome::{HandlerResult, Outcome};

/// What a verdict depends on besides the handler's result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Circumstances<'a> {
    pub(crate) job: &'a ClaimedJob,
    pub(crate) retry: &'a RetryPolicy,
    /// A random number in 0 to 1 for the jitter of a retry.
    pub(crate) random: f64,
    /// The worker shuts down, and the handler is one that stops on demand.
    pub(crate) interrupted: bool,
    /// The attempt has a token that somebody may call back with.
    pub(crate) has_callback: bool,
}

impl Circumstances<'_> {
    /// The end that the handler's `result` leads to.
    pub(crate) fn end(&self, result: HandlerResult) -> AttemptEnd {
        match result {
            Ok(Outcome::Done) => AttemptEnd::Complete,
            Ok(Outcome::DoneWith(result)) => match result.into_json() {
                Ok(result) => AttemptEnd::CompleteWith { result },
                Err(refusal) => self.failure(ErrorText::new(refusal.to_string()), None),
            },
            Ok(Outcome::Snooze(delay)) => AttemptEnd::Snooze { delay: bearable(delay) },
            Ok(Outcome::WaitForCallback { timeout }) if self.has_callback => {
                AttemptEnd::Park { timeout: bearable(timeout) }
            }
            Ok(Outcome::WaitForCallback { .. }) => {
                let text = "the handler waits for a callback and has registered none; call register_callback first";
                self.failure(ErrorText::new(text), None)
            }
            // Refused as stale if it is true.
            Ok(Outcome::Ended) => {
                let text = "the handler says that it ended its attempt in a transaction, and none has committed; return \
                            Outcome::Ended only after complete_in and the commit";
                self.failure(ErrorText::new(text), None)
            }
            Ok(Outcome::RetryAfter(delay, error)) => self.failure(error.to_text(), Some(bearable(delay))),
            Ok(Outcome::Cancel(reason)) => AttemptEnd::Cancel { reason: ErrorText::new(reason) },
            Err(error) if error.is_fatal() => AttemptEnd::Fail { error: error.to_text() },
            Err(error) if error.is_interrupted() || self.interrupted => AttemptEnd::Release { delay: Duration::ZERO },
            Err(error) => self.failure(error.to_text(), None),
        }
    }

    /// The end of an attempt that failed with `error`: again, after the delay that was `asked` for or the policy's, or
    /// for good when the budget is used up.
    pub(crate) fn failure(&self, error: ErrorText, asked: Option<Duration>) -> AttemptEnd {
        let max_attempts = self.job.max_attempts.get().unsigned_abs().into();
        let budget = AttemptBudget { attempt: self.job.attempt, max_attempts };
        match self.retry.after_failure(budget, asked, self.random) {
            Disposition::Retry { delay } => AttemptEnd::Retry { delay, error },
            Disposition::Exhausted => AttemptEnd::Fail { error },
        }
    }
}

/// A delay that a store can add to its clock: at most that of the longest policy.
fn bearable(delay: Duration) -> Duration {
    delay.min(RetryPolicy::LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Fatal, Interrupted, JobError};
    use crate::testing::claimed;

    fn end_of(attempt: u32, interrupted: bool, result: HandlerResult) -> AttemptEnd {
        let job = ClaimedJob { attempt, ..claimed(1) };
        let retry = RetryPolicy::default();
        Circumstances { job: &job, retry: &retry, random: 0.0, interrupted, has_callback: interrupted }.end(result)
    }

    fn text(text: &str) -> ErrorText {
        ErrorText::new(text)
    }

    #[test]
    fn a_handler_that_returns_decides_how_its_attempt_ends() {
        let minute = Duration::from_mins(1);
        let end = |outcome| end_of(1, false, Ok(outcome));
        assert_eq!(end(Outcome::Done), AttemptEnd::Complete);
        assert!(
            matches!(end(Outcome::done_with(&[1, 2])), AttemptEnd::CompleteWith { result } if result.as_str() == "[1,2]")
        );
        assert_eq!(end(Outcome::Snooze(minute)), AttemptEnd::Snooze { delay: minute });
        assert_eq!(end(Outcome::Snooze(Duration::MAX)), AttemptEnd::Snooze { delay: RetryPolicy::LONGEST });
        assert_eq!(end(Outcome::Cancel("old".into())), AttemptEnd::Cancel { reason: text("old") });
        let retried = AttemptEnd::Retry { delay: minute, error: text("busy") };
        assert_eq!(end(Outcome::RetryAfter(minute, "busy".into())), retried);
    }

    #[test]
    fn only_an_attempt_with_a_token_may_wait_for_a_callback() {
        let wait = || Ok(Outcome::WaitForCallback { timeout: Duration::MAX });
        assert_eq!(end_of(1, true, wait()), AttemptEnd::Park { timeout: RetryPolicy::LONGEST });
        let end = end_of(1, false, wait());
        assert!(matches!(end, AttemptEnd::Retry { error, .. } if error.as_str().contains("register_callback")));
    }

    #[test]
    fn an_attempt_that_did_not_end_in_a_transaction_has_failed() {
        let end = end_of(1, false, Ok(Outcome::Ended));
        assert!(matches!(end, AttemptEnd::Retry { error, .. } if error.as_str().contains("complete_in")));
    }

    #[test]
    fn an_error_is_tried_again_until_the_budget_is_used_up() {
        let second = Duration::from_secs(1);
        assert_eq!(end_of(1, false, Err("x".into())), AttemptEnd::Retry { delay: second, error: text("x") });
        assert_eq!(end_of(25, false, Err("x".into())), AttemptEnd::Fail { error: text("x") });
        let asked = Ok(Outcome::RetryAfter(second, "x".into()));
        assert_eq!(end_of(25, false, asked), AttemptEnd::Fail { error: text("x") });
        assert_eq!(end_of(1, false, Err(Fatal::new("x").into())), AttemptEnd::Fail { error: text("x") });
    }

    #[test]
    fn a_result_that_cannot_be_kept_fails_the_attempt_and_says_why() {
        for value in ["\0".to_owned(), "x".repeat(2 << 20)] {
            let end = end_of(1, false, Ok(Outcome::done_with(&value)));
            assert!(matches!(end, AttemptEnd::Retry { error, .. } if error.as_str().starts_with("result refused")));
        }
        let unserializable = std::collections::HashMap::from([((1, 2), 3)]);
        let end = end_of(1, false, Ok(Outcome::done_with(&unserializable)));
        assert!(matches!(end, AttemptEnd::Retry { error, .. } if error.as_str().contains("does not serialize")));
    }

    #[test]
    fn an_error_that_cannot_be_kept_is_cleaned_and_cut() {
        for error in ["a\0b".to_owned(), "\0".repeat(1 << 20), "ü".repeat(1 << 20)] {
            let end = end_of(1, false, Err(error.into()));
            let AttemptEnd::Retry { error, .. } = end else { panic!("{end:?}") };
            assert!(!error.as_str().contains('\0') && error.as_str().len() <= ErrorText::MAX_BYTES);
        }
    }

    #[test]
    fn an_interrupted_attempt_is_handed_back_uncharged() {
        let handed_back = AttemptEnd::Release { delay: Duration::ZERO };
        assert_eq!(end_of(1, false, Err(Interrupted.into())), handed_back);
        assert_eq!(end_of(1, true, Err("stopped".into())), handed_back);
        assert_eq!(end_of(1, true, Ok(Outcome::Done)), AttemptEnd::Complete);
        let fatal: JobError = Fatal::new("x").into();
        assert_eq!(end_of(1, true, Err(fatal)), AttemptEnd::Fail { error: text("x") });
    }
}
