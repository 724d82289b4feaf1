-- Purpose: makes a slot of the queue ring the open one.
-- Parameters: slot, generation, present.
-- Returns: false when somebody else opened that generation.
-- Locks: as the function.
-- Caller: rotate.
SELECT /*schema*/awa.open_queue_slot($1::smallint, $2::bigint, coalesce($3::timestamptz, clock_timestamp()))
