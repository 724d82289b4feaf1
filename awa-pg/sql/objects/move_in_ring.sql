-- Purpose: moves one job whose newest ready row waits to be claimed to the tail of another lane: a tombstone over that row and a
--   new row with a larger lease, so that an id and a lease name one row for ever.
-- Parameters: id; queue and priority, each NULL: as it is; the present.
-- Returns: 'ready' when it is there now, 'contended' when somebody is claiming it, NULL when it does not wait in the ring.
-- Locks: the advisory lock of its lane, only tried, kept to the end of the transaction, so that no claim can emit the row any
--   more; ROW EXCLUSIVE on one child of ready_tombstones; waits, no longer than lock_timeout, for an open transaction that has
--   replaced the job; as append_again.
-- Caller: move_jobs.
CREATE OR REPLACE FUNCTION /*schema*/awa.move_in_ring(p_job bigint, p_queue text, p_priority smallint, p_now timestamptz)
RETURNS text LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $awa$
DECLARE
    v_row record;
    v_to  record;
BEGIN
    SELECT r.ready_slot, r.lane_id, r.xid, n.run_lease, r.kind, r.args, r.max_attempts, r.metadata, r.created_at,
           coalesce(r.attempt, 0::smallint) AS attempt, r.last_error
    INTO v_row
    FROM /*schema*/awa.newest_ready_row(p_job) AS n
    JOIN /*schema*/awa.ready_entries AS r
        ON r.ready_slot = n.ready_slot AND r.lane_id = n.lane_id AND r.xid = n.xid AND r.job_id = p_job;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF NOT pg_try_advisory_xact_lock(/*schema*/awa.lane_key(v_row.lane_id)) THEN
        RETURN 'contended';
    END IF;
    -- Under the lane's lock nobody can move the cursor; the next statement sees where it stands.
    PERFORM FROM /*schema*/awa.passing(v_row.ready_slot, v_row.lane_id, v_row.xid, p_job) AS p WHERE p.seq IS NOT NULL;
    IF FOUND THEN
        RETURN NULL;
    END IF;
    SELECT t.lane_id, t.queue, t.priority, t.shard INTO v_to
    FROM /*schema*/awa.lane_beside(v_row.lane_id, p_queue, p_priority) AS t;
    IF v_to.lane_id = v_row.lane_id THEN
        PERFORM FROM /*schema*/awa.ready_tombstones AS t
        WHERE t.ready_slot = v_row.ready_slot AND t.lane_id = v_row.lane_id AND t.job_id = p_job
          AND t.run_lease = v_row.run_lease;
        RETURN CASE WHEN NOT FOUND THEN 'ready' END;
    END IF;
    INSERT INTO /*schema*/awa.ready_tombstones (lane_id, job_id, run_lease, cancelled_at, ready_slot, reason, moved_at)
    VALUES (v_row.lane_id, p_job, v_row.run_lease, p_now, v_row.ready_slot, 'moved', p_now)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM /*schema*/awa.append_again(ARRAY[p_job], ARRAY[v_to.queue], ARRAY[v_to.priority], ARRAY[v_to.shard],
        ARRAY[v_row.kind], ARRAY[v_row.args], ARRAY[v_row.max_attempts], ARRAY[v_row.metadata], ARRAY[v_row.created_at],
        ARRAY[v_row.attempt], ARRAY[v_row.run_lease + 1], ARRAY[v_row.last_error], p_now);
    RETURN 'ready';
END
$awa$;
