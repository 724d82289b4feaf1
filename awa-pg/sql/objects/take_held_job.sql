-- Purpose: takes one job out of the dead-letter queue, out of the failed jobs or out of the deferred jobs.
-- Parameters: id; the state that the caller has seen it in, 'dead', 'failed' or 'deferred'. A job that has moved on since is not
--   taken: a dead or failed one needs its key first.
-- Returns: the job, or a row of NULLs when it is not there any more or somebody else holds it. A dead or failed job has its
--   attempts counted from zero.
-- Locks: its row, only tried; of a failed job, ROW EXCLUSIVE on a child of receipt_completion_tombstones (the caller holds the
--   job by take_key_again).
-- Caller: retry_jobs.
-- depends on: failed_jobs
CREATE OR REPLACE FUNCTION /*schema*/awa.take_held_job(
    p_job bigint, p_state text, OUT job_id bigint, OUT run_lease bigint, OUT created_at timestamptz, OUT priority smallint,
    OUT shard smallint, OUT attempt smallint, OUT max_attempts smallint, OUT queue text, OUT kind text, OUT args json,
    OUT metadata json, OUT last_error text)
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_slot smallint;
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
        RETURN;
    END IF;
    SELECT f.done_slot, f.job_id, f.run_lease, f.created_at, f.priority, f.shard, 0, f.max_attempts, f.queue, f.kind,
           f.args, f.metadata, f.error
    INTO v_slot, job_id, run_lease, created_at, priority, shard, attempt, max_attempts, queue, kind, args, metadata, last_error
    FROM /*schema*/awa.failed_jobs AS f WHERE f.job_id = p_job AND p_state = 'failed';
    IF FOUND THEN
        -- Whoever comes second meets the unique index of the slot.
        INSERT INTO /*schema*/awa.receipt_completion_tombstones (job_id, run_lease, deleted_at, ready_slot)
        VALUES (p_job, take_held_job.run_lease, clock_timestamp(), v_slot) ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
            job_id := NULL;
        END IF;
    END IF;
END
$awa$;
