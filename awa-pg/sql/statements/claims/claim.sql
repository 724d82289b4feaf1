-- Purpose: claims jobs of a queue.
-- Parameters: as the function claim_jobs.
-- Returns: as the function claim_jobs.
-- Locks: as the function.
-- Caller: Consumer::claim.
SELECT c.batch_id, c.claim_slot, c.priority, c.claimed_at, c.deadline_at, c.job_ids, c.run_leases, c.attempts,
       c.max_attempts, c.created_ats, c.kinds, c.args, c.metadata, c.contended, c.more, c.horizon
FROM /*schema*/awa.claim_jobs($1::text, $2::bigint, $3::bigint, $4::integer, $5::bigint, $6::bigint, $7::bigint,
    $8::timestamptz, $9::boolean) AS c
