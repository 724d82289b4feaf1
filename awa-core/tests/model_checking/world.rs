//! The world: the database, what lives outside snapshots, and a ghost that remembers what a later look could not see.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use awa_core::attempt::Receipt;
use awa_core::id::{BatchId, Generation, InstanceId, JobId, RunLease, Slot};
use awa_core::ring::{Pointer, RingKind};
use awa_core::sweep::{Beats, SweepKind};
use awa_core::time::Timestamp;

use super::database::{Transactions, Who};
use super::laws::{self, Law};
use super::locks::Locks;
use super::mutants::Mutant;
use super::rows::Tables;

/// What does not change while a world runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Rules {
    /// What is left out of the protocol.
    pub(crate) mutant: Option<Mutant>,
    /// The budget of attempts of each job.
    pub(crate) max_attempts: u32,
    /// Claims per page of a sweep; a pass takes three pages.
    pub(crate) sweep_page: usize,
}

impl Default for Rules {
    fn default() -> Self {
        Self { mutant: None, max_attempts: 2, sweep_page: 4 }
    }
}

impl Rules {
    /// Whether this part of the protocol is left out.
    pub(crate) fn breaks(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    /// How long a process must be silent to count as gone.
    pub(crate) const STALENESS: Duration = Duration::from_micros(3);
}

/// What becomes true when a transaction commits.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Effect {
    /// A job exists.
    Enqueued(JobId),
    /// A worker holds an attempt.
    Claimed(Receipt),
    /// An attempt has ended.
    Ended(JobId, RunLease),
    /// An attempt of this process was ended because it looks dead.
    Rescued(InstanceId),
    /// Whoever asked to end an attempt of their own gets this answer.
    Answered {
        /// The attempt.
        receipt: Receipt,
        /// Whether the answer is that it was ended by this call.
        closed: bool,
    },
    /// The job was cancelled before it was claimed; the answer is final.
    Cancelled(JobId),
    /// A row was moved to the carry-over from a slot of this generation.
    Moved(JobId, Generation),
    /// All children of a slot are emptied.
    Truncated(RingKind, Slot),
    /// A pass of a sweep has met these open claims and could not close them, and has visited those.
    Swept {
        /// The slot.
        slot: Slot,
        /// What was looked for.
        kind: SweepKind,
        /// Claims that could not be closed.
        held: BTreeSet<BatchId>,
        /// All claims that were looked at.
        visited: BTreeSet<BatchId>,
    },
    /// Something worth counting has happened.
    Reached(Reach),
}

/// What a world must be able to show, or it tests less than it seems.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Reach {
    Claim,
    ClaimOfCarried,
    Completion,
    CompletionOfLease,
    Retry,
    Release,
    DeadLetter,
    CancelReady,
    CancelRunning,
    StaleAnswer,
    StaleRescue,
    DeadlineRescue,
    RescueRefused,
    Promotion,
    Rotation,
    LedgerRepair,
    Drain,
    Undrain,
    QueueTruncation,
    ClaimTruncation,
    CarryOver,
    Eviction,
    LeaseMoved,
    LeaseTruncation,
    LateCommit,
    LostRace,
}

/// A process that claims.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Instance {
    /// What the table of processes says.
    pub(crate) beats: Beats,
    /// Whether its beats reach the database. A process that was stopped, or cut off, goes on all the same.
    pub(crate) is_beating: bool,
}

/// What is remembered for the laws alone. No actor reads it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Ghost {
    /// Jobs whose enqueue was committed.
    pub(crate) jobs: BTreeSet<JobId>,
    /// Jobs that had ended when their history was reclaimed.
    pub(crate) reclaimed: BTreeSet<JobId>,
    /// Attempts that were handed out.
    pub(crate) claimed: BTreeSet<(JobId, RunLease)>,
    /// Attempts that have ended.
    pub(crate) ended: BTreeSet<(JobId, RunLease)>,
    /// Jobs whose cancellation was answered as final before a claim.
    pub(crate) cancelled: BTreeSet<JobId>,
    /// From which generation rows were moved to the carry-over.
    pub(crate) moved: BTreeMap<JobId, Generation>,
    /// Claims that the last pass of a sweep could not close.
    pub(crate) held: BTreeMap<(Slot, bool), BTreeSet<BatchId>>,
    /// Laws that were broken.
    pub(crate) broken: BTreeSet<Law>,
}

/// Everything but the actors.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct World {
    pub(crate) tables: Tables,
    pub(crate) transactions: Transactions<Effect>,
    pub(crate) locks: Locks,
    /// Sequences: the newest value for everybody, and never undone.
    pub(crate) queue_pointer: Pointer,
    pub(crate) claim_pointer: Pointer,
    pub(crate) lease_pointer: Pointer,
    pub(crate) last_job: i64,
    pub(crate) last_batch: i64,
    pub(crate) now: i64,
    pub(crate) instances: BTreeMap<InstanceId, Instance>,
    /// Attempts in the hands of workers that live.
    pub(crate) hands: BTreeMap<Who, Vec<Receipt>>,
    ghost: Arc<Ghost>,
}

impl World {
    /// Slots of the lease ring in every world.
    pub(crate) const LEASE_SLOTS: u8 = 2;

    /// An installed schema with a queue ring and a claim ring of so many slots.
    pub(crate) fn new(queue_slots: u8, claim_slots: u8) -> Self {
        let open = Pointer::new(Generation(1), Slot(0));
        Self {
            tables: Tables::new(queue_slots, claim_slots, Self::LEASE_SLOTS),
            transactions: Transactions::new(),
            locks: Locks::default(),
            queue_pointer: open,
            claim_pointer: open,
            lease_pointer: open,
            last_job: 0,
            last_batch: 0,
            now: 100,
            instances: BTreeMap::new(),
            hands: BTreeMap::new(),
            ghost: Arc::default(),
        }
    }

    /// What is remembered for the laws.
    pub(crate) fn ghost(&self) -> &Ghost {
        &self.ghost
    }

    /// The same, to write to.
    pub(crate) fn ghost_mut(&mut self) -> &mut Ghost {
        Arc::make_mut(&mut self.ghost)
    }

    /// The pointer of a ring.
    pub(crate) fn pointer(&self, ring: RingKind) -> Pointer {
        match ring {
            RingKind::Queue => self.queue_pointer,
            RingKind::Claim => self.claim_pointer,
            RingKind::Lease => self.lease_pointer,
        }
    }

    /// The present.
    pub(crate) fn time(&self) -> Timestamp {
        Timestamp::from_micros(self.now)
    }

    /// The name under which an actor claims.
    pub(crate) fn instance_of(who: Who) -> InstanceId {
        InstanceId(i64::from(who.0))
    }

    /// A process is there.
    pub(crate) fn start(&mut self, who: Who, is_beating: bool) {
        let beats = Beats { since: Timestamp::from_micros(0), last: self.time() };
        self.instances.insert(Self::instance_of(who), Instance { beats, is_beating });
    }

    /// One beat of a process, in a statement of its own.
    pub(crate) fn beat(&mut self, who: Who) {
        let now = self.time();
        if let Some(instance) = self.instances.get_mut(&Self::instance_of(who)) {
            instance.beats = instance.beats.beat(now, Rules::STALENESS);
        }
    }

    /// Time goes by, longer than the staleness time, with beats of everybody whose beats arrive.
    pub(crate) fn pass_time(&mut self) {
        for _ in 0..=Rules::STALENESS.as_micros() {
            self.now += 1;
            let now = self.time();
            for instance in self.instances.values_mut().filter(|instance| instance.is_beating) {
                instance.beats = instance.beats.beat(now, Rules::STALENESS);
            }
        }
    }

    /// Time goes by while the database answers nobody.
    pub(crate) fn pass_outage(&mut self) {
        self.now += Rules::STALENESS.as_micros() as i64 + 1;
    }

    /// A process is gone, with everything that it held and had not committed.
    pub(crate) fn crash(&mut self, who: Who) {
        self.abort(who);
        self.hands.remove(&who);
        if let Some(instance) = self.instances.get_mut(&Self::instance_of(who)) {
            instance.is_beating = false;
        }
    }

    /// Undoes the transaction of `who`.
    pub(crate) fn abort(&mut self, who: Who) {
        let ended = self.transactions.end(who);
        if let Some(xid) = ended.and_then(|transaction| transaction.xid) {
            for table in self.tables.all() {
                table.undo(xid);
            }
        }
        self.locks.release(who);
        self.vacuum();
    }

    /// Makes the transaction of `who` true, and looks whether every law still holds. What was reached is returned.
    pub(crate) fn commit(&mut self, who: Who, rules: &Rules) -> Vec<Reach> {
        let Some(ended) = self.transactions.end(who) else { return Vec::new() };
        let mut reached = Vec::new();
        for effect in ended.effects {
            match effect {
                Effect::Reached(reach) => reached.push(reach),
                Effect::Claimed(receipt) => {
                    laws::note(self, who, &effect);
                    self.hands.entry(who).or_default().push(receipt);
                }
                Effect::Truncated(ring, slot) => laws::truncate(self, ring, slot),
                other => laws::note(self, who, &other),
            }
        }
        self.locks.release(who);
        self.vacuum();
        if ended.xid.is_some() {
            laws::check(self, rules);
        }
        reached
    }

    fn vacuum(&mut self) {
        if !self.transactions.snapshots_are_held() {
            let running: Vec<_> = self.transactions.running().collect();
            for table in self.tables.all() {
                table.vacuum(&|xid| running.contains(&xid));
            }
        }
    }
}
