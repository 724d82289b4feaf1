-- Purpose: the size of a slot of the claim ring.
-- Parameters: the slot.
-- Returns: the bytes of all its children, without indexes.
-- Locks: none that are kept.
-- Caller: rotate, drain, prune, unpin, doctor.
CREATE OR REPLACE FUNCTION /*schema*/awa.claim_slot_bytes(p_slot smallint) RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $awa$
BEGIN
    CASE p_slot
    -- each claim slot:
    WHEN 0/*slot*/ THEN
        RETURN pg_relation_size('/*schema*/awa.lease_claim_batches_0/*slot*/')
            + pg_relation_size('/*schema*/awa.lease_claims_0/*slot*/')
            + pg_relation_size('/*schema*/awa.lease_claim_closure_batches_0/*slot*/')
            + pg_relation_size('/*schema*/awa.lease_claim_closures_0/*slot*/');
    -- end each
    ELSE PERFORM /*schema*/awa.refuse_unknown_slot('claim', p_slot, true);
    END CASE;
END
$awa$;
