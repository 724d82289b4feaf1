-- Purpose: the writer protocol of claims: which slot takes those of this transaction, with the child of their shape locked
--   until the end of the transaction.
-- Parameters: whether the claims are row-local.
-- Returns: the slot.
-- Locks: ROW EXCLUSIVE on one child of lease_claim_batches, or of lease_claims.
-- Caller: claim_jobs.
CREATE OR REPLACE FUNCTION /*schema*/awa.enter_claim_slot(p_row_local boolean) RETURNS smallint
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_pointer bigint := pg_sequence_last_value('/*schema*/awa.claim_ring_pointer');
    v_again   bigint;
BEGIN
    FOR v_turn IN 1..8 LOOP
        CASE v_pointer & 63
        -- each claim slot:
        WHEN 0/*slot*/ THEN
            IF p_row_local THEN
                LOCK TABLE /*schema*/awa.lease_claims_0/*slot*/ IN ROW EXCLUSIVE MODE;
            ELSE
                LOCK TABLE /*schema*/awa.lease_claim_batches_0/*slot*/ IN ROW EXCLUSIVE MODE;
            END IF;
        -- end each
        ELSE PERFORM /*schema*/awa.refuse_unknown_slot('claim', (v_pointer & 63)::smallint, true);
        END CASE;
        v_again := pg_sequence_last_value('/*schema*/awa.claim_ring_pointer');
        IF v_again = v_pointer THEN
            RETURN v_pointer & 63;
        END IF;
        v_pointer := v_again;
    END LOOP;
    RAISE EXCEPTION 'the claim ring rotated 8 times during one claim' USING ERRCODE = '40001';
END
$awa$;
