-- Purpose: the next expired row-local claims of a slot after the deadline cursor.
-- Parameters: (deadline_at, job, lease) to start behind, last (deadline_at, job, lease) or NULLs, limit, present.
-- Returns: receipt, job, lease, nonce, deadline_at, whether it is closed.
-- Locks: ACCESS SHARE on the slot's children.
-- Caller: rescue.
-- per slot of: claim ring
SELECT l.receipt_id, l.job_id, l.run_lease, l.nonce, l.deadline_at,
       EXISTS (SELECT FROM /*schema*/awa.lease_claim_closures_0/*slot*/ AS c WHERE c.receipt_id = l.receipt_id)
FROM /*schema*/awa.lease_claims_0/*slot*/ AS l
WHERE l.deadline_at IS NOT NULL AND l.deadline_at <= coalesce($8::timestamptz, clock_timestamp())
  AND (l.deadline_at, l.job_id, l.run_lease)
      > (coalesce($1::timestamptz, '-infinity'), coalesce($2::bigint, 0), coalesce($3::bigint, 0))
  AND (l.deadline_at, l.job_id, l.run_lease)
      <= (coalesce($4::timestamptz, 'infinity'), coalesce($5::bigint, 0), coalesce($6::bigint, 0))
ORDER BY l.deadline_at, l.job_id, l.run_lease LIMIT $7::bigint
