-- Purpose: shows that an instance is alive.
-- Parameters: instance, staleness in microseconds, present.
-- Returns: nothing.
-- Locks: the instance's row.
-- Caller: Consumer::beat.
SELECT /*schema*/awa.beat($1::bigint, $2::bigint, $3::timestamptz)
