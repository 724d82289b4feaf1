-- Purpose: the receipts of a whole batch.
-- Parameters: batch; number of members.
-- Returns: the range.
-- Locks: none.
-- Caller: close_receipts_0, close_one_0, open_claims, rescue, prune proofs.
CREATE OR REPLACE FUNCTION /*schema*/awa.batch_receipts(p_batch bigint, p_members smallint) RETURNS int8multirange
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $awa$
    SELECT pg_catalog.int8multirange(pg_catalog.int8range(
        (p_batch OPERATOR(pg_catalog.<<) 10) OPERATOR(pg_catalog.+) 1,
        (p_batch OPERATOR(pg_catalog.<<) 10) OPERATOR(pg_catalog.+) p_members OPERATOR(pg_catalog.+) 1))
$awa$;
