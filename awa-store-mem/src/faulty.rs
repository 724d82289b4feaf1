//! A store that fails when told.

mod traits;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use awa_core::{StoreError, StoreErrorKind};

/// A method of the storage traits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs, reason = "each is named after its method")]
#[non_exhaustive]
pub enum Operation {
    Enqueue,
    Claim,
    Close,
    Beat,
    Retire,
    OpenAttempts,
    AreOpen,
    Peek,
    Note,
    Recall,
    Resume,
    TryTick,
    Promote,
    Rescue,
    Rotate,
    Drain,
    Unpin,
    Prune,
    Tidy,
    OpenQueue,
    ForgetDead,
    OpenQueues,
    Get,
    List,
    Queues,
    Census,
    Cancel,
    Retry,
    SetPaused,
    ConfigureQueue,
    QueueSettings,
    MoveJobs,
    PurgeQueue,
    Delete,
    GrowRing,
    Counts,
    Announce,
    Withdraw,
    Wait,
}

impl Operation {
    /// The name of the method.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enqueue => "enqueue",
            Self::Claim => "claim",
            Self::Close => "close",
            Self::Beat => "beat",
            Self::Retire => "retire",
            Self::OpenAttempts => "open_attempts",
            Self::AreOpen => "are_open",
            Self::Peek => "peek",
            Self::Note => "note",
            Self::Recall => "recall",
            Self::Resume => "resume",
            Self::TryTick => "try_tick",
            Self::Promote => "promote",
            Self::Rescue => "rescue",
            Self::Rotate => "rotate",
            Self::Drain => "drain",
            Self::Unpin => "unpin",
            Self::Prune => "prune",
            Self::Tidy => "tidy",
            Self::OpenQueue => "open_queue",
            Self::ForgetDead => "forget_dead",
            Self::OpenQueues => "open_queues",
            Self::Get => "get",
            Self::List => "list",
            Self::Queues => "queues",
            Self::Census => "census",
            Self::Cancel => "cancel",
            Self::Retry => "retry",
            Self::SetPaused => "set_paused",
            Self::ConfigureQueue => "configure_queue",
            Self::QueueSettings => "queue_settings",
            Self::MoveJobs => "move_jobs",
            Self::PurgeQueue => "purge_queue",
            Self::Delete => "delete",
            Self::GrowRing => "grow_ring",
            Self::Counts => "counts",
            Self::Announce => "announce",
            Self::Withdraw => "withdraw",
            Self::Wait => "wait",
        }
    }
}

/// What goes wrong with one call.
pub enum Fault {
    /// It fails and has done nothing.
    Before(StoreErrorKind),
    /// It does its work, and its answer is lost.
    After(StoreErrorKind),
    /// It does nothing before this future is over, and then goes on to the next fault of the script, or to its work.
    Delay(Pin<Box<dyn Future<Output = ()> + Send>>),
}

impl Fault {
    /// A delay until `signal` is over.
    pub fn delay(signal: impl Future<Output = ()> + Send + 'static) -> Self {
        Self::Delay(Box::pin(signal))
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Before(kind) => f.debug_tuple("Before").field(kind).finish(),
            Self::After(kind) => f.debug_tuple("After").field(kind).finish(),
            Self::Delay(_) => f.write_str("Delay"),
        }
    }
}

/// A store around another one, which fails by script. Clones share the script.
///
/// Each call takes the next fault of its operation, if there is one; a call without a fault goes straight to the store
/// inside.
///
/// ```
/// use awa_core::StoreErrorKind;
/// use awa_core::store::Operator;
/// use awa_store_mem::{Fault, FaultyStore, MemStore, Operation};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = FaultyStore::new(MemStore::new());
/// store.script(Operation::Census, Fault::Before(StoreErrorKind::Unavailable));
/// assert!(store.census().await.unwrap_err().is_transient());
/// assert!(store.census().await.is_ok());
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct FaultyStore<S> {
    inside: S,
    script: Arc<Mutex<Script>>,
}

#[derive(Default)]
struct Script {
    faults: BTreeMap<Operation, VecDeque<Fault>>,
    calls: BTreeMap<Operation, usize>,
    outage: Option<StoreErrorKind>,
}

impl<S> FaultyStore<S> {
    /// A store that behaves like `inside` until told otherwise.
    pub fn new(inside: S) -> Self {
        Self { inside, script: Arc::default() }
    }

    /// The store inside, without faults.
    pub fn inside(&self) -> &S {
        &self.inside
    }

    /// Lets the next call of `operation` that has no fault yet meet this one.
    pub fn script(&self, operation: Operation, fault: Fault) {
        self.with_script(|script| script.faults.entry(operation).or_default().push_back(fault));
    }

    /// Lets every call of every operation fail before it has done anything, until [`Self::heal`]. Scripted faults wait.
    pub fn break_down(&self, kind: StoreErrorKind) {
        self.with_script(|script| script.outage = Some(kind));
    }

    /// Ends what [`Self::break_down`] began.
    pub fn heal(&self) {
        self.with_script(|script| script.outage = None);
    }

    /// How many scripted faults no call has met yet.
    pub fn unmet(&self) -> usize {
        self.with_script(|script| script.faults.values().map(VecDeque::len).sum())
    }

    /// How often `operation` has been called, failed calls included.
    pub fn calls(&self, operation: Operation) -> usize {
        self.with_script(|script| script.calls.get(&operation).copied().unwrap_or(0))
    }

    /// Carries out `work` with what the script has for `operation`.
    async fn run<T>(
        &self,
        operation: Operation,
        work: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.with_script(|script| *script.calls.entry(operation).or_default() += 1);
        loop {
            match self.with_script(|script| script.next(operation)) {
                None => return work.await,
                Some(Fault::Delay(signal)) => signal.await,
                Some(Fault::Before(kind)) => return Err(failure(kind, operation, "nothing was done")),
                Some(Fault::After(kind)) => {
                    work.await?;
                    return Err(failure(kind, operation, "the work was done and the answer lost"));
                }
            }
        }
    }

    fn with_script<T>(&self, change: impl FnOnce(&mut Script) -> T) -> T {
        // No code that may panic runs with the lock held, so a poisoned one still guards a whole script.
        change(&mut self.script.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Script {
    fn next(&mut self, operation: Operation) -> Option<Fault> {
        match self.outage {
            Some(kind) => Some(Fault::Before(kind)),
            None => self.faults.get_mut(&operation)?.pop_front(),
        }
    }
}

fn failure(kind: StoreErrorKind, operation: Operation, what: &str) -> StoreError {
    StoreError::new(kind, operation.as_str(), format!("the script says so, and {what}; try again"))
}

impl<S: fmt::Debug> fmt::Debug for FaultyStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyStore").field("inside", &self.inside).finish_non_exhaustive()
    }
}
