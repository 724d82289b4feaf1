-- Purpose: whether a lane has a row in one slot that a claim with this snapshot would hand out: not passed, and without a
--   tombstone. Stops at the first.
-- Parameters: lane; the snapshot.
-- Returns: true or false.
-- Locks: ACCESS SHARE on the children of ready_entries, ready_tombstones and ready_claim_attempt_batches.
-- Caller: pass_tombstones_0.
-- per slot of: queue ring
CREATE OR REPLACE FUNCTION /*schema*/awa.has_living_row_0/*slot*/(p_lane bigint, p_snapshot pg_snapshot) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_seen  pg_snapshot;
    v_xids  xid8[];
    v_jobs  bigint[];
    v_probe record;
BEGIN
    SELECT b.seen, b.part_xids, b.part_jobs INTO v_seen, v_xids, v_jobs
    FROM /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ AS b WHERE b.lane_id = p_lane ORDER BY b.seq DESC LIMIT 1;
    FOR v_probe IN
        SELECT p.lo, p.lo_job, p.hi
        FROM /*schema*/awa.frontier_probes(coalesce(v_seen, '1:1:'), v_xids, v_jobs, p_snapshot) AS p
    LOOP
        PERFORM FROM /*schema*/awa.ready_entries_0/*slot*/ AS r
        WHERE r.lane_id = p_lane AND (r.xid, r.job_id) > (v_probe.lo, v_probe.lo_job) AND r.xid < v_probe.hi
          AND NOT /*schema*/awa.is_tombstoned_0/*slot*/(p_lane, r.job_id, coalesce(r.run_lease, 0))
        ORDER BY r.xid, r.job_id LIMIT 1;
        IF FOUND THEN
            RETURN true;
        END IF;
    END LOOP;
    RETURN false;
END
$awa$;
