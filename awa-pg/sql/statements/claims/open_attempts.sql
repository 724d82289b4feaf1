-- Purpose: the open attempts that name an instance.
-- Parameters: instance, limit.
-- Returns: claim slot, nonce, receipt, job, lease; oldest batch first.
-- Locks: ACCESS SHARE on the claim ring and attempt batches.
-- Caller: Consumer::open_attempts.
SELECT o.claim_slot, o.nonce, e.receipt_id, e.job_id, e.row_lease + 1 AS run_lease
FROM /*schema*/awa.open_claims AS o
JOIN /*schema*/awa.emitted_attempts AS e
    ON e.ready_slot = o.ready_slot AND e.lane_id = o.lane_id AND e.seq = o.attempt_seq
   AND o.open OPERATOR(pg_catalog.@>) e.receipt_id
WHERE o.instance_id = $1::bigint
UNION ALL
SELECT l.claim_slot, l.nonce, l.receipt_id, l.job_id, l.run_lease FROM /*schema*/awa.leases AS l
WHERE l.instance_id = $1::bigint AND l.waiting_until IS NULL
ORDER BY receipt_id LIMIT $2::bigint
