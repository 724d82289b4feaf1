-- Purpose: one job by its id, wherever it is.
-- Parameters: id.
-- Returns: one row with the columns of the view jobs, or none.
-- Locks: ACCESS SHARE on the tables read.
-- Caller: get, cancel_jobs, retry_jobs, delete_jobs, move_jobs, glimpse_state, deliver_cancels.
CREATE OR REPLACE FUNCTION /*schema*/awa.find_job(p_job bigint)
RETURNS TABLE (
    job_id bigint, state text, queue text, kind text, priority smallint, attempt smallint, max_attempts smallint,
    run_lease bigint, args json, metadata json, created_at timestamptz, run_at timestamptz, deferred_reason text,
    claimed_at timestamptz, finalized_at timestamptz, result json, error text)
LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp AS $awa$
BEGIN
    -- TRUNCATE is not subject to snapshots: a job that went on elsewhere after the snapshot of a look is not found when its
    -- old slots were reclaimed before the look came to them. What a look has come to cannot be reclaimed any more, so
    -- that each look can miss the job in fewer ways: the first leaves all of ready_entries locked, the second the claims, and
    -- the third, with a snapshot taken under these locks, in none.
    FOR v_look IN 1..3 LOOP
        RETURN QUERY
        SELECT j.job_id, j.state, j.queue, j.kind, j.priority, j.attempt, j.max_attempts, j.run_lease, j.args, j.metadata,
               j.created_at, j.run_at, j.deferred_reason, j.claimed_at, j.finalized_at, j.result, j.error
        FROM /*schema*/awa.look_for_job(p_job) AS j;
        EXIT WHEN FOUND;
    END LOOP;
END
$awa$;
