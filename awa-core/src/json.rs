//! JSON text that is kept byte for byte.
//!
//! Arguments and results are never rewritten: numbers keep all their digits, keys their order. What PostgreSQL could
//! store but not read back (U+0000, half a surrogate pair) is refused before it reaches a server.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::error::BadInput;

/// The default limit of the arguments or the result of one job, in bytes.
pub const DEFAULT_MAX_JSON_BYTES: usize = 1 << 20;
/// The deepest nesting of arrays and objects. PostgreSQL's own parser gives up somewhat later, by stack depth.
pub const MAX_JSON_DEPTH: usize = 512;

/// A well-formed JSON text that every store keeps byte for byte. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct JsonText(Arc<str>);

impl JsonText {
    /// Checks `text`, with the default limit of [`DEFAULT_MAX_JSON_BYTES`].
    ///
    /// # Errors
    ///
    /// [`BadInput`] naming `field` when the text is not JSON, too long, nested deeper than [`MAX_JSON_DEPTH`], or
    /// holds U+0000 or half a surrogate pair.
    pub fn new(field: &'static str, text: impl Into<Arc<str>>) -> Result<Self, BadInput> {
        Self::with_limit(field, text, DEFAULT_MAX_JSON_BYTES)
    }

    /// Like [`Self::new`] with a limit of `max_bytes`.
    pub fn with_limit(field: &'static str, text: impl Into<Arc<str>>, max_bytes: usize) -> Result<Self, BadInput> {
        let text = text.into();
        if text.len() > max_bytes {
            return Err(BadInput::new(field, format!("it has {} bytes; the limit is {max_bytes} bytes", text.len())));
        }
        scan(text.as_bytes()).map_err(|problem| BadInput::new(field, problem))?;
        serde_json::from_str::<IgnoredAny>(&text)
            .map_err(|error| BadInput::new(field, format!("it is not well-formed JSON: {error}")))?;
        Ok(Self(text))
    }

    /// The JSON text of `value`.
    ///
    /// # Errors
    ///
    /// [`BadInput`] naming `field` as for [`Self::new`], or when `value` does not serialize.
    pub fn of<T: Serialize + ?Sized>(field: &'static str, value: &T) -> Result<Self, BadInput> {
        let text = serde_json::to_string(value)
            .map_err(|error| BadInput::new(field, format!("it does not serialize: {error}")))?;
        Self::new(field, text)
    }

    /// A text that was checked when it was stored.
    pub fn trusted(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The text, byte for byte as it came.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Decodes straight from the text into `T`, without a tree in between.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }
}

/// Finds what the grammar allows and PostgreSQL cannot keep: U+0000, lone surrogates and bottomless nesting.
fn scan(bytes: &[u8]) -> Result<(), String> {
    let (mut at, mut depth, mut in_string) = (0, 0_usize, false);
    while at < bytes.len() {
        match (in_string, bytes[at]) {
            (_, 0) => return Err(format!("it holds U+0000 at byte {at}, which PostgreSQL cannot store")),
            (false, b'"') => in_string = true,
            (true, b'"') => in_string = false,
            (true, b'\\') => {
                at += escape_length(bytes, at)?;
                continue;
            }
            (false, b'[' | b'{') => {
                depth += 1;
                if depth > MAX_JSON_DEPTH {
                    return Err(format!("it is nested deeper than {MAX_JSON_DEPTH} levels"));
                }
            }
            (false, b']' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// The length of the escape sequence at `at`. Malformed ones are left to the parser.
fn escape_length(bytes: &[u8], at: usize) -> Result<usize, String> {
    let unit = |at: usize| {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    match unit(at) {
        None => Ok(2),
        Some(0) => Err(format!("it holds \\u0000 at byte {at}, which PostgreSQL cannot store")),
        Some(0xD800..=0xDBFF) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => Ok(12),
        Some(0xD800..=0xDFFF) => Err(format!("it holds half a surrogate pair at byte {at}")),
        Some(_) => Ok(6),
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_kept_to_the_byte() {
        for text in
            ["{\"b\":1,\"a\":2}", " [1e400, -0.0, 9223372036854775807] ", "\"\\ud83e\\udd80 \\\\u0000\"", "null"]
        {
            assert_eq!(JsonText::new("args", text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn what_the_database_cannot_keep_is_refused() {
        for (text, word) in [
            ("\"\\u0000\"", "u0000"),
            ("\"a\0b\"", "U+0000"),
            ("{\"\\ud800\":1}", "surrogate"),
            ("\"\\udc00\\ud800\"", "surrogate"),
            ("{\"a\":}", "well-formed"),
            ("", "well-formed"),
            ("{} {}", "well-formed"),
        ] {
            let error = JsonText::new("args", text).unwrap_err();
            assert!(error.field == "args" && error.problem.contains(word), "{text:?}: {error}");
        }
    }

    #[test]
    fn size_and_depth_have_limits() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(JsonText::new("args", nested(100)).is_ok());
        assert!(JsonText::new("args", nested(MAX_JSON_DEPTH + 1)).unwrap_err().problem.contains("nested"));
        let long = format!("\"{}\"", "x".repeat(DEFAULT_MAX_JSON_BYTES - 2));
        assert!(JsonText::new("args", long.clone()).is_ok());
        assert!(JsonText::new("args", format!("{long} ")).unwrap_err().problem.contains("limit"));
    }
}
