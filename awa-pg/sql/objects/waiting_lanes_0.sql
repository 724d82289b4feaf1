-- Purpose: which lanes of one slot have rows that this snapshot sees, that no cursor has passed and no tombstone covers,
--   and how many. Looks only where such rows can be.
-- Parameters: the snapshot; stop counting at so many rows of all lanes together.
-- Returns: a row per lane.
-- Locks: ACCESS SHARE on the children of ready_entries, ready_claim_attempt_batches and ready_tombstones.
-- Caller: waiting_lanes.
-- per slot of: queue ring
CREATE OR REPLACE FUNCTION /*schema*/awa.waiting_lanes_0/*slot*/(p_snapshot pg_snapshot, p_limit bigint)
RETURNS TABLE (lane_id bigint, waiting bigint) LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_left   bigint := p_limit;
    v_cursor record;
BEGIN
    SELECT r.lane_id INTO lane_id FROM /*schema*/awa.ready_entries_0/*slot*/ AS r ORDER BY r.lane_id LIMIT 1;
    WHILE lane_id IS NOT NULL AND v_left > 0 LOOP
        SELECT b.seen, b.part_xids, b.part_jobs INTO v_cursor
        FROM /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ AS b
        WHERE b.lane_id = waiting_lanes_0/*slot*/.lane_id ORDER BY b.seq DESC LIMIT 1;
        SELECT count(*) INTO waiting
        FROM (SELECT
              FROM /*schema*/awa.frontier_probes(
                  coalesce(v_cursor.seen, '1:1:'), v_cursor.part_xids, v_cursor.part_jobs, p_snapshot) AS p
              JOIN /*schema*/awa.ready_entries_0/*slot*/ AS r
                  ON r.lane_id = waiting_lanes_0/*slot*/.lane_id AND (r.xid, r.job_id) > (p.lo, p.lo_job) AND r.xid < p.hi
              WHERE NOT EXISTS (SELECT FROM /*schema*/awa.ready_tombstones_0/*slot*/ AS t
                                WHERE t.lane_id = r.lane_id AND t.job_id = r.job_id
                                  AND t.run_lease = coalesce(r.run_lease, 0))
              LIMIT v_left) AS w;
        IF waiting > 0 THEN
            RETURN NEXT;
            v_left := v_left - waiting;
        END IF;
        SELECT r.lane_id INTO lane_id FROM /*schema*/awa.ready_entries_0/*slot*/ AS r
        WHERE r.lane_id > waiting_lanes_0/*slot*/.lane_id ORDER BY r.lane_id LIMIT 1;
        IF NOT FOUND THEN
            lane_id := NULL;
        END IF;
    END LOOP;
END
$awa$;
