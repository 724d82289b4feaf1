//! Rescue sweeps: single passes step by step, and random histories in which every stale claim must be found.

use std::collections::BTreeMap;

use awa_core::id::BatchId;
use awa_core::sweep::{
    BatchKey, Evidence, RescueOutcome, Sweep, SweepCursor, SweepKind, SweepLimits, SweepReport, Visited,
};
use awa_core::time::Timestamp;
use proptest::prelude::*;

fn key(number: i64) -> BatchKey {
    BatchKey { at: Timestamp::from_micros(number), batch: BatchId(number) }
}

/// A slot whose claims are written as one letter each: `.` closed, `m` materialised, `a` alive, `x` open and stale,
/// `!` the same but contended, `r` the same but lost to a race, `n` too new.
fn claims(slot: &str) -> Vec<(BatchKey, char)> {
    slot.chars().enumerate().map(|(at, letter)| (key(at as i64), letter)).collect()
}

fn visited((key, letter): (BatchKey, char)) -> Visited<BatchKey> {
    let evidence = match letter {
        '.' => Evidence::Closed,
        'm' => Evidence::Materialised,
        'a' => Evidence::Alive,
        _ => Evidence::Open,
    };
    Visited { key, too_new: letter == 'n', evidence }
}

fn outcome(letter: char) -> RescueOutcome {
    match letter {
        '!' => RescueOutcome::Contended,
        'r' => RescueOutcome::LostRace,
        _ => RescueOutcome::Closed,
    }
}

struct Pass {
    cursor: SweepCursor<BatchKey>,
    report: SweepReport,
    /// The claims visited, in order.
    seen: Vec<i64>,
    /// The claims handed to the rescue, in order.
    tried: Vec<i64>,
}

fn pass(kind: SweepKind, claims: &[(BatchKey, char)], cursor: SweepCursor<BatchKey>, limits: SweepLimits) -> Pass {
    let mut sweep = Sweep::begin(kind, cursor, limits);
    let (mut seen, mut tried) = (Vec::new(), Vec::new());
    while let Some(asked) = sweep.next_page() {
        let wanted = |key: BatchKey| {
            asked.after.is_none_or(|after| key > after) && asked.through.is_none_or(|through| key <= through)
        };
        let items: Vec<(BatchKey, char)> =
            claims.iter().copied().filter(|(key, _)| wanted(*key)).take(asked.limit).collect();
        let new = items.iter().position(|(_, letter)| *letter == 'n').unwrap_or(items.len());
        seen.extend(items[..new].iter().map(|(key, _)| key.batch.get()));
        let letters: BTreeMap<BatchKey, char> = items.iter().copied().collect();
        let page = sweep.visit(items.into_iter().map(visited).collect());
        let rescues: Vec<BatchKey> = page.to_rescue().collect();
        tried.extend(rescues.iter().map(|key| key.batch.get()));
        sweep = page.settle(&rescues.iter().map(|key| (*key, outcome(letters[key]))).collect());
    }
    let (cursor, report) = sweep.finish();
    Pass { cursor, report, seen, tried }
}

fn stale(slot: &str, at: Option<i64>) -> Pass {
    let cursor = SweepCursor { at: at.map(key), resume: None };
    pass(SweepKind::Stale, &claims(slot), cursor, SweepLimits::new(2, 20))
}

#[test]
fn a_pass_goes_past_what_is_exempt_and_rescues_what_is_open() {
    let pass = stale(".max.x.", None);
    assert_eq!((pass.tried, pass.report.rescued, pass.report.visited), (vec![3, 5], 2, 7));
    assert!(pass.report.complete);
    assert_eq!(pass.cursor, SweepCursor::default(), "at the end the cursor goes back to the start");
}

#[test]
fn a_pass_wraps_and_stops_where_it_began() {
    let pass = stale("....a.", Some(2));
    assert_eq!(pass.seen, [3, 4, 5, 0, 1, 2]);
    assert_eq!((pass.cursor.at, pass.report.complete), (Some(key(2)), true));
}

#[test]
fn what_is_too_new_is_not_visited_and_sends_the_pass_back_to_the_start() {
    let pass = stale("x.x.nnnn", Some(1));
    assert_eq!(pass.seen, [2, 3, 0, 1]);
    assert_eq!((pass.tried, pass.report.rescued), (vec![2, 0], 2));
    let all_new = stale("nnnn", None);
    assert_eq!((all_new.seen, all_new.report.complete), (vec![], true));
}

#[test]
fn the_cursor_stays_before_a_claim_that_was_not_closed_while_the_visit_goes_on() {
    let pass = stale("..!x.x", None);
    assert_eq!(pass.tried, [2, 3, 5]);
    assert_eq!((pass.report.rescued, pass.report.contended), (2, 1));
    assert_eq!(pass.cursor, SweepCursor { at: Some(key(1)), resume: None });
    let first = stale("!.x", None);
    assert_eq!((first.cursor.at, first.tried), (None, vec![0, 2]));
    let wrapped = stale(".!..x", Some(2));
    assert_eq!((wrapped.cursor.at, wrapped.tried), (Some(key(0)), vec![4, 1]));
}

#[test]
fn a_claim_that_somebody_else_closed_first_is_passed() {
    let pass = stale("..rn", None);
    assert_eq!((pass.report.lost_races, pass.report.contended, pass.report.rescued), (1, 0, 0));
    let bounded = pass_with_pages("rrrrrrrr", SweepCursor::default());
    assert_eq!(bounded.cursor, SweepCursor { at: Some(key(5)), resume: None });
}

#[test]
fn a_claim_that_was_not_tried_holds_the_cursor() {
    let sweep = Sweep::begin(SweepKind::Stale, SweepCursor::default(), SweepLimits::new(4, 3));
    let sweep = sweep.visit(claims(".x.").into_iter().map(visited).collect()).settle(&BTreeMap::new());
    let (cursor, report) = sweep.finish();
    assert_eq!((cursor.at, report.contended), (Some(key(0)), 1));
}

#[test]
fn a_deadline_spares_nobody_for_being_alive() {
    let limits = SweepLimits::new(10, 3);
    let pass = pass(SweepKind::Deadline, &claims(".ma!n"), SweepCursor::default(), limits);
    assert_eq!((pass.tried, pass.report.rescued), (vec![2, 3], 1));
    assert_eq!(pass.cursor.at, Some(key(2)));
}

fn pass_with_pages(slot: &str, cursor: SweepCursor<BatchKey>) -> Pass {
    pass(SweepKind::Stale, &claims(slot), cursor, SweepLimits::new(2, 3))
}

#[test]
fn a_pass_that_reaches_its_limit_goes_on_next_time() {
    let slot = "..........x.";
    let first = pass_with_pages(slot, SweepCursor::default());
    assert_eq!((first.report.complete, first.cursor.at, first.cursor.resume), (false, Some(key(5)), None));
    assert_eq!(pass_with_pages(slot, first.cursor).tried, [10]);
}

#[test]
fn a_held_claim_does_not_hide_what_lies_behind_thousands_of_live_ones() {
    let slot = format!("!{}x", "a".repeat(5_000));
    let limits = SweepLimits::new(500, 3);
    let (mut cursor, mut passes) = (SweepCursor::default(), 0);
    let tried = loop {
        let pass = pass(SweepKind::Stale, &claims(&slot), cursor, limits);
        cursor = pass.cursor;
        passes += 1;
        assert_eq!(cursor.at, None, "the held claim comes first every time");
        assert!(pass.tried.contains(&0));
        if pass.tried.contains(&5_001) {
            break pass.tried;
        }
        assert!(passes < 20);
    };
    assert_eq!((tried, passes), (vec![0, 5_001], 5));
}

#[test]
fn a_pass_that_ends_just_at_the_wrap_finds_what_lies_at_the_start_next_time() {
    // The held claim is followed by exactly as many as one pass visits, so that each pass ends at the end of the slot.
    let slot = "x.!..a.";
    let mut cursor = SweepCursor { at: Some(key(1)), resume: None };
    let first = pass_with_pages(slot, cursor);
    assert_eq!((first.seen, first.report.complete), (vec![2, 3, 4, 5, 6], false));
    cursor = first.cursor;
    let second = pass_with_pages(slot, cursor);
    assert_eq!(second.tried, [2, 0]);
}

#[test]
fn a_released_claim_does_not_let_the_cursor_jump_over_one_that_is_still_held() {
    let first = pass_with_pages("!..!....aaaaa", SweepCursor::default());
    assert_eq!(first.cursor, SweepCursor { at: None, resume: Some(key(5)) });
    // The first claim can be had by now; the cursor may move up to the other one, which this pass has not seen yet.
    let second = pass_with_pages("x..!....aaaaa", first.cursor);
    assert_eq!((second.seen, second.tried), (vec![0, 1, 6, 7, 8, 9], vec![0]));
    assert_eq!(second.cursor, SweepCursor { at: Some(key(1)), resume: Some(key(9)) });
    let third = pass_with_pages("...!....aaaaa", second.cursor);
    assert_eq!((third.tried, third.cursor.at), (vec![3], Some(key(2))));
}

#[test]
#[should_panic(expected = "outside the keys asked for")]
fn a_page_that_was_not_asked_for_is_refused() {
    let cursor = SweepCursor { at: Some(key(3)), resume: None };
    let _ = Sweep::begin(SweepKind::Stale, cursor, SweepLimits::default())
        .visit(claims("....x").into_iter().map(visited).collect());
}

#[test]
fn a_batch_shows_its_most_urgent_member() {
    use Evidence::{Alive, Closed, Materialised, Open};
    assert_eq!(Evidence::of_members([Closed, Open, Alive]), Open);
    assert_eq!(Evidence::of_members([Closed, Alive, Materialised]), Alive);
    assert_eq!(Evidence::of_members([Materialised, Closed]), Materialised);
    assert_eq!(Evidence::of_members([]), Closed);
}

/// The fate of one claim, in ticks after its claim.
#[derive(Debug, Clone)]
struct Fate {
    /// Its worker beats so long.
    alive: usize,
    /// Its worker closes it then, if it still can.
    closes: Option<usize>,
    /// A session is in its way so long.
    contended: usize,
    /// It commits late: its time is so many ticks before its arrival.
    late: usize,
}

fn fate() -> impl Strategy<Value = Fate> {
    let closes = prop_oneof![4 => (0usize..20).prop_map(Some), 2 => Just(None)];
    let contended = prop_oneof![6 => Just(0), 2 => 0usize..80, 1 => Just(usize::MAX / 2)];
    let alive = prop_oneof![3 => 0usize..30, 1 => 30usize..200];
    (alive, closes, contended, prop_oneof![4 => Just(0), 1 => 0usize..40])
        .prop_map(|(alive, closes, contended, late)| Fate { alive, closes, contended, late })
}

const STALENESS: usize = 10;

struct Claim {
    arrival: usize,
    fate: Fate,
    closed: bool,
}

impl Claim {
    fn closes_at(&self) -> Option<usize> {
        self.fate.closes.filter(|after| *after <= self.fate.alive).map(|after| self.arrival + after)
    }

    fn letter(&self, now: usize) -> char {
        if self.closed {
            '.'
        } else if now < self.arrival - self.fate.late.min(self.arrival) + STALENESS {
            'n'
        } else if now < self.arrival + self.fate.alive + STALENESS {
            'a'
        } else if now < self.arrival.saturating_add(self.fate.contended) {
            '!'
        } else {
            'x'
        }
    }

    /// The tick from which on a sweep that visits it closes it.
    fn rescuable_from(&self) -> usize {
        let silent = self.arrival + self.fate.alive + STALENESS;
        silent.max(self.arrival.saturating_add(self.fate.contended))
    }
}

fn claim_key(number: usize, claim: &Claim) -> BatchKey {
    let at = claim.arrival.saturating_sub(claim.fate.late);
    BatchKey { at: Timestamp::from_micros(at as i64), batch: BatchId(number as i64) }
}

/// Whether the cursor moved over `claim` when it went forward from `old` to `new`, through the wrap if need be. Where it
/// did not move at all, or went all around, it moved over none.
fn moved_over(old: Option<BatchKey>, new: Option<BatchKey>, claim: BatchKey) -> bool {
    let (behind_old, up_to_new) = (old.is_none_or(|old| claim > old), new.is_some_and(|new| claim <= new));
    match (old, new) {
        _ if old == new => false,
        (_, None) => behind_old,
        (Some(old), Some(new)) if new < old => behind_old || up_to_new,
        _ => behind_old && up_to_new,
    }
}

fn check_every_stale_claim_is_rescued(fates: &[Fate], page: usize, pages: usize) -> Result<(), TestCaseError> {
    // One claim arrives with each tick. Each pass brings the visit forward by all its pages but the first, which looks at
    // the claim that holds the cursor, while the end moves away by one claim. The two passes more are those that begin
    // and end a round, and the wrap.
    let forward = page * (pages - 1) - 1;
    let round = |claims: usize| claims.div_ceil(forward) + 2;
    let ticks = fates.len() + 300;
    let mut claims: Vec<Claim> = Vec::new();
    let mut cursor = SweepCursor::default();
    for now in 0..ticks {
        // Fresh claims go on arriving to the end; they repeat the fates.
        claims.push(Claim { arrival: now, fate: fates[now % fates.len()].clone(), closed: false });
        for claim in &mut claims {
            claim.closed |= claim.closes_at().is_some_and(|at| at <= now);
        }
        let mut slot: Vec<(BatchKey, char)> =
            claims.iter().enumerate().map(|(at, claim)| (claim_key(at, claim), claim.letter(now))).collect();
        slot.sort_unstable_by_key(|(key, _)| *key);
        let pass = pass(SweepKind::Stale, &slot, cursor, SweepLimits::new(page, pages));
        prop_assert!(pass.report.visited <= page * pages);
        let letters: BTreeMap<i64, char> = slot.iter().map(|(key, letter)| (key.batch.get(), *letter)).collect();
        for number in pass.tried {
            let letter = letters[&number];
            prop_assert!(matches!(letter, 'x' | '!'), "{} was tried as {}", number, letter);
            claims[number as usize].closed |= letter == 'x';
        }
        for (key, letter) in &slot {
            let open = matches!(letter, 'x' | '!') && !claims[key.batch.get() as usize].closed;
            prop_assert!(
                !open || !moved_over(cursor.at, pass.cursor.at, *key),
                "the cursor left {key:?} behind at {now}"
            );
        }
        cursor = pass.cursor;
        // Two rounds: the one in which it was passed while alive, and the one in which it is found.
        let bound = 2 * round(claims.len());
        for (number, claim) in claims.iter().enumerate() {
            let due = claim.rescuable_from().saturating_add(bound);
            prop_assert!(claim.closed || now <= due, "claim {} {:?} is forgotten at {}", number, claim.fate, now);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn every_stale_claim_is_rescued_while_fresh_ones_arrive_and_some_are_contended(
        fates in prop::collection::vec(fate(), 1..80),
        page in 3usize..8,
        pages in 3usize..6,
    ) {
        check_every_stale_claim_is_rescued(&fates, page, pages)?;
    }
}
