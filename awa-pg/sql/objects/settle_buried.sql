-- Purpose: makes the cancel of a job final whose newest ready row has a tombstone and was not handed out before: under the
--   lane's lock no claim can emit the row any more.
-- Parameters: id.
-- Returns: 'ready' when it is final, 'contended' when somebody holds its lane, NULL when the job is elsewhere.
-- Locks: the advisory lock of its lane, only tried, kept to the end of the transaction; as release_unique_keys.
-- Caller: deliver_cancels.
CREATE OR REPLACE FUNCTION /*schema*/awa.settle_buried(p_job bigint) RETURNS text
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $awa$
DECLARE
    v_row record;
BEGIN
    SELECT n.ready_slot, n.lane_id, n.xid, n.run_lease INTO v_row FROM /*schema*/awa.newest_ready_row(p_job) AS n;
    IF v_row.lane_id IS NULL THEN
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
    PERFORM FROM /*schema*/awa.passing(v_row.ready_slot, v_row.lane_id, v_row.xid, p_job) AS p WHERE p.member IS NOT NULL;
    IF FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM /*schema*/awa.release_unique_keys(ARRAY[p_job], 64::smallint);
    PERFORM /*schema*/awa.forget_notes(ARRAY[p_job]);
    RETURN 'ready';
END
$awa$;
