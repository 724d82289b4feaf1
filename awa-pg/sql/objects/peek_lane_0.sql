-- Purpose: whether a lane has a row in one slot that a claim with this snapshot could take. Takes no lock beyond those
--   of reading, writes nothing and needs no transaction number, so that an empty poll costs almost nothing.
-- Parameters: lane; the snapshot of the claim.
-- Returns: when the first such job was enqueued, or NULL when there is none (rows under a tombstone count: the claim sees
--   to them); and the last batch that was claimed of the lane in this slot, by which equally urgent lanes take turns.
-- Locks: ACCESS SHARE on the children of ready_entries and ready_claim_attempt_batches, kept to the end of the
--   transaction, so that the slot cannot be reclaimed between the peek and the claim.
-- Caller: claim_jobs.
-- per slot of: queue ring
CREATE OR REPLACE FUNCTION /*schema*/awa.peek_lane_0/*slot*/(
    p_lane bigint, p_snapshot pg_snapshot, OUT head timestamptz, OUT last_batch bigint)
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_seen  pg_snapshot;
    v_xids  xid8[];
    v_jobs  bigint[];
    v_seq   bigint;
    v_probe record;
BEGIN
    SELECT b.seq, b.seen, b.part_xids, b.part_jobs, b.batch_id INTO v_seq, v_seen, v_xids, v_jobs, last_batch
    FROM /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ AS b WHERE b.lane_id = p_lane ORDER BY b.seq DESC LIMIT 1;
    -- A damaged cursor may hide every row; then no claim would come to look at it.
    IF pg_snapshot_xmax(v_seen) > pg_snapshot_xmax(p_snapshot)
       OR cardinality(v_xids) IS DISTINCT FROM cardinality(v_jobs) THEN
        PERFORM /*schema*/awa.assert_cursor(0/*slot*/::smallint, p_lane, v_seq);
    END IF;
    FOR v_probe IN
        SELECT p.lo, p.lo_job, p.hi
        FROM /*schema*/awa.frontier_probes(coalesce(v_seen, '1:1:'), v_xids, v_jobs, p_snapshot) AS p
    LOOP
        SELECT r.created_at INTO head FROM /*schema*/awa.ready_entries_0/*slot*/ AS r
        WHERE r.lane_id = p_lane AND (r.xid, r.job_id) > (v_probe.lo, v_probe.lo_job) AND r.xid < v_probe.hi
        ORDER BY r.xid, r.job_id LIMIT 1;
        EXIT WHEN FOUND;
    END LOOP;
END
$awa$;
