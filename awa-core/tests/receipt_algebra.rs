//! The algebra of receipt sets against ordinary sets: every pair of small sets, and random large ones.

use std::collections::BTreeSet;

use awa_core::id::{BatchId, ReceiptId};
use awa_core::receipt::{Admission, ReceiptSet, admit, group_by_batch, open};
use proptest::prelude::*;

/// Five receipts at the end of one batch and four at the start of the next, so that a border lies in the middle.
fn small_domain() -> Vec<ReceiptId> {
    let end = (1019..=1023).map(|index| ReceiptId::new(BatchId(0), index));
    end.chain((1..=4).map(|index| ReceiptId::new(BatchId(1), index))).collect()
}

fn subsets() -> Vec<BTreeSet<ReceiptId>> {
    let domain = small_domain();
    (0..1_usize << domain.len())
        .map(|mask| domain.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1).map(|(_, id)| *id).collect())
        .collect()
}

fn naive(set: &ReceiptSet) -> BTreeSet<ReceiptId> {
    set.iter().collect()
}

fn check_pair(a: &BTreeSet<ReceiptId>, b: &BTreeSet<ReceiptId>) {
    let (x, y): (ReceiptSet, ReceiptSet) = (a.iter().copied().collect(), b.iter().copied().collect());
    for (got, expected) in
        [(x.union(&y), a | b), (x.difference(&y), a - b), (open(&x, &y), a - b), (x.intersection(&y), a & b)]
    {
        // Equality with a set built from single receipts proves that the result is canonical as well.
        assert_eq!(got, expected.iter().copied().collect::<ReceiptSet>(), "{x} and {y}");
    }
}

fn check_one(a: &BTreeSet<ReceiptId>, outsiders: &[ReceiptId]) {
    let set: ReceiptSet = a.iter().rev().copied().collect();
    assert_eq!(naive(&set), *a);
    assert_eq!(set.len(), a.len() as u64);
    assert_eq!(set.is_empty(), a.is_empty());
    assert_eq!(set.to_string().parse::<ReceiptSet>().unwrap(), set);
    for id in outsiders {
        assert_eq!(set.contains(*id), a.contains(id), "{id:?} in {set}");
    }
    assert_eq!(set.by_batch(), group_by_batch(a.iter().copied()));
    let ranges: Vec<_> = set.ranges().collect();
    assert!(ranges.iter().all(|range| range.start().batch() == range.end().batch()));
    assert!(ranges.windows(2).all(|pair| pair[0].end().get() + 1 < pair[1].start().get()), "{set} is not canonical");
}

#[test]
fn every_small_set_answers_like_an_ordinary_set() {
    let domain = small_domain();
    for subset in subsets() {
        check_one(&subset, &domain);
    }
}

#[test]
fn every_pair_of_small_sets_combines_like_ordinary_sets() {
    let subsets = subsets();
    for a in &subsets {
        for b in &subsets {
            check_pair(a, b);
        }
    }
}

fn receipts() -> impl Strategy<Value = BTreeSet<ReceiptId>> {
    let one = (0i64..4, prop_oneof![1u16..12, 1015u16..=1023, 1u16..=1023]);
    prop::collection::btree_set(one.prop_map(|(batch, index)| ReceiptId::new(BatchId(batch), index)), 0..60)
}

proptest! {
    #[test]
    fn random_sets_combine_like_ordinary_sets(a in receipts(), b in receipts()) {
        check_pair(&a, &b);
        let both: Vec<ReceiptId> = (&a | &b).into_iter().collect();
        check_one(&a, &both);
    }

    #[test]
    fn a_closer_is_granted_what_is_open_and_told_about_the_rest(a in receipts(), c in receipts(), d in receipts()) {
        let [asked, claimed, closed] = [&a, &c, &d].map(|ids| ids.iter().copied().collect::<ReceiptSet>());
        let Admission { granted, closed: already, unknown } = admit(&asked, &claimed, &closed);
        prop_assert_eq!(naive(&granted), &(&a & &c) - &d);
        prop_assert_eq!(naive(&already), &(&a & &c) & &d);
        prop_assert_eq!(naive(&unknown), &a - &c);
        // A second closer of the same receipts is granted nothing.
        let later = admit(&asked, &claimed, &closed.union(&granted));
        prop_assert!(later.granted.is_empty());
    }
}
