//! Which kinds of job have been warned of, so that a log has one line for each.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use awa_core::JobKind;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct WarnedKinds(Mutex<HashSet<JobKind>>);

impl WarnedKinds {
    /// So many kinds are remembered; of those beyond nothing is said.
    const MAX: usize = 1_000;

    /// Whether `kind` is asked about for the first time.
    pub(crate) fn first_time(&self, kind: &JobKind) -> bool {
        let mut warned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        warned.len() < Self::MAX && warned.insert(kind.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_new_once_and_their_number_is_bounded() {
        let warned = WarnedKinds::default();
        let kind = |number| JobKind::new(format!("kind-{number}")).unwrap();
        assert!(warned.first_time(&kind(0)) && !warned.first_time(&kind(0)));
        let news = (1..5_000).filter(|&number| warned.first_time(&kind(number))).count();
        assert_eq!(news, WarnedKinds::MAX - 1);
    }
}
