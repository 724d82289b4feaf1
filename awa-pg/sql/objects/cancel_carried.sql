-- Purpose: cancels one job that was carried over.
-- Parameters: id; reason; the present.
-- Returns: 'ready' when it was cancelled, 'contended' when somebody holds its lane, NULL when it is not carried over.
-- Locks: the advisory lock of its lane, only tried, kept to the end of the transaction; ROW EXCLUSIVE on one child of
--   done_entries.
-- Caller: cancel_jobs.
CREATE OR REPLACE FUNCTION /*schema*/awa.cancel_carried(p_job bigint, p_reason text, p_now timestamptz) RETURNS text
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_lane bigint;
    v_done smallint;
BEGIN
    SELECT c.lane_id INTO v_lane FROM /*schema*/awa.carried_entries AS c WHERE c.job_id = p_job;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF NOT pg_try_advisory_xact_lock(/*schema*/awa.lane_key(v_lane)) THEN
        RETURN 'contended';
    END IF;
    v_done := /*schema*/awa.enter_done_slot();
    WITH taken AS (
        DELETE FROM /*schema*/awa.carried_entries AS c WHERE c.job_id = p_job
        RETURNING c.job_id, c.run_lease, c.created_at, c.attempt, c.max_attempts, c.kind, c.args, c.metadata, c.lane_id)
    INSERT INTO /*schema*/awa.done_entries (
        job_id, run_lease, created_at, finalized_at, done_slot, priority, shard, attempt, max_attempts, state, queue, kind,
        args, metadata, error)
    SELECT t.job_id, t.run_lease, t.created_at, p_now, v_done, l.priority, l.shard, t.attempt, t.max_attempts, 'cancelled',
           l.queue, t.kind, t.args, t.metadata, p_reason
    FROM taken AS t JOIN /*schema*/awa.queue_lanes AS l ON l.lane_id = t.lane_id;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM /*schema*/awa.release_unique_keys(ARRAY[p_job], 64::smallint);
    PERFORM /*schema*/awa.forget_notes(ARRAY[p_job]);
    RETURN 'ready';
END
$awa$;
