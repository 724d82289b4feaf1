-- Purpose: changes where a job goes that waits for its time.
-- Parameters: id; queue and priority, each NULL: as it is.
-- Returns: 'deferred' when it goes there now, 'contended' when somebody is promoting or cancelling it, NULL when it is not
--   deferred.
-- Locks: the row of deferred_jobs, only tried.
-- Caller: move_jobs.
CREATE OR REPLACE FUNCTION /*schema*/awa.move_deferred(p_job bigint, p_queue text, p_priority smallint) RETURNS text
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_job record;
BEGIN
    PERFORM FROM /*schema*/awa.deferred_jobs AS d WHERE d.job_id = p_job;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT d.queue, d.priority, d.shard INTO v_job
    FROM /*schema*/awa.deferred_jobs AS d WHERE d.job_id = p_job FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 'contended';
    END IF;
    IF v_job.queue <> coalesce(p_queue, v_job.queue) OR v_job.priority <> coalesce(p_priority, v_job.priority) THEN
        PERFORM /*schema*/awa.open_queue(coalesce(p_queue, v_job.queue), v_job.shard);
        UPDATE /*schema*/awa.deferred_jobs AS d
        SET queue = coalesce(p_queue, d.queue), priority = coalesce(p_priority, d.priority) WHERE d.job_id = p_job;
    END IF;
    RETURN 'deferred';
END
$awa$;
