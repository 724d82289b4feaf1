-- Purpose: which attempts are open.
-- Parameters: parallel arrays: claim slot, nonce, receipt.
-- Returns: one array of booleans, in input order.
-- Locks: ACCESS SHARE on the claim ring.
-- Caller: Consumer::are_open.
SELECT pg_catalog.array_agg(EXISTS (
    SELECT FROM /*schema*/awa.open_claims AS o
    WHERE o.claim_slot = w.claim_slot AND o.batch_id = w.receipt >> 10 AND o.nonce = w.nonce
      AND o.open OPERATOR(pg_catalog.@>) w.receipt)
    ORDER BY w.o)
FROM unnest($1::smallint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS w (claim_slot, nonce, receipt, o)
