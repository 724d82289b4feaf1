use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use awa_core::store::ClaimShape;
use awa_core::{Enqueued, NewJob, Store, StoreError};

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
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clock => "a clock that can be moved",
            Self::Transactions => "transactions of an application",
            Self::Wakeups => "wake-ups",
        })
    }
}

/// What a subject declares about itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// What it has. Cases that need more are reported as not covered.
    pub has: BTreeSet<Capability>,
    /// Slots of the queue ring, at least 4.
    pub queue_slots: u8,
    /// Slots of the claim ring, at least 3.
    pub claim_slots: u8,
    /// Slots of the lease ring, at least 3.
    pub lease_slots: u8,
    /// The shape in which the cases claim, but for those that are about shapes.
    pub shape: ClaimShape,
}

impl Capabilities {
    /// Everything, with rings of these sizes, and a lease ring of 3 slots.
    pub fn all(queue_slots: u8, claim_slots: u8) -> Self {
        let has = [Capability::Clock, Capability::Transactions, Capability::Wakeups].into();
        Self { has, queue_slots, claim_slots, lease_slots: 3, shape: ClaimShape::Compact }
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
    /// Writes what was not covered to standard error.
    pub fn report(self) {
        if let Self::NotCovered { case, missing } = self {
            let missing: Vec<_> = missing.iter().map(Capability::to_string).collect();
            eprintln!("not covered: {case}: the subject lacks {}", missing.join(" and "));
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
        capabilities.queue_slots >= 4 && capabilities.claim_slots >= 3,
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
    fn a_case_whose_capabilities_are_there_runs() {
        let mut ran = false;
        let outcome = run_case(&Clockless, "topic::case", &[Capability::Wakeups], async { ran = true }).now_or_never();
        assert_eq!((outcome, ran), (Some(Outcome::Passed), true));
    }
}
