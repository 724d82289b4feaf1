-- Purpose: sums up the permanent counters.
-- Parameters: none.
-- Returns: nothing.
-- Locks: as the function.
-- Caller: Maintainer::tidy.
SELECT /*schema*/awa.compact_counters()
