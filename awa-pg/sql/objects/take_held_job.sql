-- Purpose: takes one job out of the dead-letter queue or out of the deferred jobs.
-- Parameters: id; the state that the caller has seen it in, 'dead' or 'deferred'. A job that has moved on since is not taken:
--   a dead one needs its key first.
-- Returns: the job, or a row of NULLs when it is not there any more or somebody else holds it. A dead job has its attempts
--   counted from zero.
-- Locks: its row, only tried.
-- Caller: retry_jobs.
CREATE OR REPLACE FUNCTION /*schema*/awa.take_held_job(
    p_job bigint, p_state text, OUT job_id bigint, OUT run_lease bigint, OUT created_at timestamptz, OUT priority smallint,
    OUT shard smallint, OUT attempt smallint, OUT max_attempts smallint, OUT queue text, OUT kind text, OUT args json,
    OUT metadata json, OUT last_error text)
LANGUAGE plpgsql VOLATILE AS $awa$
BEGIN
    SELECT q.job_id, q.run_lease, q.created_at, q.priority, q.shard, 0, q.max_attempts, q.queue, q.kind, q.args,
           q.metadata, q.error
    INTO job_id, run_lease, created_at, priority, shard, attempt, max_attempts, queue, kind, args, metadata, last_error
    FROM /*schema*/awa.dlq_entries AS q WHERE q.job_id = p_job AND p_state = 'dead' FOR UPDATE SKIP LOCKED;
    IF FOUND THEN
        DELETE FROM /*schema*/awa.dlq_entries AS q WHERE q.job_id = p_job;
        RETURN;
    END IF;
    SELECT d.job_id, d.run_lease, d.created_at, d.priority, d.shard, d.attempt, d.max_attempts, d.queue, d.kind, d.args,
           d.metadata, d.last_error
    INTO job_id, run_lease, created_at, priority, shard, attempt, max_attempts, queue, kind, args, metadata, last_error
    FROM /*schema*/awa.deferred_jobs AS d WHERE d.job_id = p_job AND p_state = 'deferred'
    FOR UPDATE SKIP LOCKED;
    IF FOUND THEN
        DELETE FROM /*schema*/awa.deferred_jobs AS d WHERE d.job_id = p_job;
    END IF;
END
$awa$;
