-- Purpose: the next expired claim batches of a slot after the batch deadline cursor.
-- Parameters: (deadline_at, batch) to start behind, last (deadline_at, batch) or NULLs, limit, present.
-- Returns: batch, nonce, deadline_at, open receipts as text.
-- Locks: ACCESS SHARE on the slot's children.
-- Caller: rescue.
-- per slot of: claim ring
SELECT b.batch_id, b.nonce, b.deadline_at, b.open::text
FROM /*schema*/awa.open_claims_0/*slot*/ AS b
WHERE b.deadline_at IS NOT NULL AND b.deadline_at <= coalesce($6::timestamptz, clock_timestamp())
  AND (b.deadline_at, b.batch_id) > (coalesce($1::timestamptz, '-infinity'), coalesce($2::bigint, 0))
  AND (b.deadline_at, b.batch_id) <= (coalesce($3::timestamptz, 'infinity'), coalesce($4::bigint, 0))
ORDER BY b.deadline_at, b.batch_id LIMIT $5::bigint
