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
       OR /*schema*/awa.has_living_row_0/*slot*/(p_lane, p_snapshot)
       OR NOT pg_try_advisory_xact_lock(/*schema*/awa.lane_key(p_lane)) THEN
        RETURN false;
    END IF;
    -- Under the lock the cursor stands still; what it had passed meanwhile is seen by these new statements.
    IF /*schema*/awa.has_living_row_0/*slot*/(p_lane, p_snapshot) THEN
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
