//! What a store observes for its doctor.

use std::time::Duration;

use crate::prune::PruneDecision;
use crate::ring::{BadRing, DrainKeep, Pointer, RingKind, RotateDecision, SlotState};

/// Everything that was observed, at about one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The installation.
    pub schema: SchemaFacts,
    /// Whether the schema was carried into another cluster and not repaired since. Rings are not looked at then.
    pub is_foreign_cluster: bool,
    /// The rings that could be looked at.
    pub rings: Vec<RingFacts>,
    /// Transactions that keep old rows from being removed, oldest first.
    pub snapshots: Vec<SnapshotFacts>,
    /// Prepared transactions, oldest first.
    pub prepared: Vec<PreparedFacts>,
    /// Replication slots.
    pub replication_slots: Vec<ReplicationSlotFacts>,
    /// Tables of the schema with dead rows, most first.
    pub dead_rows: Vec<DeadRows>,
    /// Sequences of the schema.
    pub sequences: Vec<SequenceFacts>,
    /// The wake-up that was sent and waited for.
    pub wakeups: WakeupFacts,
    /// What waits; `None` when the schema could not be read.
    pub work: Option<WorkFacts>,
    /// Worker processes, the last one heard of first.
    pub instances: Vec<InstanceFacts>,
}

impl Facts {
    /// The facts of a store of which nothing but its installation is known.
    pub fn of_schema(schema: SchemaFacts) -> Self {
        Self {
            schema,
            is_foreign_cluster: false,
            rings: Vec::new(),
            snapshots: Vec::new(),
            prepared: Vec::new(),
            replication_slots: Vec::new(),
            dead_rows: Vec::new(),
            sequences: Vec::new(),
            wakeups: WakeupFacts::Off,
            work: None,
            instances: Vec::new(),
        }
    }
}

/// The installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaFacts {
    /// There is none.
    Missing,
    /// It does not fit this program, for this reason, which names what to do.
    Unfit(String),
    /// It fits.
    Fits {
        /// The number of its newest migration.
        version: i32,
        /// The version of the program that set it up.
        program: String,
        /// The version of the server.
        server: String,
    },
}

/// One ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RingFacts {
    /// Which.
    pub ring: RingKind,
    /// The pointer that writers follow.
    pub pointer: Pointer,
    /// The newest entry of the ledger, and what rotation would do now; or how the ring contradicts itself.
    pub rotation: Result<(Pointer, RotateDecision), BadRing>,
    /// The slots, from 0.
    pub slots: Vec<SlotReport>,
}

/// One slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotReport {
    /// Which, and its generation.
    pub slot: Pointer,
    /// Its state.
    pub state: SlotState,
    /// The size of all its children.
    pub bytes: u64,
    /// Since it was opened.
    pub age: Duration,
    /// Why it would not be drained now, if it is of the queue ring and sealed.
    pub undrained: Option<DrainKeep>,
    /// What pruning would do with it now, if it is in use and not open.
    pub decision: Option<PruneDecision>,
}

/// A session whose transaction keeps old rows from being removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotFacts {
    /// The process of the server.
    pub pid: i32,
    /// The role and the application, for people.
    pub who: String,
    /// Its state as the server says it, for example `idle in transaction`.
    pub state: String,
    /// The age of its transaction.
    pub age: Duration,
}

/// A prepared transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedFacts {
    /// Its name.
    pub gid: String,
    /// Its database.
    pub database: String,
    /// Since when it has been prepared.
    pub age: Duration,
}

/// A replication slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicationSlotFacts {
    /// Its name.
    pub name: String,
    /// Whether somebody is connected to it.
    pub is_active: bool,
    /// How many transactions ago the oldest one was that it keeps rows of; `None` when it keeps no rows.
    pub pinned_transactions: Option<u64>,
    /// The bytes of log that it keeps.
    pub log_bytes: u64,
}

/// A table and its dead rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadRows {
    /// The table.
    pub table: String,
    /// Whether it is one of those that are only appended to and truncated.
    pub is_ring: bool,
    /// Estimated rows.
    pub live: u64,
    /// Estimated dead rows.
    pub dead: u64,
}

/// A sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SequenceFacts {
    /// Its name.
    pub name: String,
    /// Its last value; 0 when it was never used.
    pub last: i64,
    /// Its largest value.
    pub max: i64,
}

/// What became of a wake-up that was announced, sent and waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WakeupFacts {
    /// This store does not listen.
    Off,
    /// It came after this time.
    Heard(Duration),
    /// It did not come within this time.
    Silent(Duration),
    /// The listening connection failed.
    Failed(String),
}

/// What waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkFacts {
    /// Jobs in the dead-letter queue.
    pub dead: u64,
    /// Deferred jobs whose time has come.
    pub overdue: u64,
    /// How long the first of them has been due.
    pub longest_overdue: Duration,
    /// Lanes that an enqueue did not find and nobody has made since.
    pub lane_hints: u64,
    /// The time since the rings were last looked at; `None`: never.
    pub rings_tick_age: Option<Duration>,
    /// Jobs that wait outside the queue ring, because they alone kept a slot or were handed back.
    pub carried: u64,
    /// Open attempts outside the claim ring.
    pub leases: u64,
    /// Cursor rows that claims or completions name and that are not there.
    pub lost_cursors: u64,
}

/// A worker process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstanceFacts {
    /// The time since its last beat.
    pub silent_for: Duration,
    /// Whether it said goodbye.
    pub is_retired: bool,
}
