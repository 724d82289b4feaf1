-- Purpose: makes the cancel of a job final whose newest ready row has a tombstone and was not handed out before: under the
--   lane's lock no claim can emit the row any more.
-- Parameters: id.
-- Returns: 'ready' when it is final, 'contended' when somebody holds its lane, NULL when the job is elsewhere.
-- Locks: the advisory lock of its lane, only tried, kept to the end of the transaction; as release_unique_keys.
-- Caller: deliver_cancels.
CREATE OR REPLACE FUNCTION /*schema*/awa.settle_buried(p_job bigint) RETURNS text
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_row record;
BEGIN
    SELECT r.ready_slot, r.lane_id, coalesce(r.run_lease, 0) AS run_lease INTO v_row
    FROM /*schema*/awa.ready_entries AS r WHERE r.job_id = p_job ORDER BY coalesce(r.run_lease, 0) DESC LIMIT 1;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF NOT pg_try_advisory_xact_lock(/*schema*/awa.lane_key(v_row.lane_id)) THEN
        RETURN 'contended';
    END IF;
    PERFORM FROM /*schema*/awa.ready_tombstones AS t
    WHERE t.ready_slot = v_row.ready_slot AND t.lane_id = v_row.lane_id AND t.job_id = p_job
      AND t.run_lease = v_row.run_lease AND t.moved_at IS NULL;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM FROM /*schema*/awa.emitted_attempts AS e
    WHERE e.ready_slot = v_row.ready_slot AND e.lane_id = v_row.lane_id AND e.job_id = p_job
      AND e.row_lease = v_row.run_lease;
    IF FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM /*schema*/awa.release_unique_keys(ARRAY[p_job], 64::smallint);
    RETURN 'ready';
END
$awa$;
