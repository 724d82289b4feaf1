-- Purpose: how many lanes of one slot have a row that this snapshot sees and no cursor has passed. Looks only where such
--   rows can be: one index probe per stretch of each lane's frontier, never a walk over the slot.
-- Parameters: the snapshot.
-- Returns: the number of lanes; 0 means that every row is passed.
-- Locks: ACCESS SHARE on the children of ready_entries and ready_claim_attempt_batches.
-- Caller: unpassed_lanes.
-- per slot of: queue ring
CREATE OR REPLACE FUNCTION /*schema*/awa.unpassed_lanes_0/*slot*/(p_snapshot pg_snapshot) RETURNS integer
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_lane  bigint;
    v_peek  record;
    v_total integer := 0;
BEGIN
    SELECT r.lane_id INTO v_lane FROM /*schema*/awa.ready_entries_0/*slot*/ AS r ORDER BY r.lane_id LIMIT 1;
    WHILE v_lane IS NOT NULL LOOP
        v_peek := /*schema*/awa.peek_lanes_0/*slot*/(ARRAY[v_lane], p_snapshot);
        PERFORM /*schema*/awa.assert_cursors(0/*slot*/::smallint, v_peek.doubtful, v_peek.doubtful_seqs);
        IF v_peek.lanes IS NOT NULL AND NOT /*schema*/awa.pass_tombstones_0/*slot*/(v_lane, p_snapshot) THEN
            v_total := v_total + 1;
        END IF;
        SELECT r.lane_id INTO v_lane FROM /*schema*/awa.ready_entries_0/*slot*/ AS r WHERE r.lane_id > v_lane
        ORDER BY r.lane_id LIMIT 1;
        IF NOT FOUND THEN
            v_lane := NULL;
        END IF;
    END LOOP;
    RETURN v_total;
END
$awa$;
