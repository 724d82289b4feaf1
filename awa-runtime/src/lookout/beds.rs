//! Who sleeps, what was announced for whom, and when whose queue is looked at: the decisions of the lookout, without a call.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use awa_core::QueueName;
use awa_core::store::Horizon;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::backoff::varied;

/// The place of a queue among those of the process.
pub(super) type Place = usize;

/// The sleep of one dispatcher.
///
/// A dispatcher whose sleep was announced before a claim began that found nothing, and saw everything which began to write
/// before the announcement, sleeps soundly: a wake-up comes with every later commit. It looks again once per poll interval all
/// the same. Until its sleep is sound it looks again after a growing pause.
#[derive(Debug)]
struct Bed {
    queue: QueueName,
    poll: Duration,
    is_asleep: bool,
    /// How often it has gone to sleep: what a look finds out is about one sleep.
    nights: u64,
    /// What was promised to it, while the announcement stands; also while it is up, for a moment. [`Beds::VOID`] since a
    /// wake-up came: whoever enqueues beside one that notifies may leave it to that one.
    ticket: Option<Horizon>,
    /// How many wake-ups came for it.
    rings: u64,
    /// The ticket that stood when its last claim began.
    claimed_under: Option<Horizon>,
    claims: Claims,
    /// A wake-up came while it was up, after its last claim began.
    is_hinted: bool,
    up_since: Instant,
    /// When it is looked at, while it sleeps, and the pause that ends then.
    due: Instant,
    pause: Duration,
    /// How many looks in a row did not prove its sleep sound.
    unsound: u32,
    call: Arc<Notify>,
}

/// The claims of a dispatcher since it got up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Claims {
    NoneYet,
    /// The first is under way, and may well be the only one.
    First,
    More,
}

/// All beds of a process.
#[derive(Debug)]
pub(super) struct Beds {
    all: Vec<Bed>,
    places: HashMap<QueueName, Place>,
    has_wakeups: bool,
    /// Sleepers for whom nothing is announced.
    newcomers: Vec<Place>,
    /// Since when who is up with an announcement that stands, in order of time.
    up: VecDeque<(Instant, Place)>,
    /// How often all announcements were lost: what a look finds out is about those that stood when it began.
    losses: u64,
    /// The earliest time that the round was told of.
    next_round: Option<Instant>,
}

/// A look at sleepers, from its beginning to its end.
#[derive(Debug)]
pub(super) struct Look {
    losses: u64,
    sleepers: Vec<(Place, u64, Option<Horizon>)>,
    pub(super) queues: Vec<QueueName>,
}

/// An announcement, from its beginning to its end.
#[derive(Debug)]
pub(super) struct Announcement {
    losses: u64,
    sleepers: Vec<(Place, u64)>,
    pub(super) queues: Vec<QueueName>,
}

/// What a round has to do.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// Whom to look for, whose announcement stands or who cannot have one.
    pub(super) due: Vec<Place>,
    /// Whether one of them does not sleep soundly.
    pub(super) is_urgent: bool,
    /// Whether there are newcomers who are to be announced first.
    pub(super) has_newcomers: bool,
    /// When somebody else will be due, or not have been looked for, if nobody lies down meanwhile.
    pub(super) next: Option<Instant>,
}

impl Beds {
    /// How long an announcement stands while its dispatcher is up: one that comes back at once, as between single jobs, is
    /// spared an announcement, and producers do not notify for long for one who is busy.
    pub(super) const LINGER: Duration = Duration::from_millis(50);
    /// When a round comes to those for whom somebody else should have looked by then.
    const AGAIN: Duration = Duration::from_secs(1);
    /// The pauses while sleep is not sound.
    const SHORTEST: Duration = Duration::from_millis(2);
    const LONGEST: Duration = Duration::from_millis(500);
    /// The ticket of an announcement that stands and promises nothing: no claim sees as far.
    const VOID: Horizon = Horizon(u64::MAX);

    pub(super) fn new(queues: impl Iterator<Item = (QueueName, Duration)>, has_wakeups: bool) -> Self {
        let now = Instant::now();
        let bed = |(queue, poll)| Bed {
            queue,
            poll,
            is_asleep: false,
            nights: 0,
            ticket: None,
            rings: 0,
            claimed_under: None,
            claims: Claims::NoneYet,
            is_hinted: false,
            up_since: now,
            due: now,
            pause: Duration::ZERO,
            unsound: 0,
            call: Arc::new(Notify::new()),
        };
        let all: Vec<Bed> = queues.map(bed).collect();
        let places = all.iter().enumerate().map(|(place, bed)| (bed.queue.clone(), place)).collect();
        let (newcomers, up) = (Vec::new(), VecDeque::new());
        Self { all, places, has_wakeups, newcomers, up, losses: 0, next_round: None }
    }

    pub(super) fn call_of(&self, place: Place) -> Arc<Notify> {
        Arc::clone(&self.all[place].call)
    }

    pub(super) fn queues(&self) -> impl Iterator<Item = &QueueName> {
        self.all.iter().map(|bed| &bed.queue)
    }

    /// Whether it sleeps and nothing is promised to it, although that is possible.
    pub(super) fn is_newcomer(&self, place: Place) -> bool {
        self.has_wakeups && self.all[place].is_asleep && self.all[place].needs_promise()
    }

    pub(super) fn is_asleep(&self, place: Place) -> bool {
        self.all[place].is_asleep
    }

    /// A claim begins.
    pub(super) fn begin_claim(&mut self, place: Place) {
        self.get_up(place);
        let bed = &mut self.all[place];
        bed.is_hinted = false;
        bed.claimed_under = bed.ticket;
        bed.claims = if bed.claims == Claims::NoneYet { Claims::First } else { Claims::More };
    }

    /// It is answered.
    pub(super) fn end_claim(&mut self, place: Place) {
        self.all[place].claims = Claims::More;
    }

    /// A dispatcher lies down, after a claim that left nothing behind as far as its `horizon` goes, or before the first one.
    /// False when it has to claim again at once. Whoever sleeps is called when there is something to claim.
    pub(super) fn lie_down(&mut self, place: Place, horizon: Option<Horizon>) -> bool {
        let now = Instant::now();
        let bed = &mut self.all[place];
        if std::mem::take(&mut bed.is_hinted) {
            return false;
        }
        bed.is_asleep = true;
        bed.nights += 1;
        let proof = bed.claimed_under.take();
        match horizon {
            None => bed.pause_for(Duration::ZERO, now),
            Some(horizon) => bed.rest(proof, horizon, share(), now),
        }
        if self.has_wakeups && bed.needs_promise() {
            self.newcomers.push(place);
        }
        true
    }

    /// Calls a sleeper.
    pub(super) fn call(&mut self, place: Place) {
        if self.all[place].is_asleep {
            self.get_up(place);
            self.all[place].call.notify_one();
        }
    }

    /// A wake-up came for these queues: the sleepers among them, for whom its hearer looks. Who is up claims once more before
    /// it lies down. All are to be announced anew.
    pub(super) fn hint(&mut self, queues: &[QueueName]) -> Vec<Place> {
        let (now, mut sleepers) = (Instant::now(), Vec::new());
        for place in queues.iter().filter_map(|queue| self.places.get(queue).copied()) {
            let bed = &mut self.all[place];
            bed.rings += 1;
            bed.ticket = bed.ticket.map(|_| Self::VOID);
            if bed.is_asleep {
                bed.doubt(Self::AGAIN, now);
                sleepers.push(place);
                self.newcomers.push(place);
            } else {
                bed.is_hinted = true;
            }
        }
        sleepers
    }

    /// Takes the sleepers to whom nothing is promised.
    pub(super) fn take_newcomers(&mut self) -> Vec<Place> {
        let mut newcomers = std::mem::take(&mut self.newcomers);
        newcomers.sort_unstable();
        newcomers.dedup();
        newcomers.retain(|place| self.all[*place].is_asleep && self.all[*place].needs_promise());
        newcomers
    }

    /// Begins an announcement for these.
    pub(super) fn begin_announcement(&self, places: &[Place]) -> Announcement {
        let of = |place: &Place| (*place, self.all[*place].rings);
        let queues = places.iter().map(|place| self.all[*place].queue.clone()).collect();
        Announcement { losses: self.losses, sleepers: places.iter().map(of).collect(), queues }
    }

    /// An announcement stands; false when it was lost since it began. Who announced it looks for the sleepers.
    pub(super) fn promise(&mut self, announcement: &Announcement, sound_from: Horizon) -> bool {
        let now = Instant::now();
        if self.losses != announcement.losses {
            self.newcomers.extend(announcement.sleepers.iter().map(|(place, _)| place));
            return false;
        }
        for (place, rings) in &announcement.sleepers {
            let bed = &mut self.all[*place];
            bed.ticket = Some(if bed.rings == *rings { sound_from } else { Self::VOID });
            if bed.is_asleep && bed.needs_promise() {
                self.newcomers.push(*place);
            }
            if bed.is_asleep {
                bed.doubt(Self::AGAIN, now);
            } else {
                self.up.push_back((now, *place));
            }
        }
        true
    }

    /// Nothing could be announced for these: those whom it is time to look for.
    pub(super) fn refuse(&self, places: &[Place]) -> Vec<Place> {
        let now = Instant::now();
        places.iter().copied().filter(|place| self.all[*place].due <= now).collect()
    }

    /// Takes the announcements of those who have been up for long, and says when to ask again.
    pub(super) fn take_risen(&mut self) -> (Vec<QueueName>, Option<Instant>) {
        let (now, mut risen) = (Instant::now(), Vec::new());
        while let Some((since, place)) = self.up.front().copied() {
            if since + Self::LINGER > now {
                return (risen, Some(since + Self::LINGER));
            }
            self.up.pop_front();
            let bed = &mut self.all[place];
            if bed.is_asleep || bed.up_since > since {
                continue;
            }
            if bed.claims == Claims::First {
                // However slow, it is to be answered under the ticket under which it began.
                self.up.push_back((now, place));
            } else if bed.ticket.take().is_some() {
                bed.claimed_under = None;
                risen.push(bed.queue.clone());
            }
        }
        (risen, None)
    }

    /// All announcements are lost.
    pub(super) fn lose(&mut self) {
        let now = Instant::now();
        self.losses += 1;
        for (place, bed) in self.all.iter_mut().enumerate() {
            (bed.ticket, bed.claimed_under) = (None, None);
            if bed.is_asleep {
                bed.doubt(Duration::ZERO, now);
                self.newcomers.push(place);
            } else {
                bed.is_hinted = true;
            }
        }
    }

    /// Begins a look at those of `places` who sleep.
    pub(super) fn begin_look(&self, places: &[Place]) -> Look {
        let asleep = || places.iter().copied().filter(|place| self.all[*place].is_asleep);
        let sleeper = |place: Place| (place, self.all[place].nights, self.all[place].ticket);
        let queues = asleep().map(|place| self.all[place].queue.clone()).collect();
        Look { losses: self.losses, sleepers: asleep().map(sleeper).collect(), queues }
    }

    /// Ends a look: calls the sleepers of queues that are `waiting`, and lets the others sleep on.
    pub(super) fn end_look(&mut self, look: &Look, waiting: &[bool], horizon: Horizon) {
        // One draw for all, so that they are due together the next time as well.
        let (now, share) = (Instant::now(), share());
        for (index, (place, night, ticket)) in look.sleepers.iter().enumerate() {
            if !self.all[*place].is_asleep || self.all[*place].nights != *night {
                continue;
            }
            // A store that says nothing about a queue has not looked.
            if waiting.get(index).copied().unwrap_or(true) {
                self.call(*place);
            } else {
                let proof = ticket.filter(|_| look.losses == self.losses);
                self.all[*place].rest(proof, horizon, share, now);
            }
        }
    }

    /// A look failed: another after `pause`.
    pub(super) fn put_off(&mut self, look: &Look, pause: Duration) {
        let now = Instant::now();
        for (place, night, _) in &look.sleepers {
            let bed = &mut self.all[*place];
            if bed.is_asleep && bed.nights == *night {
                bed.doubt(pause, now);
            }
        }
    }

    /// Whom to look for now: all who are due, and all who have slept for half of their pause already, so that those who lay
    /// down one by one are looked for together.
    pub(super) fn round(&mut self) -> Round {
        let (now, mut round) = (Instant::now(), Round::default());
        for (place, bed) in self.all.iter().enumerate().filter(|(_, bed)| bed.is_asleep) {
            let is_due = bed.due <= now;
            if self.has_wakeups && bed.needs_promise() {
                if is_due {
                    self.newcomers.push(place);
                    round.has_newcomers = true;
                }
            } else if bed.due - bed.pause / 2 <= now {
                round.due.push(place);
                round.is_urgent |= is_due && (bed.unsound > 0 || bed.ticket.is_none());
            }
            // Who is to be announced first, and is not by then, is seen to again.
            let next = if is_due { now + Self::AGAIN } else { bed.due };
            round.next = Some(round.next.map_or(next, |earliest: Instant| earliest.min(next)));
        }
        if round.due.iter().all(|place| self.all[*place].due > now) {
            round.due.clear();
        }
        self.next_round = round.next;
        round
    }

    /// Whether somebody is due before the time at which the round means to come again.
    pub(super) fn is_due_sooner(&self, place: Place) -> bool {
        let bed = &self.all[place];
        bed.is_asleep && self.next_round.is_none_or(|next| bed.due < next)
    }

    fn get_up(&mut self, place: Place) {
        let bed = &mut self.all[place];
        if std::mem::take(&mut bed.is_asleep) {
            bed.up_since = Instant::now();
            bed.claims = Claims::NoneYet;
            if bed.ticket.is_some() {
                self.up.push_back((bed.up_since, place));
            }
        }
    }
}

impl Bed {
    /// It is to be announced, for the first time or anew.
    fn needs_promise(&self) -> bool {
        self.ticket.is_none_or(|ticket| ticket == Beds::VOID)
    }

    /// Sleeps on after a claim or a look that found nothing, began under `proof` and saw as far as `horizon`.
    fn rest(&mut self, proof: Option<Horizon>, horizon: Horizon, share: f64, now: Instant) {
        let is_sound = proof.is_some_and(|sound_from| horizon >= sound_from);
        if is_sound || self.ticket.is_none() {
            self.unsound = 0;
            self.pause_for(self.poll.mul_f64(share), now);
        } else {
            let longest = Beds::LONGEST.min(self.poll);
            let pause = Beds::SHORTEST.saturating_mul(1 << self.unsound.min(8)).min(longest);
            self.unsound += 1;
            self.pause_for(pause.mul_f64(0.8 * share), now);
        }
    }

    /// There may be something, whatever a look finds that is under way: another is due after `pause`.
    fn doubt(&mut self, pause: Duration, now: Instant) {
        self.nights += 1;
        self.pause_for(pause, now);
    }

    fn pause_for(&mut self, pause: Duration, now: Instant) {
        self.pause = pause;
        self.due = now + pause;
    }
}

/// What becomes of a pause, so that processes do not look in phase: 1, varied by a quarter.
fn share() -> f64 {
    varied(Duration::from_secs(1)).as_secs_f64()
}
