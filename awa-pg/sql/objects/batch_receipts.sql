-- Purpose: the receipts of a whole batch.
-- Parameters: batch; number of members.
-- Returns: the range.
-- Locks: none.
-- Caller: close_receipts_0, open_claims, rescue, prune proofs.
CREATE OR REPLACE FUNCTION /*schema*/awa.batch_receipts(p_batch bigint, p_members smallint) RETURNS int8multirange
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $awa$
    SELECT int8multirange(int8range((p_batch << 10) + 1, (p_batch << 10) + p_members + 1))
$awa$;
