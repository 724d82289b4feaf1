//! Tells a history to one store.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use awa_conformance::Subject;
use awa_core::queue::QueueSettings;
use awa_core::ring::{RingKind, RotationPolicy};
use awa_core::store::{
    AttemptNote, BatchLimit, Callback, ClaimRequest, ClaimShape, NoteAnswer, RescueRequest, RetentionPolicy,
};
use awa_core::unpin::UnpinPolicy;
use awa_core::{CallbackToken, Closure, InstanceId, JsonText, Nonce, Store};

use super::jobs::{Named, new_job, priority, queue, shards};
use super::observed::{Observed, SeenClaim};
use super::step::{OF_LANES, Pick, QUEUES, Step, TRANSACTIONS};
use super::transact::{Open, unless_it_waits};
use crate::stage::{RESCUER, STALENESS, steady_retry};

/// The settings of the queue that has several lanes.
fn sharded() -> QueueSettings {
    QueueSettings::default().with_enqueue_shards(shards())
}

/// How often a call is repeated that answers "contended" or "more".
pub(super) const ROUNDS: usize = 64;

/// A store in the middle of a history.
pub struct Player<'s> {
    pub(super) subject: &'s dyn Subject,
    pub(super) store: Arc<dyn Store>,
    pub(super) transactions: Vec<Option<Open>>,
    pub(super) sizes: HashMap<RingKind, u8>,
    pub(super) named: Named,
    drawn: i64,
}

impl fmt::Debug for Player<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Player").field("store", &self.store.describe()).finish_non_exhaustive()
    }
}

impl<'s> Player<'s> {
    /// A store at the beginning: three queues, of which the second has no dead-letter queue and the third several shards.
    ///
    /// # Panics
    ///
    /// When the store fails.
    pub async fn new(subject: &'s dyn Subject) -> Self {
        let store = subject.store();
        for number in 0..QUEUES {
            store.open_queue(&queue(number)).await.expect("open_queue");
        }
        let settings = [(1, QueueSettings::default().with_dead_letter(false)), (OF_LANES, sharded())];
        for (number, settings) in settings {
            store.configure_queue(&queue(number), &settings).await.expect("configure_queue");
        }
        let transactions = (0..TRANSACTIONS).map(|_| None).collect();
        let has = subject.capabilities();
        let sizes = [
            (RingKind::Queue, has.queue_slots),
            (RingKind::Claim, has.claim_slots),
            (RingKind::Lease, has.lease_slots),
        ];
        Self { subject, store, transactions, sizes: sizes.into(), named: Named::default(), drawn: 0 }
    }

    /// Which store it is.
    pub fn name(&self) -> String {
        self.store.describe()
    }

    /// Carries out one step.
    ///
    /// # Panics
    ///
    /// When the store fails: no step of a history gives it a reason to.
    pub async fn play(&mut self, step: &Step) -> Observed {
        match step {
            Step::Enqueue { queue, jobs } => {
                let jobs: Vec<_> = jobs.iter().map(|step| new_job(*queue, step)).collect();
                let Some(answers) = unless_it_waits(self.store.enqueue(&jobs).await) else { return Observed::Waits };
                return self.named.enqueued(&jobs, &answers);
            }
            Step::EnqueueIn { transaction, queue, jobs } => {
                return self.enqueue_in(*transaction, *queue, jobs).await;
            }
            Step::CancelIn { transaction, jobs } => return self.cancel_in(*transaction, jobs).await,
            Step::EndTransaction { transaction, commit } => self.end_transaction(*transaction, *commit).await,
            Step::Claim { queue, instance, jobs, deadline, shape } => {
                return self.claim(*queue, *instance, *jobs, *deadline, *shape).await;
            }
            Step::Close { attempts } => {
                let closure = |(pick, end): &(Pick, super::End)| {
                    let receipt = *pick.of(&self.named.receipts)?;
                    Some(Closure { receipt, end: end.attempt_end() })
                };
                let closures: Vec<_> = attempts.iter().filter_map(closure).collect();
                return Observed::Closed(self.store.close(&closures).await.expect("close"));
            }
            Step::Note { attempt, progress, callback } => return self.note(*attempt, *progress, *callback).await,
            Step::Resume { token } => return self.resume(*token).await,
            Step::Beat { instance } => self.store.beat(InstanceId(*instance), STALENESS).await.expect("beat"),
            Step::Retire { instance } => self.store.retire(InstanceId(*instance)).await.expect("retire"),
            Step::Rescue => return self.rescue().await,
            Step::Pass { seconds } => self.subject.advance(Duration::from_secs(*seconds)).await,
            Step::Promote { limit } => {
                return Observed::Promoted(self.store.promote(*limit).await.expect("promote").jobs);
            }
            Step::Cancel { jobs } => return self.cancel(jobs).await,
            Step::Retry { jobs } => return self.retry(jobs).await,
            Step::Delete { jobs } => return self.delete(jobs).await,
            Step::Move { jobs, queue, lane } => return self.move_to(jobs, *queue, *lane).await,
            Step::Purge { queue, scope } => return self.purge(*queue, *scope).await,
            Step::Pause { queue: number, paused } => {
                self.store.set_paused(&queue(*number), *paused).await.expect("set_paused");
            }
            Step::Grow { ring } => return self.grow(*ring).await,
            Step::Rotate { ring } => {
                let now = RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 };
                self.store.rotate(*ring, &now).await.expect("rotate");
            }
            Step::Reclaim { drain, unpin, prune, patient } => self.reclaim(*drain, *unpin, *prune, *patient).await,
            Step::Tidy => self.store.tidy().await.expect("tidy"),
        }
        Observed::Nothing
    }

    async fn claim(&mut self, number: u8, instance: i64, jobs: usize, deadline: bool, shape: ClaimShape) -> Observed {
        let jobs = if number == OF_LANES { usize::from(BatchLimit::MAX.get()) } else { jobs };
        let mut claimed = Vec::new();
        for _ in 0..ROUNDS {
            self.drawn += 1;
            let request = ClaimRequest {
                queue: queue(number),
                instance: InstanceId(instance),
                nonce: Nonce(self.drawn),
                max_jobs: BatchLimit::clamped(jobs - claimed.len()),
                max_bytes: 1 << 20,
                deadline: deadline.then_some(Duration::from_secs(15)),
                aging: None,
                shape,
            };
            let part = self.store.claim(&request).await.expect("claim");
            let over = part.jobs.is_empty() && !part.more && !part.contended;
            claimed.extend(part.jobs);
            if over || claimed.len() >= jobs {
                break;
            }
        }
        claimed.sort_by_key(|job| self.named.lane(job.receipt.job, job.priority));
        self.named.receipts.extend(claimed.iter().map(|job| job.receipt));
        let seen = claimed.iter().map(|job| SeenClaim {
            job: self.named.job(job.receipt.job),
            run_lease: job.receipt.run_lease.0,
            attempt: job.attempt,
            deadline_at: job.deadline_at,
        });
        Observed::Claimed(seen.collect())
    }

    async fn note(&mut self, attempt: Pick, progress: Option<u8>, callback: bool) -> Observed {
        let Some(receipt) = attempt.of(&self.named.receipts) else { return Observed::Nothing };
        self.drawn += 1;
        let number = |number: u8| JsonText::new("progress", number.to_string()).expect("a number is JSON");
        let note = AttemptNote {
            receipt: *receipt,
            progress: progress.map(number),
            callback: callback.then(|| CallbackToken(u128::from(self.drawn.unsigned_abs()))),
        };
        let answers = self.store.note(&[note]).await.expect("note");
        for answer in &answers {
            if let NoteAnswer::Noted { callback: Some(token) } = answer
                && !self.named.tokens.contains(token)
            {
                self.named.tokens.push(*token);
            }
        }
        Observed::Noted(answers)
    }

    async fn resume(&mut self, token: Pick) -> Observed {
        let Some(token) = token.of(&self.named.tokens) else { return Observed::Nothing };
        let callback = Callback { token: *token, payload: JsonText::new("payload", "[7]").expect("the text is JSON") };
        Observed::Resumed(self.store.resume(&[callback]).await.expect("resume"))
    }

    async fn rescue(&mut self) -> Observed {
        for _ in 0..5 {
            self.store.beat(RESCUER, STALENESS).await.expect("beat");
            self.subject.advance(STALENESS / 4).await;
        }
        self.store.beat(RESCUER, STALENESS).await.expect("beat");
        let request = RescueRequest { rescuer: RESCUER, staleness: STALENESS, page: 100 };
        let mut ended = Vec::new();
        for _ in 0..ROUNDS {
            let rescued = self.store.rescue(&request, &steady_retry()).await.expect("rescue");
            assert!(!rescued.rescuer_too_young, "the rescuer was healthy");
            for attempt in &rescued.attempts {
                let job = self.named.job(attempt.job);
                ended.push((job, attempt.run_lease.0, attempt.exhausted, attempt.cause));
            }
            if rescued.attempts.is_empty() && !rescued.more {
                break;
            }
        }
        ended.sort_unstable();
        Observed::Rescued(ended)
    }

    /// What is reclaimed depends on how carefully a store proves that it may be, which is no promise.
    async fn reclaim(&self, drain: bool, unpin: bool, prune: Option<RingKind>, patient: bool) {
        if drain {
            self.store.drain().await.expect("drain");
        }
        if unpin {
            self.store.unpin(&UnpinPolicy::default()).await.expect("unpin");
        }
        if let Some(ring) = prune {
            let retention = if patient {
                RetentionPolicy::uniform(Duration::from_hours(1), u64::MAX)
            } else {
                RetentionPolicy::NONE
            };
            self.store.prune(ring, &retention).await.expect("prune");
        }
    }

    /// What a step says to a reader of this history.
    pub fn said(&self, step: &Step) -> String {
        match step {
            Step::Close { attempts } => {
                let ends: Vec<_> =
                    attempts.iter().map(|(pick, end)| format!("{} as {end:?}", self.named.attempt(*pick))).collect();
                format!("close {}", ends.join(", "))
            }
            Step::Note { attempt, progress, callback } => {
                format!("note for {}: progress {progress:?}, callback {callback}", self.named.attempt(*attempt))
            }
            Step::Cancel { jobs } => format!("cancel {}", self.named.listed(jobs)),
            Step::Retry { jobs } => format!("retry {}", self.named.listed(jobs)),
            Step::Delete { jobs } => format!("delete {}", self.named.listed(jobs)),
            Step::CancelIn { transaction, jobs } => {
                format!("in transaction {transaction}, cancel {}", self.named.listed(jobs))
            }
            Step::Move { jobs, queue: number, lane } => {
                let priority = priority(*number, *lane);
                format!("move {} into {}, {priority:?}", self.named.listed(jobs), queue(*number).as_str())
            }
            other => format!("{other:?}"),
        }
    }
}
