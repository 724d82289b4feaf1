-- Purpose: ends leases by deleting them.
-- Parameters: positions in the arrays that follow; the arrays of the call: claim slot, nonce, receipt.
-- Returns: the ended attempts, with their positions as tags; NULL when none of them is a lease.
-- Locks: the rows of leases; waits for somebody who is ending or moving one of them, no longer than lock_timeout.
-- Caller: end_leases.
CREATE OR REPLACE FUNCTION /*schema*/awa.take_leases(
    p_tags bigint[], p_claim_slots smallint[], p_nonces bigint[], p_receipts bigint[])
RETURNS /*schema*/awa.ended_attempt[] LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_taken /*schema*/awa.ended_attempt[];
    v_part  /*schema*/awa.ended_attempt[];
BEGIN
    -- A lease that is moved to another slot meanwhile is gone where this statement looks and found by the next one.
    FOR v_turn IN 1..8 LOOP
        WITH wanted AS (
            SELECT DISTINCT ON (w.receipt) w.receipt, w.claim_slot, w.nonce, w.o
            FROM unnest(p_claim_slots, p_nonces, p_receipts) WITH ORDINALITY AS w (claim_slot, nonce, receipt, o)
            WHERE w.o = ANY (p_tags) ORDER BY w.receipt, w.o
        ), gone AS (
            DELETE FROM /*schema*/awa.leases AS l USING wanted AS w
            WHERE l.receipt_id = w.receipt AND l.nonce = w.nonce AND l.claim_slot = w.claim_slot
            RETURNING ROW(
                w.o, l.receipt_id, l.job_id, l.run_lease, l.lane_id, l.xid, l.created_at, l.claimed_at, l.priority, l.shard,
                l.attempt, l.max_attempts, l.queue, l.kind, l.args, l.metadata, l.last_error)::/*schema*/awa.ended_attempt AS attempt
        )
        SELECT array_agg(g.attempt) INTO v_part FROM gone AS g;
        v_taken := v_taken || v_part;
        PERFORM FROM /*schema*/awa.leases AS l
        JOIN unnest(p_claim_slots, p_nonces, p_receipts) WITH ORDINALITY AS w (claim_slot, nonce, receipt, o)
            ON l.receipt_id = w.receipt AND l.nonce = w.nonce AND l.claim_slot = w.claim_slot
        WHERE w.o = ANY (p_tags);
        EXIT WHEN NOT FOUND;
        IF v_turn = 8 THEN
            RAISE EXCEPTION 'leases were moved 8 times while they were being ended' USING ERRCODE = '55P03';
        END IF;
    END LOOP;
    RETURN v_taken;
END
$awa$;
