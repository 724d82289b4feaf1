//! `awa jobs resume`: calls back a job that waits.

use std::time::Duration;

use awa_core::store::Callback;
use awa_core::{CallbackAnswer, CallbackToken, JsonText, Store};
use serde::Serialize;
use tokio::time::sleep;

use crate::failure::Failure;
use crate::output::Format;

#[derive(Serialize, Debug)]
struct Answer {
    accepted: bool,
    answer: &'static str,
}

/// Carries out the command.
pub(super) async fn run(store: &dyn Store, token: CallbackToken, payload: &str, format: Format) -> Result<(), Failure> {
    const ROUNDS: usize = 5;
    const PAUSE: Duration = Duration::from_millis(100);
    let payload = JsonText::new("payload", payload).map_err(|refusal| Failure::new(refusal.to_string()))?;
    let callbacks = [Callback { token, payload }];
    let mut answer = CallbackAnswer::Contended;
    for round in 0..ROUNDS {
        if round > 0 {
            sleep(PAUSE).await;
        }
        answer = store.resume(&callbacks).await?.first().copied().unwrap_or(CallbackAnswer::Contended);
        if answer != CallbackAnswer::Contended {
            break;
        }
    }
    let (name, sentence) = words(answer);
    let accepted = answer.is_accepted();
    format.answer(&Answer { accepted, answer: name }, |_| sentence.to_owned())?;
    if accepted { Ok(()) } else { Err(Failure::new("the callback was not taken".to_owned())) }
}

/// The answer as a name, and as a sentence.
fn words(answer: CallbackAnswer) -> (&'static str, &'static str) {
    match answer {
        CallbackAnswer::Resumed => ("resumed", "the job is ready and runs next"),
        CallbackAnswer::Kept => ("kept", "the job still runs; it goes on at once when it begins to wait"),
        CallbackAnswer::Unknown => ("unknown", "no job waits for this token, or its job has ended"),
        CallbackAnswer::AlreadyUsed => {
            ("already_used", "a callback came with this token before; the first payload stays")
        }
        CallbackAnswer::Expired => ("expired", "the job has waited too long; it is tried again or dead soon"),
        CallbackAnswer::AttemptOver => ("attempt_over", "the attempt that gave this token away has ended"),
        _ => ("contended", "somebody else is changing the job; ask again"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_has_a_name_of_its_own_and_only_two_are_good() {
        let all = [
            CallbackAnswer::Resumed,
            CallbackAnswer::Kept,
            CallbackAnswer::Unknown,
            CallbackAnswer::AlreadyUsed,
            CallbackAnswer::Expired,
            CallbackAnswer::AttemptOver,
            CallbackAnswer::Contended,
        ];
        let mut names: Vec<_> = all.map(|answer| words(answer).0).to_vec();
        assert_eq!(names[..2], ["resumed", "kept"]);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }
}
