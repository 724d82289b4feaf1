//! Lengths and moments of time as people write them.

use std::time::Duration;

use awa_core::Timestamp;
use jiff::{Span, SpanRelativeTo};

/// A length of time such as `10s`, `1m 30s`, `2h` or `3d`; a day has 24 hours.
pub(crate) fn parse_length(text: &str) -> Result<Duration, String> {
    let refuse = || format!("{text:?} is no length of time; write for example 500ms, 10s, 5m, 2h or 3d");
    let span: Span = text.parse().map_err(|_| refuse())?;
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| refuse())?;
    Duration::try_from(length).map_err(|_| format!("{text:?} is negative; a length of time is not"))
}

/// A moment in RFC 3339, such as `2026-01-31T09:00:00Z`, to the microsecond.
pub(crate) fn parse_moment(text: &str) -> Result<Timestamp, String> {
    let moment: jiff::Timestamp =
        text.parse().map_err(|_| format!("{text:?} is no moment in RFC 3339, such as 2026-01-31T09:00:00Z"))?;
    Ok(Timestamp::from_micros(moment.as_microsecond()))
}

/// A length of time of at least a millisecond.
pub(crate) fn parse_positive_length(text: &str) -> Result<Duration, String> {
    match parse_length(text)? {
        length if length < Duration::from_millis(1) => Err(format!("{text:?} is shorter than a millisecond")),
        length => Ok(length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_with_their_unit() {
        for (text, seconds) in [("10s", 10.0), ("1m 30s", 90.0), ("2h", 7200.0), ("3d", 259_200.0), ("500ms", 0.5)] {
            assert_eq!(parse_length(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
        for text in ["", "10", "ten seconds", "-5s", "1y", "5 apples"] {
            assert!(parse_length(text).is_err(), "{text}");
        }
        assert!(parse_positive_length("0s").is_err());
    }

    #[test]
    fn moments_are_read_to_the_microsecond() {
        assert_eq!(parse_moment("1970-01-01T00:00:01.000002Z"), Ok(Timestamp::from_micros(1_000_002)));
        assert_eq!(parse_moment("1970-01-01T01:00:00+01:00"), Ok(Timestamp::EPOCH));
        for text in ["", "tomorrow", "2026-01-31", "2026-13-01T00:00:00Z"] {
            assert!(parse_moment(text).is_err(), "{text}");
        }
    }
}
