//! How many jobs are claimed ahead of the handlers.

use std::time::Duration;

use tokio::time::Instant;

/// The room for jobs that wait for a handler: fixed, or as many as are run within [`Self::HORIZON`] at the pace of the
/// moment.
///
/// Short jobs end faster than a claim takes, so that without jobs at hand their handlers would wait for it most of the time.
/// Long jobs want none: what waits here cannot be run by another process.
#[derive(Debug)]
pub(crate) struct Ahead {
    room: usize,
    most: Option<usize>,
    /// How many start within [`Self::LONGEST_WAIT`] at the pace of the moment.
    in_time: usize,
    started: usize,
    since: Instant,
}

impl Ahead {
    /// What is claimed ahead is to be started within this time. It covers a claim over a slow disk or network.
    const HORIZON: Duration = Duration::from_millis(50);
    /// A pace foresees nothing. Where the jobs have turned long, those that would wait longer than this are better off with
    /// another process.
    pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(1);
    /// A pace that is measured over less is chance.
    const WINDOW: Duration = Duration::from_millis(5);

    /// Always room for so many.
    pub(crate) fn fixed(jobs: usize) -> Self {
        Self { room: jobs, most: None, in_time: jobs, started: 0, since: Instant::now() }
    }

    /// As many as the pace asks for, at most `most`; none before it is known.
    pub(crate) fn by_pace(most: usize) -> Self {
        Self { most: Some(most), ..Self::fixed(0) }
    }

    /// How many jobs there is room for.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// How many of the jobs that wait may go on waiting; what was fixed may for ever.
    pub(crate) fn may_wait(&self) -> usize {
        self.in_time.max(self.room)
    }

    /// Notes that a handler was started.
    pub(crate) fn note_start(&mut self) {
        self.started += 1;
    }

    /// Looks at the pace, before a claim.
    pub(crate) fn adapt(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.since);
        let Some(most) = self.most.filter(|_| elapsed >= Self::WINDOW) else { return };
        let within = |length: Duration| {
            usize::try_from(self.started as u128 * length.as_micros() / elapsed.as_micros()).unwrap_or(usize::MAX)
        };
        (self.room, self.in_time) = (within(Self::HORIZON).min(most), within(Self::LONGEST_WAIT));
        (self.started, self.since) = (0, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The room after so many starts within so many milliseconds.
    fn room_after(ahead: &mut Ahead, starts: usize, millis: u64) -> usize {
        let now = ahead.since + Duration::from_millis(millis);
        (0..starts).for_each(|_| ahead.note_start());
        ahead.adapt(now);
        ahead.room()
    }

    #[test]
    fn what_is_claimed_ahead_is_what_starts_within_the_horizon() {
        let mut ahead = Ahead::by_pace(2_000);
        assert_eq!(ahead.room(), 0, "nothing is held before the pace is known");
        assert_eq!(room_after(&mut ahead, 100, 10), 500);
        assert_eq!(room_after(&mut ahead, 10_000, 10), 2_000, "no more than is useful");
        assert_eq!(room_after(&mut ahead, 3, 1_000), 0, "jobs of seconds wait for nobody");
    }

    #[test]
    fn a_pace_is_not_measured_over_a_moment() {
        let mut ahead = Ahead::by_pace(2_000);
        assert_eq!(room_after(&mut ahead, 4, 1), 0);
        assert_eq!(room_after(&mut ahead, 6, 10), 50, "the starts before count");
    }

    #[test]
    fn what_starts_within_a_second_may_wait() {
        let mut ahead = Ahead::by_pace(2_000);
        room_after(&mut ahead, 100, 10);
        assert_eq!(ahead.may_wait(), 10_000);
        room_after(&mut ahead, 3, 1_000);
        assert_eq!(ahead.may_wait(), 3);
        room_after(&mut ahead, 0, 1_000);
        assert_eq!(ahead.may_wait(), 0);
    }

    #[test]
    fn what_is_fixed_stays() {
        let mut ahead = Ahead::fixed(7);
        assert_eq!(room_after(&mut ahead, 1_000, 10), 7);
        assert_eq!(room_after(&mut ahead, 0, 10_000), 7);
        assert_eq!(ahead.may_wait(), 7);
    }
}
