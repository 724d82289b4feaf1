-- Purpose: reclaims a slot of the lease ring that was proven spent under its lock.
-- Parameters: the slot.
-- Returns: nothing.
-- Locks: ACCESS EXCLUSIVE on the child, held already.
-- Caller: prune.
CREATE OR REPLACE FUNCTION /*schema*/awa.truncate_lease_slot(p_slot smallint) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $awa$
BEGIN
    UPDATE /*schema*/awa.lease_ring_slots SET state = 'free' WHERE slot = p_slot;
    CASE p_slot
    -- each lease slot:
    WHEN 0/*slot*/ THEN
        -- A child without pages is left alone: each TRUNCATE writes to the catalog.
        IF pg_relation_size('/*schema*/awa.leases_0/*slot*/') > 0 THEN
            TRUNCATE /*schema*/awa.leases_0/*slot*/;
        END IF;
    -- end each
    ELSE PERFORM /*schema*/awa.refuse_unknown_slot('lease', p_slot, true);
    END CASE;
END
$awa$;
