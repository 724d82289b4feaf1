//! A store in memory that does what the contract says and what a script adds: outages, refusals, lost answers.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use awa_core::attempt::{ErrorText, Receipt};
use awa_core::id::Slot;
use awa_core::retry::RetryPolicy;
use awa_core::ring::{RingKind, RotationPolicy, StayReason};
use awa_core::store::*;
use awa_core::unpin::UnpinPolicy;
use awa_core::*;
use awa_runtime::core as awa_core;
use tokio::time::Instant;

/// What the script says about one closure call.
pub type CloseScript = Box<dyn FnMut(&[Closure]) -> Option<Result<Vec<ClosureAnswer>, StoreError>> + Send>;
/// What the script says about one claim call: a delay of the answer, or an error instead of it.
pub type ClaimScript = Box<dyn FnMut(&ClaimRequest) -> Reply + Send>;

/// How the answer of a claim reaches the caller.
#[derive(Default)]
pub enum Reply {
    #[default]
    AtOnce,
    /// The claim is committed, and the answer comes when this is notified.
    When(Arc<tokio::sync::Notify>),
    /// The claim is committed, and the answer is lost.
    Lost,
    /// No jobs, but there are more.
    MoreWithoutAny,
    Error(StoreErrorKind),
}

#[derive(Clone)]
struct Known {
    queue: QueueName,
    kind: JobKind,
    args: JsonText,
    max_attempts: awa_core::job::MaxAttempts,
    attempt: u32,
    run_lease: i64,
}

#[derive(Default)]
struct State {
    next_job: i64,
    next_batch: i64,
    known: BTreeMap<i64, Known>,
    ready: VecDeque<i64>,
    deferred: Vec<(Instant, i64)>,
    open: BTreeMap<ReceiptId, Receipt>,
    ends: Vec<(Receipt, AttemptEnd)>,
    calls: Vec<(Instant, &'static str, usize)>,
    runs: HashMap<i64, u32>,
    close_script: Option<CloseScript>,
    claim_script: Option<ClaimScript>,
    failing: HashMap<&'static str, StoreErrorKind>,
    panicking: Vec<&'static str>,
}

/// How long a call is on its way to the store, and its answer on the way back.
pub type Latency = Arc<dyn Fn() -> [Duration; 2] + Send + Sync>;

/// See the module.
#[derive(Default)]
pub struct FakeStore {
    state: Mutex<State>,
    latency: Mutex<Option<Latency>>,
    /// When each task had its last turn.
    turns: Mutex<BTreeMap<Task, Instant>>,
    pub wakeups: Option<FakeWakeups>,
}

impl FakeStore {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    pub fn with_wakeups(wakeups: FakeWakeups) -> Arc<Self> {
        Arc::new(Self { wakeups: Some(wakeups), ..Self::default() })
    }

    /// Enqueues numbered jobs of `kind` with these arguments.
    pub fn put(&self, kind: &str, args: impl IntoIterator<Item = String>) {
        let kind = JobKind::new(kind).unwrap();
        for args in args {
            let args = JsonText::new("args", args).unwrap();
            self.insert(&NewJob::new(QueueName::new("default").unwrap(), kind.clone(), args));
        }
    }

    /// Enqueues one job of the kind `numbered` into this queue.
    pub fn put_into(&self, queue: &str) -> JobId {
        let args = JsonText::new("args", "{\"number\":0}").unwrap();
        self.insert(&NewJob::new(QueueName::new(queue).unwrap(), JobKind::new("numbered").unwrap(), args))
    }

    /// Enqueues `count` jobs of the kind `numbered`, numbered from 0.
    pub fn put_numbered(&self, count: usize) {
        self.put("numbered", (0..count).map(|number| format!("{{\"number\":{number}}}")));
    }

    pub fn on_close(&self, script: CloseScript) {
        self.state().close_script = Some(script);
    }

    pub fn on_claim(&self, script: ClaimScript) {
        self.state().claim_script = Some(script);
    }

    /// Lets claims, looks and announcements travel for so long from now on.
    pub fn travel(&self, latency: Latency) {
        if let Some(wakeups) = &self.wakeups {
            *wakeups.latency.lock().unwrap() = Some(Arc::clone(&latency));
        }
        *self.latency.lock().unwrap() = Some(latency);
    }

    /// Makes calls of `operation` fail, or work again.
    pub fn fail(&self, operation: &'static str, kind: Option<StoreErrorKind>) {
        let mut state = self.state();
        match kind {
            Some(kind) => state.failing.insert(operation, kind),
            None => state.failing.remove(operation),
        };
    }

    /// Makes the next call of `operation` panic.
    pub fn panic_once(&self, operation: &'static str) {
        self.state().panicking.push(operation);
    }

    /// Ends an open attempt of a job behind its worker's back.
    pub fn end_elsewhere(&self, job: i64) {
        self.state().open.retain(|_, receipt| receipt.job.get() != job);
    }

    pub fn ends(&self) -> Vec<AttemptEnd> {
        self.state().ends.iter().map(|(_, end)| end.clone()).collect()
    }

    pub fn ends_of(&self, job: i64) -> Vec<AttemptEnd> {
        self.state().ends.iter().filter(|(receipt, _)| receipt.job.get() == job).map(|(_, end)| end.clone()).collect()
    }

    pub fn completed(&self) -> usize {
        self.ends().iter().filter(|end| matches!(end, AttemptEnd::Complete)).count()
    }

    pub fn open(&self) -> usize {
        self.state().open.len()
    }

    /// The calls of `operation` so far, as moment and size.
    pub fn calls(&self, operation: &str) -> Vec<(Instant, usize)> {
        self.state().calls.iter().filter(|call| call.1 == operation).map(|call| (call.0, call.2)).collect()
    }

    /// The number of all calls so far.
    pub fn all_calls(&self) -> usize {
        self.state().calls.len() + self.wakeups.as_ref().map_or(0, |wakeups| wakeups.log().len())
    }

    /// How often a job was handed out.
    pub fn claims_of(&self, job: i64) -> u32 {
        self.state().runs.get(&job).copied().unwrap_or_default()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The same, by a producer who leaves the wake-up to another.
    pub fn put_silently_into(&self, queue: &str) -> JobId {
        let args = JsonText::new("args", "{\"number\":0}").unwrap();
        self.append(&NewJob::new(QueueName::new(queue).unwrap(), JobKind::new("numbered").unwrap(), args))
    }

    fn insert(&self, job: &NewJob) -> JobId {
        let id = self.append(job);
        if let Some(wakeups) = &self.wakeups {
            wakeups.ring(job.queue());
        }
        id
    }

    fn append(&self, job: &NewJob) -> JobId {
        let mut state = self.state();
        state.next_job += 1;
        let id = state.next_job;
        let (queue, kind, args) = (job.queue().clone(), job.kind().clone(), job.args().clone());
        state.known.insert(id, Known { queue, kind, args, max_attempts: job.max_attempts(), attempt: 0, run_lease: 0 });
        state.ready.push_back(id);
        JobId(id)
    }

    fn enter(&self, operation: &'static str, size: usize) -> Result<(), StoreError> {
        let mut state = self.state();
        state.calls.push((Instant::now(), operation, size));
        if let Some(at) = state.panicking.iter().position(|name| *name == operation) {
            state.panicking.remove(at);
            drop(state);
            panic!("{operation} panics by the script");
        }
        match state.failing.get(operation) {
            Some(&kind) => Err(StoreError::new(kind, operation, "fails by the script")),
            None => Ok(()),
        }
    }
}

impl State {
    fn claim(&mut self, request: &ClaimRequest) -> Claimed {
        let now = Instant::now();
        let (due, later) = std::mem::take(&mut self.deferred).into_iter().partition(|(at, _)| *at <= now);
        self.deferred = later;
        self.ready.extend(due.into_iter().map(|(_, job): (Instant, i64)| job));
        let mut jobs = Vec::new();
        for _ in 0..request.max_jobs.get() {
            let Some(at) = self.ready.iter().position(|job| self.known[job].queue == request.queue) else { break };
            let job = self.ready.remove(at).unwrap();
            jobs.push(self.hand_out(job, request, jobs.len() + 1));
        }
        self.next_batch += 1;
        Claimed { jobs, horizon: Horizon(self.next_job.unsigned_abs()), ..Claimed::default() }
    }

    fn peek(&self, queues: &[QueueName]) -> Peeked {
        let now = Instant::now();
        let due = self.deferred.iter().filter(|(at, _)| *at <= now).map(|(_, job)| job);
        let busy: HashSet<&QueueName> = self.ready.iter().chain(due).map(|job| &self.known[job].queue).collect();
        let waiting = queues.iter().map(|queue| busy.contains(queue)).collect();
        Peeked { waiting, horizon: Horizon(self.next_job.unsigned_abs()) }
    }

    fn hand_out(&mut self, job: i64, request: &ClaimRequest, index: usize) -> ClaimedJob {
        *self.runs.entry(job).or_default() += 1;
        let known = self.known.get_mut(&job).unwrap();
        known.attempt += 1;
        known.run_lease += 1;
        let receipt = Receipt {
            id: ReceiptId::new(BatchId(self.next_batch), index.try_into().unwrap()),
            claim_slot: Slot(0),
            nonce: request.nonce,
            job: JobId(job),
            run_lease: RunLease(known.run_lease),
        };
        self.open.insert(receipt.id, receipt);
        ClaimedJob {
            receipt,
            queue: known.queue.clone(),
            kind: known.kind.clone(),
            args: known.args.clone(),
            metadata: None,
            priority: Priority::default(),
            attempt: known.attempt,
            max_attempts: known.max_attempts,
            created_at: Timestamp::EPOCH,
            claimed_at: Timestamp::EPOCH,
            deadline_at: None,
        }
    }

    fn close(&mut self, closure: &Closure) -> ClosureAnswer {
        if self.open.remove(&closure.receipt.id) != Some(closure.receipt) {
            return ClosureAnswer::Stale;
        }
        let job = closure.receipt.job.get();
        if !closure.end.is_charged() {
            self.known.get_mut(&job).unwrap().attempt -= 1;
        }
        match &closure.end {
            AttemptEnd::Release { delay: Duration::ZERO } => self.ready.push_front(job),
            AttemptEnd::Retry { delay, .. } | AttemptEnd::Snooze { delay } | AttemptEnd::Release { delay } => {
                self.deferred.push((Instant::now() + *delay, job));
            }
            _ => {}
        }
        self.ends.push((closure.receipt, closure.end.clone()));
        ClosureAnswer::Closed
    }
}

#[async_trait]
impl Producer for FakeStore {
    async fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        self.enter("enqueue", jobs.len())?;
        Ok(jobs.iter().map(|job| Enqueued::Inserted(self.insert(job))).collect())
    }
}

#[async_trait]
impl Consumer for FakeStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed, StoreError> {
        self.enter("claim", request.max_jobs.get().into())?;
        let [there, back] = times(&self.latency);
        tokio::time::sleep(there).await;
        let (reply, claimed) = {
            let mut state = self.state();
            let reply = state.claim_script.as_mut().map_or_else(Reply::default, |script| script(request));
            match reply {
                Reply::Error(kind) => return Err(StoreError::new(kind, "claim", "fails by the script")),
                Reply::MoreWithoutAny => return Ok(Claimed { more: true, ..Claimed::default() }),
                Reply::AtOnce | Reply::When(_) | Reply::Lost => {}
            }
            (reply, state.claim(request))
        };
        match reply {
            Reply::When(sent) => sent.notified().await,
            Reply::Lost => return Err(StoreError::new(StoreErrorKind::Unavailable, "claim", "the answer is lost")),
            Reply::AtOnce | Reply::MoreWithoutAny | Reply::Error(_) => {}
        }
        tokio::time::sleep(back).await;
        Ok(claimed)
    }

    async fn close(&self, closures: &[Closure]) -> Result<Vec<ClosureAnswer>, StoreError> {
        self.enter("close", closures.len())?;
        let mut state = self.state();
        if let Some(mut script) = state.close_script.take() {
            let scripted = script(closures);
            state.close_script = Some(script);
            if let Some(answer) = scripted {
                return answer;
            }
        }
        Ok(closures.iter().map(|closure| state.close(closure)).collect())
    }

    async fn beat(&self, _: InstanceId, _: Duration) -> Result<(), StoreError> {
        self.enter("beat", 1)
    }

    async fn retire(&self, _: InstanceId) -> Result<(), StoreError> {
        self.enter("retire", 1)
    }

    async fn open_attempts(&self, _: InstanceId, limit: usize) -> Result<Vec<Receipt>, StoreError> {
        self.enter("open_attempts", limit)?;
        Ok(self.state().open.values().copied().take(limit).collect())
    }

    async fn are_open(&self, receipts: &[Receipt]) -> Result<Vec<bool>, StoreError> {
        self.enter("are_open", receipts.len())?;
        let state = self.state();
        Ok(receipts.iter().map(|receipt| state.open.get(&receipt.id) == Some(receipt)).collect())
    }

    async fn peek(&self, queues: &[QueueName]) -> Result<Peeked, StoreError> {
        self.enter("peek", queues.len())?;
        let [there, back] = times(&self.latency);
        tokio::time::sleep(there).await;
        let peeked = self.state().peek(queues);
        tokio::time::sleep(back).await;
        Ok(peeked)
    }
}

/// Notes are taken while the attempt is open, and forgotten; nobody ever calls back.
#[async_trait]
impl Attempts for FakeStore {
    async fn note(&self, notes: &[AttemptNote]) -> Result<Vec<NoteAnswer>, StoreError> {
        self.enter("note", notes.len())?;
        let state = self.state();
        let is_open = |note: &AttemptNote| state.open.get(&note.receipt.id) == Some(&note.receipt);
        let answer = |note: &AttemptNote| NoteAnswer::Noted { callback: note.callback };
        Ok(notes.iter().map(|note| if is_open(note) { answer(note) } else { NoteAnswer::Stale }).collect())
    }

    async fn recall(&self, receipts: &[Receipt]) -> Result<Vec<Option<Memory>>, StoreError> {
        self.enter("recall", receipts.len())?;
        let state = self.state();
        let is_open = |receipt: &Receipt| state.open.get(&receipt.id) == Some(receipt);
        Ok(receipts.iter().map(|receipt| is_open(receipt).then(Memory::default)).collect())
    }

    async fn resume(&self, callbacks: &[Callback]) -> Result<Vec<CallbackAnswer>, StoreError> {
        self.enter("resume", callbacks.len())?;
        Ok(vec![CallbackAnswer::Unknown; callbacks.len()])
    }
}

#[async_trait]
impl Maintainer for FakeStore {
    async fn try_tick(&self, task: Task, every: Duration) -> Result<bool, StoreError> {
        self.enter("try_tick", 1)?;
        let now = Instant::now();
        let mut turns = self.turns.lock().unwrap();
        let is_due = turns.get(&task).is_none_or(|last| now - *last >= every);
        if is_due {
            turns.insert(task, now);
        }
        Ok(is_due)
    }

    async fn promote(&self, limit: usize) -> Result<Promoted, StoreError> {
        self.enter("promote", limit)?;
        Ok(Promoted::default())
    }

    async fn rescue(&self, request: &RescueRequest, _: &RetryPolicy) -> Result<Rescued, StoreError> {
        self.enter("rescue", request.page)?;
        Ok(Rescued::default())
    }

    async fn rotate(&self, _: RingKind, _: &RotationPolicy) -> Result<Rotated, StoreError> {
        self.enter("rotate", 1)?;
        Ok(Rotated::Stayed(StayReason::NotDue))
    }

    async fn drain(&self) -> Result<Drained, StoreError> {
        self.enter("drain", 1)?;
        Ok(Drained::default())
    }

    async fn unpin(&self, _: &UnpinPolicy) -> Result<Unpinned, StoreError> {
        self.enter("unpin", 1)?;
        Ok(Unpinned::default())
    }

    async fn prune(&self, _: RingKind, _: &RetentionPolicy) -> Result<Vec<PruneReport>, StoreError> {
        self.enter("prune", 1)?;
        Ok(Vec::new())
    }

    async fn tidy(&self) -> Result<(), StoreError> {
        self.enter("tidy", 1)
    }

    async fn open_queue(&self, _: &QueueName) -> Result<(), StoreError> {
        self.enter("open_queue", 1)
    }

    async fn forget_dead(&self, _: Duration, _: usize) -> Result<usize, StoreError> {
        self.enter("forget_dead", 1).map(|()| 0)
    }

    async fn open_queues(&self, queues: &[QueueName]) -> Result<(), StoreError> {
        self.enter("open_queues", queues.len())
    }
}

/// A worker never asks as an operator does.
#[async_trait]
impl Operator for FakeStore {
    async fn get(&self, _: JobId) -> Result<Option<JobView>, StoreError> {
        unreachable!("a worker is no operator")
    }

    async fn list(&self, _: &JobFilter) -> Result<Vec<JobView>, StoreError> {
        unreachable!("a worker is no operator")
    }

    async fn queues(&self) -> Result<Vec<QueueView>, StoreError> {
        unreachable!("a worker is no operator")
    }

    async fn census(&self) -> Result<Vec<CensusCount>, StoreError> {
        unreachable!("a worker is no operator")
    }

    async fn cancel(&self, _: &[JobId], _: &ErrorText) -> Result<Vec<Acted>, StoreError> {
        unreachable!("a worker is no operator")
    }

    async fn retry(&self, _: &[JobId]) -> Result<Vec<Acted>, StoreError> {
        unreachable!("a worker is no operator")
    }

    async fn set_paused(&self, _: &QueueName, _: bool) -> Result<(), StoreError> {
        unreachable!("a worker is no operator")
    }

    async fn configure_queue(&self, _: &QueueName, _: &QueueSettings) -> Result<(), StoreError> {
        unreachable!("a worker is no operator")
    }

    async fn queue_settings(&self, _: &QueueName) -> Result<QueueSettings, StoreError> {
        unreachable!("a worker is no operator")
    }

    async fn move_jobs(&self, _: &[JobId], _: &MoveTo) -> Result<Vec<Acted>, StoreError> {
        unreachable!("a worker is no operator")
    }

    async fn purge_queue(&self, _: &QueueName, _: PurgeScope) -> Result<Purged, StoreError> {
        unreachable!("a worker is no operator")
    }

    async fn delete(&self, _: &[JobId]) -> Result<Vec<Acted>, StoreError> {
        unreachable!("a worker is no operator")
    }

    async fn grow_ring(&self, _: RingKind, _: u8) -> Result<Grown, StoreError> {
        unreachable!("a worker is no operator")
    }

    async fn counts(&self, _: Accuracy) -> Result<Counts, StoreError> {
        unreachable!("a worker is no operator")
    }
}

impl Store for FakeStore {
    fn describe(&self) -> String {
        "scripted".into()
    }

    fn wakeups(&self) -> Option<&dyn Wakeups> {
        self.wakeups.as_ref().map(|wakeups| wakeups as _)
    }

    fn is_durable(&self) -> bool {
        false
    }
}

/// Wake-ups whose announcements become sound when the script says so.
pub struct FakeWakeups {
    log: Mutex<Vec<String>>,
    sound_from: Mutex<SleepTicket>,
    heard: Mutex<Heard>,
    latency: Mutex<Option<Latency>>,
    hint: tokio::sync::Notify,
    /// So many queues share a wake-up, by the number at the end of their names.
    shared_by: u32,
}

#[derive(Default)]
struct Heard {
    announced: BTreeSet<QueueName>,
    rung: BTreeSet<QueueName>,
    is_void: bool,
}

impl FakeWakeups {
    pub fn new(sound_from: u64, announced: bool) -> Self {
        let ticket = SleepTicket { sound_from: Horizon(sound_from), announced };
        let (log, sound_from, heard) = (Mutex::default(), Mutex::new(ticket), Mutex::default());
        Self { log, sound_from, heard, latency: Mutex::default(), hint: tokio::sync::Notify::new(), shared_by: 1 }
    }

    /// The same, with one wake-up for so many queues.
    pub fn shared_by(self, queues: u32) -> Self {
        Self { shared_by: queues, ..self }
    }

    pub fn set_sound_from(&self, horizon: u64) {
        self.sound_from.lock().unwrap().sound_from = Horizon(horizon);
    }

    /// What was asked, in order: `announce <queues>`, `withdraw <queues>`.
    pub fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    /// The queues whose producers notify.
    pub fn announced(&self) -> usize {
        self.heard.lock().unwrap().announced.len()
    }

    /// Loses all announcements, as with a connection.
    pub fn lose(&self) {
        let mut heard = self.heard.lock().unwrap();
        *heard = Heard { is_void: true, ..Heard::default() };
        self.hint.notify_one();
    }

    /// Somebody commits who notifies for this queue.
    pub fn ring(&self, queue: &QueueName) {
        let bucket = |queue: &QueueName| {
            let number: String = queue.as_str().chars().filter(char::is_ascii_digit).collect();
            number.parse::<u32>().unwrap_or_default() / self.shared_by
        };
        let mut heard = self.heard.lock().unwrap();
        let woken: Vec<_> = heard.announced.iter().filter(|other| bucket(other) == bucket(queue)).cloned().collect();
        heard.rung.extend(woken);
        self.hint.notify_one();
    }

    fn note(&self, what: &str, queues: &[QueueName]) {
        self.log.lock().unwrap().push(format!("{what} {}", queues.len()));
    }

    fn take(&self) -> Option<Woken> {
        let mut heard = self.heard.lock().unwrap();
        if std::mem::take(&mut heard.is_void) {
            return Some(Woken::Void);
        }
        let rung = std::mem::take(&mut heard.rung);
        (!rung.is_empty()).then(|| Woken::Queues(rung.into_iter().collect()))
    }
}

#[async_trait]
impl Wakeups for FakeWakeups {
    async fn announce(&self, _: InstanceId, queues: &[QueueName]) -> Result<SleepTicket, StoreError> {
        self.note("announce", queues);
        let [there, back] = times(&self.latency);
        tokio::time::sleep(there).await;
        let ticket = *self.sound_from.lock().unwrap();
        if ticket.announced {
            self.heard.lock().unwrap().announced.extend(queues.iter().cloned());
        }
        tokio::time::sleep(back).await;
        Ok(ticket)
    }

    async fn withdraw(&self, _: InstanceId, queues: &[QueueName]) -> Result<(), StoreError> {
        self.note("withdraw", queues);
        self.heard.lock().unwrap().announced.retain(|queue| !queues.contains(queue));
        Ok(())
    }

    async fn wait(&self, _: InstanceId, at_most: Duration) -> Result<Woken, StoreError> {
        let heard = async {
            loop {
                match self.take() {
                    Some(woken) => return woken,
                    None => self.hint.notified().await,
                }
            }
        };
        Ok(tokio::time::timeout(at_most, heard).await.unwrap_or(Woken::Nothing))
    }
}

fn times(latency: &Mutex<Option<Latency>>) -> [Duration; 2] {
    latency.lock().unwrap().as_ref().map_or([Duration::ZERO; 2], |latency| latency())
}
