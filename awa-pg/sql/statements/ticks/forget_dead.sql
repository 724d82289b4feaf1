-- Purpose: deletes jobs that died long ago.
-- Parameters: age in microseconds, limit, present.
-- Returns: how many.
-- Locks: as the function.
-- Caller: Maintainer::forget_dead.
SELECT /*schema*/awa.forget_dead($1::bigint, $2::bigint, $3::timestamptz)
