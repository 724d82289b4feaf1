//! Points in time as whole microseconds, the resolution of PostgreSQL.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in time: microseconds since the Unix epoch, in UTC.
///
/// Core code never asks for the present; a store adds its own clock's reading, so that all comparisons use one clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);
    /// The latest moment Awa accepts: the first instant of the year 10000, UTC.
    pub const MAX: Self = Self(253_402_300_800_000_000);

    /// The moment `micros` microseconds after the Unix epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the Unix epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// This moment plus `length`, no later than [`Self::MAX`].
    #[must_use]
    pub fn saturating_add(self, length: Duration) -> Self {
        let micros = i64::try_from(length.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(micros).min(Self::MAX.0))
    }

    /// This moment minus `length`, no earlier than the smallest number of microseconds.
    #[must_use]
    pub fn saturating_sub(self, length: Duration) -> Self {
        let micros = i64::try_from(length.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(micros))
    }

    /// The time from `earlier` to this moment; zero when `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timestamp({self})")
    }
}

/// RFC 3339 with microseconds, in UTC.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAY: i64 = 86_400_000_000;
        let (days, micros) = (self.0.div_euclid(DAY), self.0.rem_euclid(DAY));
        let (year, month, day) = civil_from_days(days);
        let seconds = micros / 1_000_000;
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:06}Z",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60,
            micros % 1_000_000
        )
    }
}

/// The proleptic Gregorian date `days` days after 1970-01-01, as (year, month, day).
///
/// Counts in eras of 400 years, which all have the same number of days, with years that begin in March so that the
/// leap day comes last.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    const ERA: i64 = 146_097;
    const CENTURY: i64 = 36_524;
    const FOUR_YEARS: i64 = 1_461;
    const MARCH_FIRST_OF_YEAR_ZERO: i64 = 719_468;
    let shifted = days + MARCH_FIRST_OF_YEAR_ZERO;
    let (era, day_of_era) = (shifted.div_euclid(ERA), shifted.rem_euclid(ERA));
    let century = (day_of_era / CENTURY).min(3);
    let day_of_century = day_of_era - century * CENTURY;
    let cycle = day_of_century / FOUR_YEARS;
    let day_of_cycle = day_of_century - cycle * FOUR_YEARS;
    let year_of_cycle = (day_of_cycle / 365).min(3);
    let day_of_year = day_of_cycle - year_of_cycle * 365;
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + century * 100 + cycle * 4 + year_of_cycle + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_print_as_rfc_3339() {
        for (micros, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000000Z"),
            (1_709_210_096_000_007, "2024-02-29T12:34:56.000007Z"),
            (4_107_542_400_000_000, "2100-03-01T00:00:00.000000Z"),
            (Timestamp::MAX.as_micros() - 1, "9999-12-31T23:59:59.999999Z"),
        ] {
            assert_eq!(Timestamp::from_micros(micros).to_string(), text);
        }
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Timestamp::EPOCH.saturating_add(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::EPOCH.since(Timestamp::MAX), Duration::ZERO);
        assert_eq!(Timestamp::from_micros(5).since(Timestamp::from_micros(2)), Duration::from_micros(3));
    }
}
