-- Purpose: makes a slot the one that writers go to: the rotation itself, and its repair when one was cut off between
--   moving the pointer and committing.
-- Parameters: the slot; its generation; the present.
-- Returns: false when that generation was opened by somebody else.
-- Locks: the ledger's primary key makes it a compare-and-swap; all rows of queue_ring_slots that change.
-- Caller: rotate.
CREATE OR REPLACE FUNCTION /*schema*/awa.open_queue_slot(p_slot smallint, p_generation bigint, p_now timestamptz)
RETURNS boolean LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $awa$
BEGIN
    INSERT INTO /*schema*/awa.queue_ring_rotations (generation, opened_at, slot) VALUES (p_generation, p_now, p_slot)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE /*schema*/awa.queue_ring_slots SET state = 'sealed', sealed_at = p_now WHERE state = 'open';
    UPDATE /*schema*/awa.queue_ring_slots
    SET state = 'open', generation = p_generation, opened_at = p_now, sealed_at = NULL,
        has_noted_lanes = false, lanes = NULL
    WHERE slot = p_slot AND state = 'free';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'slot % of the queue ring is not free', p_slot USING ERRCODE = '40001';
    END IF;
    -- Last, and only forward: from here on writers use the slot, whether or not this transaction commits.
    IF p_generation * 64 + p_slot > (SELECT last_value FROM /*schema*/awa.queue_ring_pointer) THEN
        PERFORM setval('/*schema*/awa.queue_ring_pointer', p_generation * 64 + p_slot);
    END IF;
    RETURN true;
END
$awa$;
