-- Purpose: makes a slot the one that writers go to: the rotation itself, and its repair when one was cut off between
--   moving the pointer and committing.
-- Parameters: the slot; its generation; the present.
-- Returns: false when that generation was opened by somebody else.
-- Locks: the ledger's primary key makes it a compare-and-swap; all rows of claim_ring_slots that change.
-- Caller: rotate.
CREATE OR REPLACE FUNCTION /*schema*/awa.open_claim_slot(p_slot smallint, p_generation bigint, p_now timestamptz)
RETURNS boolean LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $awa$
DECLARE
    v_after bigint;
BEGIN
    INSERT INTO /*schema*/awa.claim_ring_rotations (generation, opened_at, slot) VALUES (p_generation, p_now, p_slot)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    -- Read before the pointer moves: who claims in this generation draws his numbers afterwards. Where the pointer had
    -- moved already, only what is true of the generation before is known.
    SELECT CASE WHEN p.last_value >= p_generation * 64 + p_slot
                THEN (SELECT max(s.after_batch) FROM /*schema*/awa.claim_ring_slots AS s WHERE s.state = 'open')
                ELSE b.last_value - CASE WHEN b.is_called THEN 0 ELSE 1 END END
    INTO v_after FROM /*schema*/awa.claim_ring_pointer AS p CROSS JOIN /*schema*/awa.batch_id_seq AS b;
    UPDATE /*schema*/awa.claim_ring_slots SET state = 'sealed', sealed_at = p_now WHERE state = 'open';
    UPDATE /*schema*/awa.claim_ring_slots
    SET state = 'open', generation = p_generation, opened_at = p_now, sealed_at = NULL, after_batch = coalesce(v_after, 0)
    WHERE slot = p_slot AND state = 'free';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'slot % of the claim ring is not free', p_slot USING ERRCODE = '40001';
    END IF;
    -- Last, and only forward: from here on writers use the slot, whether or not this transaction commits.
    IF p_generation * 64 + p_slot > (SELECT last_value FROM /*schema*/awa.claim_ring_pointer) THEN
        PERFORM setval('/*schema*/awa.claim_ring_pointer', p_generation * 64 + p_slot);
    END IF;
    RETURN true;
END
$awa$;
