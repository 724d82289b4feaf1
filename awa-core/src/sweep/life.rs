//! Who is alive: the signs that an attempt gives, and whether a rescuer may judge them.

use std::fmt;
use std::time::Duration;

use crate::time::Timestamp;

/// When an open attempt was last known to be worked on. All times are of the store's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LifeSigns {
    /// The time of the claim.
    pub claimed_at: Timestamp,
    /// The last beat of the process that claimed it; `None` when nothing is known of that process.
    pub instance_seen_at: Option<Timestamp>,
    /// The last heartbeat of the attempt itself, if it ever sent one.
    pub attempt_seen_at: Option<Timestamp>,
}

impl LifeSigns {
    /// The newest sign. The claim is one: a process about which nothing is known yet has the staleness time to appear.
    pub fn newest(&self) -> Timestamp {
        let beats = self.instance_seen_at.max(self.attempt_seen_at);
        beats.map_or(self.claimed_at, |beat| beat.max(self.claimed_at))
    }

    /// Whether every sign is at least `staleness` old.
    pub fn is_stale(&self, now: Timestamp, staleness: Duration) -> bool {
        now.since(self.newest()) >= staleness
    }
}

/// The beats of one process: the last one, and since when they have not been interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Beats {
    /// The first beat after the last interruption.
    pub since: Timestamp,
    /// The last beat.
    pub last: Timestamp,
}

impl Beats {
    /// The beats of a process that has just started.
    pub const fn first(now: Timestamp) -> Self {
        Self { since: now, last: now }
    }

    /// The beats after one more at `now`. A gap of `staleness` or more is an interruption, and so is a clock that went
    /// back: from then on the row proves nothing about the time before.
    #[must_use]
    pub fn beat(self, now: Timestamp, staleness: Duration) -> Self {
        let interrupted = now < self.last || now.since(self.last) >= staleness;
        Self { since: if interrupted { now } else { self.since }, last: now }
    }
}

/// Whether a process may rescue the attempts of others.
///
/// After an outage of the database every process looks dead until its next beat. A rescuer that went through the
/// outage itself has a gap in its own beats, and must wait as long as it would make the others wait; else one early
/// tick takes everything that runs away from living workers and charges an attempt for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RescuerHealth {
    /// It may rescue.
    Healthy,
    /// It has no beats on record.
    Unknown,
    /// Its own last beat is too old.
    Silent,
    /// Its beats were interrupted; it may rescue after this time, if they go on.
    Recovering(Duration),
}

impl RescuerHealth {
    /// The health of a process with these beats on record.
    pub fn of(beats: Option<Beats>, now: Timestamp, staleness: Duration) -> Self {
        let Some(beats) = beats else { return Self::Unknown };
        if now.since(beats.last) >= staleness {
            return Self::Silent;
        }
        let left = staleness.saturating_sub(now.since(beats.since));
        if left.is_zero() { Self::Healthy } else { Self::Recovering(left) }
    }

    /// Whether it may rescue.
    pub const fn may_rescue(self) -> bool {
        matches!(self, Self::Healthy)
    }
}

impl fmt::Display for RescuerHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Healthy => f.write_str("healthy"),
            Self::Unknown => f.write_str("this process has no heartbeat on record"),
            Self::Silent => f.write_str("the last heartbeat of this process is too old to judge others"),
            Self::Recovering(left) => {
                write!(
                    f,
                    "the heartbeat of this process was interrupted; it may rescue in {} s",
                    left.as_secs_f64().ceil()
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALENESS: Duration = Duration::from_secs(30);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn signs(claimed: i64, instance: Option<i64>, attempt: Option<i64>) -> LifeSigns {
        LifeSigns { claimed_at: at(claimed), instance_seen_at: instance.map(at), attempt_seen_at: attempt.map(at) }
    }

    #[test]
    fn an_attempt_is_stale_when_neither_process_nor_attempt_was_seen() {
        for (claimed, instance, attempt, stale_at_100) in [
            (0, None, None, true),
            (71, None, None, false),
            (70, None, None, true),
            (0, Some(71), None, false),
            (0, Some(70), None, true),
            (0, None, Some(71), false),
            (0, Some(1), Some(71), false),
            (0, Some(71), Some(1), false),
            (71, Some(1), Some(1), false),
            (0, Some(200), None, false),
        ] {
            assert_eq!(
                signs(claimed, instance, attempt).is_stale(at(100), STALENESS),
                stale_at_100,
                "{claimed} {instance:?} {attempt:?}"
            );
        }
    }

    #[test]
    fn a_rescuer_without_unbroken_beats_may_not_act() {
        let mut beats = Beats::first(at(0));
        assert_eq!(RescuerHealth::of(None, at(0), STALENESS), RescuerHealth::Unknown);
        for second in (10..=30).step_by(10) {
            let before = at(second - 1);
            assert!(!RescuerHealth::of(Some(beats), before, STALENESS).may_rescue());
            beats = beats.beat(at(second), STALENESS);
        }
        assert_eq!(RescuerHealth::of(Some(beats), at(30), STALENESS), RescuerHealth::Healthy);
        assert_eq!(RescuerHealth::of(Some(beats), at(59), STALENESS), RescuerHealth::Healthy);
        assert_eq!(RescuerHealth::of(Some(beats), at(60), STALENESS), RescuerHealth::Silent);
    }

    #[test]
    fn after_an_outage_the_staleness_time_starts_again() {
        let healthy = Beats { since: at(0), last: at(100) };
        let back = healthy.beat(at(130), STALENESS);
        assert_eq!(
            RescuerHealth::of(Some(back), at(131), STALENESS),
            RescuerHealth::Recovering(Duration::from_secs(29))
        );
        let on = back.beat(at(150), STALENESS);
        assert_eq!(RescuerHealth::of(Some(on), at(159), STALENESS), RescuerHealth::Recovering(Duration::from_secs(1)));
        assert!(RescuerHealth::of(Some(on), at(160), STALENESS).may_rescue());
        assert!(healthy.beat(at(129), STALENESS).since == at(0), "a gap below the staleness time is none");
    }

    #[test]
    fn a_clock_that_goes_back_interrupts_the_beats() {
        let beats = Beats { since: at(0), last: at(100) }.beat(at(50), STALENESS);
        assert_eq!(beats, Beats::first(at(50)));
        assert!(!RescuerHealth::of(Some(Beats { since: at(60), last: at(100) }), at(50), STALENESS).may_rescue());
    }
}
