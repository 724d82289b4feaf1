//! Panics of code that is not ours: caught, read, and buried without a second one.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a panic threw.
pub(crate) type Payload = Box<dyn Any + Send>;

/// Runs `code` and catches its panic.
///
/// Unwind safety is asserted: what the code leaves half done is its own, and is dropped.
pub(crate) fn caught<T>(code: impl FnOnce() -> T) -> Result<T, Payload> {
    catch_unwind(AssertUnwindSafe(code))
}

/// Drops `value`, and gives the payload when that panicked.
pub(crate) fn dropped<T>(value: T) -> Result<(), Payload> {
    caught(|| drop(value))
}

/// The message of a panic. A payload that is no text says so; one that panics when dropped is forgotten.
pub(crate) fn message(payload: Payload) -> String {
    let text = match payload.downcast_ref::<&'static str>() {
        Some(text) => (*text).to_owned(),
        None => match payload.downcast_ref::<String>() {
            Some(text) => text.clone(),
            None => "a panic without a text".to_owned(),
        },
    };
    if let Err(second) = dropped(payload) {
        std::mem::forget(second);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::panic::panic_any;

    use super::*;

    struct DropsBadly;

    impl Drop for DropsBadly {
        fn drop(&mut self) {
            panic_any(Self);
        }
    }

    #[test]
    fn every_payload_gives_a_message() {
        let said = |code: fn()| message(caught(code).unwrap_err());
        assert_eq!(said(|| panic!("plain")), "plain");
        assert_eq!(said(|| panic!("{}", "formatted")), "formatted");
        assert_eq!(said(|| panic_any(7)), "a panic without a text");
    }

    #[test]
    fn a_payload_that_panics_when_dropped_is_forgotten() {
        // Its drop throws another of its kind, so only forgetting ends it.
        let payload: Payload = Box::new(DropsBadly);
        assert_eq!(message(payload), "a panic without a text");
    }
}
