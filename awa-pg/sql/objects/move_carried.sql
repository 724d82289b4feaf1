-- Purpose: moves one job that was carried over to the tail of another lane.
-- Parameters: id; queue and priority, each NULL: as it is; the present.
-- Returns: 'ready' when it is there now, 'contended' when somebody holds its lane, NULL when it is not carried over.
-- Locks: the advisory lock of its lane, only tried, kept to the end of the transaction; as append_again.
-- Caller: move_jobs.
CREATE OR REPLACE FUNCTION /*schema*/awa.move_carried(p_job bigint, p_queue text, p_priority smallint, p_now timestamptz)
RETURNS text LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_lane bigint;
    v_to   record;
    v_row  record;
BEGIN
    SELECT c.lane_id INTO v_lane FROM /*schema*/awa.carried_entries AS c WHERE c.job_id = p_job;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF NOT pg_try_advisory_xact_lock(/*schema*/awa.lane_key(v_lane)) THEN
        RETURN 'contended';
    END IF;
    SELECT t.lane_id, t.queue, t.priority, t.shard INTO v_to
    FROM /*schema*/awa.lane_beside(v_lane, p_queue, p_priority) AS t;
    IF v_to.lane_id = v_lane THEN
        PERFORM FROM /*schema*/awa.carried_entries AS c WHERE c.job_id = p_job;
        RETURN CASE WHEN FOUND THEN 'ready' END;
    END IF;
    DELETE FROM /*schema*/awa.carried_entries AS c WHERE c.job_id = p_job
    RETURNING c.kind, c.args, c.max_attempts, c.metadata, c.created_at, c.attempt, c.run_lease, c.last_error INTO v_row;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM /*schema*/awa.append_again(ARRAY[p_job], ARRAY[v_to.queue], ARRAY[v_to.priority], ARRAY[v_to.shard],
        ARRAY[v_row.kind], ARRAY[v_row.args], ARRAY[v_row.max_attempts], ARRAY[v_row.metadata], ARRAY[v_row.created_at],
        ARRAY[v_row.attempt], ARRAY[v_row.run_lease + 1], ARRAY[v_row.last_error], p_now);
    RETURN 'ready';
END
$awa$;
