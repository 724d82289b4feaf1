-- Purpose: whether a lane has a row in one slot that a claim with this snapshot could take. Takes no lock beyond those
--   of reading, writes nothing and needs no transaction number, so that an empty poll costs almost nothing.
-- Parameters: lane; the snapshot of the claim.
-- Returns: when the first such job was enqueued, or NULL. Rows under a tombstone count: the claim sees to them.
-- Locks: ACCESS SHARE on the children of ready_entries and ready_claim_attempt_batches, kept to the end of the
--   transaction, so that the slot cannot be reclaimed between the peek and the claim.
-- Caller: claim_jobs.
-- per slot of: queue ring
CREATE OR REPLACE FUNCTION /*schema*/awa.peek_lane_0/*slot*/(p_lane bigint, p_snapshot pg_snapshot)
RETURNS timestamptz LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_seen    pg_snapshot;
    v_xids    xid8[];
    v_jobs    bigint[];
    v_probe   record;
    v_created timestamptz;
BEGIN
    SELECT b.seen, b.part_xids, b.part_jobs INTO v_seen, v_xids, v_jobs
    FROM /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ AS b WHERE b.lane_id = p_lane ORDER BY b.seq DESC LIMIT 1;
    FOR v_probe IN
        SELECT p.lo, p.lo_job, p.hi
        FROM /*schema*/awa.frontier_probes(coalesce(v_seen, '1:1:'), v_xids, v_jobs, p_snapshot) AS p
    LOOP
        SELECT r.created_at INTO v_created FROM /*schema*/awa.ready_entries_0/*slot*/ AS r
        WHERE r.lane_id = p_lane AND (r.xid, r.job_id) > (v_probe.lo, v_probe.lo_job) AND r.xid < v_probe.hi
        ORDER BY r.xid, r.job_id LIMIT 1;
        IF FOUND THEN
            RETURN v_created;
        END IF;
    END LOOP;
    RETURN NULL;
END
$awa$;
