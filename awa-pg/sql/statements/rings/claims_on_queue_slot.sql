-- Purpose: a number that changes with each claim of rows of a slot of the queue ring.
-- Parameters: slot of the queue ring.
-- Returns: the number.
-- Locks: ACCESS SHARE on the slot's child of ready_claim_attempt_batches.
-- Caller: prune.
SELECT /*schema*/awa.recorded_claims($1::smallint)
