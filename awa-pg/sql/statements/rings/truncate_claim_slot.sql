-- Purpose: reclaims a slot of the claim ring.
-- Parameters: slot.
-- Returns: nothing.
-- Locks: held already.
-- Caller: prune.
SELECT /*schema*/awa.truncate_claim_slot($1::smallint)
