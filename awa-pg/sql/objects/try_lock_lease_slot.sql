-- Purpose: locks a slot of the lease ring for pruning, without ever waiting.
-- Parameters: the slot.
-- Returns: whether it was granted; a refusal leaves no lock behind.
-- Locks: ACCESS EXCLUSIVE on the child of leases; kept to the end of the transaction.
-- Caller: prune of the lease ring.
CREATE OR REPLACE FUNCTION /*schema*/awa.try_lock_lease_slot(p_slot smallint) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $awa$
BEGIN
    CASE p_slot
    -- each lease slot:
    WHEN 0/*slot*/ THEN LOCK TABLE /*schema*/awa.leases_0/*slot*/ IN ACCESS EXCLUSIVE MODE NOWAIT;
    -- end each
    ELSE PERFORM /*schema*/awa.refuse_unknown_slot('lease', p_slot, true);
    END CASE;
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END
$awa$;
