-- Purpose: reclaims a slot of the lease ring.
-- Parameters: slot.
-- Returns: nothing.
-- Locks: held already.
-- Caller: prune.
SELECT /*schema*/awa.truncate_lease_slot($1::smallint)
