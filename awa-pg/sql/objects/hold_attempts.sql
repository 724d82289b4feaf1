-- Purpose: holds running attempts until the end of the transaction, so that nobody ends or moves them meanwhile. Those of
--   compact claims become leases, because only a row can be locked.
-- Parameters: parallel arrays, one element per attempt: claim slot, nonce, receipt.
-- Returns: the receipts that are held; the others are not running.
-- Locks: the rows of leases, in the order of their receipts; waits for somebody who is ending or moving one of them, no
--   longer than lock_timeout; as materialize_attempts.
-- Caller: note_attempts, park_attempts.
CREATE OR REPLACE FUNCTION /*schema*/awa.hold_attempts(p_claim_slots smallint[], p_nonces bigint[], p_receipts bigint[])
RETURNS bigint[] LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_held bigint[];
    v_rest record;
BEGIN
    FOR v_turn IN 1..8 LOOP
        SELECT coalesce(array_agg(h.receipt_id), '{}') INTO v_held
        FROM (SELECT l.receipt_id
              FROM unnest(p_claim_slots, p_nonces, p_receipts) AS w (claim_slot, nonce, receipt)
              JOIN /*schema*/awa.leases AS l
                ON l.receipt_id = w.receipt AND l.nonce = w.nonce AND l.claim_slot = w.claim_slot
              ORDER BY l.receipt_id FOR UPDATE OF l) AS h;
        IF v_turn = 1 THEN
            SELECT array_agg(w.claim_slot) AS claim_slots, array_agg(w.nonce) AS nonces, array_agg(w.receipt) AS receipts
            INTO v_rest
            FROM unnest(p_claim_slots, p_nonces, p_receipts) AS w (claim_slot, nonce, receipt)
            WHERE NOT w.receipt = ANY (v_held) AND w.claim_slot <> 255;
            IF v_rest.receipts IS NOT NULL THEN
                PERFORM /*schema*/awa.materialize_attempts(v_rest.claim_slots, v_rest.nonces, v_rest.receipts);
            END IF;
        END IF;
        -- A lease that was moved to another slot meanwhile is gone where the first statement looked.
        PERFORM FROM unnest(p_claim_slots, p_nonces, p_receipts) AS w (claim_slot, nonce, receipt)
        JOIN /*schema*/awa.leases AS l
            ON l.receipt_id = w.receipt AND l.nonce = w.nonce AND l.claim_slot = w.claim_slot
        WHERE NOT w.receipt = ANY (v_held);
        IF NOT FOUND THEN
            RETURN v_held;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'leases were moved 8 times while they were being held' USING ERRCODE = '55P03';
END
$awa$;
