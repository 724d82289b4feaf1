-- Purpose: how many claims of both shapes are stored in a slot of the claim ring. Reads them, but not their closures, and
--   no other child: under the lock of the slot it waits for nobody. STABLE, so that it is of the same snapshot as the proof
--   beside it.
-- Parameters: the slot.
-- Returns: the number.
-- Locks: ACCESS SHARE on the children of lease_claim_batches and lease_claims.
-- Caller: prune of the claim ring.
CREATE OR REPLACE FUNCTION /*schema*/awa.stored_claims(p_slot smallint) RETURNS bigint
LANGUAGE plpgsql STABLE
SET jit = off SET search_path = pg_catalog, pg_temp AS $awa$
BEGIN
    CASE p_slot
    -- each claim slot:
    WHEN 0/*slot*/ THEN
        RETURN (SELECT count(*) FROM /*schema*/awa.lease_claim_batches_0/*slot*/)
             + (SELECT count(*) FROM /*schema*/awa.lease_claims_0/*slot*/);
    -- end each
    ELSE PERFORM /*schema*/awa.refuse_unknown_slot('claim', p_slot, true);
    END CASE;
END
$awa$;
