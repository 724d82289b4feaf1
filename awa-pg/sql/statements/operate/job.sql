-- Purpose: looks at one job.
-- Parameters: id.
-- Returns: the columns of the view jobs, or no row.
-- Locks: as the function.
-- Caller: Operator::get.
SELECT j.job_id, j.state, j.queue, j.kind, j.priority, j.attempt, j.max_attempts, j.run_lease, j.args, j.metadata,
       j.created_at, j.run_at, j.deferred_reason, j.claimed_at, j.finalized_at, j.result, j.error
FROM /*schema*/awa.find_job($1::bigint) AS j
