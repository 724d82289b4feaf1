//! What operators do in a history, and what can be seen at one moment.

use std::collections::BTreeSet;

use awa_core::attempt::ErrorText;
use awa_core::ring::RingKind;
use awa_core::store::{Acted, Grown, JobFilter, JobView, MoveTo, PurgeScope, QueueView, Refusal};
use awa_core::{InstanceId, JobId};

use super::jobs::{priority, queue};
use super::observed::{Observed, SeenJob, Sight};
use super::player::{Player, ROUNDS};
use super::step::{INSTANCES, Pick};

/// One job of so many is also looked at by itself.
const SINGLE: usize = 16;

impl Player<'_> {
    pub(super) async fn cancel(&self, jobs: &[Pick]) -> Observed {
        let jobs = self.named.picked(jobs);
        self.acted(&self.store.cancel(&jobs, &ErrorText::new("cancelled")).await.expect("cancel"))
    }

    pub(super) async fn retry(&self, jobs: &[Pick]) -> Observed {
        // In which order the jobs of one call join a lane is no promise.
        let mut jobs = self.named.picked(jobs);
        jobs.sort_unstable();
        jobs.retain(|job| !self.is_open_cancel_of(*job));
        self.acted(&self.store.retry(&jobs).await.expect("retry"))
    }

    pub(super) async fn delete(&self, jobs: &[Pick]) -> Observed {
        let jobs = self.named.picked(jobs);
        // Whether there was anything left to delete is no promise about finished jobs.
        let gone = |answer: Acted| match answer {
            Acted::Done { from } if from.is_terminal() => Acted::Refused(Refusal::NotFound),
            other => other,
        };
        let answers = self.store.delete(&jobs).await.expect("delete");
        self.acted(&answers.into_iter().map(gone).collect::<Vec<_>>())
    }

    pub(super) async fn move_to(&self, jobs: &[Pick], to: u8, lane: u8) -> Observed {
        // As for a retry.
        let mut jobs = self.named.picked(jobs);
        jobs.sort_unstable();
        jobs.retain(|job| self.named.may_move(*job, to));
        let to = MoveTo::queue(queue(to)).and_priority(priority(to, lane));
        self.acted(&self.store.move_jobs(&jobs, &to).await.expect("move_jobs"))
    }

    pub(super) async fn purge(&self, number: u8, scope: PurgeScope) -> Observed {
        if self.has_open_cancel() {
            // How many of the lanes of a slot such a transaction keeps is no promise.
            return Observed::Nothing;
        }
        let mut purged = self.store.purge_queue(&queue(number), scope).await.expect("purge_queue");
        for _ in 0..ROUNDS {
            if !purged.contended {
                break;
            }
            let more = self.store.purge_queue(&queue(number), scope).await.expect("purge_queue");
            purged.jobs += more.jobs;
            purged.contended = more.contended;
        }
        Observed::Purged(purged)
    }

    pub(super) async fn grow(&mut self, ring: RingKind) -> Observed {
        let size = self.sizes.get_mut(&ring).expect("every ring has a size");
        let grown = self.store.grow_ring(ring, *size + 1).await.expect("grow_ring");
        if let Grown::Done { to, .. } = grown {
            *size = to;
        }
        Observed::Grown(grown)
    }

    pub(super) fn acted(&self, answers: &[Acted]) -> Observed {
        let text = |answer: &Acted| match answer {
            // Whether the history of a finished job is still there is no promise.
            Acted::Refused(Refusal::NotFound) => "refused".to_owned(),
            Acted::Refused(Refusal::WrongState(state)) if state.is_terminal() => "refused".to_owned(),
            Acted::Refused(Refusal::KeyTaken(job)) => format!("refused, job {} has the key", self.named.job(*job)),
            other => format!("{other:?}"),
        };
        Observed::Acted(answers.iter().map(text).collect())
    }

    /// Everything that the store shows, in all its ways to look, which must agree with each other.
    ///
    /// # Panics
    ///
    /// When they do not.
    pub async fn look(&self) -> Sight {
        let filter = JobFilter { limit: JobFilter::MAX_LIMIT, ..JobFilter::default() };
        let listed = self.store.list(&filter).await.expect("list");
        let mut sight = Sight::default();
        for (number, view) in listed.iter().enumerate() {
            // Each by itself is a call of its own; a few of each look are enough over many histories.
            if number % SINGLE == 0 {
                assert_eq!(self.store.get(view.id).await.expect("get").as_ref(), Some(view), "get and list");
            }
            let job = self.named.job(view.id);
            let mut seen = SeenJob(JobView { id: JobId(0), ..view.clone() });
            if self.named.cancelled_in.contains(&view.id) {
                // Whether that is the moment of the call, of the commit or of the next tick is no promise.
                seen.0.finalized_at = None;
            }
            assert!(sight.jobs.insert(job, seen).is_none(), "job {job} is in two places");
        }
        self.look_at_attempts(&mut sight).await;
        for count in self.store.census().await.expect("census") {
            let listed = listed.iter().filter(|view| view.state == count.state).count() as u64;
            assert_eq!(count.jobs, listed, "census and list of {:?} jobs", count.state);
        }
        let queues = self.store.queues().await.expect("queues");
        sight.queues = queues.into_iter().map(|view| QueueView { finished: 0, ..view }).collect();
        sight
    }

    async fn look_at_attempts(&self, sight: &mut Sight) {
        let receipts = &self.named.receipts;
        let open = self.store.are_open(receipts).await.expect("are_open");
        let memories = self.store.recall(receipts).await.expect("recall");
        let mut held = BTreeSet::new();
        for instance in INSTANCES {
            held.extend(self.store.open_attempts(InstanceId(instance), 10_000).await.expect("open_attempts"));
        }
        sight.held =
            receipts.iter().filter(|receipt| held.contains(*receipt)).map(|one| self.named.job(one.job)).collect();
        for ((receipt, open), memory) in receipts.iter().zip(open).zip(memories) {
            let job = self.named.job(receipt.job);
            if open {
                assert!(sight.open.insert(job), "job {job} has two open attempts");
            }
            sight.memories.extend(memory.map(|memory| (job, memory)));
        }
    }
}
