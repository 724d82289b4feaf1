-- Purpose: cancels one job that waits for its time.
-- Parameters: id; reason; the present.
-- Returns: 'deferred' when it was cancelled, 'contended' when somebody is promoting it, NULL when it is not deferred.
-- Locks: the row of deferred_jobs, only tried; ROW EXCLUSIVE on one child of done_entries.
-- Caller: cancel_jobs.
CREATE OR REPLACE FUNCTION /*schema*/awa.cancel_deferred(p_job bigint, p_reason text, p_now timestamptz) RETURNS text
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_job record;
BEGIN
    PERFORM FROM /*schema*/awa.deferred_jobs AS d WHERE d.job_id = p_job;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT d.job_id, d.run_lease, d.created_at, d.priority, d.shard, d.attempt, d.max_attempts, d.queue, d.kind, d.args,
           d.metadata
    INTO v_job FROM /*schema*/awa.deferred_jobs AS d WHERE d.job_id = p_job FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 'contended';
    END IF;
    DELETE FROM /*schema*/awa.deferred_jobs AS d WHERE d.job_id = p_job;
    INSERT INTO /*schema*/awa.done_entries (
        job_id, run_lease, created_at, finalized_at, done_slot, priority, shard, attempt, max_attempts, state, queue, kind,
        args, metadata, error)
    VALUES (v_job.job_id, v_job.run_lease, v_job.created_at, p_now, /*schema*/awa.enter_done_slot(), v_job.priority,
        v_job.shard, v_job.attempt, v_job.max_attempts, 'cancelled', v_job.queue, v_job.kind, v_job.args, v_job.metadata,
        p_reason);
    PERFORM /*schema*/awa.release_unique_keys(ARRAY[p_job], 64::smallint);
    PERFORM /*schema*/awa.forget_notes(ARRAY[p_job]);
    RETURN 'deferred';
END
$awa$;
