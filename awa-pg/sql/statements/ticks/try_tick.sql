-- Purpose: asks for the turn of a task.
-- Parameters: task, interval in microseconds, present.
-- Returns: whether the caller has it.
-- Locks: as the function.
-- Caller: Maintainer::try_tick.
SELECT /*schema*/awa.try_tick($1::text, $2::bigint, $3::timestamptz)
