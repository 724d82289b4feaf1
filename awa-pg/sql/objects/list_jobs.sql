-- Purpose: looks at jobs. A function, because compiling the
--   plans of the large views costs seconds, and only a function can forbid it.
-- Parameters: queue or NULL; state or NULL; kind or NULL; only ids below this or NULL; limit.
-- Returns: the columns of the view jobs, newest id first.
-- Locks: ACCESS SHARE on the tables read.
-- Caller: Operator::list.
CREATE OR REPLACE FUNCTION /*schema*/awa.list_jobs(p_queue text, p_state text, p_kind text, p_before bigint, p_limit bigint)
RETURNS TABLE (
    job_id bigint, state text, queue text, kind text, priority smallint, attempt smallint, max_attempts smallint,
    run_lease bigint, args json, metadata json, created_at timestamptz, run_at timestamptz, deferred_reason text,
    claimed_at timestamptz, finalized_at timestamptz, result json, error text)
LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp AS $awa$
BEGIN
    -- Each statement of a volatile function has a snapshot of its own, taken when all that it reads is locked: with an older
    -- one, jobs that went on elsewhere would be missed when their slots were truncated before it came to them.
    RETURN QUERY
    SELECT j.job_id, j.state, j.queue, j.kind, j.priority, j.attempt, j.max_attempts, j.run_lease, j.args, j.metadata,
           j.created_at, j.run_at, j.deferred_reason, j.claimed_at, j.finalized_at, j.result, j.error
    FROM /*schema*/awa.jobs AS j
    WHERE (p_queue IS NULL OR j.queue = p_queue) AND (p_state IS NULL OR j.state = p_state)
      AND (p_kind IS NULL OR j.kind = p_kind) AND (p_before IS NULL OR j.job_id < p_before)
    ORDER BY j.job_id DESC LIMIT p_limit;
END
$awa$;
