-- Purpose: which attempts are open.
-- Parameters: parallel arrays: claim slot, nonce, receipt.
-- Returns: one array of booleans, in input order.
-- Locks: ACCESS SHARE on the claim ring and leases.
-- Caller: Consumer::are_open.
SELECT pg_catalog.array_agg(EXISTS (
    SELECT FROM /*schema*/awa.open_compact_claims AS o
    WHERE o.claim_slot = w.claim_slot AND o.batch_id = w.receipt >> 10 AND o.nonce = w.nonce
      AND o.open OPERATOR(pg_catalog.@>) w.receipt)
    OR EXISTS (
    SELECT FROM /*schema*/awa.open_row_claims AS o
    WHERE o.claim_slot = w.claim_slot AND o.receipt_id = w.receipt AND o.nonce = w.nonce)
    OR EXISTS (
    SELECT FROM /*schema*/awa.leases AS l
    WHERE l.receipt_id = w.receipt AND l.nonce = w.nonce AND l.claim_slot = w.claim_slot)
    ORDER BY w.o)
FROM unnest($1::smallint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS w (claim_slot, nonce, receipt, o)
