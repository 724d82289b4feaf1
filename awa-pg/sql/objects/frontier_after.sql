-- Purpose: the frontier after a claim. Mirrors Frontier::advance of awa-core; a differential test ties the two.
-- Parameters: the frontier before (seen, part_xids, part_jobs); the snapshot of the claim; the last row taken
--   (stop_xid, stop_job), or NULLs when the claim took everything that the snapshot sees.
-- Returns: the frontier after. It is monotone: an older snapshot cannot move it back.
-- Locks: none.
-- Caller: claim_lane_0, carry_lane_0.
-- depends on: snapshot_of, xid_next, running_of
CREATE OR REPLACE FUNCTION /*schema*/awa.frontier_after(
    p_seen pg_snapshot, p_part_xids xid8[], p_part_jobs bigint[], p_snapshot pg_snapshot,
    p_stop_xid xid8, p_stop_job bigint,
    OUT seen pg_snapshot, OUT part_xids xid8[], OUT part_jobs bigint[])
LANGUAGE plpgsql IMMUTABLE AS $awa$
DECLARE
    v_from    xid8;
    v_xmax    xid8;
    v_running xid8[];
    v_member  xid8;
BEGIN
    -- The usual cases, of which what follows makes the same: all that ran when the frontier was last moved has ended; and behind
    -- it, too, up to the stop.
    IF p_stop_xid IS NULL THEN
        IF pg_snapshot_xmin(p_snapshot) >= pg_snapshot_xmax(p_seen) THEN
            seen := p_snapshot;
            RETURN;
        END IF;
    ELSIF p_stop_xid >= pg_snapshot_xmax(p_seen) AND pg_snapshot_xmin(p_snapshot) >= /*schema*/awa.xid_next(p_stop_xid) THEN
        seen := (p_stop_xid::text || ':' || /*schema*/awa.xid_next(p_stop_xid)::text || ':' || p_stop_xid::text)::pg_snapshot;
        part_xids := ARRAY[p_stop_xid];
        part_jobs := ARRAY[p_stop_job];
        RETURN;
    END IF;
    v_from := pg_snapshot_xmax(p_seen);
    v_xmax := greatest(v_from, coalesce(/*schema*/awa.xid_next(p_stop_xid), pg_snapshot_xmax(p_snapshot)));
    v_running := '{}';
    -- What ran then is below v_from, and what is added behind it is not.
    FOREACH v_member IN ARRAY /*schema*/awa.running_of(p_seen) LOOP
        IF v_member IS DISTINCT FROM p_stop_xid
           AND NOT (pg_visible_in_snapshot(v_member, p_snapshot) AND (p_stop_xid IS NULL OR v_member < p_stop_xid)) THEN
            v_running := v_running || v_member;
        END IF;
    END LOOP;
    FOREACH v_member IN ARRAY /*schema*/awa.running_of(p_snapshot) LOOP
        IF v_member IS DISTINCT FROM p_stop_xid AND v_member >= v_from AND v_member < v_xmax THEN
            v_running := v_running || v_member;
        END IF;
    END LOOP;
    IF p_stop_xid IS NOT NULL THEN
        v_running := v_running || p_stop_xid;
    END IF;
    seen := /*schema*/awa.snapshot_of(v_xmax, v_running);
    FOR v_part IN 1..coalesce(cardinality(p_part_xids), 0) LOOP
        IF p_part_xids[v_part] = ANY (v_running) AND p_part_xids[v_part] IS DISTINCT FROM p_stop_xid THEN
            part_xids := part_xids || p_part_xids[v_part];
            part_jobs := part_jobs || p_part_jobs[v_part];
        END IF;
    END LOOP;
    IF p_stop_xid IS NOT NULL THEN
        part_xids := part_xids || p_stop_xid;
        part_jobs := part_jobs || p_stop_job;
    END IF;
END
$awa$;
