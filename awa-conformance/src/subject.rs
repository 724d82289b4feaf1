use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use awa_core::attempt::ErrorText;
use awa_core::store::{Acted, ClaimShape};
use awa_core::{Enqueued, JobId, NewJob, Store, StoreError};

/// Something a case needs beyond the traits of a store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Capability {
    /// [`Subject::advance`] moves the store's clock.
    Clock,
    /// [`Subject::begin`] opens a transaction of an application.
    Transactions,
    /// [`Store::wakeups`] answers `Some`, and wake-ups arrive.
    Wakeups,
    /// Jobs and claims are kept in rings that turn, so that [`Maintainer::rotate`](awa_core::store::Maintainer::rotate) and
    /// its like have something to do.
    Rings,
    /// Attempts note their progress, and wait for callbacks: [`Attempts`](awa_core::store::Attempts) and
    /// [`AttemptEnd::Park`](awa_core::AttemptEnd::Park).
    Notes,
    /// Queues have settings, and what waits in them can be moved and purged.
    Queues,
}

impl Capability {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Clock, Self::Transactions, Self::Wakeups, Self::Rings, Self::Notes, Self::Queues];
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clock => "a clock that can be moved",
            Self::Transactions => "transactions of an application",
            Self::Wakeups => "wake-ups",
            Self::Rings => "rings",
            Self::Notes => "notes and callbacks of attempts",
            Self::Queues => "settings, moves and purges of queues",
        })
    }
}

/// What a subject declares about itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// What it has. Cases that need more are reported as not covered.
    pub has: BTreeSet<Capability>,
    /// Slots of the queue ring, at least 4 where there are rings.
    pub queue_slots: u8,
    /// Slots of the claim ring, at least 3 where there are rings.
    pub claim_slots: u8,
    /// Slots of the lease ring, at least 3 where there are rings.
    pub lease_slots: u8,
    /// The shape in which the cases claim, but for those that are about shapes.
    pub shape: ClaimShape,
}

impl Capabilities {
    /// Everything, with rings of these sizes, and a lease ring of 3 slots.
    pub fn all(queue_slots: u8, claim_slots: u8) -> Self {
        let shape = ClaimShape::Compact;
        Self { has: Capability::ALL.into(), queue_slots, claim_slots, lease_slots: 3, shape }
    }

    /// These and no others, of which none are rings.
    ///
    /// # Panics
    ///
    /// When they are: a ring has a size.
    pub fn only(has: impl IntoIterator<Item = Capability>) -> Self {
        let has: BTreeSet<_> = has.into_iter().collect();
        assert!(!has.contains(&Capability::Rings), "rings have sizes; begin with `all`");
        Self { has, queue_slots: 0, claim_slots: 0, lease_slots: 0, shape: ClaimShape::Compact }
    }

    /// The same, with claims of this shape.
    #[must_use]
    pub fn claiming(mut self, shape: ClaimShape) -> Self {
        self.shape = shape;
        self
    }

    /// The same without `capability`.
    #[must_use]
    pub fn without(mut self, capability: Capability) -> Self {
        self.has.remove(&capability);
        self
    }
}

/// One fresh, empty store with small rings, and what a test does to it from outside.
#[async_trait]
pub trait Subject: Send + Sync {
    /// The store. Each call gives the same one.
    fn store(&self) -> Arc<dyn Store>;

    /// Opens a transaction of an application, on a connection of its own.
    async fn begin(&self) -> Box<dyn SubjectTransaction>;

    /// Moves the store's clock forward. Between calls the clock may run or stand still; no case depends on which.
    async fn advance(&self, by: Duration);

    /// What this subject has.
    fn capabilities(&self) -> Capabilities;
}

/// A transaction of an application. Dropping it rolls it back.
#[async_trait]
pub trait SubjectTransaction: Send {
    /// Enqueues inside the transaction.
    async fn enqueue(&mut self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError>;

    /// Cancels jobs when the transaction commits.
    async fn cancel(&mut self, jobs: &[JobId], reason: &ErrorText) -> Result<Vec<Acted>, StoreError>;

    /// Commits.
    async fn commit(self: Box<Self>) -> Result<(), StoreError>;

    /// Rolls back; when it returns, the transaction is over.
    async fn rollback(self: Box<Self>) -> Result<(), StoreError>;
}

/// What became of a case that did not fail.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub enum Outcome {
    /// It ran to its end.
    Passed,
    /// It did not run, because the subject lacks what it needs.
    NotCovered {
        /// The case, as `topic::name`.
        case: &'static str,
        /// What the subject lacks.
        missing: Vec<Capability>,
    },
}

impl Outcome {
    /// Writes what was not covered to standard error, past the test harness, which would hide what a passing test prints.
    pub fn report(self) {
        if matches!(self, Self::NotCovered { .. }) {
            // A closed standard error is nobody's fault and hides nothing that a test could fail for.
            let _ = std::io::stderr().write_all(format!("{self}\n").as_bytes());
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("passed"),
            Self::NotCovered { case, missing } => {
                let missing: Vec<_> = missing.iter().map(Capability::to_string).collect();
                write!(f, "not covered: {case}: the subject lacks {}", missing.join(" and "))
            }
        }
    }
}

/// Runs `body`, unless `subject` lacks one of `needs`.
///
/// # Panics
///
/// When the case fails.
pub async fn run_case(
    subject: &dyn Subject,
    case: &'static str,
    needs: &[Capability],
    body: impl Future<Output = ()>,
) -> Outcome {
    let capabilities = subject.capabilities();
    assert!(
        !capabilities.has.contains(&Capability::Rings)
            || capabilities.queue_slots >= 4 && capabilities.claim_slots >= 3,
        "the suite needs at least 4 queue slots and 3 claim slots, the subject declares {capabilities:?}"
    );
    let missing: Vec<_> = needs.iter().copied().filter(|need| !capabilities.has.contains(need)).collect();
    if !missing.is_empty() {
        return Outcome::NotCovered { case, missing };
    }
    body.await;
    Outcome::Passed
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    struct Clockless;

    #[async_trait]
    impl Subject for Clockless {
        fn store(&self) -> Arc<dyn Store> {
            panic!("the case under test does not look at a store")
        }

        async fn begin(&self) -> Box<dyn SubjectTransaction> {
            panic!("the case under test opens no transaction")
        }

        async fn advance(&self, _: Duration) {
            panic!("a subject without a clock is never asked to move it")
        }

        fn capabilities(&self) -> Capabilities {
            Capabilities::all(4, 3).without(Capability::Clock)
        }
    }

    #[test]
    fn a_case_whose_capability_is_missing_does_not_run_and_says_so() {
        let needs = [Capability::Transactions, Capability::Clock];
        let body = async { panic!("it ran") };
        let outcome = run_case(&Clockless, "topic::case", &needs, body).now_or_never();
        let expected = Outcome::NotCovered { case: "topic::case", missing: vec![Capability::Clock] };
        assert_eq!(outcome, Some(expected));
    }

    #[test]
    fn each_missing_capability_is_named() {
        let outcome = Outcome::NotCovered { case: "topic::case", missing: Capability::ALL.into() };
        let expected = "not covered: topic::case: the subject lacks a clock that can be moved and transactions of an \
                        application and wake-ups and rings and notes and callbacks of attempts and settings, moves and \
                        purges of queues";
        assert_eq!(outcome.to_string(), expected);
        let others = Capability::ALL.into_iter().filter(|other| *other != Capability::Clock);
        let all_without = others.fold(Capabilities::all(4, 3), Capabilities::without);
        let sizes = Capabilities { queue_slots: 0, claim_slots: 0, lease_slots: 0, ..all_without };
        assert_eq!(Capabilities::only([Capability::Clock]), sizes);
    }

    #[test]
    fn a_case_whose_capabilities_are_there_runs() {
        let mut ran = false;
        let outcome = run_case(&Clockless, "topic::case", &[Capability::Wakeups], async { ran = true }).now_or_never();
        assert_eq!((outcome, ran), (Some(Outcome::Passed), true));
    }
}
