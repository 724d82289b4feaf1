//! All ways to look at the jobs of a store must tell the same (C2).

use std::collections::BTreeMap;

use awa_core::store::{Accuracy, CensusCount, JobFilter, JobView, QueueView};
use awa_core::{JobId, JobState};

use crate::scene::Scene;

/// A page that is smaller than most lists, so that paging is part of every look.
const PAGE: usize = 7;
/// The most pages that a list of a case has.
const MAX_PAGES: usize = 1_000;

/// Where each job of a store is.
pub(crate) type States = BTreeMap<JobId, JobState>;

impl Scene<'_> {
    /// Looks at all jobs in every way, checks that the answers agree, and returns them.
    ///
    /// Nothing else may be going on in the store meanwhile.
    pub(crate) async fn agree(&self) -> States {
        let everything = self.list_all(&JobFilter::default()).await;
        let states: States = everything.iter().map(|view| (view.id, view.state)).collect();
        assert_eq!(states.len(), everything.len(), "a job is listed twice");
        for view in &everything {
            assert_eq!(self.view(view.id).await, *view, "get and list differ");
            check_view(view);
        }
        for id in self.enqueued() {
            assert_eq!(self.state(id).await, states.get(&id).copied(), "get and list differ on job {id}");
        }
        for state in JobState::ALL {
            let listed = self.list_all(&JobFilter { state: Some(state), ..JobFilter::default() }).await;
            let expected: Vec<_> = everything.iter().filter(|view| view.state == state).cloned().collect();
            assert_eq!(listed, expected, "the list of {state} jobs");
        }
        assert_eq!(self.store().census().await.expect("census"), count(&everything, |_| true), "the census");
        self.check_queues(&everything).await;
        self.check_counts(&everything).await;
        states
    }

    /// Checks that every job of `expected` is in its state, in every view, and returns all states.
    pub(crate) async fn expect(&self, expected: &[(JobId, JobState)]) -> States {
        let states = self.agree().await;
        for (job, state) in expected {
            assert_eq!(states.get(job), Some(state), "job {job}");
        }
        states
    }

    /// All jobs that match `filter`, newest first, read page by page.
    pub(crate) async fn list_all(&self, filter: &JobFilter) -> Vec<JobView> {
        let mut views: Vec<JobView> = Vec::new();
        for _ in 0..MAX_PAGES {
            let before = views.last().map(|view| view.id);
            let page = JobFilter { before, limit: PAGE, ..filter.clone() };
            let found = self.store().list(&page).await.expect("list");
            assert!(found.len() <= PAGE, "a page of {PAGE} holds {} jobs", found.len());
            let last = found.len() < PAGE;
            views.extend(found);
            if last {
                assert!(views.windows(2).all(|pair| pair[0].id > pair[1].id), "a list is not newest first");
                return views;
            }
        }
        panic!("a list is not over after {MAX_PAGES} pages");
    }

    async fn check_queues(&self, everything: &[JobView]) {
        let queues = self.store().queues().await.expect("queues");
        assert!(queues.is_sorted_by(|a, b| a.queue < b.queue), "queues come by name, each once");
        for view in everything {
            assert!(queues.iter().any(|queue| queue.queue == view.queue), "queue {} is not listed", view.queue);
        }
        for queue in queues {
            let counts = count(everything, |view| view.queue == queue.queue);
            let of = |states: &[JobState]| counts.iter().filter(|c| states.contains(&c.state)).map(|c| c.jobs).sum();
            let expected = QueueView {
                ready: of(&[JobState::Ready]),
                running: of(&[JobState::Running]),
                deferred: of(&[JobState::Deferred]),
                finished: of(&[JobState::Completed, JobState::Failed, JobState::Cancelled]),
                waiting: of(&[JobState::Waiting]),
                dead: of(&[JobState::Dead]),
                ..queue.clone()
            };
            assert_eq!(queue, expected);
        }
    }
}

impl Scene<'_> {
    /// Exact counts are what the list shows. So is an estimate while nothing moves and the backlog is short, but that it
    /// still counts finished jobs that were deleted.
    async fn check_counts(&self, everything: &[JobView]) {
        for accuracy in [Accuracy::Exact, Accuracy::Estimate] {
            let counts = self.store().counts(accuracy).await.expect("counts");
            assert_eq!(counts.accuracy, accuracy);
            assert!(counts.queues.is_sorted_by(|a, b| a.queue < b.queue), "queues come by name, each once");
            for queue in counts.queues {
                let expected = count(everything, |view| view.queue == queue.queue);
                for ((counted, expected), ever) in queue.jobs.iter().zip(expected).zip(&queue.ever) {
                    let state = counted.state;
                    let ends = matches!(state, JobState::Completed | JobState::Failed | JobState::Cancelled);
                    let is_right = counted.jobs == expected.jobs
                        || accuracy == Accuracy::Estimate && ends && counted.jobs > expected.jobs;
                    assert!(is_right && counted.state == expected.state, "{accuracy:?}: {counted:?}, not {expected:?}");
                    assert!(!ends || ever.jobs >= counted.jobs, "{accuracy:?} ever: {ever:?} of {counted:?}");
                    assert!(ends || ever.jobs == 0, "{accuracy:?} ever: {ever:?}");
                }
            }
        }
    }
}

/// What must hold of every view of a job, whatever happened before.
fn check_view(view: &JobView) {
    assert_eq!(view.run_at.is_some(), view.state == JobState::Deferred, "run_at of a {} job", view.state);
    assert_eq!(view.deferred.is_some(), view.state == JobState::Deferred, "reason of a {} job", view.state);
    assert_eq!(view.claimed_at.is_some(), view.state == JobState::Running, "claimed_at of a {} job", view.state);
    assert_eq!(view.finalized_at.is_some(), view.state.is_terminal(), "finalized_at of a {} job", view.state);
    assert!(view.result.is_none() || view.state == JobState::Completed, "a {} job has a result", view.state);
    assert!(i64::from(view.attempt) <= view.run_lease.get(), "job {} was charged more often than claimed", view.id);
}

fn count(views: &[JobView], include: impl Fn(&JobView) -> bool) -> Vec<CensusCount> {
    let of = |state| views.iter().filter(|view| view.state == state && include(view)).count();
    JobState::ALL.into_iter().map(|state| CensusCount { state, jobs: of(state) as u64 }).collect()
}
