-- Purpose: locks a slot of the claim ring for pruning, without ever waiting.
-- Parameters: the slot.
-- Returns: whether it was granted; a refusal leaves no lock behind.
-- Locks: ACCESS EXCLUSIVE on all children of the slot, in the order of the hot path; kept to the end of the transaction.
-- Caller: prune of the claim ring.
CREATE OR REPLACE FUNCTION /*schema*/awa.try_lock_claim_slot(p_slot smallint) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $awa$
BEGIN
    CASE p_slot
    -- each claim slot:
    WHEN 0/*slot*/ THEN
        LOCK TABLE /*schema*/awa.lease_claim_batches_0/*slot*/, /*schema*/awa.lease_claims_0/*slot*/,
            /*schema*/awa.lease_claim_closure_batches_0/*slot*/, /*schema*/awa.lease_claim_closures_0/*slot*/
            IN ACCESS EXCLUSIVE MODE NOWAIT;
    -- end each
    ELSE PERFORM /*schema*/awa.refuse_unknown_slot('claim', p_slot, true);
    END CASE;
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END
$awa$;
