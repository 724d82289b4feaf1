//! Callbacks: an attempt that waits for somebody outside, and the token by which that one finds it.
//!
//! A token belongs to one attempt, is good for one callback, and ends with its attempt, whatever ends it. A callback that
//! comes while the attempt still runs is kept, and the attempt goes on at once when it parks.

use std::fmt;
use std::str::FromStr;

use crate::error::BadInput;
use crate::time::Timestamp;

/// What somebody outside must present to resume an attempt: 128 random bits. Whoever has it may resume the attempt, so it
/// is kept out of logs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallbackToken(pub u128);

impl fmt::Display for CallbackToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for CallbackToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallbackToken({:04x}..)", self.0 >> 112)
    }
}

impl FromStr for CallbackToken {
    type Err = BadInput;

    fn from_str(text: &str) -> Result<Self, BadInput> {
        let is_token = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u128::from_str_radix(text, 16).ok().filter(|_| is_token);
        number.map(Self).ok_or_else(|| BadInput::new("token", "it is not a token; one has 32 hexadecimal digits"))
    }
}

/// What is known about a token when a callback comes with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallbackFacts {
    /// A callback came with it before.
    pub is_used: bool,
    /// What the attempt does that the token belongs to.
    pub attempt: TokenAttempt,
}

/// What the attempt of a token does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenAttempt {
    /// It has ended.
    Over,
    /// It has not parked yet.
    Running,
    /// It is parked.
    Waiting {
        /// When its time runs out.
        until: Timestamp,
    },
}

/// The answer to one callback.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CallbackAnswer {
    /// The attempt was waiting: its job is ready, before all others of its lane, and the next attempt reads the payload.
    Resumed,
    /// The attempt still runs: the payload is kept, and the job goes on at once when the attempt parks.
    Kept,
    /// Nothing has this token: it was never registered, its job has ended, or a later attempt has registered another one.
    Unknown,
    /// A callback came with this token before; the first payload stays.
    AlreadyUsed,
    /// The attempt waited and its time has run out.
    Expired,
    /// The attempt has ended: it was completed, failed, handed back, rescued or cancelled.
    AttemptOver,
    /// Somebody else's open transaction is about to change the attempt; ask again.
    Contended,
}

impl CallbackAnswer {
    /// Whether the payload of this callback was stored.
    pub const fn is_accepted(self) -> bool {
        matches!(self, Self::Resumed | Self::Kept)
    }
}

/// Decides about a callback.
pub fn admit(facts: &CallbackFacts, now: Timestamp) -> CallbackAnswer {
    match facts.attempt {
        _ if facts.is_used => CallbackAnswer::AlreadyUsed,
        TokenAttempt::Over => CallbackAnswer::AttemptOver,
        TokenAttempt::Running => CallbackAnswer::Kept,
        TokenAttempt::Waiting { until } if until <= now => CallbackAnswer::Expired,
        TokenAttempt::Waiting { .. } => CallbackAnswer::Resumed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back_and_hides_in_logs() {
        let token = CallbackToken(0x0123_4567_89ab_cdef_0011_2233_4455_6677);
        assert_eq!(token.to_string().parse::<CallbackToken>().unwrap(), token);
        assert_eq!(CallbackToken(0).to_string().parse::<CallbackToken>().unwrap(), CallbackToken(0));
        assert_eq!(format!("{token:?}"), "CallbackToken(0123..)");
        for text in ["", "12", &"g".repeat(32), &"1".repeat(33), &format!("+{}", "1".repeat(31))] {
            assert_eq!(text.parse::<CallbackToken>().unwrap_err().field, "token");
        }
    }

    #[test]
    fn a_callback_is_accepted_once_and_while_the_attempt_lives() {
        let now = Timestamp::from_micros(10);
        let until = |micros| TokenAttempt::Waiting { until: Timestamp::from_micros(micros) };
        for (is_used, attempt, answer) in [
            (false, TokenAttempt::Running, CallbackAnswer::Kept),
            (false, until(11), CallbackAnswer::Resumed),
            (false, until(10), CallbackAnswer::Expired),
            (false, TokenAttempt::Over, CallbackAnswer::AttemptOver),
            (true, TokenAttempt::Running, CallbackAnswer::AlreadyUsed),
            (true, until(11), CallbackAnswer::AlreadyUsed),
            (true, TokenAttempt::Over, CallbackAnswer::AlreadyUsed),
        ] {
            assert_eq!(admit(&CallbackFacts { is_used, attempt }, now), answer, "{is_used} {attempt:?}");
            assert_eq!(
                answer.is_accepted(),
                !is_used && matches!(answer, CallbackAnswer::Kept | CallbackAnswer::Resumed)
            );
        }
    }
}
