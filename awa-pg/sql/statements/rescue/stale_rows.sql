-- Purpose: the next row-local claims of a slot after the stale cursor, in the order in which they were claimed.
-- Parameters: (claimed_at, job, lease) to start behind, last (claimed_at, job, lease) or NULLs, limit.
-- Returns: receipt, job, lease, nonce, claimed_at, whether it is closed, last beat of its instance (NULL: nothing is known of
--   it), whether the instance has withdrawn since. Claims that are too new are in the page as well: the sweep stops at
--   them.
-- Locks: ACCESS SHARE on the slot's children.
-- Caller: rescue.
-- per slot of: claim ring
SELECT l.receipt_id, l.job_id, l.run_lease, l.nonce, l.claimed_at,
       EXISTS (SELECT FROM /*schema*/awa.lease_claim_closures_0/*slot*/ AS c WHERE c.receipt_id = l.receipt_id),
       (SELECT i.last_beat FROM /*schema*/awa.runtime_instances AS i WHERE i.instance_id = l.instance_id),
       EXISTS (SELECT FROM /*schema*/awa.runtime_instances AS i
               WHERE i.instance_id = l.instance_id AND i.retired_at >= l.claimed_at)
FROM /*schema*/awa.lease_claims_0/*slot*/ AS l
WHERE (l.claimed_at, l.job_id, l.run_lease)
      > (coalesce($1::timestamptz, '-infinity'), coalesce($2::bigint, 0), coalesce($3::bigint, 0))
  AND (l.claimed_at, l.job_id, l.run_lease)
      <= (coalesce($4::timestamptz, 'infinity'), coalesce($5::bigint, 0), coalesce($6::bigint, 0))
ORDER BY l.claimed_at, l.job_id, l.run_lease LIMIT $7::bigint
