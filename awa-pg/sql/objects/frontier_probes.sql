-- Purpose: where a claim must look: the stretches of (xid, job_id) that a snapshot sees and a frontier has not passed,
--   ascending. Mirrors Frontier::candidates of awa-core; a differential test ties the two.
-- Parameters: the frontier (seen, part_xids, part_jobs); the snapshot of the claim.
-- Returns: rows (lo, lo_job, hi): look at (xid, job_id) > (lo, lo_job) with xid < hi. First the members of seen's
--   running list that have ended since, each from where it was left; then forward, in pieces between transactions that
--   run, so that an uncommitted bulk load is never walked through.
-- Locks: none.
-- Caller: peek_lanes_0, claim_lane_0, has_living_row_0, waiting_lanes_0, carry_lane_0.
-- depends on: xid_next, running_of
CREATE OR REPLACE FUNCTION /*schema*/awa.frontier_probes(
    p_seen pg_snapshot, p_part_xids xid8[], p_part_jobs bigint[], p_snapshot pg_snapshot)
RETURNS TABLE (lo xid8, lo_job bigint, hi xid8)
LANGUAGE plpgsql IMMUTABLE AS $awa$
DECLARE
    v_from   xid8 := pg_snapshot_xmax(p_seen);
    v_xmax   xid8 := pg_snapshot_xmax(p_snapshot);
    v_member xid8;
BEGIN
    IF pg_snapshot_xmin(p_seen) < v_from THEN
        FOREACH v_member IN ARRAY /*schema*/awa.running_of(p_seen) LOOP
            CONTINUE WHEN NOT pg_visible_in_snapshot(v_member, p_snapshot);
            lo := v_member;
            lo_job := coalesce(p_part_jobs[array_position(p_part_xids, v_member)], 0);
            hi := /*schema*/awa.xid_next(v_member);
            RETURN NEXT;
        END LOOP;
    END IF;
    lo := v_from;
    lo_job := 0;
    IF pg_snapshot_xmin(p_snapshot) < v_xmax THEN
        FOREACH v_member IN ARRAY /*schema*/awa.running_of(p_snapshot) LOOP
            CONTINUE WHEN v_member < v_from;
            hi := v_member;
            IF lo < hi THEN
                RETURN NEXT;
            END IF;
            lo := v_member;
            lo_job := 9223372036854775807;
        END LOOP;
    END IF;
    hi := v_xmax;
    IF lo < hi THEN
        RETURN NEXT;
    END IF;
END
$awa$;
