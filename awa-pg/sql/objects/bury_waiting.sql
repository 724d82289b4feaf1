-- Purpose: cancels one job if it waits in the ring, without holding its lane: a claim that does not see the tombstone yet may
--   still hand the job out, and then the tombstone is void.
-- Parameters: id; reason; the present.
-- Returns: whether a tombstone was written.
-- Locks: as bury_waiting_0, for the slots in which rows may wait.
-- Caller: replace_waiting_job, request_cancel.
CREATE OR REPLACE FUNCTION /*schema*/awa.bury_waiting(p_job bigint, p_reason text, p_now timestamptz) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_slot   record;
    v_buried boolean;
BEGIN
    -- Only where rows may wait: reading the other slots would keep them from being reclaimed. The newest first.
    FOR v_slot IN
        SELECT s.slot FROM /*schema*/awa.queue_ring_slots AS s
        WHERE s.state IN ('open', 'sealed') OR s.slot = ((SELECT p.last_value FROM /*schema*/awa.queue_ring_pointer AS p) & 63)
        ORDER BY s.slot = ((SELECT p.last_value FROM /*schema*/awa.queue_ring_pointer AS p) & 63) DESC, s.generation DESC
    LOOP
        CASE v_slot.slot
        -- each queue slot:
        WHEN 0/*slot*/ THEN v_buried := /*schema*/awa.bury_waiting_0/*slot*/(p_job, p_reason, p_now);
        -- end each
        ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', v_slot.slot, true);
        END CASE;
        IF v_buried THEN
            RETURN true;
        END IF;
    END LOOP;
    RETURN false;
END
$awa$;
