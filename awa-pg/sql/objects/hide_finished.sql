-- Purpose: hides one finished job from every view, by a tombstone beside its history.
-- Parameters: id; state and run lease as find_job tells them; the present.
-- Returns: the state when it was hidden, 'contended' when its slot is being reclaimed or it is being retried, NULL when it is gone.
-- Locks: the advisory lock of a failed job, only tried, kept to the end of the transaction; ROW EXCLUSIVE on one child of receipt_completion_tombstones, which keeps the slot from being reclaimed.
-- Caller: delete_jobs.
CREATE OR REPLACE FUNCTION /*schema*/awa.hide_finished(p_job bigint, p_state text, p_lease bigint, p_now timestamptz)
RETURNS text LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET lock_timeout = '100ms' AS $awa$
DECLARE
    v_slot smallint;
BEGIN
    -- A retry takes the key of the job before it takes the job.
    IF p_state = 'failed' AND NOT pg_try_advisory_xact_lock(/*schema*/awa.retry_key(p_job)) THEN
        RETURN 'contended';
    END IF;
    SELECT d.done_slot INTO v_slot FROM /*schema*/awa.done_entries AS d WHERE d.job_id = p_job AND d.run_lease = p_lease;
    IF NOT FOUND THEN
        SELECT n.ready_slot INTO v_slot FROM /*schema*/awa.newest_ready_row(p_job) AS n;
    END IF;
    CASE v_slot
    -- each queue slot:
    WHEN 0/*slot*/ THEN LOCK TABLE /*schema*/awa.receipt_completion_tombstones_0/*slot*/ IN ROW EXCLUSIVE MODE;
    -- end each
    ELSE
        PERFORM /*schema*/awa.refuse_unknown_slot('queue', v_slot, false);
        RETURN NULL;
    END CASE;
    -- Under the lock, in a new statement: the slot may have been reclaimed meanwhile.
    PERFORM FROM /*schema*/awa.find_job(p_job) AS j WHERE j.state = p_state AND j.run_lease = p_lease;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    INSERT INTO /*schema*/awa.receipt_completion_tombstones (job_id, run_lease, deleted_at, ready_slot)
    VALUES (p_job, p_lease, p_now, v_slot) ON CONFLICT DO NOTHING;
    RETURN CASE WHEN FOUND THEN p_state END;
EXCEPTION WHEN lock_not_available THEN
    RETURN 'contended';
END
$awa$;
