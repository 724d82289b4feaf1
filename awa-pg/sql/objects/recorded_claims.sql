-- Purpose: a number that changes with each claim of rows of a slot of the queue ring; see recorded_claims_0. STABLE, so
--   that it is of the same snapshot as the proof beside it.
-- Parameters: the slot.
-- Returns: the number.
-- Locks: as recorded_claims_0.
-- Caller: prune of the queue ring.
CREATE OR REPLACE FUNCTION /*schema*/awa.recorded_claims(p_slot smallint) RETURNS bigint
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off AS $awa$
BEGIN
    CASE p_slot
    -- each queue slot:
    WHEN 0/*slot*/ THEN RETURN /*schema*/awa.recorded_claims_0/*slot*/();
    -- end each
    ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', p_slot, true);
    END CASE;
END
$awa$;
