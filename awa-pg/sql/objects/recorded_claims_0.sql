-- Purpose: how many attempt batches were ever appended to one slot: the sum over its lanes of the newest sequence. Each
--   claim of rows of the slot appends one, so that as long as this number stands still, nothing was claimed.
-- Parameters: none.
-- Returns: the number.
-- Locks: ACCESS SHARE on the child of ready_claim_attempt_batches.
-- Caller: recorded_claims.
-- per slot of: queue ring
CREATE OR REPLACE FUNCTION /*schema*/awa.recorded_claims_0/*slot*/() RETURNS bigint
LANGUAGE plpgsql STABLE AS $awa$
DECLARE
    v_last  record;
    v_total bigint := 0;
BEGIN
    SELECT b.lane_id, b.seq INTO v_last
    FROM /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ AS b ORDER BY b.lane_id DESC, b.seq DESC LIMIT 1;
    WHILE FOUND LOOP
        v_total := v_total + v_last.seq;
        SELECT b.lane_id, b.seq INTO v_last
        FROM /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ AS b WHERE b.lane_id < v_last.lane_id
        ORDER BY b.lane_id DESC, b.seq DESC LIMIT 1;
    END LOOP;
    RETURN v_total;
END
$awa$;
