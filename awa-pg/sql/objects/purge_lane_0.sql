-- Purpose: removes the jobs of one lane that wait in one slot: one cursor row that jumps over them. They are passed and were not
--   emitted, and no tombstone tells of them, so that they are nowhere. The caller holds the lane's lock.
-- Parameters: lane; the snapshot, which says what the purge removes.
-- Returns: how many were removed; -1 when an open transaction is about to cancel a job of the slot.
-- Locks: SHARE on the child of ready_tombstones, only tried; ROW EXCLUSIVE on the child of ready_claim_attempt_batches; as
--   release_unique_keys.
-- Caller: purge_queue.
-- per slot of: queue ring
CREATE OR REPLACE FUNCTION /*schema*/awa.purge_lane_0/*slot*/(p_lane bigint, p_snapshot pg_snapshot) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_cursor record;
    v_gone   record;
    v_next   record;
    -- Whether the jobs may leave something behind, so that their ids are wanted.
    v_leaves boolean := pg_relation_size('/*schema*/awa.unique_claims') > 0
                     OR pg_relation_size('/*schema*/awa.attempt_state') > 0;
BEGIN
    BEGIN
        LOCK TABLE /*schema*/awa.ready_tombstones_0/*slot*/ IN SHARE MODE NOWAIT;
    EXCEPTION WHEN lock_not_available THEN
        RETURN -1;
    END;
    SELECT b.seq, b.seen, b.part_xids, b.part_jobs INTO v_cursor
    FROM /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ AS b WHERE b.lane_id = p_lane ORDER BY b.seq DESC LIMIT 1;
    SELECT count(*) AS jobs, array_agg(r.job_id) FILTER (WHERE v_leaves) AS job_ids INTO v_gone
    FROM /*schema*/awa.frontier_probes(
        coalesce(v_cursor.seen, '1:1:'), v_cursor.part_xids, v_cursor.part_jobs, p_snapshot) AS p
    JOIN /*schema*/awa.ready_entries_0/*slot*/ AS r
        ON r.lane_id = p_lane AND (r.xid, r.job_id) > (p.lo, p.lo_job) AND r.xid < p.hi
    WHERE NOT EXISTS (SELECT FROM /*schema*/awa.ready_tombstones_0/*slot*/ AS t
                      WHERE t.lane_id = p_lane AND t.job_id = r.job_id AND t.run_lease = coalesce(r.run_lease, 0));
    IF v_gone.jobs = 0 THEN
        RETURN 0;
    END IF;
    SELECT f.seen, f.part_xids, f.part_jobs INTO v_next
    FROM /*schema*/awa.frontier_after(
        coalesce(v_cursor.seen, '1:1:'), v_cursor.part_xids, v_cursor.part_jobs, p_snapshot, NULL, NULL) AS f;
    INSERT INTO /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ (lane_id, seq, ready_slot, seen, part_xids, part_jobs)
    VALUES (p_lane, coalesce(v_cursor.seq, 0) + 1, 0/*slot*/, v_next.seen, v_next.part_xids, v_next.part_jobs);
    IF v_leaves THEN
        PERFORM /*schema*/awa.forget_removed(v_gone.job_ids);
    END IF;
    RETURN v_gone.jobs;
END
$awa$;
