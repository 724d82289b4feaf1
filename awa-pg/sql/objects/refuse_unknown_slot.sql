-- Purpose: what a function does that has no branch for a slot. It is created with a branch per slot and anew when a ring
--   grows; a call that began before that, or a transaction that has cached the function, may meet a slot that is newer.
-- Parameters: name of the ring; the slot; whether it must be one of the ring (false: others may name slots that never were).
-- Returns: nothing; raises 40001 when the ring has that slot by now, AW002 when it must have it and has not.
-- Locks: ACCESS SHARE on the control table.
-- Caller: every function with a branch per slot.
CREATE OR REPLACE FUNCTION /*schema*/awa.refuse_unknown_slot(p_ring text, p_slot smallint, p_must_exist boolean)
RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $awa$
BEGIN
    IF EXISTS (SELECT FROM /*schema*/awa.queue_ring_slots AS s WHERE p_ring = 'queue' AND s.slot = p_slot)
       OR EXISTS (SELECT FROM /*schema*/awa.claim_ring_slots AS s WHERE p_ring = 'claim' AND s.slot = p_slot)
       OR EXISTS (SELECT FROM /*schema*/awa.lease_ring_slots AS s WHERE p_ring = 'lease' AND s.slot = p_slot) THEN
        RAISE EXCEPTION 'the % ring has grown to slot % since this call began', p_ring, p_slot
            USING ERRCODE = '40001', HINT = 'call again';
    END IF;
    IF p_must_exist THEN
        RAISE EXCEPTION 'the % ring has no slot %', p_ring, p_slot
            USING ERRCODE = 'AW002', CONSTRAINT = 'AW002', HINT = 'run `awa doctor`; a pointer or a slot was changed by hand';
    END IF;
END
$awa$;
