//! Finding claims whose worker is gone, without reading everything again and again.
//!
//! Each slot has one cursor for stale claims, ordered by the time of the claim, and one for expired deadlines, ordered by
//! the deadline. A [`Sweep`] is one pass: it visits pages from the cursor on and goes around at the end. It does not
//! visit what is too new. It passes what is closed, materialised or, for staleness, alive; what is open it tries to
//! rescue. The cursor stays before the first claim that could not be closed, so that the next pass comes back to it at
//! once, while the visit goes on behind it: a closer that hangs delays nobody else.
//!
//! A pass is bounded by [`SweepLimits`]. When the limit ends it while the cursor is held, [`SweepCursor::resume`]
//! remembers how far the visit came. The next pass looks at the held claim first and then goes on from there, so that
//! neither a claim that is held for hours nor thousands of exempt ones hide what lies behind them.

mod cause;
mod life;

use std::collections::BTreeMap;

use crate::id::{BatchId, JobId, RunLease};
use crate::time::Timestamp;

pub use cause::RescueCause;
pub use life::{Beats, LifeSigns, RescuerHealth};

/// The order of compact claims in a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchKey {
    /// The time of the claim, or the deadline.
    pub at: Timestamp,
    /// The batch.
    pub batch: BatchId,
}

/// The order of row-local claims in a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowLocalKey {
    /// The time of the claim, or the deadline.
    pub at: Timestamp,
    /// The job.
    pub job: JobId,
    /// The attempt.
    pub run_lease: RunLease,
}

/// What a sweep looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SweepKind {
    /// Claims without a sign of life for the staleness time.
    Stale,
    /// Claims whose deadline has passed, alive or not.
    Deadline,
}

/// What is known of a visited claim. Of a batch with several members, the last of these that one member shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Evidence {
    /// It has ended.
    Closed,
    /// It goes on as a lease, which is rescued elsewhere.
    Materialised,
    /// It is open, and its worker or the attempt itself was seen within the staleness time.
    Alive,
    /// It is open without a sign of life.
    Open,
}

impl Evidence {
    /// What a batch shows whose members show this.
    pub fn of_members(members: impl IntoIterator<Item = Self>) -> Self {
        members.into_iter().max().unwrap_or(Self::Closed)
    }
}

/// One claim of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Visited<K> {
    /// Its place in the order of the sweep.
    pub key: K,
    /// Whether it is too new to be a candidate, together with everything behind it. Such a claim ends the page.
    pub too_new: bool,
    /// What is known of it.
    pub evidence: Evidence,
}

/// How the rescue of a claim ended. Of a batch with several members, the last of these that one member met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RescueOutcome {
    /// The rescue closed it.
    Closed,
    /// Somebody else had closed it before.
    LostRace,
    /// Somebody is in the way; maintenance does not wait.
    Contended,
}

/// Where a sweep stands between two passes; the default is the start of the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SweepCursor<K> {
    /// Everything up to this key is passed in this round; `None` is the start.
    pub at: Option<K>,
    /// How far the last pass visited while the cursor stayed behind; `None` when it did not, or the round was complete.
    pub resume: Option<K>,
}

impl<K> Default for SweepCursor<K> {
    fn default() -> Self {
        Self { at: None, resume: None }
    }
}

/// The bounds of one pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SweepLimits {
    page: usize,
    pages: usize,
}

impl SweepLimits {
    /// The fewest pages of a pass: one for the claim that holds the cursor, one to reach the end, one behind the wrap.
    /// With fewer, a claim that is held could hide others for ever.
    pub const MIN_PAGES: usize = 3;

    /// At most `pages` pages of `page` claims each.
    ///
    /// # Panics
    ///
    /// When a page is empty or there are fewer than [`Self::MIN_PAGES`]: such a sweep would starve claims.
    pub fn new(page: usize, pages: usize) -> Self {
        assert!(page > 0, "a sweep page must hold a claim");
        assert!(pages >= Self::MIN_PAGES, "a sweep pass needs at least {} pages, not {pages}", Self::MIN_PAGES);
        Self { page, pages }
    }

    /// The bounds of a pass that visits about `visits` claims, at least one a page, in four pages.
    pub fn for_visits(visits: usize) -> Self {
        const PAGES: usize = 4;
        Self::new(visits.div_ceil(PAGES).max(1), PAGES)
    }
}

impl Default for SweepLimits {
    /// 8 pages of 128 batches.
    fn default() -> Self {
        Self { page: 128, pages: 8 }
    }
}

/// The next claims that a pass wants to see, ascending: those behind `after`, up to and including `through`, at most
/// `limit`. A shorter answer means that there are no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PageRequest<K> {
    /// Only claims behind this key; `None` is from the start.
    pub after: Option<K>,
    /// Only claims up to this key; `None` is to the end.
    pub through: Option<K>,
    /// The largest number of claims.
    pub limit: usize,
}

/// What one pass did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SweepReport {
    /// Claims visited.
    pub visited: usize,
    /// Claims that the rescue closed.
    pub rescued: usize,
    /// Claims that somebody else closed first.
    pub lost_races: usize,
    /// Claims that somebody was in the way of.
    pub contended: usize,
    /// Whether the pass went all around; else its limit ended it, and the next one goes on.
    pub complete: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Leg {
    /// From the cursor to the end.
    Forward,
    /// From the start to where the pass began.
    Wrapped,
    /// All around.
    Done,
}

/// One pass of a sweep. Ask for pages with [`Self::next_page`] until there is none, answer each with
/// [`Self::visit`], and store what [`Self::finish`] returns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sweep<K> {
    kind: SweepKind,
    limits: SweepLimits,
    origin: Option<K>,
    cursor: Option<K>,
    /// The cursor stays where it is for the rest of the pass.
    held: bool,
    /// Where the last pass was ended; taken after the first page.
    resume: Option<K>,
    leg: Leg,
    visit: Option<K>,
    /// The last key of the forward leg.
    turned_at: Option<K>,
    pages: usize,
    report: SweepReport,
}

/// A visited page that waits for the outcomes of its rescues.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[must_use = "the sweep goes on when the page is settled"]
pub struct Page<K> {
    sweep: Sweep<K>,
    items: Vec<Visited<K>>,
    is_last: bool,
}

impl<K: Copy + Ord> Sweep<K> {
    /// A pass that goes on where `cursor` stands.
    pub fn begin(kind: SweepKind, cursor: SweepCursor<K>, limits: SweepLimits) -> Self {
        Self {
            kind,
            limits,
            origin: cursor.at,
            cursor: cursor.at,
            held: false,
            resume: cursor.resume,
            leg: Leg::Forward,
            visit: cursor.at,
            turned_at: None,
            pages: 0,
            report: SweepReport::default(),
        }
    }

    /// The page to read next, or `None` when the pass is over.
    pub fn next_page(&self) -> Option<PageRequest<K>> {
        let through = match self.leg {
            Leg::Done => return None,
            Leg::Forward => None,
            Leg::Wrapped => self.origin,
        };
        (self.pages < self.limits.pages).then_some(PageRequest { after: self.visit, through, limit: self.limits.page })
    }

    /// Takes the answer to [`Self::next_page`].
    ///
    /// # Panics
    ///
    /// When the pass is over, or the answer is not what was asked for: the cursor would skip claims.
    pub fn visit(mut self, mut items: Vec<Visited<K>>) -> Page<K> {
        let asked = self.next_page().expect("a sweep visits only pages that it asked for");
        assert!(items.len() <= asked.limit, "a sweep page holds {} claims instead of {}", items.len(), asked.limit);
        assert!(items.is_sorted_by(|a, b| a.key < b.key), "a sweep page is not in order");
        assert!(
            items.iter().all(|item| asked.after.is_none_or(|after| item.key > after)
                && asked.through.is_none_or(|through| item.key <= through)),
            "a sweep page holds a claim outside the keys asked for"
        );
        let is_last = items.len() < asked.limit || items.iter().any(|item| item.too_new);
        items.truncate(items.iter().position(|item| item.too_new).unwrap_or(items.len()));
        self.pages += 1;
        self.report.visited += items.len();
        Page { sweep: self, items, is_last }
    }

    /// Where the next pass goes on, and what this one did.
    pub fn finish(mut self) -> (SweepCursor<K>, SweepReport) {
        self.report.complete = self.leg == Leg::Done;
        // A limit that ends the pass just when it wrapped leaves the end as the place to go on from: the next pass
        // finds nothing behind it and wraps at once.
        let resume = if self.held && !self.report.complete { self.visit.or(self.turned_at) } else { None };
        (SweepCursor { at: self.cursor, resume }, self.report)
    }

    fn is_exempt(&self, evidence: Evidence) -> bool {
        match evidence {
            Evidence::Closed | Evidence::Materialised => true,
            Evidence::Alive => self.kind == SweepKind::Stale,
            Evidence::Open => false,
        }
    }

    /// The end of a leg: behind the last claim comes the first.
    fn turn(&mut self) {
        if !self.held && self.leg == Leg::Forward {
            self.cursor = None;
        }
        if self.leg == Leg::Forward && self.origin.is_some() {
            self.leg = Leg::Wrapped;
            self.turned_at = self.visit.take();
        } else {
            self.leg = Leg::Done;
        }
    }

    /// Behind the first page of a resumed pass: on to where the last one was ended by its limit, leaving the cursor
    /// where the page brought it, also when the claim that held it is gone by now. The visit thus goes around steadily,
    /// however many claims are held one after the other, and the cursor follows. False when there is nowhere to go.
    fn jump(&mut self) -> bool {
        let Some(resume) = self.resume.take() else { return false };
        if self.origin.is_some_and(|origin| resume <= origin) {
            self.leg = Leg::Wrapped;
        } else if self.visit.is_some_and(|visit| resume <= visit) {
            return false;
        }
        self.visit = Some(resume);
        self.held = true;
        true
    }
}

impl<K: Copy + Ord> Page<K> {
    /// The claims to rescue, in order. A rescue re-checks each under its own guard and never waits.
    pub fn to_rescue(&self) -> impl Iterator<Item = K> + '_ {
        self.items.iter().filter(|item| !self.sweep.is_exempt(item.evidence)).map(|item| item.key)
    }

    /// Goes on with the outcomes of the rescues; a claim without an outcome was not tried and counts as contended.
    pub fn settle(self, outcomes: &BTreeMap<K, RescueOutcome>) -> Sweep<K> {
        let Self { mut sweep, items, is_last } = self;
        for item in &items {
            let closed = sweep.is_exempt(item.evidence) || {
                let outcome = outcomes.get(&item.key).copied().unwrap_or(RescueOutcome::Contended);
                sweep.report.count(outcome);
                outcome != RescueOutcome::Contended
            };
            sweep.held |= !closed;
            if !sweep.held {
                sweep.cursor = Some(item.key);
            }
            sweep.visit = Some(item.key);
        }
        if !sweep.jump() && is_last {
            sweep.turn();
        }
        sweep
    }
}

impl SweepReport {
    fn count(&mut self, outcome: RescueOutcome) {
        match outcome {
            RescueOutcome::Closed => self.rescued += 1,
            RescueOutcome::LostRace => self.lost_races += 1,
            RescueOutcome::Contended => self.contended += 1,
        }
    }
}
