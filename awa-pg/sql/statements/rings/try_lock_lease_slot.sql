-- Purpose: locks a slot of the lease ring without waiting.
-- Parameters: slot.
-- Returns: whether it was granted.
-- Locks: as the function.
-- Caller: prune.
SELECT /*schema*/awa.try_lock_lease_slot($1::smallint)
