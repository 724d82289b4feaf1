//! What is left out of the protocol, one thing at a time, to see that the checker would notice.

/// A protocol with a hole.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Mutant {
    /// A snapshot is stored in which the caller's own transaction looks finished.
    OwnXidLooksFinished,
    /// A slot is truncated by the proof from before the lock.
    NoSecondProof,
    /// A claim believes the generation of a slot that it read before it locked the child, looks for rows by a snapshot
    /// taken later, and the proof counts open claims of that generation only.
    SlotReadBeforeLock,
    /// A slot is drained by facts that were read before the writers' lock was asked for.
    DrainReadBeforeLock,
    /// What is closed is read by the statement that waited, and not again.
    ClosureReadWhileWaiting,
    /// Closures have neither a unique index nor an exclusion constraint.
    NoClosureConstraint,
    /// A slot is drained without asking whether a writer is in flight.
    DrainWithoutWritersLock,
    /// Rescue by a process that has itself been cut off.
    RescuerNotHealthy,
    /// A rescuer is judged at one moment and judges others at a later one.
    PresentReadAgain,
    /// Every process counts as alive, for ever.
    NobodyLooksDead,
    /// The cursor of a sweep passes a claim that could not be closed.
    CursorPassesHeldClaim,
    /// A writer reads the pointer twice, and follows it without a third look.
    WriterLooksTwiceOnly,
    /// Claims look in the slots of the ledger only.
    PointerSlotNotListed,
    /// A closer at REPEATABLE READ believes that what it does not see is over.
    FrozenCloserBelieves,
    /// Rows are carried over although others of their lane wait in an older slot.
    CarryOverOvertakes,
    /// A cancellation does not take the lane's lock.
    CancelWithoutLaneLock,
    /// Whoever waited for a lease that was moved meanwhile does not look again.
    MovedLeaseLooksOver,
    /// A slot of the lease ring is truncated by the count from before the lock.
    NoSecondLookAtLeases,
    /// Whoever moves leases copies what the statement saw, whether or not somebody is ending it.
    MoverCopiesWhatItSaw,
    /// A claim takes no lane lock, and the cursors have no unique index.
    NeitherLaneLockNorChain,
}
