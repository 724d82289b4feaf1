-- Purpose: looks at jobs.
-- Parameters: queue or NULL; state or NULL; kind or NULL; only ids below this or NULL; limit.
-- Returns: the columns of the view jobs, newest id first.
-- Locks: as the function.
-- Caller: Operator::list.
SELECT j.job_id, j.state, j.queue, j.kind, j.priority, j.attempt, j.max_attempts, j.run_lease, j.args, j.metadata,
       j.created_at, j.run_at, j.deferred_reason, j.claimed_at, j.finalized_at, j.result, j.error
FROM /*schema*/awa.list_jobs($1::text, $2::text, $3::text, $4::bigint, $5::bigint) AS j
ORDER BY j.job_id DESC
