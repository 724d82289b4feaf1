//! What a store must promise, split by who calls it.
//!
//! | trait | caller | about |
//! |---|---|---|
//! | [`Producer`] | application | enqueue |
//! | [`Consumer`] | worker | claim, close, proof of life |
//! | [`Attempts`] | worker, and whoever calls back | progress and signs of life of one attempt, callbacks |
//! | [`Maintainer`] | maintenance ticks | promote, rescue, rotate, drain, prune |
//! | [`Operator`] | people and dashboards | get, list, count, cancel, retry, pause, grow a ring |
//! | [`Wakeups`] | dispatcher | wait for a hint that work exists (optional) |
//!
//! All are object-safe: a program picks its store at run time and passes `Arc<dyn Store>`. No method has a default
//! body, so that nothing a store does not do is done for it in silence.
//!
//! # The contract
//!
//! Each case of the conformance suite names the clause it tests.
//!
//! | clause | promise |
//! |---|---|
//! | **C1** durability | What a call acknowledged survives a crash of every process of Awa, and in a durable store a crash of the machine. |
//! | **C2** nothing lost | At every instant a committed job is in exactly one [`JobState`](crate::JobState). |
//! | **C3** fencing | A write that belongs to an attempt carries its [`Receipt`](crate::attempt::Receipt) and changes nothing once the attempt has ended, whoever ended it. |
//! | **C4** one closure | Of all closures of one attempt, at most one answers [`Closed`](crate::ClosureAnswer::Closed). |
//! | **C5** one attempt | A job has at most one open attempt; each claim raises its run lease by one, and so does a move to another lane: an id and a lease name one row of a lane, or one attempt, for ever. |
//! | **C6** order | Inside a lane (a shard of a priority of a queue, see [`queue`](crate::queue)): jobs of one transaction in enqueue order, transactions by the order in which they began to write; a late commit is taken next. More urgent lanes first. Each claim is an exact prefix of what is eligible. |
//! | **C7** repeatable | When the outcome of a call is unknown, calling again does no harm: enqueue may store the jobs twice, everything else converges. |
//! | **C8** batch independence | Answers come in input order, one per item; an item that is refused touches no other. |
//! | **C9** late commit | A job is claimable the moment its transaction commits, whatever committed before; until then, and after a rollback, it does not exist. |
//! | **C10** nobody waits | An open transaction that enqueued delays no producer, no claim and no closure; maintenance passes over the one partition it wrote to. |
//! | **C11** evidence before reuse | No storage is reused while a job not yet claimed, an open attempt or retained history needs it. |
//! | **C12** one clock | All comparisons of time use the store's clock; callers pass lengths. |
//! | **C13** hints | Wake-ups are hints: one that is lost costs at most the time until the next poll, one too many an empty claim or look. |
//! | **C14** uniqueness | At most one job at a time holds a key, on every path, also when the transaction that took it first rolls back; who asks for a key that an open transaction has taken waits for its end or is told to ask again ([`Contended`](crate::StoreErrorKind::Contended)), and never hears of a duplicate that may not come to exist. A job gives its key back in the step in which it enters a state outside its [`KeyStates`](crate::unique::KeyStates), and never conflicts with itself. What it gave back while it lives on it does not ask for again: a job that held its key until it was claimed is retried, rescued and ended without it, beside another that holds it by then; only the retry of a dead job by an operator takes the key again. |
//! | **C15** nothing pins | A job that nobody claims and an attempt that never ends keep only themselves: what is stored beside them is reclaimed. Moving them changes neither order (C6) nor fencing (C3). |

mod attempts;
mod consumer;
mod maintainer;
mod move_to;
mod operator;
mod producer;
mod purge;
mod wakeups;

pub use crate::prune::RetentionPolicy;
pub use attempts::{AttemptNote, Attempts, Callback, Memory, NoteAnswer};
pub use consumer::{BatchLimit, ClaimRequest, ClaimShape, Claimed, Consumer, Horizon, Peeked};
pub use maintainer::{
    Drained, Maintainer, PinReport, Promoted, PruneReport, RescueRequest, Rescued, RescuedAttempt, Rotated, Task,
    Unpinned,
};
pub use move_to::MoveTo;
pub use operator::{
    Accuracy, Acted, CensusCount, Counts, DeferredReason, Grown, JobFilter, JobView, Operator, QueueCounts, QueueView,
    Refusal,
};
pub use producer::Producer;
pub use purge::{PurgeScope, Purged};
pub use wakeups::{SleepTicket, Wakeups, Woken};

#[cfg(feature = "mock")]
pub use {
    attempts::MockAttempts, consumer::MockConsumer, maintainer::MockMaintainer, operator::MockOperator,
    producer::MockProducer, wakeups::MockWakeups,
};

/// A complete store.
pub trait Store: Producer + Consumer + Maintainer + Operator + Attempts {
    /// A name for people: `memory`, `postgres through sqlx`, ...
    fn describe(&self) -> String;

    /// The wake-ups of this store, when it has any; without them a dispatcher polls.
    fn wakeups(&self) -> Option<&dyn Wakeups>;

    /// Whether jobs survive the process (clause C1).
    fn is_durable(&self) -> bool;
}
