//! Which files go into which transaction, and what becomes of it: decided beforehand, by a seed.

use std::ops::Range;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The largest transaction.
const MAX_SIZE: usize = 500;
/// How many transactions a small set of files is at least spread over, as far as there are files.
const MIN_TRANSACTIONS: usize = 20;
/// The share of transactions that commit late, and of those that roll back.
const SHARE: f64 = 0.05;
/// From so many transactions on, at least one commits late and one rolls back.
const ENOUGH_FOR_ALL: usize = 4;
/// How long a transaction stays open that commits late, in milliseconds.
const OPEN_MS: Range<u64> = 200..1_500;

/// What becomes of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// It commits as soon as its jobs are enqueued.
    Commit,
    /// It stays open so long, and commits.
    CommitLate(Duration),
    /// It stays open for a moment, and rolls back.
    RollBack,
}

/// One transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PlannedTransaction {
    /// The files whose jobs it enqueues.
    pub(super) files: Range<usize>,
    pub(super) fate: Fate,
}

/// Transactions for `files` files: each file in one of them, in order, sizes from 1 to 500 with small ones as likely as
/// large ones.
pub(super) fn plan(files: usize, seed: u64) -> Vec<PlannedTransaction> {
    let mut random = StdRng::seed_from_u64(seed);
    let largest = (files / MIN_TRANSACTIONS).clamp(1, MAX_SIZE);
    let mut transactions = Vec::new();
    let mut next = 0;
    while next < files {
        // Even in the logarithm: as many transactions of 1 to 5 jobs as of 100 to 500.
        let size = (largest as f64).powf(random.random_range(0.0..=1.0)).round() as usize;
        let end = (next + size.clamp(1, largest)).min(files);
        transactions.push(PlannedTransaction { files: next..end, fate: fate(&mut random) });
        next = end;
    }
    ensure_all_fates(&mut transactions, &mut random);
    transactions
}

fn fate(random: &mut StdRng) -> Fate {
    match random.random_range(0.0..1.0) {
        share if share < SHARE => late(random),
        share if share < 2.0 * SHARE => Fate::RollBack,
        _ => Fate::Commit,
    }
}

fn late(random: &mut StdRng) -> Fate {
    Fate::CommitLate(Duration::from_millis(random.random_range(OPEN_MS)))
}

/// A small plan may by chance lack what the demo is about.
fn ensure_all_fates(transactions: &mut [PlannedTransaction], random: &mut StdRng) {
    let count = transactions.len();
    if count < ENOUGH_FOR_ALL {
        if let Some(first) = transactions.first_mut().filter(|first| first.fate == Fate::RollBack) {
            first.fate = Fate::Commit;
        }
        return;
    }
    if !transactions.iter().any(|planned| planned.fate == Fate::RollBack) {
        transactions[count / 2].fate = Fate::RollBack;
    }
    if !transactions.iter().any(|planned| matches!(planned.fate, Fate::CommitLate(_))) {
        let free = transactions.iter_mut().find(|planned| planned.fate == Fate::Commit);
        if let Some(planned) = free {
            planned.fate = late(random);
        }
    }
    if !transactions.iter().any(|planned| planned.fate == Fate::Commit) {
        transactions[count - 1].fate = Fate::Commit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_in_one_transaction_and_sizes_keep_their_limits() {
        for files in [0, 1, 2, 3, 10, 19, 100, 20_000] {
            for seed in 0..50 {
                let mut next = 0;
                for planned in plan(files, seed) {
                    assert_eq!(planned.files.start, next);
                    assert!((1..=MAX_SIZE).contains(&planned.files.len()), "{planned:?}");
                    next = planned.files.end;
                }
                assert_eq!(next, files);
            }
        }
    }

    #[test]
    fn something_is_committed_however_few_files_there_are() {
        for files in 1..=6 {
            for seed in 0..500 {
                assert!(plan(files, seed).iter().any(|planned| planned.fate != Fate::RollBack), "{files} {seed}");
            }
        }
    }

    #[test]
    fn a_seed_gives_the_same_plan_again_and_another_seed_another() {
        assert_eq!(plan(1_000, 7), plan(1_000, 7));
        assert_ne!(plan(1_000, 7), plan(1_000, 8));
    }

    #[test]
    fn all_fates_happen_and_about_a_twentieth_each_is_late_and_rolls_back() {
        for seed in 0..50 {
            let small = plan(12, seed);
            assert!(small.iter().any(|planned| planned.fate == Fate::RollBack), "{small:?}");
            assert!(small.iter().any(|planned| matches!(planned.fate, Fate::CommitLate(_))), "{small:?}");
            assert!(small.iter().any(|planned| planned.fate == Fate::Commit), "{small:?}");
        }
        let all: Vec<_> = (0..100).flat_map(|seed| plan(20_000, seed)).collect();
        let share = |wanted: fn(&Fate) -> bool| {
            all.iter().filter(|planned| wanted(&planned.fate)).count() as f64 / all.len() as f64
        };
        assert!((0.04..0.06).contains(&share(|fate| *fate == Fate::RollBack)));
        assert!((0.04..0.06).contains(&share(|fate| matches!(fate, Fate::CommitLate(_)))));
        let (small, large) =
            (all.iter().filter(|p| p.files.len() <= 5).count(), all.iter().filter(|p| p.files.len() > 100).count());
        assert!(small > all.len() / 10 && large > all.len() / 10, "{small} and {large} of {}", all.len());
    }
}
