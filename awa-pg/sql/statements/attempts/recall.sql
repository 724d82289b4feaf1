-- Purpose: what was noted for the jobs of attempts.
-- Parameters: parallel arrays: claim slot, nonce, receipt, job.
-- Returns: a row per attempt in input order: whether it is running, progress, payload.
-- Locks: ACCESS SHARE on the claim ring, leases and attempt_state.
-- Caller: Attempts::recall.
SELECT EXISTS (
           SELECT FROM /*schema*/awa.open_claims AS o
           WHERE o.claim_slot = w.claim_slot AND o.batch_id = w.receipt >> 10 AND o.nonce = w.nonce
             AND o.open OPERATOR(pg_catalog.@>) w.receipt)
       OR EXISTS (
           SELECT FROM /*schema*/awa.leases AS l
           WHERE l.receipt_id = w.receipt AND l.nonce = w.nonce AND l.claim_slot = w.claim_slot AND l.job_id = w.job),
       s.progress, s.payload
FROM unnest($1::smallint[], $2::bigint[], $3::bigint[], $4::bigint[]) WITH ORDINALITY
    AS w (claim_slot, nonce, receipt, job, o)
LEFT JOIN /*schema*/awa.attempt_state AS s ON s.job_id = w.job
ORDER BY w.o
