-- Purpose: makes lanes of queues that were used before any worker opened them.
-- Parameters: none.
-- Returns: how many hints were folded.
-- Locks: as the function.
-- Caller: Maintainer::tidy.
SELECT /*schema*/awa.fold_lane_hints()
