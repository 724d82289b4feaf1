-- Purpose: the frontier after a claim. Mirrors Frontier::advance of awa-core; a differential test ties the two.
-- Parameters: the frontier before (seen, part_xids, part_jobs); the snapshot of the claim; the last row taken
--   (stop_xid, stop_job), or NULLs when the claim took everything that the snapshot sees.
-- Returns: the frontier after. It is monotone: an older snapshot cannot move it back.
-- Locks: none.
-- Caller: claim_lane_0, carry_lane_0.
-- depends on: snapshot_of, xid_next
CREATE OR REPLACE FUNCTION /*schema*/awa.frontier_after(
    p_seen pg_snapshot, p_part_xids xid8[], p_part_jobs bigint[], p_snapshot pg_snapshot,
    p_stop_xid xid8, p_stop_job bigint,
    OUT seen pg_snapshot, OUT part_xids xid8[], OUT part_jobs bigint[])
LANGUAGE plpgsql IMMUTABLE AS $awa$
DECLARE
    v_from    xid8 := pg_snapshot_xmax(p_seen);
    v_xmax    xid8;
    v_running xid8[];
BEGIN
    IF p_stop_xid IS NULL THEN
        v_xmax := greatest(v_from, pg_snapshot_xmax(p_snapshot));
    ELSE
        v_xmax := greatest(v_from, /*schema*/awa.xid_next(p_stop_xid));
    END IF;
    v_running := ARRAY(
        SELECT y FROM pg_snapshot_xip(p_seen) AS y
        WHERE NOT (pg_visible_in_snapshot(y, p_snapshot) AND (p_stop_xid IS NULL OR y < p_stop_xid))
        UNION
        SELECT y FROM pg_snapshot_xip(p_snapshot) AS y WHERE y >= v_from AND y < v_xmax
        UNION
        SELECT p_stop_xid WHERE p_stop_xid IS NOT NULL);
    seen := /*schema*/awa.snapshot_of(v_xmax, v_running);
    IF p_part_xids IS NOT NULL THEN
        SELECT array_agg(p.xid), array_agg(p.job) INTO part_xids, part_jobs
        FROM unnest(p_part_xids, p_part_jobs) AS p (xid, job)
        WHERE p.xid = ANY (v_running) AND p.xid IS DISTINCT FROM p_stop_xid;
    END IF;
    IF p_stop_xid IS NOT NULL THEN
        part_xids := part_xids || p_stop_xid;
        part_jobs := part_jobs || p_stop_job;
    END IF;
END
$awa$;
