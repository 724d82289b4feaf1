-- Purpose: which attempt batch of a lane in one slot passed a ready row. The frontier of a lane only grows along its
--   sequence, so the first batch that has passed the row is found by halving: late commits are taken after younger rows,
--   and nothing else in a batch rises with the sequence.
-- Parameters: lane; transaction and job of the row.
-- Returns: the sequence of that batch, NULL while the row waits; its batch id, NULL when it emitted nothing; the index of
--   the row among its members, NULL when the row is not one of them, because it was skipped under a tombstone.
-- Locks: ACCESS SHARE on the child of ready_claim_attempt_batches.
-- Caller: passing.
-- per slot of: queue ring
CREATE OR REPLACE FUNCTION /*schema*/awa.passing_0/*slot*/(
    p_lane bigint, p_xid xid8, p_job bigint, OUT seq bigint, OUT batch_id bigint, OUT member integer)
LANGUAGE plpgsql STABLE AS $awa$
DECLARE
    v_low    bigint;
    v_high   bigint;
    v_middle bigint;
    v_passed boolean;
BEGIN
    SELECT b.seq, /*schema*/awa.is_passed(b.seen, b.part_xids, b.part_jobs, p_xid, p_job) INTO v_high, v_passed
    FROM /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ AS b WHERE b.lane_id = p_lane ORDER BY b.seq DESC LIMIT 1;
    IF v_passed IS NOT TRUE THEN
        RETURN;
    END IF;
    SELECT b.seq INTO v_low
    FROM /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ AS b WHERE b.lane_id = p_lane ORDER BY b.seq LIMIT 1;
    WHILE v_low < v_high LOOP
        v_middle := (v_low + v_high) / 2;
        SELECT /*schema*/awa.is_passed(b.seen, b.part_xids, b.part_jobs, p_xid, p_job) INTO v_passed
        FROM /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ AS b WHERE b.lane_id = p_lane AND b.seq = v_middle;
        IF v_passed THEN
            v_high := v_middle;
        ELSE
            v_low := v_middle + 1;
        END IF;
    END LOOP;
    seq := v_high;
    SELECT b.batch_id, array_position(coalesce(b.job_ids, ARRAY[b.job_id]), p_job) INTO batch_id, member
    FROM /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ AS b WHERE b.lane_id = p_lane AND b.seq = v_high;
END
$awa$;
