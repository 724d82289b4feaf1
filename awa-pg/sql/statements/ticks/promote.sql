-- Purpose: makes due deferred jobs ready.
-- Parameters: limit, present.
-- Returns: how many.
-- Locks: as the function.
-- Caller: Maintainer::promote.
SELECT /*schema*/awa.promote_due($1::integer, $2::timestamptz)
