//! Random histories of everything that a store can do, with a bookkeeper beside them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;

use super::places::Place;
use super::rows::Lane;
use super::{Model, RingSizes, TransactionId};
use crate::attempt::{AttemptEnd, Closure, ClosureAnswer, ErrorText, Receipt};
use crate::callback::{CallbackAnswer, CallbackToken};
use crate::id::{Generation, InstanceId, JobId, Nonce};
use crate::job::{Enqueued, MaxAttempts, NewJob, Priority, RunAt};
use crate::json::JsonText;
use crate::name::{JobKind, QueueName};
use crate::queue::{OrderingKey, QueueSettings, ShardCount};
use crate::retry::RetryPolicy;
use crate::ring::{RingKind, RotationPolicy};
use crate::state::JobState;
use crate::store::{
    Acted, AttemptNote, BatchLimit, Callback, ClaimRequest, ClaimShape, JobFilter, MoveTo, NoteAnswer, PurgeScope,
    Refusal, RescueRequest, RetentionPolicy,
};
use crate::time::Timestamp;
use crate::unique::{KeyStates, OnConflict, Unique, UniqueBy};
use crate::unpin::UnpinPolicy;

const STALENESS: Duration = Duration::from_secs(30);
const PATIENT: RetentionPolicy = RetentionPolicy::uniform(Duration::from_mins(1), u64::MAX);
const IMPATIENT: RetentionPolicy = RetentionPolicy::NONE;
const AT_ONCE: RotationPolicy = RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 };
const RESCUER: InstanceId = InstanceId(9);

#[derive(Clone, Debug)]
enum Op {
    Begin,
    EnqueueIn { transaction: Index, jobs: Vec<(u8, i16, u8, u8)> },
    End { transaction: Index, commit: bool },
    Claim { queue: u8, max_jobs: usize, instance: i64, deadline: bool, aging: bool, max_bytes: u64, row_local: bool },
    Close { receipts: Vec<(Index, u8)> },
    Note { receipt: Index, progress: Option<u8>, callback: bool },
    Resume { token: Index },
    Beat { instance: i64 },
    Retire { instance: i64 },
    Rescue { page: usize },
    Promote { limit: usize },
    Rotate { ring: RingKind },
    Drain,
    Unpin { max_rows: u32, max_attempts: u32 },
    Prune { ring: RingKind, patient: bool },
    Cancel { job: Index },
    CancelIn { transaction: Index, job: Index },
    Retry { job: Index },
    Move { job: Index, queue: Option<u8>, priority: i16 },
    Purge { queue: u8, scope: PurgeScope },
    Delete { job: Index },
    Pause { queue: u8, paused: bool },
    Configure { queue: u8, shards: i64, dead_letter: bool },
    Pass { seconds: u64 },
}

fn op() -> impl Strategy<Value = Op> {
    let job = (0_u8..2, 1_i16..=4, 0_u8..8, 0_u8..12);
    prop_oneof![
        3 => Just(Op::Begin),
        6 => (any::<Index>(), prop::collection::vec(job, 1..4))
            .prop_map(|(transaction, jobs)| Op::EnqueueIn { transaction, jobs }),
        4 => (any::<Index>(), prop::bool::weighted(0.8)).prop_map(|(transaction, commit)| Op::End { transaction, commit }),
        8 => (0_u8..2, 1_usize..5, 1_i64..4, any::<bool>(), any::<bool>(), prop_oneof![Just(u64::MAX), 1_u64..20], any::<bool>())
            .prop_map(|(queue, max_jobs, instance, deadline, aging, max_bytes, row_local)| Op::Claim {
                queue, max_jobs, instance, deadline, aging, max_bytes, row_local,
            }),
        8 => prop::collection::vec((any::<Index>(), 0_u8..11), 1..4).prop_map(|receipts| Op::Close { receipts }),
        5 => (any::<Index>(), prop::option::of(0_u8..9), any::<bool>())
            .prop_map(|(receipt, progress, callback)| Op::Note { receipt, progress, callback }),
        4 => any::<Index>().prop_map(|token| Op::Resume { token }),
        2 => (1_i64..4).prop_map(|instance| Op::Beat { instance }),
        1 => (1_i64..4).prop_map(|instance| Op::Retire { instance }),
        3 => (1_usize..4).prop_map(|page| Op::Rescue { page }),
        3 => (1_usize..4).prop_map(|limit| Op::Promote { limit }),
        4 => ring().prop_map(|ring| Op::Rotate { ring }),
        3 => Just(Op::Drain),
        4 => (0_u32..4, 0_u32..4).prop_map(|(max_rows, max_attempts)| Op::Unpin { max_rows, max_attempts }),
        4 => (ring(), any::<bool>()).prop_map(|(ring, patient)| Op::Prune { ring, patient }),
        3 => any::<Index>().prop_map(|job| Op::Cancel { job }),
        2 => (any::<Index>(), any::<Index>()).prop_map(|(transaction, job)| Op::CancelIn { transaction, job }),
        2 => any::<Index>().prop_map(|job| Op::Retry { job }),
        2 => (any::<Index>(), prop::option::of(0_u8..2), 1_i16..=4)
            .prop_map(|(job, queue, priority)| Op::Move { job, queue, priority }),
        1 => (0_u8..2, prop::sample::select(&[PurgeScope::Ready, PurgeScope::ReadyAndDeferred][..]))
            .prop_map(|(queue, scope)| Op::Purge { queue, scope }),
        1 => any::<Index>().prop_map(|job| Op::Delete { job }),
        1 => (0_u8..2, any::<bool>()).prop_map(|(queue, paused)| Op::Pause { queue, paused }),
        1 => (0_u8..2, 1_i64..4, any::<bool>())
            .prop_map(|(queue, shards, dead_letter)| Op::Configure { queue, shards, dead_letter }),
        3 => (1_u64..40).prop_map(|seconds| Op::Pass { seconds }),
    ]
}

/// What must be true, kept by other means than the model's.
struct Bookkeeper {
    model: Model,
    now: Timestamp,
    open: Vec<(TransactionId, Vec<JobId>)>,
    committed: BTreeMap<JobId, JobState>,
    never: BTreeSet<JobId>,
    receipts: Vec<Receipt>,
    closed: BTreeSet<Receipt>,
    leases: BTreeMap<JobId, i64>,
    progress: BTreeMap<JobId, u8>,
    tokens: Vec<(CallbackToken, Receipt)>,
    used: BTreeSet<CallbackToken>,
    nonce: i64,
}

impl Bookkeeper {
    fn new() -> Self {
        let now = Timestamp::from_micros(1_000_000_000);
        Self {
            model: Model::new(RingSizes { queue: 4, claim: 3, lease: 3 }, now),
            now,
            open: Vec::new(),
            committed: BTreeMap::new(),
            never: BTreeSet::new(),
            receipts: Vec::new(),
            closed: BTreeSet::new(),
            leases: BTreeMap::new(),
            progress: BTreeMap::new(),
            tokens: Vec::new(),
            used: BTreeSet::new(),
            nonce: 0,
        }
    }

    fn step(&mut self, op: &Op) {
        let now = self.now;
        match op {
            Op::Begin => {
                let transaction = self.model.begin();
                self.open.push((transaction, Vec::new()));
            }
            Op::EnqueueIn { transaction, jobs } => self.enqueue(*transaction, jobs),
            Op::End { transaction, commit } => {
                if !self.open.is_empty() {
                    self.end(transaction.index(self.open.len()), *commit);
                }
            }
            Op::Claim { queue, max_jobs, instance, deadline, aging, max_bytes, row_local } => {
                let request = ClaimRequest {
                    queue: queue_name(*queue),
                    instance: InstanceId(*instance),
                    nonce: Nonce(self.nonce),
                    max_jobs: BatchLimit::clamped(*max_jobs),
                    max_bytes: *max_bytes,
                    deadline: deadline.then_some(Duration::from_secs(20)),
                    aging: aging.then_some(Duration::from_secs(10)),
                    shape: if *row_local { ClaimShape::RowLocal } else { ClaimShape::Compact },
                };
                self.claim(&request);
            }
            Op::Close { receipts } => self.close(receipts),
            Op::Note { receipt, progress, callback } => self.note(*receipt, *progress, *callback),
            Op::Resume { token } => self.resume(*token),
            Op::Beat { instance } => self.model.beat(InstanceId(*instance), STALENESS, now),
            Op::Retire { instance } => self.model.retire(InstanceId(*instance), now),
            Op::Rescue { page } => self.rescue(*page),
            Op::Promote { limit } => drop(self.model.promote(*limit, now)),
            Op::Rotate { ring } => drop(self.model.rotate(*ring, &AT_ONCE, now)),
            Op::Drain => drop(self.model.drain()),
            Op::Unpin { max_rows, max_attempts } => {
                let policy = UnpinPolicy { min_free: 3, max_rows: *max_rows, max_attempts: *max_attempts };
                drop(self.model.unpin(&policy));
            }
            Op::Prune { ring, patient } => {
                let retention = if *patient { PATIENT } else { IMPATIENT };
                self.model.prune(*ring, &retention, now);
            }
            Op::Cancel { job } => {
                if let Some(job) = self.pick_job(*job) {
                    self.model.cancel(&[job], &ErrorText::new("unwanted"), now);
                    self.note_closed();
                }
            }
            Op::CancelIn { transaction, job } => self.cancel_in(*transaction, *job),
            Op::Retry { job } => {
                if let Some(job) = self.pick_job(*job) {
                    self.model.retry(&[job], now);
                }
            }
            Op::Move { job, queue, priority } => {
                if let Some(job) = self.pick_job(*job) {
                    self.move_job(job, *queue, *priority);
                }
            }
            Op::Purge { queue, scope } => self.purge(&queue_name(*queue), *scope),
            Op::Delete { job } => {
                if let Some(job) = self.pick_job(*job) {
                    self.delete(job);
                }
            }
            Op::Pause { queue, paused } => self.model.set_paused(&queue_name(*queue), *paused),
            Op::Configure { queue, shards, dead_letter } => {
                let settings = QueueSettings::default()
                    .with_enqueue_shards(ShardCount::new(*shards).unwrap())
                    .with_dead_letter(*dead_letter);
                self.model.configure_queue(&queue_name(*queue), &settings);
            }
            Op::Pass { seconds } => self.pass(*seconds),
        }
        self.audit();
    }

    fn cancel_in(&mut self, transaction: Index, job: Index) {
        if let (Some(job), false) = (self.pick_job(job), self.open.is_empty()) {
            let transaction = self.open[transaction.index(self.open.len())].0;
            let before = self.model.get(job);
            self.model.cancel_in(transaction, &[job], &ErrorText::new("unwanted"));
            assert_eq!(self.model.get(job), before, "a transaction that is open changes nothing for others");
        }
    }

    fn enqueue(&mut self, transaction: Index, jobs: &[(u8, i16, u8, u8)]) {
        let jobs: Vec<NewJob> =
            jobs.iter().map(|(queue, priority, delay, key)| new_job(*queue, *priority, *delay, *key)).collect();
        if self.open.is_empty() {
            let answers = self.model.enqueue(&jobs, self.now).expect("no other transaction is open");
            let answers = self.check_answers(&jobs, &answers, &[]);
            self.committed.extend(answers.iter().map(|id| (*id, self.model.get(*id).unwrap().state)));
            return;
        }
        let at = transaction.index(self.open.len());
        let before = self.model.clone();
        match self.model.enqueue_in(self.open[at].0, &jobs, self.now) {
            Ok(answers) => {
                let new = self.check_answers(&jobs, &answers, &self.open[at].1);
                self.open[at].1.extend(new);
            }
            Err(_) => assert_eq!(self.model, before, "a call that would have to wait changed something"),
        }
    }

    /// The ids that are new. A duplicate must be of a job that exists, and has not ended, or belongs to this transaction.
    fn check_answers(&self, jobs: &[NewJob], answers: &[Enqueued], own: &[JobId]) -> Vec<JobId> {
        let new: Vec<JobId> = answers.iter().filter(|answer| answer.is_inserted()).map(|answer| answer.id()).collect();
        for (job, answer) in jobs.iter().zip(answers).filter(|(_, answer)| !answer.is_inserted()) {
            assert!(job.unique().is_some(), "a job without a key has a duplicate");
            let holder = answer.id();
            let lives =
                self.model.get(holder).is_some_and(|view| !view.state.is_terminal() || view.state == JobState::Dead);
            assert!(new.contains(&holder) || own.contains(&holder) || lives, "the duplicate {holder} does not exist");
        }
        new
    }

    fn end(&mut self, at: usize, commit: bool) {
        let (transaction, jobs) = self.open.remove(at);
        if commit {
            self.model.commit(transaction, self.now);
            self.note_closed();
            self.committed.extend(jobs.iter().map(|job| (*job, self.model.get(*job).unwrap().state)));
        } else {
            self.model.rollback(transaction);
            self.never.extend(jobs);
        }
    }

    /// The ready jobs of each lane, by the order that the contract promises.
    fn eligible(&self) -> BTreeMap<Lane, Vec<JobId>> {
        let mut keys: BTreeMap<Lane, Vec<_>> = BTreeMap::new();
        for (_, place) in self.model.places(None) {
            match place {
                Place::Ready(ready) => {
                    let generation: Generation = self.model.queue_ring.generation(ready.slot);
                    keys.entry(ready.lane).or_default().push((generation, ready.key));
                }
                // What is carried over goes before all generations.
                Place::Carried(lane, key) => keys.entry(lane).or_default().push((Generation(0), key)),
                _ => {}
            }
        }
        let in_order = |mut keys: Vec<(Generation, crate::frontier::RowKey)>| {
            keys.sort_unstable();
            keys.into_iter().map(|(_, key)| key.job).collect()
        };
        keys.into_iter().map(|(lane, keys)| (lane, in_order(keys))).collect()
    }

    fn claim(&mut self, request: &ClaimRequest) {
        self.nonce += 1;
        let eligible = self.eligible();
        let peeked = self.model.peek(std::slice::from_ref(&request.queue));
        let claimed = self.model.claim(request, self.now);
        assert_eq!(peeked.horizon, claimed.horizon, "a look proves as much as a claim");
        assert!(peeked.waiting[0] || claimed.jobs.is_empty() && !claimed.more, "a look overlooked what a claim found");
        let mut taken: BTreeMap<Lane, Vec<JobId>> = BTreeMap::new();
        for job in &claimed.jobs {
            let lane = eligible.iter().find(|(_, jobs)| jobs.contains(&job.receipt.job));
            let lane = lane.expect("only what is eligible is handed out").0.clone();
            assert_eq!((&lane.queue, lane.priority), (&job.queue, job.priority));
            taken.entry(lane).or_default().push(job.receipt.job);
            let lease = self.leases.entry(job.receipt.job).or_insert(0);
            *lease += 1;
            assert_eq!(job.receipt.run_lease.get(), *lease, "a claim raises the lease by one");
            assert!(job.attempt <= u32::from(job.max_attempts.get().unsigned_abs()), "beyond the budget");
            self.receipts.push(job.receipt);
        }
        for (lane, jobs) in &taken {
            assert_eq!(eligible[lane][..jobs.len()], jobs[..], "a claim is an exact prefix of what is eligible");
        }
        let paused = self.model.queues.get(&request.queue).is_some_and(|queue| queue.paused);
        let complete = claimed.jobs.len() < usize::from(request.max_jobs.get()) && !claimed.more;
        if complete && !paused {
            for (lane, jobs) in eligible.iter().filter(|(lane, _)| lane.queue == request.queue) {
                assert_eq!(taken.get(lane), Some(jobs), "a claim that says it is complete left jobs behind");
            }
        }
    }

    fn close(&mut self, wishes: &[(Index, u8)]) {
        if self.receipts.is_empty() {
            return;
        }
        let closures: Vec<Closure> = wishes
            .iter()
            .map(|(receipt, end)| Closure {
                receipt: self.receipts[receipt.index(self.receipts.len())],
                end: attempt_end(*end),
            })
            .collect();
        let answers = self.model.close(&closures, self.now);
        for (closure, answer) in closures.iter().zip(answers) {
            let expected =
                if self.closed.insert(closure.receipt) { ClosureAnswer::Closed } else { ClosureAnswer::Stale };
            assert_eq!(answer, expected, "{closure:?}");
        }
    }

    /// A note is stored exactly when its attempt is open, and what was noted before is still there.
    fn note(&mut self, receipt: Index, progress: Option<u8>, callback: bool) {
        if self.receipts.is_empty() {
            return;
        }
        let receipt = self.receipts[receipt.index(self.receipts.len())];
        let is_open = !self.closed.contains(&receipt);
        let recalled = self.model.recall(&[receipt]).remove(0);
        assert_eq!(recalled.is_some(), is_open);
        if let Some(memory) = recalled {
            let expected = self.progress.get(&receipt.job).map(u8::to_string);
            assert_eq!(memory.progress.map(|text| text.as_str().to_owned()), expected);
        }
        self.nonce += 1;
        let token = CallbackToken(self.nonce.unsigned_abs().into());
        let note = AttemptNote {
            receipt,
            progress: progress.map(|number| JsonText::new("progress", number.to_string()).unwrap()),
            callback: callback.then_some(token),
        };
        let answer = self.model.note(&[note], self.now).remove(0);
        let known = self.tokens.iter().find(|(_, owner)| *owner == receipt).map(|(token, _)| *token);
        let expected = NoteAnswer::Noted { callback: known.or(callback.then_some(token)) };
        assert_eq!(answer, if is_open { expected } else { NoteAnswer::Stale });
        if is_open {
            self.progress.extend(progress.map(|number| (receipt.job, number)));
            if callback && known.is_none() {
                self.tokens.push((token, receipt));
            }
        }
    }

    /// A callback is accepted once, and only for an attempt that is open or waits.
    fn resume(&mut self, token: Index) {
        if self.tokens.is_empty() {
            return;
        }
        let (token, receipt) = self.tokens[token.index(self.tokens.len())];
        let before = self.model.get(receipt.job).map(|view| (view.state, view.run_lease));
        let payload = JsonText::new("payload", "1").unwrap();
        let answer = self.model.resume(&[Callback { token, payload }], self.now).remove(0);
        let after = self.model.get(receipt.job).map(|view| view.state);
        let attempt_is = |state| before == Some((state, receipt.run_lease));
        match answer {
            CallbackAnswer::Kept => assert!(attempt_is(JobState::Running) && !self.closed.contains(&receipt)),
            CallbackAnswer::Resumed => assert!(attempt_is(JobState::Waiting) && after == Some(JobState::Ready)),
            CallbackAnswer::AlreadyUsed => assert!(self.used.contains(&token)),
            CallbackAnswer::Expired => assert!(attempt_is(JobState::Waiting)),
            CallbackAnswer::AttemptOver => assert!(self.closed.contains(&receipt)),
            CallbackAnswer::Unknown => assert!(self.closed.contains(&receipt) && !attempt_is(JobState::Waiting)),
            CallbackAnswer::Contended => panic!("the model is never contended"),
        }
        if answer.is_accepted() {
            assert!(self.used.insert(token), "a token was used twice");
        } else {
            assert_eq!(before.map(|(state, _)| state), after, "a refused callback moved a job");
        }
    }

    fn rescue(&mut self, page: usize) {
        let request = RescueRequest { rescuer: RESCUER, staleness: STALENESS, page };
        let rescued = self.model.rescue(&request, &RetryPolicy::default(), self.now);
        let held = |state: &JobState| matches!(state, JobState::Running | JobState::Waiting);
        let held = self.committed.values().filter(|state| held(state)).count();
        assert!(rescued.attempts.len() <= held, "more attempts rescued than there were");
        self.note_closed();
    }

    /// Learns which attempts somebody else than their worker has ended.
    fn note_closed(&mut self) {
        let open = self.model.are_open(&self.receipts);
        self.closed.extend(self.receipts.iter().zip(open).filter(|(_, open)| !open).map(|(receipt, _)| *receipt));
    }

    /// A job that is moved is where it was told to go, with a lease of its own if it lay in a lane.
    fn move_job(&mut self, job: JobId, queue: Option<u8>, priority: i16) {
        let priority = Priority::new(priority).unwrap();
        let to = match queue {
            Some(queue) => MoveTo::queue(queue_name(queue)).and_priority(priority),
            None => MoveTo::priority(priority),
        };
        let before = self.model.get(job);
        let answer = self.model.move_jobs(&[job], &to, self.now)[0];
        let after = self.model.get(job);
        if let (Acted::Done { from }, Some(before), Some(after)) = (answer, &before, &after) {
            let queue = to.new_queue().unwrap_or(&before.queue);
            assert_eq!((from, after.state), (before.state, before.state));
            assert_eq!((&after.queue, after.priority), (queue, priority));
            let risen = after.run_lease.get() - before.run_lease.get();
            let is_elsewhere = (&before.queue, before.priority) != (queue, priority);
            assert_eq!(risen, i64::from(is_elsewhere && from == JobState::Ready));
            *self.leases.entry(job).or_insert(0) += risen;
        } else {
            assert_eq!(before, after, "a job that was not moved is as it was");
        }
    }

    /// A purge removes what waits in the queue and nothing else, unless somebody was about to change it.
    fn purge(&mut self, queue: &QueueName, scope: PurgeScope) {
        let of_queue = |state| JobFilter {
            queue: Some(queue.clone()),
            state: Some(state),
            before: None,
            kind: None,
            limit: 1_000,
        };
        let mut waiting = self.model.list(&of_queue(JobState::Ready));
        if scope == PurgeScope::ReadyAndDeferred {
            waiting.extend(self.model.list(&of_queue(JobState::Deferred)));
        }
        let purged = self.model.purge_queue(queue, scope);
        waiting.retain(|job| self.model.get(job.id).is_none());
        assert_eq!(purged.jobs, waiting.len() as u64);
        for job in waiting {
            self.committed.remove(&job.id);
            self.never.insert(job.id);
        }
        if !purged.contended {
            assert_eq!(self.model.list(&of_queue(JobState::Ready)), [], "something is left and nobody was in the way");
        }
    }

    /// Only what has ended goes, and it goes for good.
    fn delete(&mut self, job: JobId) {
        let before = self.model.get(job).map(|view| view.state);
        let expected = match before {
            Some(state) if state.is_terminal() => Acted::Done { from: state },
            Some(state) => Acted::Refused(Refusal::WrongState(state)),
            None => Acted::Refused(Refusal::NotFound),
        };
        assert_eq!(self.model.delete(&[job]), [expected]);
        if expected == (Acted::Done { from: before.unwrap_or(JobState::Dead) }) {
            assert_eq!(self.model.get(job), None, "job {job} was deleted");
            self.committed.remove(&job);
        }
    }

    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now = self.now.saturating_add(Duration::from_secs(1));
            self.model.beat(RESCUER, STALENESS, self.now);
        }
    }

    fn pick_job(&self, job: Index) -> Option<JobId> {
        let all: Vec<JobId> = self.committed.keys().chain(&self.never).copied().collect();
        (!all.is_empty()).then(|| all[job.index(all.len())])
    }

    /// Compares with the state before: nothing is lost, nothing moves on a forbidden path, nothing exists too early.
    fn audit(&mut self) {
        if let Err(violation) = self.model.check() {
            panic!("{violation}");
        }
        let places: BTreeMap<JobId, JobState> =
            self.model.places(None).iter().map(|(job, place)| (*job, self.model.state_at(*job, place))).collect();
        for (job, before) in &mut self.committed {
            match places.get(job) {
                Some(after) => {
                    assert!(before == after || before.may_become(*after), "job {job} went from {before} to {after}");
                    *before = *after;
                }
                None => assert!(
                    matches!(before, JobState::Completed | JobState::Cancelled | JobState::Failed),
                    "job {job} was {before} and is lost"
                ),
            }
        }
        let is_kept =
            |job: &JobId| places.get(job).is_some_and(|state| !state.is_terminal() || *state == JobState::Dead);
        self.progress.retain(|job, _| is_kept(job));
        assert!(places.keys().all(|job| self.committed.contains_key(job)), "a job exists that was not committed");
        let open = self.model.are_open(&self.receipts);
        for (receipt, open) in self.receipts.iter().zip(open) {
            assert_eq!(open, !self.closed.contains(receipt), "{receipt:?}");
        }
    }

    /// Ends all that is begun, works everything off, and turns the rings until they are empty.
    fn finish(mut self) {
        while !self.open.is_empty() {
            self.end(0, true);
        }
        for queue in 0..2 {
            self.model.set_paused(&queue_name(queue), false);
        }
        for receipt in self.receipts.clone() {
            self.model.close(&[Closure { receipt, end: AttemptEnd::Complete }], self.now);
        }
        self.note_closed();
        self.pass(100);
        self.rescue(usize::MAX);
        self.pass(100);
        self.audit();
        self.model.promote(usize::MAX, self.now);
        self.audit();
        for queue in [0, 1].repeat(40) {
            let request = ClaimRequest {
                queue: queue_name(queue),
                instance: InstanceId(1),
                nonce: Nonce(self.nonce),
                max_jobs: BatchLimit::MAX,
                max_bytes: u64::MAX,
                deadline: None,
                aging: None,
                shape: ClaimShape::Compact,
            };
            let from = self.receipts.len();
            self.claim(&request);
            self.audit();
            for receipt in self.receipts.split_off(from) {
                let answer = self.model.close(&[Closure { receipt, end: AttemptEnd::Complete }], self.now);
                assert_eq!(answer, [ClosureAnswer::Closed]);
            }
        }
        self.audit();
        let ended = |state: &JobState| state.is_terminal();
        assert!(self.committed.values().all(ended), "something did not end: {:?}", self.committed);
        for ring in RingKind::ALL {
            self.model.rotate(ring, &AT_ONCE, self.now);
        }
        self.model.drain();
        for ring in RingKind::ALL {
            let reports = self.model.prune(ring, &IMPATIENT, self.now);
            assert!(reports.iter().all(|report| report.kept.is_none()), "{ring}: {reports:?}");
        }
        self.audit();
    }
}

fn ring() -> impl Strategy<Value = RingKind> {
    prop::sample::select(&RingKind::ALL[..])
}

fn queue_name(number: u8) -> QueueName {
    QueueName::new(format!("q{number}")).unwrap()
}

fn new_job(queue: u8, priority: i16, delay: u8, key: u8) -> NewJob {
    let run_at = if delay < 6 { RunAt::Now } else { RunAt::After(Duration::from_secs(u64::from(delay))) };
    let job = NewJob::new(queue_name(queue), JobKind::new("k").unwrap(), JsonText::new("args", "12345678").unwrap())
        .with_priority(Priority::new(priority).unwrap())
        .with_max_attempts(MaxAttempts::new(2).unwrap())
        .with_run_at(run_at);
    let job = match key % 3 {
        0 => job.with_ordering_key(OrderingKey::new(format!("order {key}")).unwrap()),
        _ => job,
    };
    let states = [KeyStates::UNFINISHED, KeyStates::UNTIL_CLAIMED, KeyStates::UNTIL_RESOLVED];
    match states.get(usize::from(key) / 2) {
        Some(states) => {
            let own = UniqueBy::text(format!("key {}", key % 2)).key_of(&job).unwrap();
            let on_conflict = if delay.is_multiple_of(2) { OnConflict::Skip } else { OnConflict::Replace };
            job.with_unique(Unique::new(own).while_in(*states).on_conflict(on_conflict))
        }
        None => job,
    }
}

fn attempt_end(number: u8) -> AttemptEnd {
    let (delay, text) = (Duration::from_secs(u64::from(number)), || ErrorText::new("text"));
    match number {
        0 | 1 => AttemptEnd::Complete,
        2 => AttemptEnd::CompleteWith { result: JsonText::new("result", "1").unwrap() },
        3 => AttemptEnd::Retry { delay, error: text() },
        4 => AttemptEnd::Snooze { delay },
        5 => AttemptEnd::Fail { error: text() },
        6 => AttemptEnd::Cancel { reason: text() },
        8 => AttemptEnd::Release { delay: Duration::ZERO },
        9 | 10 => AttemptEnd::Park { timeout: delay },
        _ => AttemptEnd::Release { delay },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_and_nothing_is_in_two_places(ops in prop::collection::vec(op(), 1..120)) {
        let mut bookkeeper = Bookkeeper::new();
        for op in &ops {
            bookkeeper.step(op);
        }
        bookkeeper.finish();
    }
}
