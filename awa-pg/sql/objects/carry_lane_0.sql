-- Purpose: moves the waiting rows of one lane out of one slot and appends the cursor that passes them, and that lists what
--   was moved: a cursor row with jobs and without a batch. The caller holds the lane's lock and has seen to it that nobody
--   can append to the slot, nor to an older one that is not drained.
-- Parameters: lane; the snapshot.
-- Returns: how many rows were moved.
-- Locks: ROW EXCLUSIVE on the child of ready_claim_attempt_batches and on carried_entries.
-- Caller: carry_slot.
-- per slot of: queue ring
CREATE OR REPLACE FUNCTION /*schema*/awa.carry_lane_0/*slot*/(p_lane bigint, p_snapshot pg_snapshot) RETURNS integer
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_cursor record;
    v_moved  record;
    v_next   record;
BEGIN
    SELECT b.seq, b.seen, b.part_xids, b.part_jobs INTO v_cursor
    FROM /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ AS b WHERE b.lane_id = p_lane ORDER BY b.seq DESC LIMIT 1;
    WITH moved AS (
        INSERT INTO /*schema*/awa.carried_entries (
            lane_id, xid, job_id, created_at, run_lease, attempt, max_attempts, kind, args, metadata, last_error)
        SELECT r.lane_id, r.xid, r.job_id, r.created_at, coalesce(r.run_lease, 0), coalesce(r.attempt, 0::smallint),
               r.max_attempts, r.kind, r.args, r.metadata, r.last_error
        FROM /*schema*/awa.frontier_probes(
            coalesce(v_cursor.seen, '1:1:'), v_cursor.part_xids, v_cursor.part_jobs, p_snapshot) AS p
        JOIN /*schema*/awa.ready_entries_0/*slot*/ AS r
            ON r.lane_id = p_lane AND (r.xid, r.job_id) > (p.lo, p.lo_job) AND r.xid < p.hi
        WHERE NOT EXISTS (SELECT FROM /*schema*/awa.ready_tombstones_0/*slot*/ AS t
                          WHERE t.lane_id = p_lane AND t.job_id = r.job_id AND t.run_lease = coalesce(r.run_lease, 0))
        RETURNING job_id, run_lease, xid)
    SELECT count(*)::integer AS jobs, array_agg(m.job_id ORDER BY m.xid, m.job_id) AS job_ids,
           array_agg(m.run_lease ORDER BY m.xid, m.job_id) AS run_leases, min(m.xid::text::bigint)::text::xid8 AS first_xid,
           max(m.xid::text::bigint)::text::xid8 AS last_xid
    INTO v_moved FROM moved AS m;
    IF v_moved.jobs = 0 THEN
        RETURN 0;
    END IF;
    SELECT f.seen, f.part_xids, f.part_jobs INTO v_next
    FROM /*schema*/awa.frontier_after(
        coalesce(v_cursor.seen, '1:1:'), v_cursor.part_xids, v_cursor.part_jobs, p_snapshot, NULL, NULL) AS f;
    INSERT INTO /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ (
        lane_id, seq, first_xid, last_xid, job_id, ready_slot, seen, part_xids, part_jobs, job_ids, run_leases)
    VALUES (p_lane, coalesce(v_cursor.seq, 0) + 1, v_moved.first_xid, nullif(v_moved.last_xid, v_moved.first_xid),
        CASE WHEN v_moved.jobs = 1 THEN v_moved.job_ids[1] END, 0/*slot*/, v_next.seen, v_next.part_xids, v_next.part_jobs,
        CASE WHEN v_moved.jobs > 1 THEN v_moved.job_ids END, v_moved.run_leases);
    RETURN v_moved.jobs;
END
$awa$;
