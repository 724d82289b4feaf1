-- Purpose: reclaims a slot of the queue ring.
-- Parameters: slot.
-- Returns: nothing.
-- Locks: held already.
-- Caller: prune.
SELECT /*schema*/awa.truncate_queue_slot($1::smallint)
