//! What applications do in transactions of their own in a history.

use awa_conformance::SubjectTransaction;
use awa_core::attempt::ErrorText;
use awa_core::{JobId, StoreError, StoreErrorKind};

use super::jobs::new_job;
use super::observed::Observed;
use super::player::Player;
use super::step::{NewStep, Pick, TRANSACTIONS};

/// A transaction that is open.
pub(super) struct Open {
    transaction: Box<dyn SubjectTransaction>,
    cancels: Vec<JobId>,
}

/// The answer, or `None` where it has to wait for somebody's transaction: nobody else is about in a history.
///
/// # Panics
///
/// When the call failed.
pub(super) fn unless_it_waits<T>(answer: Result<T, StoreError>) -> Option<T> {
    match answer {
        Ok(answer) => Some(answer),
        Err(error) if error.kind() == StoreErrorKind::Contended => None,
        Err(error) => panic!("{error}"),
    }
}

impl Player<'_> {
    async fn open(&mut self, place: usize) -> &mut Open {
        if self.transactions[place].is_none() {
            self.transactions[place] = Some(Open { transaction: self.subject.begin().await, cancels: Vec::new() });
        }
        self.transactions[place].as_mut().expect("it was opened")
    }

    pub(super) async fn enqueue_in(&mut self, place: usize, number: u8, jobs: &[NewStep]) -> Observed {
        let jobs: Vec<_> = jobs.iter().map(|step| new_job(number, step)).collect();
        let answers = self.open(place).await.transaction.enqueue(&jobs).await;
        let Some(answers) = unless_it_waits(answers) else {
            // PostgreSQL has aborted it, and the memory store has changed nothing: an application gives up in both cases.
            self.end_transaction(place, false).await;
            return Observed::Waits;
        };
        self.named.enqueued(&jobs, &answers)
    }

    pub(super) async fn cancel_in(&mut self, place: usize, jobs: &[Pick]) -> Observed {
        let mut jobs = self.named.picked(jobs);
        jobs.retain(|job| !self.is_open_cancel_of(*job));
        if jobs.is_empty() {
            return Observed::Nothing;
        }
        self.named.cancelled_in.extend(&jobs);
        let open = self.open(place).await;
        open.cancels.extend(&jobs);
        let answers =
            open.transaction.cancel(&jobs, &ErrorText::new("cancelled")).await.expect("cancel in a transaction");
        self.acted(&answers)
    }

    pub(super) async fn end_transaction(&mut self, place: usize, commit: bool) {
        let Some(Open { transaction, cancels }) = self.transactions[place].take() else { return };
        let ended = if commit { transaction.commit().await } else { transaction.rollback().await };
        ended.expect("a transaction ends");
        if commit && !cancels.is_empty() {
            // When a committed request reaches a job that runs is no promise before the next tick.
            self.store.tidy().await.expect("tidy");
        }
    }

    /// Whether an open transaction is about to cancel anything.
    pub(super) fn has_open_cancel(&self) -> bool {
        self.transactions.iter().flatten().any(|open| !open.cancels.is_empty())
    }

    /// Whether an open transaction is about to cancel this job. Who wants to change it as well waits.
    pub(super) fn is_open_cancel_of(&self, job: JobId) -> bool {
        self.transactions.iter().flatten().any(|open| open.cancels.contains(&job))
    }

    /// Rolls back what is still open, so that nothing of this history is left running.
    pub(super) async fn leave(&mut self) {
        for place in 0..TRANSACTIONS {
            self.end_transaction(place, false).await;
        }
    }
}
