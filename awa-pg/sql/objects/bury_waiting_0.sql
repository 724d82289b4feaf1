-- Purpose: cancels one job if its newest ready row in this slot waits to be claimed, without holding its lane: a claim that
--   does not see the tombstone yet may still hand the job out, and then the tombstone is void.
-- Parameters: id; reason; the present.
-- Returns: whether a tombstone was written.
-- Locks: ACCESS SHARE on the children of ready_entries and ready_claim_attempt_batches, which keeps the slot from being
--   reclaimed; ROW EXCLUSIVE on the child of ready_tombstones.
-- Caller: bury_waiting.
-- per slot of: queue ring
CREATE OR REPLACE FUNCTION /*schema*/awa.bury_waiting_0/*slot*/(p_job bigint, p_reason text, p_now timestamptz) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_row record;
BEGIN
    -- Two looks, because first and later rows are in different indexes.
    SELECT f.lane_id, f.xid, f.run_lease INTO v_row
    FROM (SELECT r.lane_id, r.xid, 0 AS run_lease FROM /*schema*/awa.ready_entries_0/*slot*/ AS r
          WHERE r.job_id = p_job AND r.run_lease IS NULL
          UNION ALL
          SELECT r.lane_id, r.xid, r.run_lease FROM /*schema*/awa.ready_entries_0/*slot*/ AS r
          WHERE r.job_id = p_job AND r.run_lease IS NOT NULL) AS f
    ORDER BY f.run_lease DESC LIMIT 1;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM FROM /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ AS b
    WHERE b.lane_id = v_row.lane_id
      AND b.seq = (SELECT max(n.seq) FROM /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ AS n
                   WHERE n.lane_id = v_row.lane_id)
      AND /*schema*/awa.is_passed(b.seen, b.part_xids, b.part_jobs, v_row.xid, p_job);
    IF FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO /*schema*/awa.ready_tombstones_0/*slot*/ (lane_id, job_id, run_lease, cancelled_at, ready_slot, reason)
    VALUES (v_row.lane_id, p_job, v_row.run_lease, p_now, 0/*slot*/, p_reason)
    ON CONFLICT DO NOTHING;
    RETURN FOUND;
END
$awa$;
