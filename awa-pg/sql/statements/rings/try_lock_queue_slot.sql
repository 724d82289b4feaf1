-- Purpose: locks a slot of the queue ring without waiting.
-- Parameters: slot, whether exclusively.
-- Returns: whether it was granted.
-- Locks: as the function.
-- Caller: drain, prune.
SELECT /*schema*/awa.try_lock_queue_slot($1::smallint, $2::boolean)
