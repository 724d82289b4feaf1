-- Purpose: which lanes have rows in one slot, whether a claim could take them or not: what peek_lanes_0 is asked about where most of
--   many lanes have nothing.
-- Parameters: lanes, or NULL for all that have rows in the slot, of which there are expected to be at most so many; these are
--   found by walking over rows that are not committed; stretches of transactions (above lo, below hi) in which the rows of the
--   given lanes are looked for: between transactions that run, so that their rows are not walked through.
-- Returns: the lanes, with repetitions; NULL when more lanes have rows than were expected.
-- Locks: ACCESS SHARE on the child of ready_entries.
-- Caller: peek_queues, note_lanes.
-- per slot of: queue ring
CREATE OR REPLACE FUNCTION /*schema*/awa.lanes_with_rows_0/*slot*/(
    p_lanes bigint[], p_most integer, p_los xid8[], p_his xid8[])
RETURNS bigint[] LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_lo    xid8;
    v_hi    xid8;
    v_lanes bigint[];
BEGIN
    IF p_lanes IS NULL THEN
        WITH RECURSIVE step AS (
            (SELECT r.lane_id FROM /*schema*/awa.ready_entries_0/*slot*/ AS r ORDER BY r.lane_id LIMIT 1)
            UNION ALL
            SELECT (SELECT r.lane_id FROM /*schema*/awa.ready_entries_0/*slot*/ AS r
                    WHERE r.lane_id > s.lane_id ORDER BY r.lane_id LIMIT 1)
            FROM step AS s WHERE s.lane_id IS NOT NULL)
        SELECT array_agg(l.lane_id) INTO v_lanes
        FROM (SELECT s.lane_id FROM step AS s WHERE s.lane_id IS NOT NULL LIMIT p_most + 1) AS l;
        IF cardinality(v_lanes) > p_most THEN
            RETURN NULL;
        END IF;
    ELSE
        FOR v_piece IN 1..cardinality(p_los) LOOP
            v_lo := p_los[v_piece];
            v_hi := p_his[v_piece];
            v_lanes := v_lanes || ARRAY(
                SELECT w.lane FROM unnest(p_lanes) AS w (lane)
                -- With a limit it stays one probe per lane; without, a plan might read the slot.
                WHERE (SELECT true FROM /*schema*/awa.ready_entries_0/*slot*/ AS r
                       WHERE r.lane_id = w.lane AND r.xid > v_lo AND r.xid < v_hi LIMIT 1));
        END LOOP;
    END IF;
    RETURN coalesce(v_lanes, '{}');
END
$awa$;
