//! Claims and closures as sets of receipts: an attempt is open while `claimed - closed` contains its receipt.
//!
//! Nothing is ever marked: a claim appends one set, a closure appends another, and every question ("is it open?", "may
//! this partition go?", "what is stale?") is set algebra over the two. The receipts of a batch are contiguous, so a
//! batch that closes as a whole is one range and the sets stay short.

use std::collections::BTreeMap;
use std::fmt;
use std::iter::Peekable;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::id::{BatchId, ReceiptId};

/// The open attempts of a set of claims.
#[must_use]
pub fn open(claimed: &ReceiptSet, closed: &ReceiptSet) -> ReceiptSet {
    claimed.difference(closed)
}

/// What a closer that asks for some receipts gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    /// Open until now: these the closer ends, and only these may be written into history.
    pub granted: ReceiptSet,
    /// Claimed, but somebody else has closed them: the caller is stale for them.
    pub closed: ReceiptSet,
    /// Never claimed in this batch: a wrong slot, batch or index closes nothing.
    pub unknown: ReceiptSet,
}

/// Splits what a closer asks for by what is claimed and what is closed already. The three parts are disjoint and make
/// up `asked`.
pub fn admit(asked: &ReceiptSet, claimed: &ReceiptSet, closed: &ReceiptSet) -> Admission {
    let known = asked.intersection(claimed);
    Admission { granted: open(&known, closed), closed: known.intersection(closed), unknown: asked.difference(claimed) }
}

/// Single receipts, in any order and with repetitions, as one set for each batch, in the order in which closures are
/// written: two closers of the same attempts then wait for each other and never in a circle.
pub fn group_by_batch(receipts: impl IntoIterator<Item = ReceiptId>) -> BTreeMap<BatchId, ReceiptSet> {
    let mut groups: BTreeMap<BatchId, Vec<ReceiptId>> = BTreeMap::new();
    for receipt in receipts {
        groups.entry(receipt.batch()).or_default().push(receipt);
    }
    groups.into_iter().map(|(batch, receipts)| (batch, receipts.into_iter().collect())).collect()
}

/// A set of receipts, kept as sorted ranges that neither touch nor cross a batch.
///
/// The text form is that of PostgreSQL's `int8multirange` of half-open ranges, `{[1025,1028),[1030,1031)}`.
///
/// ```
/// # use awa_core::id::BatchId;
/// # use awa_core::receipt::{ReceiptSet, open};
/// let claimed = ReceiptSet::of_batch(BatchId(1), 5);
/// let closed: ReceiptSet = "{[1026,1027)}".parse().unwrap();
/// assert_eq!(open(&claimed, &closed).to_string(), "{[1025,1026),[1027,1030)}");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct ReceiptSet {
    /// Ascending; between two ranges at least one number is missing; a range holds receipts of one batch only.
    ranges: Vec<Run>,
}

/// Text that is not a set of receipts as PostgreSQL prints it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("receipt set text {text:?} refused: {problem}; expected {{[first,behind),[first,behind),...}}")]
pub struct BadReceiptSet {
    text: String,
    problem: &'static str,
}

/// The numbers from `first` to `last`, both included: with the end included, the largest number needs no successor.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Run {
    first: i64,
    last: i64,
}

impl ReceiptSet {
    /// The set without receipts.
    pub const fn new() -> Self {
        Self { ranges: Vec::new() }
    }

    /// The receipts of a whole batch of `count` members.
    ///
    /// # Panics
    ///
    /// When `count` is above [`ReceiptId::MAX_INDEX`] or the batch id does not fit a receipt.
    pub fn of_batch(batch: BatchId, count: u16) -> Self {
        let mut set = Self::new();
        if count > 0 {
            set.ranges.push(Run { first: ReceiptId::new(batch, 1).get(), last: ReceiptId::new(batch, count).get() });
        }
        set
    }

    /// Whether there is no receipt.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The number of receipts.
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(|run| run.last.abs_diff(run.first) + 1).sum()
    }

    /// Whether the set has this receipt.
    pub fn contains(&self, receipt: ReceiptId) -> bool {
        let behind = self.ranges.partition_point(|run| run.first <= receipt.get());
        behind > 0 && receipt.get() <= self.ranges[behind - 1].last
    }

    /// The receipts, ascending.
    pub fn iter(&self) -> impl Iterator<Item = ReceiptId> + '_ {
        self.ranges.iter().flat_map(|run| run.first..=run.last).map(receipt)
    }

    /// The ranges, ascending, first and last receipt included.
    pub fn ranges(&self) -> impl Iterator<Item = RangeInclusive<ReceiptId>> + '_ {
        self.ranges.iter().map(|run| receipt(run.first)..=receipt(run.last))
    }

    /// The set as one set for each batch.
    pub fn by_batch(&self) -> BTreeMap<BatchId, Self> {
        let mut batches: BTreeMap<BatchId, Self> = BTreeMap::new();
        for run in &self.ranges {
            batches.entry(receipt(run.first).batch()).or_default().ranges.push(*run);
        }
        batches
    }

    /// What is in one of the sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut all: Vec<Run> = self.ranges.iter().chain(&other.ranges).copied().collect();
        all.sort_unstable_by_key(|run| run.first);
        let mut set = Self::new();
        for run in all {
            set.push(run);
        }
        set
    }

    /// What is in this set and not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut set = Self::new();
        let mut holes = other.ranges.iter().peekable();
        for run in &self.ranges {
            set.push_with_holes(*run, &mut holes);
        }
        set
    }

    /// What is in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut set = Self::new();
        let (mut left, mut right) = (self.ranges.iter().peekable(), other.ranges.iter().peekable());
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            let (first, last) = (a.first.max(b.first), a.last.min(b.last));
            if first <= last {
                set.push(Run { first, last });
            }
            if a.last < b.last {
                left.next()
            } else {
                right.next()
            };
        }
        set
    }

    /// Adds a range that begins no earlier than the last one, joining the two when they touch.
    fn push(&mut self, run: Run) {
        match self.ranges.last_mut() {
            // The numbers of two batches never touch, because index 0 is not a receipt.
            Some(end) if run.first <= end.last.saturating_add(1) => end.last = end.last.max(run.last),
            _ => self.ranges.push(run),
        }
    }

    /// Adds the parts of `run` outside the ascending `holes`, leaving in place the hole that may reach into the next run.
    fn push_with_holes<'a>(&mut self, run: Run, holes: &mut Peekable<impl Iterator<Item = &'a Run>>) {
        let mut first = run.first;
        while let Some(hole) = holes.peek().filter(|hole| hole.first <= run.last) {
            if first < hole.first {
                self.push(Run { first, last: hole.first - 1 });
            }
            if hole.last >= run.last {
                return;
            }
            first = first.max(hole.last + 1);
            holes.next();
        }
        self.push(Run { first, last: run.last });
    }
}

impl FromIterator<ReceiptId> for ReceiptSet {
    fn from_iter<T: IntoIterator<Item = ReceiptId>>(receipts: T) -> Self {
        let mut numbers: Vec<i64> = receipts.into_iter().map(ReceiptId::get).collect();
        numbers.sort_unstable();
        let mut set = Self::new();
        for number in numbers {
            set.push(Run { first: number, last: number });
        }
        set
    }
}

impl fmt::Display for ReceiptSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (position, run) in self.ranges.iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            write!(f, "{comma}[{},{})", run.first, i128::from(run.last) + 1)?;
        }
        f.write_str("}")
    }
}

impl fmt::Debug for ReceiptSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReceiptSet({self})")
    }
}

impl FromStr for ReceiptSet {
    type Err = BadReceiptSet;

    fn from_str(text: &str) -> Result<Self, BadReceiptSet> {
        parse(text).map_err(|problem| BadReceiptSet { text: text.to_owned(), problem })
    }
}

/// A number that is known to lie in a range of a set.
fn receipt(number: i64) -> ReceiptId {
    ReceiptId::from_raw(number).expect("a set holds numbers of receipts only")
}

fn parse(text: &str) -> Result<ReceiptSet, &'static str> {
    let list = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).ok_or("it is not in braces")?;
    let mut set = ReceiptSet::new();
    if list.is_empty() {
        return Ok(set);
    }
    let list = list.strip_prefix('[').and_then(|rest| rest.strip_suffix(')')).ok_or("a range is not half-open")?;
    for range in list.split("),[") {
        let run = parse_run(range)?;
        match set.ranges.last() {
            Some(end) if run.first <= end.last.saturating_add(1) => return Err("the ranges touch or are not in order"),
            _ => set.ranges.push(run),
        }
    }
    Ok(set)
}

fn parse_run(range: &str) -> Result<Run, &'static str> {
    let (first, behind) = range.split_once(',').ok_or("a range does not have two ends")?;
    let first = i64::try_from(parse_end(first).ok_or("a range does not begin with a number")?)
        .map_err(|_| "a range begins outside 64 bits")?;
    let behind = parse_end(behind).ok_or("a range does not end with a number")?;
    let last = behind.checked_sub(1).and_then(|last| i64::try_from(last).ok()).ok_or("a range ends outside 64 bits")?;
    match (ReceiptId::from_raw(first), ReceiptId::from_raw(last)) {
        _ if last < first => Err("a range is empty"),
        (Some(begin), Some(end)) if begin.batch() == end.batch() => Ok(Run { first, last }),
        _ => Err("a range holds a number that no batch issued"),
    }
}

/// A number without a sign or zeros that PostgreSQL does not print, wide enough for the successor of the largest receipt.
fn parse_end(text: &str) -> Option<i128> {
    let is_as_printed = text == "0" || !text.starts_with(['+', '0']);
    text.parse().ok().filter(|_| is_as_printed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> ReceiptSet {
        text.parse().unwrap()
    }

    #[test]
    fn text_that_postgres_prints_comes_back_unchanged() {
        for text in ["{}", "{[1,2)}", "{[1025,1028),[1030,1031)}", "{[1025,2048),[2049,2050)}"] {
            assert_eq!(set(text).to_string(), text);
        }
    }

    #[test]
    fn broken_text_is_refused_with_the_reason() {
        for (text, problem) in [
            ("", "braces"),
            ("{[1,2)", "braces"),
            ("{(1,2)}", "half-open"),
            ("{[1,2]}", "half-open"),
            ("{[1,2),}", "half-open"),
            ("{[1)}", "two ends"),
            ("{[,2)}", "begin"),
            ("{[1,)}", "end with"),
            ("{[1,99999999999999999999)}", "outside 64 bits"),
            ("{[99999999999999999999,1)}", "outside 64 bits"),
            ("{[1,-170141183460469231731687303715884105728)}", "outside 64 bits"),
            ("{[+1,2)}", "begin"),
            ("{[1,02)}", "end with"),
            ("{[2,2)}", "empty"),
            ("{[3,2)}", "empty"),
            ("{[0,2)}", "no batch"),
            ("{[-5,2)}", "no batch"),
            ("{[1,1025)}", "no batch"),
            ("{[1023,1026)}", "no batch"),
            ("{[1,2),[2,3)}", "touch"),
            ("{[4,5),[1,2)}", "order"),
            ("{[1,4),[2,3)}", "order"),
        ] {
            let refusal = text.parse::<ReceiptSet>().unwrap_err().to_string();
            assert!(refusal.contains(problem), "{text:?} gave {refusal}");
        }
    }

    #[test]
    fn a_batch_is_one_range_and_full_neighbours_stay_apart() {
        let (one, two) = (ReceiptSet::of_batch(BatchId(1), 1023), ReceiptSet::of_batch(BatchId(2), 3));
        assert_eq!(one.to_string(), "{[1025,2048)}");
        assert_eq!((one.len(), two.len()), (1023, 3));
        let both = one.union(&two);
        assert_eq!(both.to_string(), "{[1025,2048),[2049,2052)}");
        assert_eq!(both.by_batch(), BTreeMap::from([(BatchId(1), one), (BatchId(2), two)]));
        assert!(ReceiptSet::of_batch(BatchId(9), 0).is_empty());
    }

    #[test]
    fn the_largest_receipt_has_no_successor_and_does_no_harm() {
        let last = ReceiptId::new(BatchId(ReceiptId::MAX_BATCH), ReceiptId::MAX_INDEX);
        let whole = ReceiptSet::of_batch(BatchId(ReceiptId::MAX_BATCH), ReceiptId::MAX_INDEX);
        let end: ReceiptSet = [last, last].into_iter().collect();
        assert_eq!(whole.difference(&end).len(), 1022);
        assert_eq!(whole.difference(&end).union(&end), whole);
        assert_eq!(set(&end.to_string()), end);
    }

    #[test]
    fn single_receipts_become_one_set_for_each_batch() {
        let receipts =
            [(3, 2), (1, 1), (3, 1), (1, 3), (3, 2)].map(|(batch, index)| ReceiptId::new(BatchId(batch), index));
        let groups = group_by_batch(receipts);
        let texts: Vec<(i64, String)> = groups.iter().map(|(batch, set)| (batch.get(), set.to_string())).collect();
        assert_eq!(texts, [(1, "{[1025,1026),[1027,1028)}".to_owned()), (3, "{[3073,3075)}".to_owned())]);
    }
}
