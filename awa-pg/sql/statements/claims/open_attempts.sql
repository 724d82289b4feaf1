-- Purpose: the open attempts that name an instance.
-- Parameters: instance, limit.
-- Returns: claim slot, nonce, receipt, job, lease; oldest batch first.
-- Locks: ACCESS SHARE on the claim ring and attempt batches.
-- Caller: Consumer::open_attempts.
SELECT o.claim_slot, o.nonce, e.receipt_id, e.job_id, e.row_lease + 1
FROM /*schema*/awa.open_claims AS o
JOIN /*schema*/awa.emitted_attempts AS e
    ON e.ready_slot = o.ready_slot AND e.lane_id = o.lane_id AND e.seq = o.attempt_seq
   AND o.open OPERATOR(pg_catalog.@>) e.receipt_id
WHERE o.instance_id = $1::bigint
ORDER BY o.batch_id, e.receipt_id LIMIT $2::bigint
