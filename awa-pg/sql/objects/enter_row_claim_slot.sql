-- Purpose: the writer protocol of lease_claims: which slot takes the row-local claims of this transaction, with its child
--   locked until the end of the transaction.
-- Parameters: none.
-- Returns: the slot.
-- Locks: ROW EXCLUSIVE on one child of lease_claims.
-- Caller: claim_jobs.
CREATE OR REPLACE FUNCTION /*schema*/awa.enter_row_claim_slot() RETURNS smallint
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_pointer bigint;
    v_again   bigint;
BEGIN
    SELECT last_value INTO v_pointer FROM /*schema*/awa.claim_ring_pointer;
    FOR v_turn IN 1..8 LOOP
        CASE v_pointer & 63
        -- each claim slot:
        WHEN 0/*slot*/ THEN LOCK TABLE /*schema*/awa.lease_claims_0/*slot*/ IN ROW EXCLUSIVE MODE;
        -- end each
        ELSE PERFORM /*schema*/awa.refuse_unknown_slot('claim', (v_pointer & 63)::smallint, true);
        END CASE;
        SELECT last_value INTO v_again FROM /*schema*/awa.claim_ring_pointer;
        IF v_again = v_pointer THEN
            RETURN v_pointer & 63;
        END IF;
        v_pointer := v_again;
    END LOOP;
    RAISE EXCEPTION 'the claim ring rotated 8 times during one claim' USING ERRCODE = '40001';
END
$awa$;
