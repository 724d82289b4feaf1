-- Purpose: looks at jobs.
-- Parameters: queue or NULL; state or NULL; kind or NULL; only ids below this or NULL; limit.
-- Returns: the columns of the view jobs, newest id first.
-- Locks: ACCESS SHARE on everything.
-- Caller: Operator::list.
SELECT j.job_id, j.state, j.queue, j.kind, j.priority, j.attempt, j.max_attempts, j.run_lease, j.args, j.metadata,
       j.created_at, j.run_at, j.deferred_reason, j.claimed_at, j.finalized_at, j.result, j.error
FROM /*schema*/awa.jobs AS j
WHERE ($1::text IS NULL OR j.queue = $1::text) AND ($2::text IS NULL OR j.state = $2::text)
  AND ($3::text IS NULL OR j.kind = $3::text) AND ($4::bigint IS NULL OR j.job_id < $4::bigint)
ORDER BY j.job_id DESC LIMIT $5::bigint
