-- Purpose: how many claims are stored in a slot of the claim ring.
-- Parameters: slot of the claim ring.
-- Returns: the number.
-- Locks: ACCESS SHARE on the slot's children.
-- Caller: prune.
SELECT /*schema*/awa.stored_claims($1::smallint)
