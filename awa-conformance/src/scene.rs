//! What the cases are written in: a store with a worker on it, and builders for jobs and closures.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use awa_core::attempt::{ErrorText, Receipt};
use awa_core::retry::RetryPolicy;
use awa_core::ring::RingKind;
use awa_core::store::{Acted, BatchLimit, ClaimRequest, Claimed, JobView, RescueRequest, Rescued};
use awa_core::{
    AttemptEnd, ClaimedJob, Closure, ClosureAnswer, Enqueued, InstanceId, JobId, JobKind, JobState, JsonText, NewJob,
    Nonce, QueueName, QueueSettings, Store,
};

use crate::{Capability, Subject, SubjectTransaction};

/// How long a worker of a scene may be silent before it counts as dead.
pub(crate) const STALENESS: Duration = Duration::from_mins(1);
/// The worker that a scene uses unless another is named.
pub(crate) const ME: InstanceId = InstanceId(0xA0);
/// A second worker.
pub(crate) const OTHER: InstanceId = InstanceId(0xB0);
/// The process that rescues.
pub(crate) const RESCUER: InstanceId = InstanceId(0xC0);
/// How often a call is repeated that says it was contended or that there is more.
const ROUNDS: usize = 64;

/// One store, and one worker on it.
pub(crate) struct Scene<'s> {
    subject: &'s dyn Subject,
    store: Arc<dyn Store>,
    nonces: AtomicI64,
    enqueued: Mutex<Vec<JobId>>,
}

impl<'s> Scene<'s> {
    /// A scene with a living worker [`ME`] that serves these queues.
    pub(crate) async fn open(subject: &'s dyn Subject, queues: &[&str]) -> Self {
        let scene =
            Self { subject, store: subject.store(), nonces: AtomicI64::new(1), enqueued: Mutex::new(Vec::new()) };
        for name in queues {
            scene.store.open_queue(&queue(name)).await.expect("open_queue");
        }
        scene.beat(ME).await;
        scene
    }

    /// The store.
    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Enqueues in a transaction of its own.
    pub(crate) async fn enqueue(&self, jobs: &[NewJob]) -> Vec<JobId> {
        let answers = self.store.enqueue(jobs).await.expect("enqueue");
        self.known(&answers)
    }

    /// Enqueues jobs with these labels into `queue`, each in a transaction of its own.
    pub(crate) async fn enqueue_each(&self, queue: &str, labels: &[&str]) -> Vec<JobId> {
        let mut ids = Vec::new();
        for label in labels {
            ids.extend(self.enqueue(&[job(queue, label)]).await);
        }
        ids
    }

    /// Begins a transaction of an application.
    pub(crate) async fn begin(&self) -> Box<dyn SubjectTransaction> {
        self.subject.begin().await
    }

    /// Begins a transaction that has enqueued jobs with these labels and stays open.
    pub(crate) async fn begin_with(&self, queue: &str, labels: &[&str]) -> (Box<dyn SubjectTransaction>, Vec<JobId>) {
        let mut transaction = self.begin().await;
        let jobs: Vec<_> = labels.iter().map(|label| job(queue, label)).collect();
        let answers = transaction.enqueue(&jobs).await.expect("enqueue in a transaction");
        let ids = answers.iter().map(|answer| answer.id()).collect();
        (transaction, ids)
    }

    /// Commits `transaction` and remembers its jobs for [`Self::agree`].
    pub(crate) async fn commit(&self, transaction: Box<dyn SubjectTransaction>, jobs: &[JobId]) {
        transaction.commit().await.expect("commit");
        self.enqueued.lock().expect("no case panics with it held").extend(jobs);
    }

    /// What the worker [`ME`] asks for when it asks once.
    pub(crate) fn request(&self, name: &str, max_jobs: usize) -> ClaimRequest {
        ClaimRequest {
            queue: queue(name),
            instance: ME,
            nonce: Nonce(self.nonces.fetch_add(1, Ordering::Relaxed)),
            max_jobs: BatchLimit::new(max_jobs).expect("a case asks for 1 to 1,023 jobs"),
            max_bytes: u64::MAX,
            deadline: None,
            aging: None,
            shape: self.subject.capabilities().shape,
        }
    }

    /// One call of `claim`.
    pub(crate) async fn claim_once(&self, request: &ClaimRequest) -> Claimed {
        self.store.claim(request).await.expect("claim")
    }

    /// Claims until there are `max_jobs`, or nothing is eligible.
    pub(crate) async fn claim(&self, queue: &str, max_jobs: usize) -> Vec<ClaimedJob> {
        self.claim_like(&self.request(queue, max_jobs)).await
    }

    /// The same for a worker named `instance`.
    pub(crate) async fn claim_as(&self, instance: InstanceId, queue: &str, max_jobs: usize) -> Vec<ClaimedJob> {
        self.claim_like(&ClaimRequest { instance, ..self.request(queue, max_jobs) }).await
    }

    /// Repeats a claim until it has what `request` asks for or nothing is eligible.
    pub(crate) async fn claim_like(&self, request: &ClaimRequest) -> Vec<ClaimedJob> {
        let (wanted, mut jobs) = (usize::from(request.max_jobs.get()), Vec::new());
        for _ in 0..ROUNDS {
            let nonce = Nonce(self.nonces.fetch_add(1, Ordering::Relaxed));
            let max_jobs = BatchLimit::clamped(wanted - jobs.len());
            let claimed = self.claim_once(&ClaimRequest { nonce, max_jobs, ..request.clone() }).await;
            let over = claimed.jobs.is_empty() && !claimed.more && !claimed.contended;
            jobs.extend(claimed.jobs);
            if over || jobs.len() >= wanted {
                return jobs;
            }
        }
        panic!("a claim of {wanted} jobs is not over after {ROUNDS} calls; it has {}", jobs.len());
    }

    /// What one call of `claim` gives, asked again only while it is contended and empty.
    pub(crate) async fn claim_next(&self, queue: &str, max_jobs: usize) -> Vec<ClaimedJob> {
        for _ in 0..ROUNDS {
            let claimed = self.claim_once(&self.request(queue, max_jobs)).await;
            if !claimed.contended || !claimed.jobs.is_empty() {
                return claimed.jobs;
            }
        }
        panic!("a claim was contended {ROUNDS} times");
    }

    /// Claims exactly one job.
    pub(crate) async fn claim_one(&self, queue: &str) -> ClaimedJob {
        let mut jobs = self.claim(queue, 1).await;
        assert_eq!(jobs.len(), 1, "no job in queue {queue} could be claimed");
        jobs.remove(0)
    }

    /// Ends attempts in one call.
    pub(crate) async fn close(&self, closures: &[(&ClaimedJob, AttemptEnd)]) -> Vec<ClosureAnswer> {
        let closures: Vec<_> =
            closures.iter().map(|(job, end)| Closure { receipt: job.receipt, end: end.clone() }).collect();
        self.store.close(&closures).await.expect("close")
    }

    /// Ends one attempt.
    pub(crate) async fn close_one(&self, job: &ClaimedJob, end: AttemptEnd) -> ClosureAnswer {
        self.close_receipt(job.receipt, end).await
    }

    /// Ends one attempt, asking again while somebody else is about to end it.
    pub(crate) async fn close_patiently(&self, job: &ClaimedJob, end: AttemptEnd) -> ClosureAnswer {
        for _ in 0..ROUNDS {
            let answer = self.close_one(job, end.clone()).await;
            if answer != ClosureAnswer::Contended {
                return answer;
            }
        }
        panic!("a closure was contended {ROUNDS} times");
    }

    /// Presents `receipt` to end an attempt.
    pub(crate) async fn close_receipt(&self, receipt: Receipt, end: AttemptEnd) -> ClosureAnswer {
        let answers = self.store.close(&[Closure { receipt, end }]).await.expect("close");
        assert_eq!(answers.len(), 1, "one answer per closure");
        answers[0]
    }

    /// Completes attempts, which must all be open.
    pub(crate) async fn complete(&self, jobs: &[ClaimedJob]) {
        let closures: Vec<_> = jobs.iter().map(|job| (job, AttemptEnd::Complete)).collect();
        let answers = self.close(&closures).await;
        assert_eq!(answers, vec![ClosureAnswer::Closed; jobs.len()], "{:?}", labels(jobs));
    }

    /// One job as an operator sees it; it must exist.
    pub(crate) async fn view(&self, job: JobId) -> JobView {
        self.store.get(job).await.expect("get").unwrap_or_else(|| panic!("job {job} does not exist"))
    }

    /// The state of a job, or `None` when it does not exist.
    pub(crate) async fn state(&self, job: JobId) -> Option<JobState> {
        self.store.get(job).await.expect("get").map(|view| view.state)
    }

    /// Cancels jobs with the reason `no longer wanted`.
    pub(crate) async fn cancel(&self, jobs: &[JobId]) -> Vec<Acted> {
        self.store.cancel(jobs, &ErrorText::new("no longer wanted")).await.expect("cancel")
    }

    /// Makes dead or deferred jobs ready.
    pub(crate) async fn retry(&self, jobs: &[JobId]) -> Vec<Acted> {
        self.store.retry(jobs).await.expect("retry")
    }

    /// Deletes jobs.
    pub(crate) async fn delete(&self, jobs: &[JobId]) -> Vec<Acted> {
        self.store.delete(jobs).await.expect("delete")
    }

    /// A new job that is in `state`, alone in a queue of its own.
    ///
    /// # Panics
    ///
    /// When no job can be in that state yet.
    pub(crate) async fn job_in(&self, state: JobState) -> JobId {
        let name = format!("{state}.{}", self.nonces.fetch_add(1, Ordering::Relaxed));
        self.store.open_queue(&queue(&name)).await.expect("open_queue");
        let id = self.enqueue(&[job(&name, state.as_str())]).await[0];
        let end = match state {
            JobState::Ready => return id,
            JobState::Running => None,
            JobState::Deferred => Some(retry_after(Duration::from_hours(1))),
            JobState::Completed => Some(AttemptEnd::CompleteWith { result: json("1") }),
            JobState::Cancelled => Some(AttemptEnd::Cancel { reason: ErrorText::new("no longer wanted") }),
            JobState::Failed => {
                self.set_dead_letter(&name, false).await;
                Some(AttemptEnd::Fail { error: ErrorText::new("boom") })
            }
            JobState::Waiting => Some(AttemptEnd::Park { timeout: Duration::from_hours(1) }),
            JobState::Dead => Some(AttemptEnd::Fail { error: ErrorText::new("boom") }),
            other => panic!("no operation of the traits leads to {other}"),
        };
        let attempt = self.claim_one(&name).await;
        if let Some(end) = end {
            assert_eq!(self.close_one(&attempt, end).await, ClosureAnswer::Closed);
        }
        id
    }

    /// Gives a queue a dead-letter queue or takes it away, and leaves its other settings at the defaults.
    pub(crate) async fn set_dead_letter(&self, name: &str, dead_letter: bool) {
        let settings = QueueSettings::default().with_dead_letter(dead_letter);
        self.store.configure_queue(&queue(name), &settings).await.expect("configure_queue");
    }

    /// An open attempt of a new job in `queue`, in which nothing else may wait.
    pub(crate) async fn job_in_queue(&self, queue: &str, label: &str) -> ClaimedJob {
        let id = self.enqueue(&[job(queue, label)]).await[0];
        let attempt = self.claim_one(queue).await;
        assert_eq!(attempt.receipt.job, id);
        attempt
    }

    /// Promotes everything that is due.
    pub(crate) async fn promote(&self) -> usize {
        let mut jobs = 0;
        for _ in 0..ROUNDS {
            let promoted = self.store.promote(100).await.expect("promote");
            jobs += promoted.jobs;
            if !promoted.more {
                return jobs;
            }
        }
        panic!("promotion is not over after {ROUNDS} calls");
    }

    /// Lets time pass, with nobody alive.
    pub(crate) async fn pass(&self, time: Duration) {
        self.subject.advance(time).await;
    }

    /// A sign of life.
    pub(crate) async fn beat(&self, instance: InstanceId) {
        self.store.beat(instance, STALENESS).await.expect("beat");
    }

    /// Lets more than the staleness time pass, through which `alive` beat without a break and nobody else does.
    pub(crate) async fn outlive(&self, alive: &[InstanceId]) {
        for _ in 0..6 {
            for instance in alive {
                self.beat(*instance).await;
            }
            self.pass(STALENESS / 4).await;
        }
        for instance in alive {
            self.beat(*instance).await;
        }
    }

    /// Lets the staleness time pass with only the rescuer (and `alive`) alive, and rescues once.
    pub(crate) async fn rescue_after_silence(&self, alive: &[InstanceId]) -> Rescued {
        self.outlive(&[&[RESCUER], alive].concat()).await;
        self.rescue().await
    }

    /// One rescue pass with a large page.
    pub(crate) async fn rescue(&self) -> Rescued {
        let request = RescueRequest { rescuer: RESCUER, staleness: STALENESS, page: 1_000 };
        self.store.rescue(&request, &steady_retry()).await.expect("rescue")
    }

    /// The number of slots that `ring` has.
    pub(crate) fn slots(&self, ring: RingKind) -> u8 {
        let capabilities = self.subject.capabilities();
        match ring {
            RingKind::Queue => capabilities.queue_slots,
            RingKind::Claim => capabilities.claim_slots,
            RingKind::Lease => capabilities.lease_slots,
        }
    }

    fn known(&self, answers: &[Enqueued]) -> Vec<JobId> {
        let ids: Vec<_> = answers.iter().map(|answer| answer.id()).collect();
        self.enqueued.lock().expect("no case panics with it held").extend(&ids);
        ids
    }

    /// The ids of all jobs that this scene has enqueued and committed.
    pub(crate) fn enqueued(&self) -> Vec<JobId> {
        self.enqueued.lock().expect("no case panics with it held").clone()
    }

    /// Whether the subject has this.
    pub(crate) fn has(&self, capability: Capability) -> bool {
        self.subject.capabilities().has.contains(&capability)
    }

    /// The states that the operations of the traits can bring a job into, as far as the subject has them.
    pub(crate) fn reachable_states(&self) -> Vec<JobState> {
        let reachable = |state: &JobState| match state {
            JobState::Waiting => self.has(Capability::Notes),
            JobState::Failed => self.has(Capability::Queues),
            _ => true,
        };
        JobState::ALL.into_iter().filter(reachable).collect()
    }

    /// Every way in which an attempt can end that the subject has; after the last the job is ready again.
    pub(crate) fn every_end(&self) -> Vec<AttemptEnd> {
        let minute = Duration::from_mins(1);
        let mut ends = vec![
            AttemptEnd::Complete,
            AttemptEnd::CompleteWith { result: json("{\"sent\":true}") },
            retry_after(minute),
            AttemptEnd::Snooze { delay: minute },
            AttemptEnd::Release { delay: minute },
            AttemptEnd::Fail { error: ErrorText::new("fatal") },
            AttemptEnd::Cancel { reason: ErrorText::new("asked to") },
            AttemptEnd::Park { timeout: minute },
            AttemptEnd::Release { delay: Duration::ZERO },
        ];
        if !self.has(Capability::Notes) {
            ends.retain(|end| !matches!(end, AttemptEnd::Park { .. }));
        }
        ends
    }
}

/// The queue with this name.
pub(crate) fn queue(name: &str) -> QueueName {
    QueueName::new(name).expect("a case uses good names")
}

/// A job of the kind `test` in `queue`, whose arguments are the text `label`.
pub(crate) fn job(queue_name: &str, label: &str) -> NewJob {
    let kind = JobKind::new("test").expect("the name is good");
    NewJob::new(queue(queue_name), kind, json(&format!("\"{label}\"")))
}

/// JSON text.
pub(crate) fn json(text: &str) -> JsonText {
    JsonText::new("args", text).expect("a case uses good JSON")
}

/// The labels of claimed jobs, in order.
pub(crate) fn labels(jobs: &[ClaimedJob]) -> Vec<String> {
    jobs.iter().map(|job| job.args.as_str().trim_matches('"').to_owned()).collect()
}

/// The ids of claimed jobs, in order.
pub(crate) fn ids(jobs: &[ClaimedJob]) -> Vec<JobId> {
    jobs.iter().map(|job| job.receipt.job).collect()
}

/// A retry after `delay` because of the error `boom`.
pub(crate) fn retry_after(delay: Duration) -> AttemptEnd {
    AttemptEnd::Retry { delay, error: ErrorText::new("boom") }
}

/// The answer of an operation that was carried out on a job in the state `from`.
pub(crate) fn done(from: JobState) -> Acted {
    Acted::Done { from }
}

/// A policy that waits one second, whatever the attempt.
pub(crate) fn steady_retry() -> RetryPolicy {
    let second = Duration::from_secs(1);
    RetryPolicy::exponential(second, second).and_then(|policy| policy.with_jitter(0.0)).expect("the policy makes sense")
}
