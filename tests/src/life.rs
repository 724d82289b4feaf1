//! A job's whole life through every call of a store, for odd schemas, roles and settings.

use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::retry::RetryPolicy;
use awa_core::ring::{RingKind, RotationPolicy};
use awa_core::store::{
    Acted, AttemptNote, BatchLimit, Callback, ClaimRequest, ClaimShape, JobFilter, Memory, NoteAnswer, RescueRequest,
    Rescued, RetentionPolicy, Task, Woken,
};
use awa_core::{
    AttemptEnd, CallbackAnswer, CallbackToken, ClaimedJob, Closure, ClosureAnswer, InstanceId, JobId, JobKind,
    JobState, JsonText, NewJob, Nonce, QueueName, RunAt, Store,
};

const ME: InstanceId = InstanceId(0x11FE);
const RESCUER: InstanceId = InstanceId(0x11FF);
const LONG: Duration = Duration::from_hours(1);
/// How long a rescuer must have been healthy, and its last beat is younger than that, on a slow machine too.
const HEALTHY: Duration = Duration::from_millis(500);
/// How often a rescuer is asked that was not healthy for so long yet.
const ROUNDS: usize = 10_000;

struct Life<'s> {
    store: &'s dyn Store,
    queue: QueueName,
}

/// Leads jobs through every call of a store; what comes out must be what the calls promise.
///
/// # Panics
///
/// When anything fails or answers otherwise.
pub async fn whole_life(store: &dyn Store, queue: &str) {
    let life = Life { store, queue: QueueName::new(queue).expect("a test uses good names") };
    store.open_queue(&life.queue).await.expect("open_queue");
    store.open_queues(std::slice::from_ref(&life.queue)).await.expect("open_queues");
    life.ends().await;
    life.parks().await;
    life.wishes().await;
    life.rescue().await;
    life.looks().await;
    life.wakes().await;
    life.maintenance().await;
}

impl Life<'_> {
    fn job(&self) -> NewJob {
        let args = JsonText::new("args", r#"{"text":"O'Reilly \\ \" $1 %s ü"}"#).expect("the text is JSON");
        NewJob::new(self.queue.clone(), JobKind::new("life").expect("the name is good"), args)
    }

    async fn enqueue(&self, jobs: &[NewJob]) -> Vec<JobId> {
        self.store.enqueue(jobs).await.expect("enqueue").iter().map(|answer| answer.id()).collect()
    }

    async fn claim(&self, max: usize) -> Vec<ClaimedJob> {
        let request = ClaimRequest {
            queue: self.queue.clone(),
            instance: ME,
            nonce: Nonce(42),
            max_jobs: BatchLimit::new(max).expect("a test claims 1 to 1,023 jobs"),
            max_bytes: 1 << 20,
            deadline: Some(LONG),
            aging: Some(LONG),
            shape: ClaimShape::Compact,
        };
        self.store.claim(&request).await.expect("claim").jobs
    }

    async fn end(&self, job: &ClaimedJob, end: AttemptEnd) {
        let closure = Closure { receipt: job.receipt, end };
        let answers = self.store.close(std::slice::from_ref(&closure)).await.expect("close");
        assert_eq!(answers, [ClosureAnswer::Closed], "{closure:?}");
        assert_eq!(self.store.close(&[closure]).await.expect("close again"), [ClosureAnswer::Stale]);
    }

    async fn state(&self, job: JobId) -> JobState {
        self.store.get(job).await.expect("get").expect("the job is kept").state
    }

    async fn ends(&self) {
        let ids = self.enqueue(&vec![self.job(); 7]).await;
        let jobs = self.claim(100).await;
        assert_eq!(jobs.iter().map(|job| job.receipt.job).collect::<Vec<_>>(), ids);
        assert_eq!(jobs[0].args, *self.job().args());
        assert_eq!(self.store.are_open(&[jobs[0].receipt]).await.expect("are_open"), [true]);
        assert_eq!(self.store.open_attempts(ME, 100).await.expect("open_attempts").len(), 7);
        let text = ErrorText::new("it's \"broken\" \\ $$");
        let result = JsonText::new("result", "{\"ok\":true}").expect("the text is JSON");
        let ends = [
            (AttemptEnd::Complete, JobState::Completed),
            (AttemptEnd::CompleteWith { result }, JobState::Completed),
            (AttemptEnd::Retry { delay: Duration::ZERO, error: text.clone() }, JobState::Deferred),
            (AttemptEnd::Snooze { delay: LONG }, JobState::Deferred),
            (AttemptEnd::Release { delay: Duration::ZERO }, JobState::Ready),
            (AttemptEnd::Fail { error: text.clone() }, JobState::Dead),
            (AttemptEnd::Cancel { reason: text }, JobState::Cancelled),
        ];
        for (job, (end, state)) in jobs.iter().zip(ends) {
            self.end(job, end).await;
            assert_eq!(self.state(job.receipt.job).await, state);
        }
        assert_eq!(self.store.promote(100).await.expect("promote").jobs, 1);
        for job in self.claim(100).await {
            self.end(&job, AttemptEnd::Complete).await;
        }
    }

    async fn parks(&self) {
        self.enqueue(&[self.job()]).await;
        let attempt = self.claim(1).await.remove(0);
        let text = |text| JsonText::new("progress", text).expect("the text is JSON");
        let token = CallbackToken(u128::MAX - 1);
        let note = AttemptNote { progress: Some(text("[1]")), ..AttemptNote::callback(attempt.receipt, token) };
        let answers = self.store.note(std::slice::from_ref(&note)).await.expect("note");
        assert_eq!(answers, [NoteAnswer::Noted { callback: Some(token) }]);
        self.end(&attempt, AttemptEnd::Park { timeout: LONG }).await;
        assert_eq!(self.state(attempt.receipt.job).await, JobState::Waiting);
        assert_eq!(self.store.note(&[note]).await.expect("note"), [NoteAnswer::Stale]);
        let callback = Callback { token, payload: text("{\"paid\":1}") };
        assert_eq!(self.store.resume(&[callback]).await.expect("resume"), [CallbackAnswer::Resumed]);
        let next = self.claim(1).await.remove(0);
        let memory = Memory { progress: Some(text("[1]")), payload: Some(text("{\"paid\":1}")) };
        assert_eq!(self.store.recall(&[next.receipt]).await.expect("recall"), [Some(memory)]);
        self.end(&next, AttemptEnd::Complete).await;
    }

    async fn wishes(&self) {
        let later = self.job().with_run_at(RunAt::after(LONG).expect("an hour is allowed"));
        let ids = self.enqueue(&[self.job(), later.clone(), later]).await;
        let reason = ErrorText::new("no 'longer' wanted");
        let done = |from| Acted::Done { from };
        let wishes = self.store.retry(&ids[2..]).await.expect("retry");
        assert_eq!(wishes, [done(JobState::Deferred)]);
        let running = self.claim(1).await[0].receipt.job;
        let mut sorted = ids.clone();
        sorted.sort_by_key(|id| *id != running);
        let acted = self.store.cancel(&sorted, &reason).await.expect("cancel");
        assert_eq!(acted[0], done(JobState::Running));
        assert!(acted.contains(&done(JobState::Ready)) && acted.contains(&done(JobState::Deferred)), "{acted:?}");
        self.store.set_paused(&self.queue, true).await.expect("pause");
        self.enqueue(&[self.job()]).await;
        assert!(self.claim(5).await.is_empty());
        self.store.set_paused(&self.queue, false).await.expect("go on");
        let jobs = self.claim(5).await;
        self.end(&jobs[0], AttemptEnd::Complete).await;
        let filter = JobFilter { queue: Some(self.queue.clone()), limit: 1_000, ..JobFilter::default() };
        let listed = self.store.list(&filter).await.expect("list").len() as u64;
        let counted: u64 = self.store.census().await.expect("census").iter().map(|count| count.jobs).sum();
        let views = self.store.queues().await.expect("queues");
        let view = views.iter().find(|view| view.queue == self.queue).expect("the queue is shown");
        assert_eq!(listed, counted);
        assert_eq!(view.ready + view.running + view.deferred + view.finished + view.dead, listed);
    }

    async fn rescue(&self) {
        let ids = self.enqueue(&[self.job()]).await;
        assert_eq!(self.claim(5).await.len(), 1);
        self.store.beat(ME, LONG).await.expect("beat");
        self.store.retire(ME).await.expect("retire");
        let second = Duration::from_secs(1);
        let retry = RetryPolicy::exponential(second, second).expect("the policy makes sense");
        let request = RescueRequest { rescuer: RESCUER, staleness: HEALTHY, page: 100 };
        let mut last = Rescued::default();
        for _ in 0..ROUNDS {
            self.store.beat(RESCUER, LONG).await.expect("beat");
            last = self.store.rescue(&request, &retry).await.expect("rescue");
            if last.attempts.len() == 1 {
                assert_eq!(self.state(ids[0]).await, JobState::Deferred);
                return;
            }
        }
        panic!("the attempt was not rescued: {last:?}, and is {}", self.state(ids[0]).await);
    }

    async fn looks(&self) {
        let queue = std::slice::from_ref(&self.queue);
        self.enqueue(&[self.job()]).await;
        assert_eq!(self.store.peek(queue).await.expect("peek").waiting, [true]);
        let jobs = self.claim(5).await;
        self.end(&jobs[0], AttemptEnd::Complete).await;
        assert_eq!(self.claim(5).await, []);
        assert_eq!(self.store.peek(queue).await.expect("peek").waiting, [false]);
    }

    async fn wakes(&self) {
        let Some(wakeups) = self.store.wakeups() else { return };
        let ticket = wakeups.announce(ME, std::slice::from_ref(&self.queue)).await.expect("announce");
        assert!(ticket.announced);
        assert!(self.claim(5).await.is_empty());
        self.enqueue(&[self.job()]).await;
        let woken = wakeups.wait(ME, Duration::from_secs(20)).await.expect("wait");
        assert_eq!(woken, Woken::Queues(vec![self.queue.clone()]), "no wake-up came");
        wakeups.withdraw(ME, std::slice::from_ref(&self.queue)).await.expect("withdraw");
        let jobs = self.claim(5).await;
        self.end(&jobs[0], AttemptEnd::Complete).await;
    }

    async fn maintenance(&self) {
        for task in Task::ALL {
            self.store.try_tick(task, LONG).await.expect("try_tick");
        }
        self.store.tidy().await.expect("tidy");
        let policy = RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 };
        let nothing = RetentionPolicy::NONE;
        for ring in [RingKind::Queue, RingKind::Claim] {
            self.store.rotate(ring, &policy).await.expect("rotate");
        }
        self.store.drain().await.expect("drain");
        for ring in [RingKind::Claim, RingKind::Queue] {
            let reports = self.store.prune(ring, &nothing).await.expect("prune");
            assert!(!reports.is_empty() && reports.iter().all(|report| report.kept.is_none()), "{ring}: {reports:?}");
        }
    }
}
