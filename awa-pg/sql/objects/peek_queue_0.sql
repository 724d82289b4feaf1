-- Purpose: which lanes of a queue have a row in one slot that a claim with this snapshot could take. Takes no lock beyond those
--   of reading, writes nothing and needs no transaction number, so that an empty poll costs almost nothing.
-- Parameters: queue; the snapshot of the claim.
-- Returns: parallel arrays over these lanes, NULL when there are none: lane; priority; when the first such job was enqueued (rows
--   under a tombstone count: the claim sees to them); the last batch that was claimed of the lane in this slot, by which equally
--   urgent lanes take turns, or NULL.
-- Locks: ACCESS SHARE on the children of ready_entries and ready_claim_attempt_batches, kept to the end of the
--   transaction, so that the slot cannot be reclaimed between the peek and the claim.
-- Caller: claim_jobs.
-- per slot of: queue ring
CREATE OR REPLACE FUNCTION /*schema*/awa.peek_queue_0/*slot*/(
    p_queue text, p_snapshot pg_snapshot, OUT lanes bigint[], OUT priorities smallint[], OUT heads timestamptz[],
    OUT last_batches bigint[])
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_damaged bigint[];
    v_seqs    bigint[];
BEGIN
    SELECT array_agg(l.lane_id) FILTER (WHERE h.created_at IS NOT NULL),
           array_agg(l.priority) FILTER (WHERE h.created_at IS NOT NULL),
           array_agg(h.created_at) FILTER (WHERE h.created_at IS NOT NULL),
           array_agg(c.batch_id) FILTER (WHERE h.created_at IS NOT NULL),
           array_agg(l.lane_id) FILTER (WHERE c.is_damaged), array_agg(c.seq) FILTER (WHERE c.is_damaged)
    INTO lanes, priorities, heads, last_batches, v_damaged, v_seqs
    FROM /*schema*/awa.queue_lanes AS l
    LEFT JOIN LATERAL (
        SELECT b.seq, b.seen, b.part_xids, b.part_jobs, b.batch_id,
               pg_snapshot_xmax(b.seen) > pg_snapshot_xmax(p_snapshot)
                   OR cardinality(b.part_xids) IS DISTINCT FROM cardinality(b.part_jobs) AS is_damaged
        FROM /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ AS b
        WHERE b.lane_id = l.lane_id ORDER BY b.seq DESC LIMIT 1) AS c ON true
    LEFT JOIN LATERAL (
        SELECT f.created_at
        FROM /*schema*/awa.frontier_probes(coalesce(c.seen, '1:1:'), c.part_xids, c.part_jobs, p_snapshot) AS p
        CROSS JOIN LATERAL (
            SELECT r.created_at FROM /*schema*/awa.ready_entries_0/*slot*/ AS r
            WHERE r.lane_id = l.lane_id AND (r.xid, r.job_id) > (p.lo, p.lo_job) AND r.xid < p.hi
            ORDER BY r.xid, r.job_id LIMIT 1) AS f
        LIMIT 1) AS h ON true
    WHERE l.queue = p_queue AND NOT l.paused;
    -- A damaged cursor may hide every row; then no claim would come to look at it.
    FOR v_lane IN 1..coalesce(cardinality(v_damaged), 0) LOOP
        PERFORM /*schema*/awa.assert_cursor(0/*slot*/::smallint, v_damaged[v_lane], v_seqs[v_lane]);
    END LOOP;
END
$awa$;
