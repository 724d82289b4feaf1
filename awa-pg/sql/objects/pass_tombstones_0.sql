-- Purpose: moves the cursor of a lane over rows that were all cancelled before anybody claimed them, so that a slot
--   without workers can be drained.
-- Parameters: lane; the snapshot.
-- Returns: whether the cursor was moved: false when a live row is among them, when there is no tombstone, or when somebody
--   holds the lane.
-- Locks: the advisory lock of the lane, only tried; ROW EXCLUSIVE on the child of ready_claim_attempt_batches.
-- Caller: unpassed_lanes_0.
-- per slot of: queue ring
CREATE OR REPLACE FUNCTION /*schema*/awa.pass_tombstones_0/*slot*/(p_lane bigint, p_snapshot pg_snapshot) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_claim record;
BEGIN
    IF pg_relation_size('/*schema*/awa.ready_tombstones_0/*slot*/') = 0
       OR NOT pg_try_advisory_xact_lock(/*schema*/awa.lane_key(p_lane)) THEN
        RETURN false;
    END IF;
    PERFORM FROM /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ AS b
    RIGHT JOIN LATERAL (SELECT max(n.seq) AS seq FROM /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ AS n
                        WHERE n.lane_id = p_lane) AS m ON b.lane_id = p_lane AND b.seq = m.seq
    JOIN /*schema*/awa.ready_entries_0/*slot*/ AS r ON r.lane_id = p_lane
    WHERE NOT /*schema*/awa.is_passed(b.seen, b.part_xids, b.part_jobs, r.xid, r.job_id)
      AND NOT EXISTS (SELECT FROM /*schema*/awa.ready_tombstones_0/*slot*/ AS t
                      WHERE t.lane_id = p_lane AND t.job_id = r.job_id AND t.run_lease = coalesce(r.run_lease, 0));
    IF FOUND THEN
        RETURN false;
    END IF;
    -- Nothing alive is left, so a claim emits nothing and appends the cursor.
    SELECT c.members INTO v_claim FROM /*schema*/awa.claim_lane_0/*slot*/(p_lane, p_snapshot, 1, 1) AS c;
    IF v_claim.members <> 0 THEN
        RAISE EXCEPTION 'a job of lane % appeared while its lane was held', p_lane USING ERRCODE = '40001';
    END IF;
    RETURN true;
END
$awa$;
