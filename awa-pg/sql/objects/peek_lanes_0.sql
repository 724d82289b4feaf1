-- Purpose: which of some lanes have a row in one slot that a claim with this snapshot could take. Takes no lock beyond those
--   of reading, writes nothing and needs no transaction number, so that an empty poll costs almost nothing.
-- Parameters: lanes, which need not be among queue_lanes; the snapshot.
-- Returns: parallel arrays over the lanes that have one, NULL when none has: lane; when the first such job was enqueued (rows
--   under a tombstone count: the claim sees to them); the last batch that was claimed of the lane in this slot, by which equally
--   urgent lanes take turns, or NULL. Then, of lanes whose cursor may be damaged, which may hide every row: lane, sequence of
--   the cursor; for assert_cursors.
-- Locks: ACCESS SHARE on the children of ready_entries and ready_claim_attempt_batches, kept to the end of the
--   transaction, so that the slot cannot be reclaimed between the peek and the claim.
-- Caller: claim_jobs, peek_queues, unpassed_lanes_0.
-- per slot of: queue ring
CREATE OR REPLACE FUNCTION /*schema*/awa.peek_lanes_0/*slot*/(
    p_lanes bigint[], p_snapshot pg_snapshot, OUT lanes bigint[], OUT heads timestamptz[], OUT last_batches bigint[],
    OUT doubtful bigint[], OUT doubtful_seqs bigint[])
LANGUAGE plpgsql VOLATILE AS $awa$
BEGIN
    SELECT array_agg(w.lane) FILTER (WHERE h.created_at IS NOT NULL),
           array_agg(h.created_at) FILTER (WHERE h.created_at IS NOT NULL),
           array_agg(c.batch_id) FILTER (WHERE h.created_at IS NOT NULL),
           array_agg(w.lane) FILTER (WHERE c.is_doubtful), array_agg(c.seq) FILTER (WHERE c.is_doubtful)
    INTO lanes, heads, last_batches, doubtful, doubtful_seqs
    FROM unnest(p_lanes) AS w (lane)
    LEFT JOIN LATERAL (
        SELECT b.seq, b.seen, b.part_xids, b.part_jobs, b.batch_id,
               pg_snapshot_xmax(b.seen) > pg_snapshot_xmax(p_snapshot)
                   OR cardinality(b.part_xids) IS DISTINCT FROM cardinality(b.part_jobs) AS is_doubtful
        FROM /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ AS b
        WHERE b.lane_id = w.lane ORDER BY b.seq DESC LIMIT 1) AS c ON true
    LEFT JOIN LATERAL (
        SELECT f.created_at
        FROM /*schema*/awa.frontier_probes(coalesce(c.seen, '1:1:'), c.part_xids, c.part_jobs, p_snapshot) AS p
        CROSS JOIN LATERAL (
            SELECT r.created_at FROM /*schema*/awa.ready_entries_0/*slot*/ AS r
            WHERE r.lane_id = w.lane AND (r.xid, r.job_id) > (p.lo, p.lo_job) AND r.xid < p.hi
            ORDER BY r.xid, r.job_id LIMIT 1) AS f
        LIMIT 1) AS h ON true;
END
$awa$;
