-- Purpose: the size of a slot of the lease ring.
-- Parameters: the slot.
-- Returns: the bytes of all its children, without indexes.
-- Locks: none that are kept.
-- Caller: rotate, drain, prune, unpin, doctor.
CREATE OR REPLACE FUNCTION /*schema*/awa.lease_slot_bytes(p_slot smallint) RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $awa$
BEGIN
    CASE p_slot
    -- each lease slot:
    WHEN 0/*slot*/ THEN
        RETURN pg_relation_size('/*schema*/awa.leases_0/*slot*/');
    -- end each
    ELSE PERFORM /*schema*/awa.refuse_unknown_slot('lease', p_slot, true);
    END CASE;
END
$awa$;
