//! Whether a dispatcher stays awake between jobs.

use std::time::Duration;

use tokio::time::Instant;

/// How often jobs come, and so whether the next one is worth waiting for with open eyes.
///
/// Falling asleep costs an announcement, a look behind it and a notification in somebody's commit, and PostgreSQL lets one transaction
/// that notifies commit at a time. Where the next job is a few milliseconds away, looking again is cheaper for everybody.
#[derive(Debug, Default)]
pub(crate) struct Vigil {
    /// Between two jobs, smoothed; unknown before the second find.
    gap: Option<Duration>,
    found: Option<Instant>,
}

impl Vigil {
    /// Jobs that come at longer intervals are slept for.
    const RARE: Duration = Duration::from_millis(8);
    /// From the beginning of one look to that of the next, unless the look itself takes longer.
    const SHORTEST_STEP: Duration = Duration::from_millis(2);
    const LONGEST_STEP: Duration = Duration::from_millis(4);
    /// Nothing for so many gaps: the stream has ended.
    const PATIENCE: u32 = 4;
    /// But a stream does not end within a hiccup of the disk.
    const SHORTEST_PATIENCE: Duration = Duration::from_millis(10);

    /// Notes what a claim found.
    pub(crate) fn note(&mut self, jobs: usize, now: Instant) {
        let Ok(jobs @ 1..) = u32::try_from(jobs) else { return };
        if let Some(before) = self.found.replace(now) {
            let gap = now.saturating_duration_since(before) / jobs;
            // An average over finds, in which one long silence outweighs what came before it.
            self.gap = Some(self.gap.map_or(gap, |old| (old * 3 + gap) / 4));
        }
    }

    /// When to look next after a look that began at `last`, or `None`: sleep.
    pub(crate) fn next(&self, last: Instant, now: Instant) -> Option<Instant> {
        let (gap, found) = (self.gap?, self.found?);
        let silence = now.saturating_duration_since(found);
        let is_on = gap <= Self::RARE && silence < (gap * Self::PATIENCE).max(Self::SHORTEST_PATIENCE);
        is_on.then(|| last + (gap * 2).clamp(Self::SHORTEST_STEP, Self::LONGEST_STEP))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Finds so many jobs each so often, ten times; the time afterwards.
    fn stream(vigil: &mut Vigil, from: Instant, jobs: usize, gap: Duration) -> Instant {
        let mut now = from;
        for _ in 0..10 {
            now += gap;
            vigil.note(jobs, now);
        }
        now
    }

    #[test]
    fn a_dispatcher_stays_awake_while_jobs_come_often() {
        let mut vigil = Vigil::default();
        let now = stream(&mut vigil, Instant::now(), 2, 2 * MS);
        assert_eq!(vigil.next(now, now), Some(now + 2 * MS));
        vigil.note(0, now + 5 * MS);
        assert_eq!(vigil.next(now + 4 * MS, now + 5 * MS), Some(now + 6 * MS), "one look in vain ends nothing");
        assert_eq!(vigil.next(now, now + 11 * MS), None, "the stream has ended");
    }

    #[test]
    fn rare_jobs_are_slept_for() {
        let mut vigil = Vigil::default();
        let start = Instant::now();
        vigil.note(1, start);
        assert_eq!(vigil.next(start, start), None, "of one job nothing is known");
        let now = stream(&mut vigil, start, 1, 20 * MS);
        assert_eq!(vigil.next(now, now), None);
    }

    #[test]
    fn a_long_silence_ends_a_vigil_although_many_jobs_came_before() {
        let mut vigil = Vigil::default();
        let now = stream(&mut vigil, Instant::now(), 5, MS) + 1_000 * MS;
        vigil.note(1, now);
        assert_eq!(vigil.next(now, now), None);
    }

    #[test]
    fn slower_streams_are_looked_at_less_often() {
        let mut vigil = Vigil::default();
        let now = stream(&mut vigil, Instant::now(), 1, 6 * MS);
        assert_eq!(vigil.next(now, now), Some(now + 4 * MS));
    }
}
