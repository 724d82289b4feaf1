-- Purpose: whether one lane has a row in one slot that is visible and not passed, as peek_queue_0 tells it of all lanes of a queue.
-- Parameters: lane, which need not be among queue_lanes; the snapshot.
-- Returns: when the first such job was enqueued, or NULL when there is none (rows under a tombstone count).
-- Locks: ACCESS SHARE on the children of ready_entries and ready_claim_attempt_batches, kept to the end of the
--   transaction.
-- Caller: unpassed_lanes_0.
-- per slot of: queue ring
CREATE OR REPLACE FUNCTION /*schema*/awa.peek_lane_0/*slot*/(
    p_lane bigint, p_snapshot pg_snapshot, OUT head timestamptz)
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_seen  pg_snapshot;
    v_xids  xid8[];
    v_jobs  bigint[];
    v_seq   bigint;
    v_probe record;
BEGIN
    SELECT b.seq, b.seen, b.part_xids, b.part_jobs INTO v_seq, v_seen, v_xids, v_jobs
    FROM /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ AS b WHERE b.lane_id = p_lane ORDER BY b.seq DESC LIMIT 1;
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
