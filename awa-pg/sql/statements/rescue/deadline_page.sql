-- Purpose: a page of the deadline sweep over a slot of the claim ring.
-- Parameters: slot, (deadline_at, batch) to start behind, last (deadline_at, batch) or NULLs, limit, present.
-- Returns: batch, nonce, deadline_at, open receipts as text.
-- Locks: as the function.
-- Caller: rescue.
SELECT p.batch_id, p.nonce, p.deadline_at, p.open
FROM /*schema*/awa.deadline_page($1::smallint, $2::timestamptz, $3::bigint, $4::timestamptz, $5::bigint, $6::bigint,
    coalesce($7::timestamptz, pg_catalog.clock_timestamp())) AS p
