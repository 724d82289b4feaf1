-- Purpose: which of many lanes have a row in one slot that a claim with this snapshot could take: peek_lane_0 for lanes of
--   which most have nothing.
-- Parameters: lanes, or NULL for all that have rows in the slot, of which there are expected to be at most so many; these are
--   found by walking over rows that are not committed; the snapshot; stretches of transactions (above lo, below hi) that hold every row which the snapshot sees: between transactions that
--   run, so that their rows are not walked through, or one for all of a small slot.
-- Returns: the lanes that have such a row, with repetitions; NULL when more lanes have rows than were expected. A lane with a damaged cursor is among them, so that a claim comes
--   to look at it; so may be one whose rows come or go at this very moment.
-- Locks: as peek_lane_0.
-- Caller: peek_queues.
-- per slot of: queue ring
CREATE OR REPLACE FUNCTION /*schema*/awa.peek_lanes_0/*slot*/(
    p_lanes bigint[], p_most integer, p_snapshot pg_snapshot, p_los xid8[], p_his xid8[])
RETURNS bigint[] LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_xmax  xid8 := pg_snapshot_xmax(p_snapshot);
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
    RETURN ARRAY(
        SELECT w.lane
        FROM unnest(v_lanes) AS w (lane)
        LEFT JOIN LATERAL (
            SELECT b.seen, b.part_xids, b.part_jobs, pg_snapshot_xmin(b.seen) AS xmin, pg_snapshot_xmax(b.seen) AS xmax
            FROM /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ AS b
            WHERE b.lane_id = w.lane ORDER BY b.seq DESC LIMIT 1) AS c ON true
        WHERE CASE
            WHEN c.seen IS NULL OR c.xmax > v_xmax
                 OR cardinality(c.part_xids) IS DISTINCT FROM cardinality(c.part_jobs) THEN true
            WHEN (SELECT true
                  FROM unnest(p_los, p_his) AS p (lo, hi)
                  CROSS JOIN LATERAL (
                      SELECT FROM /*schema*/awa.ready_entries_0/*slot*/ AS r
                      WHERE r.lane_id = w.lane AND r.xid >= c.xmax AND r.xid > p.lo AND r.xid < p.hi LIMIT 1) AS f
                  LIMIT 1) THEN true
            -- What ran when the cursor was written, and has ended since.
            WHEN c.xmin < c.xmax THEN
                (SELECT true
                 FROM pg_snapshot_xip(c.seen) AS x
                 CROSS JOIN LATERAL (
                     SELECT FROM /*schema*/awa.ready_entries_0/*slot*/ AS r
                     WHERE r.lane_id = w.lane AND r.xid = x
                       AND r.job_id > coalesce(c.part_jobs[array_position(c.part_xids, x)], 0) LIMIT 1) AS f
                 WHERE pg_visible_in_snapshot(x, p_snapshot)
                 LIMIT 1)
            END);
END
$awa$;
