//! The proofs that must hold before a partition is truncated.
//!
//! TRUNCATE ignores snapshots: what is in the partition is gone for everybody. [`decide`] is therefore asked twice: once
//! before the partition is locked, so that a busy slot is passed over without disturbing anybody, and once under the
//! lock, with facts read in a new statement, so that what committed meanwhile is seen. Both times the same rules apply,
//! and each refusal says why.

use std::fmt;
use std::time::Duration;

mod retention;

use crate::id::{Generation, Slot};
use crate::ring::{Pointer, RingKind, SlotState};

pub use retention::{FailedJob, RetentionPolicy, SlotHistory};

/// At which moment the facts were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// No lock is held. All facts are needed, retention included.
    BeforeLock,
    /// All children of the slot are locked against everybody, and every fact was read again in a new statement.
    /// Retention does not matter any more: history does not get younger.
    AfterLock {
        /// The generation of the slot when it was chosen; a slot that was reopened since is another one.
        chosen: Generation,
    },
}

/// What is known of any slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SlotFacts {
    /// The slot.
    pub slot: Slot,
    /// The generation that last opened it.
    pub generation: Generation,
    /// Its state.
    pub state: SlotState,
    /// The pointer of the ring.
    pub pointer: Pointer,
}

/// What must be known of a slot of the queue ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QueueFacts {
    /// State, generation and pointer.
    pub slot: SlotFacts,
    /// Whether some ready row is not passed by its lane's frontier.
    pub has_unpassed_rows: bool,
    /// Open claims of rows in this slot, counted by the slot alone: the generation in a claim is information, since a
    /// stalled claim may carry the one before.
    pub open_claims: u64,
    /// How long its history must still be kept; zero when retention is over. See [`RetentionPolicy::plan`].
    pub retention_left: Duration,
}

/// What the proof before the lock found out about the claims of a slot, all of it read at one instant.
///
/// To tell which claims are open, all closures beside them are read, which takes seconds where many attempts were ended
/// one by one; under the lock everybody would wait for that. [`Self::still_holds`] says when it need not be done again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClaimProof {
    /// The generation of the slot.
    pub generation: Generation,
    /// A number that grows with every claim of the slot, and never else goes up or down in one generation.
    pub claims: u64,
    /// Claims without a closure.
    pub open: u64,
}

impl ClaimProof {
    /// Whether nothing is open under the lock either, where the slot has this generation and `claims` counts as it did
    /// for the proof. Claims are only appended and closures are for ever: an equal number means the same claims, and what
    /// was closed then is closed now. Everything else has to be proven again.
    pub const fn still_holds(&self, generation: Generation, claims: u64) -> bool {
        self.open == 0 && self.generation.0 == generation.0 && self.claims == claims
    }
}

/// What must be known of a slot of the claim ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClaimFacts {
    /// State, generation and pointer.
    pub slot: SlotFacts,
    /// Claims in the slot, of both shapes, that have no closure.
    pub open_claims: u64,
}

/// What must be known of a slot of the lease ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseFacts {
    /// State, generation and pointer.
    pub slot: SlotFacts,
    /// Leases in the slot.
    pub leases: u64,
}

/// What must be known of a slot, by its ring: of each there is one kind, as of [`RingKind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PruneFacts {
    /// A slot of the queue ring.
    Queue(QueueFacts),
    /// A slot of the claim ring.
    Claim(ClaimFacts),
    /// A slot of the lease ring.
    Lease(LeaseFacts),
}

impl PruneFacts {
    /// State, generation and pointer.
    pub const fn slot(&self) -> &SlotFacts {
        match self {
            Self::Queue(facts) => &facts.slot,
            Self::Claim(facts) => &facts.slot,
            Self::Lease(facts) => &facts.slot,
        }
    }

    /// The ring.
    pub const fn ring(&self) -> RingKind {
        match self {
            Self::Queue(_) => RingKind::Queue,
            Self::Claim(_) => RingKind::Claim,
            Self::Lease(_) => RingKind::Lease,
        }
    }

    /// The state in which a slot of this ring may be emptied.
    const fn required_state(&self) -> SlotState {
        if self.ring().has_drained() { SlotState::Drained } else { SlotState::Sealed }
    }
}

/// What happens to a slot. Open to matching without a wildcard, because a store that passes one of these over is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PruneDecision {
    /// Before the lock: take it and ask again. Under the lock: reset the slot's rescue cursors, truncate the children
    /// that have pages, and free it.
    Truncate,
    /// A row in a drained slot is waiting after all: record the slot as sealed, so that claims look at it again, count
    /// it and raise an alarm.
    Undrain,
    /// Leave it.
    Keep(KeepReason),
}

/// Why a slot is not emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeepReason {
    /// It is in another state than the one in which it may be emptied.
    WrongState {
        /// The state it is in.
        is: SlotState,
        /// The state it must be in.
        needs: SlotState,
    },
    /// The pointer names it, so writers may enter.
    PointerOnIt,
    /// It was emptied and opened again since it was chosen.
    Reopened,
    /// Attempts are running on it.
    OpenClaims(u64),
    /// Leases are stored in it.
    Leases(u64),
    /// Its history must be kept so much longer.
    Retained(Duration),
    /// Somebody is using one of its children. Given by a store whose lock was refused: it does not wait, and the next
    /// tick tries again.
    InUse,
}

impl fmt::Display for KeepReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongState { is, needs } => write!(f, "it is {is}, and only a {needs} slot can be emptied"),
            Self::PointerOnIt => f.write_str("writers are directed to it"),
            Self::Reopened => f.write_str("it was opened again in the meantime"),
            Self::OpenClaims(count) => write!(
                f,
                "{count} claimed jobs in it have not ended; they end when their worker closes them, or by rescue or eviction"
            ),
            Self::Leases(count) => {
                write!(f, "{count} running jobs keep their state in it until they end or are moved forward")
            }
            Self::Retained(left) => write!(f, "its history is kept for {} s more", left.as_secs_f64().ceil()),
            Self::InUse => f.write_str("a session is using it; the next maintenance tick tries again"),
        }
    }
}

/// Decides what happens to one slot. Pure: the same facts always give the same answer, at either phase.
///
/// Rows that wait are looked for before everything else that would merely keep the slot, because no claim looks into a
/// drained slot and they would wait for as long as it is kept.
pub fn decide(phase: Phase, facts: &PruneFacts) -> PruneDecision {
    if let Err(reason) = is_reclaimable(phase, facts) {
        return PruneDecision::Keep(reason);
    }
    let unproven = match facts {
        PruneFacts::Queue(facts) if facts.has_unpassed_rows => return PruneDecision::Undrain,
        PruneFacts::Queue(facts) => spent_queue(phase, facts),
        PruneFacts::Claim(facts) => keep_if(facts.open_claims, KeepReason::OpenClaims),
        PruneFacts::Lease(facts) => keep_if(facts.leases, KeepReason::Leases),
    };
    unproven.map_or(PruneDecision::Truncate, PruneDecision::Keep)
}

fn is_reclaimable(phase: Phase, facts: &PruneFacts) -> Result<(), KeepReason> {
    let slot = facts.slot();
    let needs = facts.required_state();
    match phase {
        Phase::AfterLock { chosen } if slot.generation != chosen => Err(KeepReason::Reopened),
        _ if slot.state != needs => Err(KeepReason::WrongState { is: slot.state, needs }),
        _ if slot.pointer.slot == slot.slot => Err(KeepReason::PointerOnIt),
        _ => Ok(()),
    }
}

fn spent_queue(phase: Phase, facts: &QueueFacts) -> Option<KeepReason> {
    let retained = (phase == Phase::BeforeLock && !facts.retention_left.is_zero())
        .then_some(KeepReason::Retained(facts.retention_left));
    keep_if(facts.open_claims, KeepReason::OpenClaims).or(retained)
}

fn keep_if(count: u64, reason: fn(u64) -> KeepReason) -> Option<KeepReason> {
    (count > 0).then(|| reason(count))
}
