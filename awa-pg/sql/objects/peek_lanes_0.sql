-- Purpose: which of many lanes have a row in one slot that a claim with this snapshot could take: peek_lane_0 for lanes of
--   which most have nothing, at the price of one index probe for each of those.
-- Parameters: lanes; beside each a number of the caller's; the snapshot; stretches of transactions (above lo, below hi) that
--   hold every row which the snapshot sees: between transactions that run, so that their rows are not walked through, or one
--   for all of a small slot.
-- Returns: the numbers beside the lanes that have such a row, with repetitions. A lane with a damaged cursor is among them, so
--   that a claim comes to look at it; so is one whose rows were claimed at this very moment.
-- Locks: as peek_lane_0.
-- Caller: peek_queues.
-- per slot of: queue ring
CREATE OR REPLACE FUNCTION /*schema*/awa.peek_lanes_0/*slot*/(
    p_lanes bigint[], p_owners integer[], p_snapshot pg_snapshot, p_los xid8[], p_his xid8[])
RETURNS integer[] LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_xmax   xid8 := pg_snapshot_xmax(p_snapshot);
    v_lo     xid8;
    v_hi     xid8;
    v_part   record;
    v_lanes  bigint[];
    v_owners integer[];
BEGIN
    FOR v_piece IN 1..cardinality(p_los) LOOP
        v_lo := p_los[v_piece];
        v_hi := p_his[v_piece];
        SELECT array_agg(w.lane) AS lanes, array_agg(w.owner) AS owners INTO v_part
        FROM unnest(p_lanes, p_owners) AS w (lane, owner)
        -- With a limit it stays one probe per lane; without, a plan might read the slot.
        WHERE (SELECT true FROM /*schema*/awa.ready_entries_0/*slot*/ AS r
               WHERE r.lane_id = w.lane AND r.xid > v_lo AND r.xid < v_hi LIMIT 1);
        v_lanes := v_lanes || v_part.lanes;
        v_owners := v_owners || v_part.owners;
    END LOOP;
    IF v_lanes IS NULL THEN
        RETURN '{}';
    END IF;
    RETURN ARRAY(
        SELECT w.owner
        FROM unnest(v_lanes, v_owners) AS w (lane, owner)
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
